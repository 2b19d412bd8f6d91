"""Markdown that models write: a browser runs none of it, what is good in it stays, and what is plain is plain."""

import re
from html.parser import HTMLParser
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pagemill.export.markdown import escape
from pagemill.export.model_markdown import (
    code_block,
    formula,
    harmless,
    markdown_html,
    plain,
    plain_line,
    without_heading_marks,
)

RENDERER = MarkdownIt("commonmark", {"html": True}).enable("table")
TAGS = {
    "sub",
    "sup",
    "u",
    "br",
    "p",
    "pre",
    "code",
    "em",
    "strong",
    "ul",
    "ol",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
}
TAGS |= {"hr", "blockquote", "table", "thead", "tbody", "tr", "td", "th", "a"}
ATTRIBUTES = {
    "class": "language-.*",
    "start": r"\d+",
    "rowspan": r"\d+",
    "colspan": r"\d+",
    "href": r"https?://.*",
}


class Tags(HTMLParser):
    """Collects what a browser would do more with than to show text."""

    def __init__(self):
        super().__init__()
        self.live = []

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS or any(not re.fullmatch(ATTRIBUTES.get(name, "-"), value or "") for name, value in attrs):
            self.live.append(self.get_starttag_text())

    def handle_decl(self, decl):
        self.live.append(decl)

    handle_comment = handle_pi = unknown_decl = handle_decl


ATTACKS = [
    "<img src=x onerror=alert(1)>",
    "\\<img src=x onerror=alert(1)>",
    "\\\\<script>alert(1)</script>",
    "`a\n\n<img src=x>`",
    "`a\n<img src=x> ` <img src=y>",
    "a ` b\nc ` <img src=x> ` d",
    "\\`<img src=x>`",
    "``` <img src=x> ``` `<img src=y>",
    "1. a\n   ```\n<img src=x>\n   ```",
    "> ```\n<img src=x>\n```",
    "```html\n<img src=x>",
    "```\n<b>\n````\n<img src=x>\n```\n<img src=y>",
    "~~~\na\n```\n~~~\n<img src=x>",
    "| a | b |\n|---|---|\n| `x | <img src=x onerror=alert(1)> ` |",
    "$<img src=x>$ and $$<img src=y>$$",
    "$$\n<img src=x>\n$$",
    "[text](javascript:alert(1)) ![p](http://tracker/x.png)",
    "![p][a]\n\n[a]: http://tracker/x.png",
    "[a\\]b]: http://tracker/x\n\n![p][a\\]b]",
    "> [a]: http://tracker\n\n![a]",
    "<http://tracker/x>",
    "<!-- a -->\n<?php ?>\n<![CDATA[x]]>",
    "<div\nonclick=x>",
    "<sup onclick=x>2</sup>",
    " ```\n```\n<img src=x>",
    "> - ```\n```\n<img src=x>",
    "a\r```\r```\n<img src=x>",
    "<table>\n`<img src=x>`",
    "<table>\n```\n<img src=x>\n```",
    "<sup>\n```\n<img src=x>\n```",
    "<sup>\n`<img src=x>`",
    '<td rowspan="2" onclick="x">',
    "[a](<javascript:x>) [b](https://a.b/![p](http://c))",
]


def live(markdown: str) -> str | None:
    """The first thing in the rendered text that is more than formatting."""
    parser = Tags()
    parser.feed(RENDERER.render(markdown))
    parser.close()
    return parser.live[0] if parser.live else None


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_model_writes_is_run(attack):
    assert live(attack) or attack == ATTACKS[1] or "`" in attack or "$" in attack or "http" in attack
    for wrapped in (attack, f"text\n{attack}", f"- item\n{attack}", f"{attack}\n{attack}"):
        assert live(harmless(wrapped)) is None
        assert live(code_block(wrapped)) is None
    assert live(formula(attack)) is None


