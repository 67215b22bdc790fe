"""What the page makes of Markdown: nothing of it runs or loads, the pieces in which it
comes do not matter, and a token costs the same however long the answer is."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.scripted import ScriptedServer, proof

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

ALLOWED_TAGS = [
    *("A", "BLOCKQUOTE", "BR", "BUTTON", "CODE", "DIV", "EM", "FIGCAPTION", "FIGURE"),
    *("H2", "H3", "H4", "H5", "H6", "HR", "INPUT", "LI", "OL", "P", "PRE", "S", "SPAN"),
    *("STRONG", "TABLE", "TBODY", "TD", "TH", "THEAD", "TR", "UL"),
]
HOSTILE = """\
<img src=x onerror="window.hacked = 1"> <svg onload="hacked = 1"></svg>
<script>window.hacked = 1</script><style>body { display: none }</style>
<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe>
<a href="javascript:window.hacked = 1">html link</a>

[script](javascript:window.hacked=1) [data](data:text/html,<script>hacked=1</script>)
[spaced]( javascript:hacked=1) [mixed](JaVaScRiPt:hacked=1) [tab](java\tscript:hacked=1)
[blob](blob:http://x/y) [file](file:///etc/passwd) [relative](/healthz)
[quote](https://ok.example/" onclick="window.hacked=1) [good](https://good.example/a?b=c)
![pixel](https://tracker.example/pixel.png) ![script](javascript:hacked=1)
javascript:hacked=1 https://plain.example/path

```"><img src=x onerror=hacked=1>
code
```
"""


def say(server: ScriptedServer, text: str, step: int) -> None:
    server.start(server.ask("hi"))
    for at in range(0, len(text), step):
        server.event("delta", text=text[at : at + step])
    server.done(text=proof(text))


@pytest.mark.parametrize("step", [1, 3, 7, 10_000])
def test_hostile_text_neither_runs_nor_loads(
    page: Page, server: ScriptedServer, step: int
) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    say(server, HOSTILE, step)
    expect(page.locator(".ending")).to_have_text("complete")
    expect(page.locator(".wrong")).to_have_count(0)
    links = page.locator(".markdown a[href]")
    hrefs = [link.get_attribute("href") for link in links.all()]
    assert hrefs == [
        "https://ok.example/%22%20onclick=%22window.hacked=1",
        "https://good.example/a?b=c",
        "https://tracker.example/pixel.png",
        "https://plain.example/path",
    ]
    found = page.evaluate(
        """() => [...document.querySelectorAll('.turn .markdown *')].flatMap(element =>
          [element.tagName, ...[...element.attributes].map(({name}) => '@' + name)])"""
    )
    tags = {name for name in found if not name.startswith("@")}
    attributes = {name for name in found if name.startswith("@")}
    assert tags <= set(ALLOWED_TAGS)
    assert attributes <= {"@class", "@href", "@title", "@target", "@rel", "@type"}
    assert page.evaluate("window.hacked") is None
    assert requests == []
    assert "<script>window.hacked = 1</script>" in page.inner_text(".markdown")


def test_cuts_of_the_stream_never_change_the_page(page: Page, address: str) -> None:
    """Random Markdown, nested deep and broken: the same from any pieces."""
    page.goto(address)
    differing = page.evaluate(
        """async allowed => {
          const { MarkdownWriter } = await import('/page/markdown.js');
          let state = 7;
          const random = below => {
            state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
            return Math.floor((state / 2 ** 32) * below);
          };
          const ALPHABET = ['a', 'snake_case', ' ', '\\n', '\\n\\n', '*', '**', '_', '__',
            '`', '```', '~~', '# ', '> ', '>>', '- ', '1. ', '    ', '\\n\\n|a|\\n|-|\\n|1|\\n\\n', '[', '](',
            ')', '![', 'http://a', '$', '$$', '\\\\', '\\\\[', '<br>', '<b', '- [x] ', '漢', '👋'];
          const render = pieces => {
            const root = document.createElement('div');
            const writer = new MarkdownWriter(root);
            pieces.forEach(piece => writer.write(piece));
            writer.end();
            return root;
          };
          for (let round = 0; round < 1500; round += 1) {
            const tokens = Array.from({ length: 5 + random(120) }, () =>
              ALPHABET[random(ALPHABET.length)]);
            const text = tokens.join('');
            const whole = render([text]);
            const cut = render(tokens);
            const bytes = render([...text]);
            if (whole.innerHTML !== cut.innerHTML || whole.innerHTML !== bytes.innerHTML)
              return ['cut', text];
            for (const element of whole.querySelectorAll('*'))
              if (!allowed.includes(element.tagName)) return ['tag', text];
            const letters = string => string.replaceAll(/[^a漢👋]/gu, '').length;
            if (letters(whole.textContent) < letters(text) && !whole.querySelector('a,figcaption'))
              return ['lost', text, whole.innerHTML];
          }
          return null;
        }""",
        ALLOWED_TAGS,
    )
    assert differing is None


def test_the_cost_of_a_token_does_not_grow(page: Page, address: str) -> None:
    """10,000 tokens with code and tables; then constructs that never end."""
    page.goto(address)
    result = page.evaluate(
        """async () => {
          const { MarkdownWriter } = await import('/page/markdown.js');
          const root = document.body.appendChild(document.createElement('div'));
          const writer = new MarkdownWriter(root);
          const block = ['## A heading\\n\\n', ...'Some words of an answer that goes on. '
            .repeat(8).match(/\\S+ /g), '\\n\\n| a | b |\\n|---|---|\\n', '| 1 | 2 |\\n',
            '\\n```python\\n', 'x = 1\\n', '```\\n\\n'];
          const times = [];
          let first;
          for (let token = 0; token < 10_000; token += 1) {
            const began = performance.now();
            writer.write(block[token % block.length]);
            times.push(performance.now() - began);
            if (token === 200) first = root.children[1];
          }
          const sum = part => part.reduce((a, b) => a + b, 0);
          const endless = {};
          for (const [name, text] of Object.entries({
            link: '[a](', url: 'https://a', rule: '- ', table: '|a|\\n|', fence: '```'})) {
            const writer = new MarkdownWriter(document.createElement('div'));
            const began = performance.now();
            writer.write(text + (name === 'rule' ? '- '.repeat(1e5) : '-'.repeat(2e5)));
            endless[name] = performance.now() - began;
          }
          return { early: sum(times.slice(500, 2500)), late: sum(times.slice(-2000)),
            total: sum(times), kept: first === root.children[1] && first.isConnected, endless };
        }"""
    )
    assert result["kept"]
    assert result["late"] < 3 * result["early"] + 20, result
    assert result["total"] < 2_000, result
    assert max(result["endless"].values()) < 1_000, result
