"""Small templates for jinja_judge.py: expressions (jinja_expressions.txt), each also combined with others, and statements. VARIABLES is what they
see."""
import os

VARIABLES = {
    "s": "Hello World", "t": "  padded\n", "e": "", "u": "Über naïve ΣΑΣ straße ǅ 你好🙂", "n": 7, "z": 0, "neg": -3, "f": 2.5, "big": 10**15,
    "yes": True, "no": False, "nothing": None, "l": [3, 1, 2], "words": ["b", "A", "c", "a"], "el": [], "nested": [[1, 2], [3, [4, 5]]],
    "d": {"a": 1, "b": "two", "c": [1, None, True], "items": "shadowed", "Z": {"x": 1.0}}, "ed": {},
    "ms": [{"role": "user", "content": "hi", "n": 1}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "", "n": 2}],
    "q": "it's \"both\"", "lines": "one\n two\n\nthree\r\nfour", "num": "42", "fnum": "3.75", "json": {"k": "a<b>&'\"\\/\t\n\u2028\x01é🙂", "l": [], "o": {}},
}

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "jinja_expressions.txt"), encoding="utf8") as file:
    EXPRESSIONS = file.read().split("\n")[:-1]

STATEMENTS = [
    # whitespace
    "a\n{% if true %}\nb\n{% endif %}\nc\n", "a\n  {% if true %}  \n  b\n  {% endif %}\nc", "a {%- if true -%} b {%- endif -%} c",
    "a\n  {%+ if true %}\nb{% endif %}", "a{% if true +%}\nb{% endif %}", "a\n   {{ 1 }}\n   {{- 2 -}}   \n b", "  {# c #}\nx", "a {#- c -#} b",
    "a\n  {# c #}  \nb", "{#+ c +#}\nx", "{# multi\nline #}x", "{#}x", "{# {{ 1 }} #}", "x\n\n", "x\n", "\nx", "\r\nx\r\ny\r\n", "x\r", "{{ 1 }}\n", "{{ 1 }}\n\n",
    "{% raw %}{{ x }}{% endraw %}", "{% raw -%}  a  {%- endraw %}b", "a\n  {% raw %}\n  b\n  {% endraw %}\nc", "{%- raw -%} {# #} {%- endraw -%} x", "{% raw %}",
    "{% raw %}{% if %}{% endraw +%}\nx", "   {%- if true %}x{% endif %}", "\t {% if true %}x{% endif %}", "x {% if true %}\n\n y{% endif %}", "{{ '\n' }}", "{% if true %}a{% endif %}\n{% if true %}b{% endif %}",
    "{{'a'}}{{'b'}}", "{ { % } }", "{", "{%", "{{", "{#", "a }} b %} c #}", "{{ '}}' }}", "{{ '%}' }}", "{% if '%}' %}x{% endif %}", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a': {'b': 1}}}}",
    "a\n    {%- if true %}\n    b\n    {%- endif %}\nc", "  {{- 'x' }}", "\u00a0{%- if true %}x{% endif %}", "a\n\u00a0{% if true %}x{% endif %}", "{% if true %}\n{% endif %}x",
    "{%if true%}x{%endif%}", "{%-if true-%}x{%-endif-%}", "{{-1}}", "{{--1}}", "{{ -1 }}", "{{+1}}", "{{ 1 -}}  x",
    # if
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if missing %}a{% endif %}x",
    "{% if %}{% endif %}", "{% if true %}", "{% endif %}", "{% if true %}{% else %}{% else %}{% endif %}", "{% if true %}{% elif %}{% endif %}", "{% if true: %}x{% endif %}", "{% if a, b %}x{% endif %}", "{% elif true %}",
    "{% if x is defined and x.y %}a{% else %}b{% endif %}", "{% if false %}{{ 1|nosuchfilter }}{% endif %}x", "{% if true %}{{ 1|nosuchfilter }}{% endif %}x", "{% if false %}{% for a in l %}{{ 1|nosuchfilter }}{% endfor %}{% endif %}x",
    "{% for a in [] %}{{ 1|nosuchfilter }}{% endfor %}", "{% macro m() %}{{ 1 is nosuchtest }}{% endmacro %}", "{% if 1 is nosuchtest %}{% endif %}", "{% if false and 1 is nosuchtest %}{% endif %}x",
    # for
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in [] %}{% else %}none{% endfor %}", "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}", "{% for x in l %}{{ loop.previtem.a }}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for a, b in nested %}{{ a }}-{{ b }};{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for x in 'añ🙂' %}[{{ x }}]{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in missing %}{% else %}empty{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}", "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{{ loop.last }}{% endfor %}",
    "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}", "{% for x in l if loop.index > 1 %}{{ x }}{% endfor %}", "{% for m in ms if m.role == 'user' %}{{ m.content }}{% if not loop.last %},{% endif %}{% endfor %}", "{% for x in l %}{% for y in 'ab' %}{{ x }}{{ y }}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in l %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.cycle() }}{% endfor %}",
    "{% for x in l %}{{ loop }}{% endfor %}", "{% for x in l %}{% endfor %}{{ x }}", "{% for x in l %}{% endfor %}{{ loop }}", "{% set x = 9 %}{% for x in l %}{{ x }}{% endfor %}{{ x }}", "{% for x in l: %}{{ x }}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% for in l %}{% endfor %}", "{% for x l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for x in l %}", "{% for 1 in l %}{% endfor %}", "{% for x.y in l %}{% endfor %}", "{% for none in l %}{% endfor %}", "{% for x in l if %}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% break %}", "{% continue %}", "{% for x in l %}{% for y in l %}{% break %}{% endfor %}{{ x }}{% endfor %}", "{% for x in [] %}{% else %}{% break %}{% endfor %}",
    "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in l %}{{ x }}{% else %}e{% endfor %}", "{% for x in l %}{% if loop.first %}{% break %}{% endif %}{% else %}e{% endfor %}x", "{% for x in ms|selectattr('n') %}{{ x.n }}{{ loop.last }}{{ loop.length }}{% endfor %}", "{% set g = ms|map(attribute='role') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}",
    "{% for k, v in d|items %}{{ k }}{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "{% for x in l|reverse %}{{ x }}{% endfor %}", "{% for x in d.values() %}{{ x }}{% endfor %}", "{% for i in range(ms|length) %}{{ ms[i].role }}{% endfor %}", "{% for x in [[1, 2], [3]] %}{% for y in x %}{{ y }}{{ loop.length }}{% endfor %}{% endfor %}",
    # set, scope, namespace
    "{% set x = 1 %}{{ x }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set (x, y) = (1, 2) %}{{ x }}{{ y }}", "{% set x, y = 1 %}", "{% set x = 1, 2 %}{{ x }}", "{% set x %}a{{ n }}b{% endset %}{{ x }}", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | trim | upper %} abc {% endset %}[{{ x }}]", "{% set x %}{% set y = 1 %}{% endset %}{{ y }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% set x = 1 %}{% for i in l %}{% set x = 2 %}{% endfor %}{{ x }}", "{% for i in l %}{{ v }}{% set v = i %}{% endfor %}", "{% set v = 'o' %}{% for i in l %}{{ v }}{% set v = i %}{{ v }}{% endfor %}{{ v }}", "{% for i in [1, 2] %}{% if i == 1 %}{% set v = 'a' %}{% endif %}{{ v }};{% endfor %}",
    "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}", "{% set ns = namespace() %}{% for x in l %}{% set ns.s = (ns.s or 0) + x %}{% endfor %}{{ ns.s }}", "{% set ns = namespace(x='') %}{% for m in ms %}{% set ns.x = ns.x ~ m.role %}{% endfor %}{{ ns.x }}", "{% set d.x = 1 %}", "{% set missing.x = 1 %}", "{% set s.x = 1 %}", "{% set ns = namespace(l=[]) %}{% for x in l %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}",
    "{% set ns = namespace(a=1, b=2) %}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace(x=1) %}{% set ns.x %}block{% endset %}{{ ns.x }}", "{% set ns = namespace(a=1) %}{% set other = ns %}{% set other.a = 5 %}{{ ns.a }}", "{% set ns = namespace(a=1) %}{{ ns is defined }}{{ ns.a is defined }}{{ ns.b is defined }}{{ ns is mapping }}{{ ns is iterable }}",
    "{% set %}", "{% set x = %}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% set x %}", "{% set x = y = 1 %}", "{% set loop = 5 %}{{ loop }}", "{% set x = x|default(5) %}{{ x }}", "{% set n = n + 1 %}{{ n }}", "{% set range = 5 %}{{ range }}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{% endwith %}",
    "{% with a=1 b=2 %}{% endwith %}",
    # macros
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(c=1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ varargs|length }}{{ kwargs.x }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ later }}{% endmacro %}{% set later = 5 %}{{ m() }}", "{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}", "{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(4) }}", "{% macro a() %}a{{ b() }}{% endmacro %}{% macro b() %}b{% endmacro %}{{ a() }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m() %}  x  {% endmacro %}[{{ m() | trim }}]", "{% macro m(x) %}{{ x is defined }}{% endmacro %}{{ m() }}{{ m(none) }}", "{% macro m(x) %}{{ x.y }}{% endmacro %}{{ m() }}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}body{{ n }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}+{{ b }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}b{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% call 5 %}x{% endcall %}",
    "{% macro %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m( %}{% endmacro %}", "{% macro m() %}", "{% macro m(l) %}{% for x in l %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}{% endmacro %}{{ m([1, 2, 3]) }}{{ m(l) }}", "{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ m(1) }}]", "{% macro m(a) %}{{ a }}{% endmacro %}{% set x = m('q') %}{{ x|upper }}", "{% macro m() %}1{% endmacro %}{{ m() + 1 }}", "{% macro m() %}1{% endmacro %}{{ m()|int + 1 }}", "{% macro m(a, *b) %}{% endmacro %}",
    # filter blocks, generation, print, unknown tags
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter trim|upper %} abc {% endfilter %}", "{% filter replace('a', 'b') %}aaa{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter nosuch %}{% endfilter %}", "{% generation %}a{% set q = 1 %}{% endgeneration %}", "{% generation %}a{{ s }}{% endgeneration %}b", "{% generation %}", "{% set y = 1 %}{% generation %}{% set y = 2 %}{{ y }}{% endgeneration %}{{ y }}", "{% print 1, 2 %}", "{% nosuch %}", "{% do 1 %}", "{% 5 %}", "{% %}", "{% trans %}{% endtrans %}",
    "{% if true %}{% endfor %}", "{% for x in l %}{% endif %}", "{% set x = 1 +%}{{ x }}", "{% if yes -%}\n\n  x\n{%- endif %}", "{%- set x = 1 -%}  {{ x }}",
    # attributes and undefined in statements
    "{% if d.x.y %}{% endif %}", "{% if d.x %}a{% else %}b{% endif %}", "{% for m in ms %}{{ m.n }}{{ m['n'] }}{% endfor %}", "{% for m in ms %}{{ '<|' + m['role'] + '|>' + m.content + '\n' }}{% endfor %}", "{% for m in ms %}{{ m.content + m.n }}{% endfor %}", "{% for m in ms %}{{ m.name + 'x' }}{% endfor %}",
    "{% for m in ms %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles') }}{% endif %}{{ m.role }}{% endfor %}", "{% set l2 = ms[1:] %}{% for m in l2 %}{{ loop.index0 }}{{ m.role }}{% endfor %}", "{% set i = (ms|length) - 1 %}{{ ms[i].role }}", "{%- for m in ms[::-1] %}{% set i = (ms|length - 1) - loop.index0 %}{{ i }}{{ m.role }}{% endfor %}",
    "{% set x = 'a</think>b'.split('</think>')[-1].lstrip('\\n') %}{{ x }}", "{% set ns = namespace(f=false) %}{% for m in ms %}{% if m.role == 'user' and not ns.f %}{{ m.content }}{% set ns.f = true %}{% endif %}{% endfor %}", "{{ ms|selectattr('role', 'equalto', 'user')|map(attribute='content')|join('|') }}", "{{ (ms | first).role }}{{ (ms | last).content }}", "{% set a = [] %}{% set a = a + [1] %}{{ a }}", "{% set a = {} %}{% set a = dict(a, x=1) %}{{ a }}",
    "é{{ u[0] }}\n{% if true %}ü{% endif %}", "{% if é %}{% endif %}x", "{{ é }}", "{% set é = 1 %}{{ é }}", "{{ x🙂 }}", "\u2028{% if true %}x{% endif %}",
    "{% for x in range(2000) %}{{ x }}{% endfor %}", "{{ range(2000)|list|sum }}", "{% set ns = namespace(x='') %}{% for i in range(300) %}{% set ns.x = ns.x + 'ab' %}{% endfor %}{{ ns.x|length }}",
]

