"""DP-Bench as opendataloader-bench scores it: reading order (NID), tables (TEDS) and headings (MHS) of Markdown."""

from __future__ import annotations

import html as html_text
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lxml import html

from pagemill.errors import InputError, MissingInputError, TooLargeError
from pagemill_eval import benchmark as base
from pagemill_eval.benchmark import Figure, Prediction, Rules, Sample, SampleScore
from pagemill_eval.files import read_text
from pagemill_eval.teds import LabelledTree, check_nodes, descendants, table_tree
from pagemill_eval.text import indel_similarity

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_TABLE = re.compile(r"<table.*?</table>", re.DOTALL | re.IGNORECASE)
_BARE_SECTIONS = re.compile(r"</?(?:thead|tbody)>", re.IGNORECASE)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_RULE = re.compile(r"[-:]+")


class DpBench(base.Benchmark):
    """DP-Bench: 200 pages, Markdown against Markdown.

    Official rules are those of pagemill, too: a missing prediction is an empty one.
    """

    name = "dp-bench"
    title = "DP-Bench"
    kind = base.Kind.MARKDOWN
    origin = "opendataloader-bench b4b9505"
    hub_id = "upstage/dp-bench"
    primary = "overall"
    packages = ("lxml",)
    metrics = (
        base.Metric(name="overall", description="Mean of those of NID, TEDS and MHS that the document has"),
        base.Metric(
            name="nid", description="Similarity by insertions and deletions, in reading order, tables included"
        ),
        base.Metric(name="nid_s", description="The same without tables"),
        base.Metric(name="teds", description="TEDS of all tables together"),
        base.Metric(name="teds_s", description="TEDS-S of all tables together"),
        base.Metric(name="mhs", description="Tree similarity of headings and what is below them"),
        base.Metric(name="mhs_s", description="The same without texts"),
    )

    def load(self, path: Path) -> list[Sample]:
        """Documents of a folder with ``ground-truth/markdown/ID.md`` and, if there, ``pdfs/ID.pdf``."""
        if not path.is_dir():
            raise MissingInputError(
                f"{path} is not a folder", remedy="Pass the folder that contains ground-truth/markdown."
            )
        folders = [path / "ground-truth" / "markdown", path / "markdown", path]
        folder = next((folder for folder in folders if folder.is_dir() and any(folder.glob("*.md"))), None)
        if folder is None:
            raise InputError(f"{path} contains no ground-truth/markdown/*.md", remedy="Pass the published files.")
        samples = [
            Sample(
                id=file.stem,
                truth=read_text(file),
                input=_document(path, file.stem),
                prediction_names=(f"{file.stem}.md", f"markdown/{file.stem}.md"),
            )
            for file in sorted(folder.glob("*.md"))
        ]
        return base.checked_ids(samples, folder)

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """NID, TEDS and MHS; a missing prediction is an empty document."""
        text = prediction.scored_text
        true, predicted = with_html_tables(sample.truth), with_html_tables(text)
        note = ""
        try:
            metrics = document_scores(true, predicted)
        except TooLargeError as error:  # runaway output: as if it were empty
            metrics, note = document_scores(true, ""), error.message
        pair = base.Pair(
            kind=self.kind,
            truth=sample.truth,
            prediction=text,
            metric="overall",
            score=metrics["overall"] or 0.0,
            note=note,
        )
        return prediction.score(sample, metrics, pair, note=note)

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Means over the documents that have the metric."""
        return {
            metric.name: base.mean(base.scores_by_metric(scores, metric.name), "mean over documents that have it")
            for metric in self.metrics
        }


def document_scores(true: str, predicted: str) -> dict[str, float | None]:
    """All metrics of one document.

    Args:
        true: Markdown, its tables as HTML.
        predicted: Likewise.
    """
    nid = _nid(true, predicted)
    teds, teds_s = (_table_score(true, predicted, structure) for structure in (False, True))
    mhs, mhs_s = (_heading_score(true, predicted, structure) for structure in (False, True))
    parts = [value for value in (nid, teds, mhs) if value is not None]
    return {
        "overall": math.fsum(parts) / len(parts) if parts else None,
        "nid": nid,
        "nid_s": _nid(_TABLE.sub(" ", true), _TABLE.sub(" ", predicted)),
        "teds": teds,
        "teds_s": teds_s,
        "mhs": mhs,
        "mhs_s": mhs_s,
    }


def with_html_tables(markdown: str) -> str:
    """Markdown with its tables as HTML."""
    lines = markdown.splitlines()
    found: list[str] = []
    index = 0
    while index < len(lines):
        if "|" in lines[index] and index + 1 < len(lines) and _is_rule(lines[index + 1]):
            end = index + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
            found.append(_html_table(lines[index:end]))
            index = end
        else:
            found.append(lines[index])
            index += 1
    return "\n".join(found)


def _cells(line: str) -> list[str]:
    line = line.strip()
    return [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]


def _is_rule(line: str) -> bool:
    return "|" in line and all(_RULE.fullmatch(cell) for cell in _cells(line))


def _html_table(lines: Sequence[str]) -> str:
    header, rule, *rows = (_cells(line) for line in lines)
    width = max(len(header), len(rule))

    def fitted(cells: list[str]) -> list[str]:
        if len(cells) == 3 and width > 3:
            return [cells[0], *[cells[1]] * (width - 2), cells[2]]
        return (cells + [""] * width)[:width]

    header, *rows = [fitted(row) for row in (header, *rows)]
    if not any(header) and rows:
        header, *rows = rows

    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html_text.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + row(header, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"


def _nid(true: str, predicted: str) -> float | None:
    true = " ".join(true.split())
    return indel_similarity(" ".join(predicted.split()), true) if true else None


def _table_score(true: str, predicted: str, structure_only: bool) -> float | None:
    if not (tables := _TABLE.findall(true)):
        return None
    if not (found := _TABLE.findall(predicted)):
        return 0.0
    one, two = _outer_table(found), _outer_table(tables)
    if one is None or two is None:
        return 0.0
    nodes = max(descendants(one), descendants(two))
    check_nodes(nodes)
    if not nodes:
        return 0.0
    first, second = (table_tree(element, structure_only, ("td",), _cell_text) for element in (one, two))
    return 1.0 - first.distance(second) / nodes


def _outer_table(tables: Sequence[str]) -> HtmlElement | None:
    """All tables inside one."""
    content = _BARE_SECTIONS.sub("", "".join(tables))
    content = re.sub(r"<(/?)th\b", r"<\1td", content, flags=re.IGNORECASE)
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
    text = f"<html><body><table>{content}</table></body></html>".replace("\0", "")
    root = html.document_fromstring(text.encode("utf-8", errors="replace"), parser=parser)
    return root.find("body/table")


def _cell_text(cell: HtmlElement) -> str:
    """The content of a cell, including inline tags."""
    content = (cell.text or "") + "".join(html.tostring(child, encoding="unicode") for child in cell)
    content = html_text.unescape(_BREAK.sub("\n", content))
    return " ".join(content.split())


def _heading_score(true: str, predicted: str, structure_only: bool) -> float | None:
    one, two = _heading_tree(true, structure_only), _heading_tree(predicted, structure_only)
    if "heading" not in one.labels:
        return None
    if "heading" not in two.labels:
        return 0.0
    nodes = max(len(one.parents), len(two.parents))
    check_nodes(nodes)
    return min(1.0, max(0.0, 1.0 - one.distance(two) / nodes))


def _heading_tree(markdown: str, structure_only: bool) -> LabelledTree:
    tree = LabelledTree()
    root = parent = tree.add(-1, "document")
    lines: list[str] = []

    def close() -> None:
        content = " ".join(" ".join(lines).split())
        if content:
            tree.add(parent, "content", "" if structure_only else content)
        lines.clear()

    for line in markdown.splitlines():
        match = _HEADING.match(line)
        if match:
            close()
            parent = tree.add(root, "heading", "" if structure_only else " ".join(match[2].split()))
        else:
            lines.append(line)
    close()
    return tree


def _document(path: Path, stem: str) -> base.Input | None:
    for place in (path / "pdfs", path / "dataset" / "pdfs", path):
        file = place / f"{stem}.pdf"
        if file.is_file():
            return base.Input(path=file)
    return None
