"""Markdown that a model wrote (``ContentFormat.MARKDOWN``): made harmless, made plain, made HTML.

What a model writes repeats what a page says, so it is as little to be trusted as the page. Pictures, links to elsewhere
than the web, and tags are taken for text, but for those of plain tables, line breaks, underlined, raised and lowered
letters. All in time that grows with the text's length.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from pagemill.export.html_lists import list_html

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"(`{3,}|~{3,})((?<=~).*|[^`]*)")
"""Not indented: what is may end with the list that it stands in, and what follows it would not be code."""
_INNER_FENCE = re.compile(r"^([\s>\-+*\d.)]+)(?=`{3}|~{3})")
_NO_INFO = re.compile(r"[^\w+#.\-]")
_LINE_END = re.compile(r"\r\n?|\n")
_BLANK = re.compile(r"\n(?:[ \t]*\n)+")
_KEPT = r"(?:/?(?:su[bp]|u|table|thead|tbody|tr|t[hd])|t[hd](?: (?:row|col)span=\"\d{1,4}\"){1,2}|br ?/?)>"
_TAG = re.compile(rf"<(?=[A-Za-z/!?])(?!{_KEPT})")
"""The start of a tag, comment or address in angle brackets."""
_KEPT_TAG = re.compile(f"<{_KEPT}")
_LINK = re.compile(r"\](?=\()(?!\(https?://)")
_ESCAPED = re.compile(r"(?<!\\)\\(?=[\[<])|(?<=\])\\(?=\()")
_TICKS = re.compile(r"`+")
_NO_FORMULA = re.compile(r"\$\$|`{3,}|~{3,}")
"""What would end a formula, or swallow what follows it."""
_BULLET = re.compile(r"(\s*)[•·▪◦●○][ \t]*(?=\S)")
_BLOCK_START = re.compile(r"\s*(?:[-+*]\s|\d{1,3}[.)]\s|#{1,6}\s|>|\||`{3}|~{3}|\$\$|[-=*_]{2})")
_ITEM = re.compile(r"\s*(?:[-+*•·▪◦●○]|\d{1,3}[.)])\s")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+")


class _Piece(NamedTuple):
    """A piece of Markdown: a fenced block of code, without its fences, or anything else."""

    text: str
    is_code: bool = False
    info: str = ""
    fence: str = ""


def harmless(text: str) -> str:
    """Markdown that shows the same and can do nothing; fences are closed.

    A line break inside a paragraph becomes a hard one: on the page it was the end of an address line or of a verse, as
    models write what runs on in one line.
    """
    out: list[str] = []
    for piece in _pieces(text):
        if piece.is_code and out and out[-1].rpartition("\n")[2].strip():
            out.append("")  # an empty line ends a block of HTML, in which a fence would be none
        out.append(_fence(piece) if piece.is_code else "\n\n".join(map(_harmless_paragraph, _BLANK.split(piece.text))))
    return "\n".join(out)


def code_block(text: str) -> str:
    """A listing that a model wrote, fenced by the model or not, as one fenced block."""
    pieces = [piece for piece in _pieces(text) if piece.text.strip()]
    if len(pieces) == 1 and pieces[0].is_code:
        return _fence(pieces[0])
    return fenced(text)


def fenced(text: str) -> str:
    """A text as a fenced block, which no backticks in it can end."""
    fence = "`" * max(3, 1 + max((len(run.group()) for run in _TICKS.finditer(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def formula(latex: str, number: str | None = None) -> str:
    """A display formula in Markdown, with its number where it has one."""
    tag = f" \\tag{{{number}}}" if number else ""
    lines = [line.rstrip() for line in _LINE_END.split(_harmless_formula(_NO_FORMULA.sub("", latex))) if line.strip()]
    return "\n".join(["$$", "\n".join(lines) + tag, "$$"])  # an empty line would end it


def plain(text: str) -> str:
    """The text without marks of headings, emphasis and code; formulas stay LaTeX."""
    return "\n".join(
        piece.text if piece.is_code else "\n".join(map(_plain_line, piece.text.split("\n"))) for piece in _pieces(text)
    )


def plain_line(text: str) -> str:
    """The same in one line."""
    return " ".join(plain(text).split())


def markdown_html(text: str) -> str:
    """The text as HTML of paragraphs, lists and listings; everything inside is escaped text."""
    blocks: list[str] = []
    for piece in _pieces(text):
        if piece.is_code:
            blocks.append(f"<pre>{escape(piece.text)}</pre>")
            continue
        for paragraph in _BLANK.split(piece.text):
            lines = [line for line in paragraph.split("\n") if line.strip()]
            if lines and all(_ITEM.match(line) for line in lines):
                blocks.append(list_html(map(_plain_line, lines)))
            elif lines:
                blocks.append(f"<p>{'<br>'.join(escape(_plain_line(line)) for line in lines)}</p>")
    return "\n".join(blocks)


def _plain_line(line: str) -> str:
    line = _KEPT_TAG.sub(lambda tag: " " if "t" in tag[0] else "", _HEADING.sub("", line)).removeprefix("> ")
    line = _ESCAPED.sub("", line.replace("**", "").replace("`", "")).rstrip()
    return line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _pieces(text: str) -> Iterator[_Piece]:
    held: list[str] = []
    opening: re.Match[str] | None = None
    for line in _LINE_END.split(text):
        if opening is None:
            opening = _FENCE.fullmatch(line.rstrip())
            if opening is None:
                held.append(_INNER_FENCE.sub(r"\1\\", line))  # nobody could be sure where it ends
                continue
            if held:
                yield _Piece("\n".join(held))
            held = []
        elif line.strip(" ") and not line.strip().strip(opening[1][0]) and len(line.strip()) >= len(opening[1]):
            yield _Piece("\n".join(held), True, _NO_INFO.sub("", opening[2])[:20], opening[1])
            held, opening = [], None
        else:
            held.append(line)
    if opening is not None:
        yield _Piece("\n".join(held), True, _NO_INFO.sub("", opening[2])[:20], opening[1])
    elif held:
        yield _Piece("\n".join(held))


def _fence(piece: _Piece) -> str:
    return f"{piece.fence}{piece.info}\n{piece.text}\n{piece.fence}"


def _harmless_paragraph(text: str) -> str:
    lines = text.split("\n")
    code = [_code_spans(line) for line in lines]
    # In a block of HTML, which a tag may begin, backticks make no code.
    sure = all(spans is not None for spans in code) and not _KEPT_TAG.search(text)
    out: list[str] = []
    in_formula = False
    for line, spans in zip(lines, code, strict=True):
        marks = line.count("$$")
        if in_formula or marks % 2:
            done = _harmless_formula(line)
        else:
            done = _harmless_line(line, spans if sure and spans else [])
        breaks = bool(out) and not in_formula and not marks and bool(line.strip())
        if breaks and not _BLOCK_START.match(done) and _runs_on(out[-1]):
            out[-1] = f"{out[-1].rstrip()}  "
        out.append(done)
        in_formula ^= bool(marks % 2)
    return "\n".join(out)


def _runs_on(line: str) -> bool:
    """Whether the next line would be shown as the rest of this one."""
    start = line.lstrip()
    return bool(start) and not start.startswith(("#", "|", "$$", "```", "~~~"))


def _code_spans(line: str) -> list[tuple[int, int]] | None:
    r"""Start and end of the code spans of a line; None where that is not for sure.

    Sure is a line on which every run of backticks has its counterpart, none stands behind a backslash, and no span
    holds a bar, at which a table would cut it.
    """
    if "`" not in line:
        return []
    if "\\`" in line:
        return None
    runs = [(run.start(), run.end()) for run in _TICKS.finditer(line)]
    counterparts: list[int | None] = [None] * len(runs)
    seen: dict[int, int] = {}
    for i in range(len(runs) - 1, -1, -1):
        length = runs[i][1] - runs[i][0]
        counterparts[i] = seen.get(length)
        seen[length] = i
    spans: list[tuple[int, int]] = []
    i = 0
    while i < len(runs):
        closing = counterparts[i]
        if closing is None or "|" in line[runs[i][0] : runs[closing][1]]:
            return None
        spans.append((runs[i][0], runs[closing][1]))
        i = closing + 1
    return spans


def _harmless_line(line: str, code: list[tuple[int, int]]) -> str:
    out: list[str] = []
    start = 0
    for begin, end in [*code, (len(line), len(line))]:
        out.append(_outside_code(line[start:begin]))
        out.append(line[begin:end])
        start = end
    return _BULLET.sub(r"\1- ", "".join(out), count=1) if _BULLET.match(line) else "".join(out)


def _outside_code(text: str) -> str:
    parts = text.split("$")
    if len(parts) % 2 == 0:  # a lone dollar sign at the end is a price
        parts[-2:] = [f"{parts[-2]}${parts[-1]}"]
    return "$".join(_harmless_formula(part) if i % 2 else _harmless_prose(part) for i, part in enumerate(parts))


def _harmless_prose(text: str) -> str:
    """Tags begin with a character reference, which is text in a block of HTML too; links lose their joint."""
    text = _TAG.sub("&lt;", text).replace("![", "!\\[").replace("]:", "]\\:")
    return _LINK.sub(r"]\\", text)


def _harmless_formula(text: str) -> str:
    """The same where a backslash would break the formula: spaces and commands mean as much there."""
    text = re.sub(r"<(?=[A-Za-z/!?])", r"\\lt ", text)
    return text.replace("](", "] (").replace("]:", "] :")