# Combined with each other: every pair of an operator and two of these.
OPERANDS = ["1", "0", "-7", "2.5", "''", "'ab'", "none", "true", "[1, 2]", "(1,)", "{'a': 1}", "missing", "range(2)"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]
UNARY_FILTERS = ["length", "first", "last", "list", "string", "int", "float", "abs", "round", "upper", "trim", "title", "capitalize", "join", "sort",
                 "reverse|list", "unique|list", "sum", "min", "max", "tojson", "default('d')", "items|list", "select|list", "map('string')|list", "escape", "dictsort"]
TESTS = ["defined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable", "callable", "odd", "even", "upper", "escaped"]


def cases():
    expressions = list(EXPRESSIONS)
    expressions += [f"{a} {op} {b}" for a in OPERANDS for op in OPERATORS for b in OPERANDS if (a, op, b) != ("-7", "**", "2.5")]  # which is complex
    expressions += [f"({a})|{name}" for a in OPERANDS for name in UNARY_FILTERS]
    expressions += [f"({a}) is {name}" for a in OPERANDS for name in TESTS]
    expressions += [f"({a})[{i}]" for a in OPERANDS for i in ("0", "-1", "'a'", "none", "'zz'")]
    # Of what cannot be sliced: variables, for of constants jinja2 makes something undefined while it compiles.
    expressions += [f"{a}[{i}]" for a in ("s", "e", "n", "f", "yes", "nothing", "d", "l", "el", "missing", "range(2)")
                    for i in ("1:", "::-1", ":'a'", ":2:0", "-1:0:-1", "none:1")]
    return ["{{ " + e + " }}" for e in expressions] + STATEMENTS
