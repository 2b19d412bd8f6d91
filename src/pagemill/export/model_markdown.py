"""Markdown written by a model (``ContentFormat.MARKDOWN``): sanitized, as plain text, as HTML.

The answer of a model repeats the page, so it is as little to be trusted as the page. Pictures, links to elsewhere
than the web, and tags are taken for text, but for those of plain tables, line breaks, underlined, raised and lowered
letters. All in time that grows with the text's length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from pagemill.export.html_lists import list_html
from pagemill.late import re

_FENCED = re.compile(
    r"^(?P<fence>(?P<mark>[`~])(?P=mark){2,})(?P<info>(?<=~).*|[^`\n]*)$\n?"
    r"(?P<code>(?:.*\n)*?.*?)(?:\n?^[^\S\n]*(?P=fence)(?P=mark)*[^\S\n]*$\n?|\Z)",
    re.MULTILINE,
)
"""Not indented: what is may end with the list that it stands in, and what follows it would not be code."""
_INNER_FENCE = re.compile(r"^((?:[^\S\n]|[>\-+*\d.)])+)(?=`{3}|~{3})", re.MULTILINE)
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
_MARK = re.compile(r"\\[\\`*_#$]|`+|\*\*|\$\$?|\n[^\S\n]*\n")
_CODE = re.compile(r"(`+[^`]+`+)")
_NO_FORMULA = re.compile(r"\$\$|`{3,}|~{3,}")
"""Sequences that would end a formula, or swallow the following text."""
_BULLET = re.compile(r"^(\s*)[•·▪◦●○][ \t]*(?=\S)")
_BLOCK_START = re.compile(r"\s*(?:[-+*]\s|\d{1,3}[.)]\s|#{1,6}\s|>|\||`{3}|~{3}|\$\$|[-=*_]{2})")
_ITEM = re.compile(r"\s*(?:[-+*•·▪◦●○]|\d{1,3}[.)])\s")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+")


class _Piece(NamedTuple):
    """A piece of Markdown: a fenced block of code, without its fences, or anything else."""

    text: str
    fence: str = ""
    info: str = ""


def harmless(text: str) -> str:
    """Equivalent Markdown without active content; fences are closed.

    A line break inside a paragraph becomes a hard one: on the page it was the end of an address line or of a verse, as
    models write what runs on in one line.
    """
    out: list[str] = []
    for piece in _pieces(text):
        if piece.fence and out and out[-1].rpartition("\n")[2].strip():
            out.append("")  # an empty line ends a block of HTML, in which a fence would be none
        out.append(_fence(piece) if piece.fence else "\n\n".join(map(_harmless_paragraph, _BLANK.split(piece.text))))
    return "\n".join(out)


def without_heading_marks(text: str) -> str:
    """A heading written by a model, on one or several lines, without its Markdown markers."""
    return "\n".join(_HEADING.sub("", line, count=1) for line in text.split("\n"))


def code_block(text: str) -> str:
    """Code written by a model, fenced or not, as one fenced block."""
    pieces = [piece for piece in _pieces(text) if piece.text.strip()]
    # Fenced by the model: the fence names the language.
    if len(pieces) == 1 and pieces[0].fence:
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
    """The text without marks of headings, emphasis and code; formulas stay LaTeX, and unpaired marks are text."""
    return "\n".join(
        piece.text if piece.fence else "\n".join(map(_plain_line, _unmarked(piece.text).split("\n")))
        for piece in _pieces(text)
    )


def is_list(lines: Sequence[str]) -> bool:
    """Whether each line is an item of a list."""
    return bool(lines) and all(_ITEM.match(line) for line in lines)


def plain_line(text: str) -> str:
    """The same in one line."""
    return " ".join(plain(text).split())


def markdown_html(text: str) -> str:
    """The text as HTML of paragraphs, lists and listings; everything inside is escaped text."""
    blocks: list[str] = []
    for piece in _pieces(text):
        if piece.fence:
            blocks.append(f"<pre>{escape(piece.text)}</pre>")
            continue
        for paragraph in _BLANK.split(_unmarked(piece.text)):
            lines = [line for line in paragraph.split("\n") if line.strip()]
            if is_list(lines):
                blocks.append(list_html(map(_plain_line, lines)))
            elif lines:
                blocks.append(f"<p>{'<br>'.join(escape(_plain_line(line)) for line in lines)}</p>")
    return "\n".join(blocks)


def _plain_line(line: str) -> str:
    line = _KEPT_TAG.sub(
        lambda tag: " " if "t" in tag[0] or "br" in tag[0] else "", _HEADING.sub("", line)
    ).removeprefix("> ")
    line = _ESCAPED.sub("", line).rstrip()
    return line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _unmarked(text: str) -> str:
    """A text without paired marks of emphasis and code, and without the backslashes of those that are escaped."""
    marks = list(_MARK.finditer(text))
    closers = _closers(marks)
    kept: list[str] = []
    at = index = 0
    bold = -1
    """Place in ``kept`` of an opening mark."""
    while index < len(marks):
        mark = marks[index]
        kept.append(text[at : mark.start()])
        at, sign = mark.end(), mark[0]
        closer = closers.get(index)
        if closer is not None:  # code, or a formula: all in it is literal
            last = marks[closer]
            kept.append(text[mark.end() : last.start()] if sign[0] == "`" else text[mark.start() : last.end()])
            at, index = last.end(), closer
        elif sign == "**" and bold >= 0 and not text[mark.start() - 1].isspace():
            kept[bold], bold = "", -1
        else:
            if sign[0] == "\n":
                bold = -1
            elif sign == "**" and not text[at : at + 1].isspace() and at < len(text):
                bold = len(kept)
            kept.append(sign[1:] if sign[0] == "\\" and sign[1] in "*_#`" else sign)
        index += 1
    return "".join(kept) + text[at:]


def _closers(marks: Sequence[re.Match[str]]) -> dict[int, int]:
    """For each mark that begins code or a formula, the mark that ends it; neither goes over an empty line."""
    found: dict[int, int] = {}
    ahead: dict[str, int] = {}
    for index in range(len(marks) - 1, -1, -1):
        mark = marks[index]
        sign, text = mark[0], mark.string
        if sign[0] == "\n":
            # Neither code nor a formula goes over an empty line.
            ahead.clear()
        elif sign[0] in "`$":
            after = text[mark.end() : mark.end() + 1]
            if sign in ahead and (sign[0] == "`" or not after.isspace()):
                found[index] = ahead[sign]
            is_formula_end = not text[mark.start() - 1 : mark.start()].isspace() and not after.isdigit()
            if sign != "$" or is_formula_end:
                ahead[sign] = index
    return found


def _pieces(text: str) -> Iterator[_Piece]:
    text = _LINE_END.sub("\n", text)
    start = 0
    for block in [*_FENCED.finditer(text), None]:
        prose = text[start : block.start() if block else len(text)]
        if prose or not text:
            # Nobody could be sure where an indented fence ends.
            yield _Piece(_INNER_FENCE.sub(r"\1\\", prose.removesuffix("\n") if block else prose))
        if block:
            yield _Piece(block["code"], block["fence"], _NO_INFO.sub("", block["info"])[:20])
            start = block.end()


def _fence(piece: _Piece) -> str:
    return f"{piece.fence}{piece.info}\n{piece.text}\n{piece.fence}"


def _harmless_paragraph(text: str) -> str:
    lines = text.split("\n")
    code = [_split_at_code(line) for line in lines]
    # In a block of HTML, which a tag may begin, backticks make no code.
    sure = None not in code and not _KEPT_TAG.search(text)
    out: list[str] = []
    in_formula = False
    for line, pieces in zip(lines, code, strict=True):
        marks = line.count("$$")
        if in_formula or marks % 2:
            done = _harmless_formula(line)
        else:
            done = _harmless_line(pieces if sure and pieces else [line])
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


def _split_at_code(line: str) -> list[str] | None:
    r"""A line in pieces, every second one a code span; None if that is uncertain.

    Sure is a line on which all runs of backticks are of one length and come in pairs, none stands behind a backslash,
    and no span holds a bar, at which a table would cut it.
    """
    runs = _TICKS.findall(line)
    pieces = _CODE.split(line)
    if len(runs) % 2 or len(set(runs)) > 1 or "\\`" in line or any("|" in piece for piece in pieces[1::2]):
        return None
    return pieces


def _harmless_line(pieces: list[str]) -> str:
    line = "".join(piece if i % 2 else _outside_code(piece) for i, piece in enumerate(pieces))
    return _BULLET.sub(r"\1- ", line)


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