@given(
    st.lists(
        st.sampled_from(
            [
                "<img src=x>",
                "<sup>",
                "\r",
                "<table>",
                "](x)",
                "![a",
                "[a]: x",
                "`",
                "``",
                "```",
                "~~~",
                "$",
                "$$",
                "\\",
                "|",
                "|-|",
                "- ",
                "1. ",
                "> ",
                "    ",
                "\n",
                "\n\n",
                "\t",
                "<",
                ">",
                "a",
                " ",
                "#",
                "*",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_no_combination_is_run(text):
    assert live(harmless(text)) is None, text
    assert live(code_block(text)) is None, text
    assert live(formula(text)) is None, text


@pytest.mark.parametrize("text", ["\\<img src=x>", "\\\\<img src=x>", "a \\&lt;b"])
def test_backslashes_of_a_page_do_not_cancel_ours(text):
    assert live(escape(text)) is None
    shown = RENDERER.render(escape(text))
    assert shown == f"<p>{text.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</p>\n"


@pytest.mark.parametrize(
    "text",
    [
        "Plain words, and a formula $x_{1} < y$ with $a<1$.",
        "- one\n- two\n  - three\n\n1. first\n2. second",
        "```html\n<local-jndi-name>A</local-jndi-name>\n```",
        "The tag is `<jndi-name>` here.",
        "H<sub>2</sub>O and m<sup>2</sup><br>next",
        '<table><tr><th colspan="2">a</th></tr><tr><td>1</td><td>2</td></tr></table>',
        "$$\na \\\\\nb\n$$",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "**bold** and *slanted*",
    ],
)
def test_good_markdown_stays_as_it_is(text):
    assert harmless(text) == text


def test_what_changes():
    assert harmless("Seoul\nMapo-gu\nRoad 1") == "Seoul  \nMapo-gu  \nRoad 1"
    assert harmless("• one\n• two") == "- one\n- two"
    assert harmless("$a <b$") == "$a \\lt b$"
    assert harmless("```\nx") == "```\nx\n```"
    assert harmless("[a](b) [c](https://d)") == "[a]\\(b) [c](https://d)"
    assert code_block("x <b>\ny") == "```\nx <b>\ny\n```"
    assert formula("\na <b\n \n+ c\n") == "$$\na \\lt b\n+ c\n$$"
    assert formula("a $$ b", "3.1") == "$$\na  b \\tag{3.1}\n$$"


def test_only_marks_at_the_start_of_a_line_are_those_of_a_heading():
    assert plain("## Chapter 3: C# and F# basics, price # 5") == "Chapter 3: C# and F# basics, price # 5"
    assert plain("Item No. # 12, 12# wire") == "Item No. # 12, 12# wire"
    assert without_heading_marks("# C# or\n## F# ?") == "C# or\nF# ?"


def test_a_line_break_keeps_words_apart():
    assert plain("three<br>four<br/>five") == "three four five"


def test_plain_text_has_no_marks():
    text = "## 1 Title\n\n**Bold** `code` H<sub>2</sub>O\n\n```py\nx = 1\n```\n$y$"
    assert plain(text) == "1 Title\n\nBold code H2O\n\nx = 1\n$y$"
    assert plain_line("a\n\nb") == "a b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**a** b **c\nd**", "a b c\nd"),
        ("2 ** 3 ** 4", "2 ** 3 ** 4"),
        ("**never closed\n\nbut** here", "**never closed\n\nbut** here"),
        ("a ` b", "a ` b"),
        ("`a * b` and ``c ` d``", "a * b and c ` d"),
        ("`**x**` \\*note\\* \\_a\\_", "**x** *note* _a_"),
        ("$a**b$ **c** $\\*d$", "$a**b$ c $\\*d$"),
        ("from $5 **net** to $6", "from $5 net to $6"),
    ],
)
def test_only_marks_in_pairs_are_marks(text, expected):
    assert plain(text) == expected
    assert plain("") == "" and plain("**") == "**"


def test_html_is_ours():
    html = markdown_html("a <b>\nc\n\n- x\n- <y>\n\n```\n<z>\n```")
    assert html == ("<p>a &lt;b&gt;<br>c</p>\n<ul><li>x</li>\n<li>&lt;y&gt;</li></ul>\n<pre>&lt;z&gt;</pre>")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["`", "``` ", "\\", "<", "$", "](", "[", "~~~\n", "`a`` ", "\n", " \n", "- ", "\\<a", "•"]
)
def test_hostile_text_takes_time_that_grows_with_its_length(piece):
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        start = process_time()
        harmless(text), plain(text), code_block(text), formula(text), escape(text), markdown_html(text)
        return process_time() - start

    seconds(10_000)
    assert seconds(400_000) < 16 * max(seconds(100_000), 0.02)
