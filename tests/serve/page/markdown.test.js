// Markdown: what each construct becomes, that streaming and reading at once agree, that letters keep their places, and that no text
// of a model becomes anything else than text.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {markdown, MarkdownStream} from '../page/markdown.js';
import {safeAddress} from '../page/inline.js';
import {leaves, plain, spelled} from './helpers.js';

const reads = (text, expected) => assert.equal(plain(markdown(text)), expected);

// One of everything, and what models get wrong.
const kSample = `# Title
An *answer* with **weight**, \`code\` and ~~errors~~.
A second line, [a link](https://example.org/a_(b)) and https://example.org/x.

1. one
   - inner
   - *inner* too

     with a paragraph
2. two
\`\`\`python
def f(x):
    return x ** 2  # "quoted"

print(f(2))
\`\`\`
3. three

> quoted
> - and a list

| name | size |
|:-----|-----:|
| a \\| b | 1 |
| \`c|d\` | **2** |

***
- [ ] open
* other list

    indented code
    | no | table |

**never closed and \`neither
| a | b |
|---|---
`;

test('paragraphs, emphasis, code and line ends', () => {
  reads('a\nb\n\nc', '<p>a<br></br>b</p><p>c</p>');
  reads('**b** *i* ***both*** ~~s~~', '<p><strong>b</strong> <em>i</em> <em><strong>both</strong></em> <del>s</del></p>');
  reads('`a*b*` and ``a`b``', '<p><code>a*b*</code> and <code>a`b</code></p>');
  reads('snake_case_name and 2 * 3 * 4', '<p>snake_case_name and 2 * 3 * 4</p>');
  reads('**a *b* c**', '<p><strong>a <em>b</em> c</strong></p>');
  reads('*a**b*', '<p><em>a**b</em></p>');
  reads('\\*not\\* **open', '<p>*not* **open</p>');
});

test('headings have one level and six sizes', () => {
  assert.equal(spelled(markdown('# One #\n### Three')), '<h4 class="level-1">One</h4><h4 class="level-3">Three</h4>');
  reads('#hashtag', '<p>#hashtag</p>');
  reads('#', '<h4></h4>');
});

test('lists nest by indentation, also by two after a number', () => {
  reads('- a\n- b\n  - c\n    1. d\n- e', '<ul><li>a</li><li>b<ul><li>c<ol><li>d</li></ol></li></ul></li><li>e</li></ul>');
  reads('1. a\n  - b\n2. c', '<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>');
  reads('1. a\n\n2. b', '<ol><li><p>a</p></li><li><p>b</p></li></ol>');
  assert.match(spelled(markdown('3. c')), /^<ol start="3">/);
  reads('- a\n+ b', '<ul><li>a</li></ul><ul><li>b</li></ul>');
  reads('text\n- a', '<p>text</p><ul><li>a</li></ul>');
  reads('in 1999\n2. is no list', '<p>in 1999<br></br>2. is no list</p>');
});

test('code keeps its spaces, its language and its backticks', () => {
  const [block] = markdown('```py\na\n\n  b\n```\nafter');
  assert.equal(block.children[1].children[0].children.map(({text}) => text).join(''), 'a\n\n  b\n');
  assert.equal(block.children[0].children[0].children[0].text, 'py');
  reads('~~~\n```\n~~~', '<div><div><span>text</span><button>Copy</button></div><pre><code>```\n</code></pre></div>');
  assert.equal(leaves(markdown('```\nnot closed **yet**')).at(-1).text, 'not closed **yet**\n');
});

test('tables align, and bars in code or escaped do not cut cells', () => {
  const [table] = markdown('| a | b |\n|:-:|--:|\n| `x|y` | \\| |\n| only one |');
  assert.equal(plain([table]), '<div><table><thead><tr><th>a</th><th>b</th></tr></thead>'
    + '<tbody><tr><td><code>x|y</code></td><td>|</td></tr><tr><td>only one</td></tr></tbody></table></div>');
  assert.match(spelled([table]), /<th class="centre">a<\/th><th class="right">b<\/th>/);
  reads('a | b\nno rule', '<p>a | b<br></br>no rule</p>');
});

test('quotes hold blocks', () => {
  reads('> # a\n> - b\nc', '<blockquote><h4>a</h4><ul><li>b</li></ul></blockquote><p>c</p>');
});

test('links go to the web and to mail, and nowhere else', () => {
  assert.match(spelled(markdown('[a](https://example.org "t")')), /href="https:\/\/example.org".*rel="noopener noreferrer nofollow">a<\/a>/);
  reads('see https://example.org/a_(b). <https://example.org>', '<p>see <a>https://example.org/a_(b)</a>. <a>https://example.org</a></p>');
  reads('![cat](https://example.org/cat.png)', '<p><a>cat</a></p>');
  reads('[*a*](https://example.org)', '<p><a><em>a</em></a></p>');
  for (const address of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', '/v1/models', '//example.org', 'file:///etc', ' x']) {
    assert.equal(safeAddress(address), null, address);
    assert.doesNotMatch(spelled(markdown(`[a](${address})`)), /href/, address);
  }
});

test('HTML is text', () => {
  const text = '<script>alert(1)</script> <img src=x onerror=alert(1)> &lt;';
  assert.deepEqual(markdown(text)[0].children.map((leaf) => leaf.text), [text]);
});

test('what stays of a text stands where the source has it', () => {
  for (const {text, from} of leaves(markdown(kSample))) {
    if (from === undefined || text === '') continue;
    assert.equal(text.trimEnd(), kSample.slice(from, from + text.length).trimEnd());
  }
});

test('streaming gives the blocks that reading at once gives, however the text is cut', () => {
  for (const size of [1, 2, 3, 7, 40, 1000]) {
    const stream = new MarkdownStream();
    const fixed = [];
    let open = [];
    for (let at = 0; at < kSample.length; at += size) {
      stream.append(kSample.slice(at, at + size));
      const taken = stream.take();
      fixed.push(...taken.fixed);
      open = taken.open;
      assert.deepEqual([...fixed, ...open], markdown(kSample.slice(0, at + size)), `${size} letters a piece, up to ${at + size}`);
    }
    assert.ok(fixed.length > open.length);
  }
});

test('a hostile text takes no long', () => {
  const texts = ['>'.repeat(20000), '- '.repeat(5000), '['.repeat(20000), '*a_ '.repeat(4000), '`'.repeat(9999) + 'a ` b',
    `# ${' '.repeat(20000)}x`, '|'.repeat(9000) + '\n' + '|-'.repeat(9000), '(('.repeat(9000), '[a](' + '('.repeat(9000)];
  for (const text of texts) {
    const start = performance.now();
    markdown(text);
    assert.ok(performance.now() - start < 2000, text.slice(0, 10));
  }
});
