// The judge's templates, and small ones with what those lack.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string_view small[] = {
      "{% for a, (b, c) in [(1, (2, 3))] if a is odd %}{{ loop.cycle('x', 'y') }}{{ loop.changed(a) }}{% "
      "else %}e{% endfor %}",
      "{% set n = namespace(a=1) %}{% set n.a %}b{{ n.a }}{% endset %}{% with q = 2 %}{{ q ** 3 // 2 % 5 "
      "}}{% endwith %}",
      "{% macro m(a, b=2) %}{{ caller(a) ~ varargs ~ kwargs }}{% endmacro %}{% call(x) m(1, 2, 3, k=4) %}{{ "
      "x }}{% endcall %}",
      "{% filter upper %}{{ s[::-1] ~ s[1:3] ~ l[-1] }}{% endfilter %}{% raw %}{{ }}{% endraw %}{#- c -#}",
      "{{ '%5.2f|%-4d|%s' % (f, n, l) }}{{ '{} {x}'.format(n, x=s) }}{{ s.split(' ', 1) | join('-') | title "
      "}}",
      "{{ messages | selectattr('role', 'in', ['user']) | map(attribute='content') | list | tojson(indent=2, "
      "sort_keys=true) }}",
      "{{ l | sort(reverse=true) | unique | reverse | list }}{{ dict(a=1) | dictsort }}{{ 1 < n <= 7 and not "
      "s is none }}",
      "{{ s | replace('e', 'ß') | upper | indent(2, true) | safe ~ '<' }}{{ range(1, 9, 3) | sum }}{{ 2.675 "
      "| round(2) }}",
      "{% generation %}{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{% break %}{% endfor %}{% "
      "endgeneration %}",
  };
  for (std::size_t i = 0; i < std::size(small); ++i)
    coppice::core::write_seed(arguments[1], std::to_string(i), small[i]);
  for (const auto& entry : std::filesystem::directory_iterator(COPPICE_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    coppice::core::write_seed(arguments[1], entry.path().filename().string(), text.str());
  }
}
