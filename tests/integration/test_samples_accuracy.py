"""Hold what the samples must reach: characters, tables, reading order, structure."""

import functools
import re
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rapidfuzz import fuzz
from samples_run import samples_run

import pagemill
from pagemill.document.labels import Label
from pagemill.document.page import PageError, PageResult
from pagemill.export.document import Document
from pagemill.store.reading import RunReader
from pagemill_eval.reading_order import reading_order
from pagemill_eval.teds import teds
from pagemill_eval.text import character_error_rate, normalise
from sample_truth import BAR, FIGURES, FURNITURE, SAMPLES, body, is_body, region_text, true_body, truth_of

pytestmark = pytest.mark.integration

FIGURE_MARK = "⟦figure⟧"

BORN_DIGITAL = [("report.pdf", "auto"), ("notice-ko.pdf", "auto")]
HELD = {each: rate for each, rate in BAR.items() if each != ("report.pdf", "never")}
"""What is read here: pixels of the report are its scan's."""


def of_samples(*samples: tuple[str, str]) -> pytest.MarkDecorator:
    """A test for samples and text-layer modes; those that are read from pixels take seconds.

    Module scope has pytest run all tests of one sample before those of the next, so that, where several processes run
    the tests, few samples are parsed by more than one of them.
    """
    cases = [pytest.param(*each, marks=[] if each in BORN_DIGITAL else pytest.mark.slow) for each in samples]
    return pytest.mark.parametrize(("name", "text_layer"), cases, scope="module")


def of_all_but_pictures() -> pytest.MarkDecorator:
    """The same for all samples whose truth tells of headings, tables and page furniture."""
    return of_samples(*(each for each in HELD if each[0] != "pages.tiff"))


def is_of_a_formula(error: PageError, page: PageResult) -> bool:
    """Whether a warning says that of a scanned formula only the signs were read."""
    return error.region is not None and page.regions[error.region].label is Label.DISPLAY_FORMULA


@pytest.fixture(scope="session")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Document]:
    """Parses a sample with a text-layer mode; what is read from pixels is that of the run over all samples."""

    @functools.cache
    def parse(name: str, text_layer: str) -> Document:
        if text_layer == "never" or (name, text_layer) in BORN_DIGITAL:
            languages = tuple(truth_of(name)["languages"])
            document = pagemill.parse(SAMPLES / name, languages=languages, text_layer=text_layer)
        else:
            document = pagemill.Document.from_pages(pages_of(samples_run(tmp_path_factory), name))
        errors = [error for page in document.pages for error in page.errors if not is_of_a_formula(error, page)]
        assert not errors
        assert len(document.pages) == len(truth_of(name)["pages"])
        return document

    return parse


def pages_of(run: Path, name: str) -> list[PageResult]:
    with RunReader.open(run) as reader:
        return sorted(
            (page for page in reader.pages() if Path(page.source).name == name), key=lambda page: page.page_idx
        )


def cells_text(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", html))


def numbers(html: str) -> list[str]:
    return re.findall(r"\d+", cells_text(html))


def without_sections(html: str) -> str:
    """Header and body sections taken out: the truth has none, and they are no part of the grid."""
    return re.sub(r"</?(thead|tbody|tfoot)>", "", html)


def predicted_order(page: PageResult) -> list[str]:
    texts = []
    for region in page.regions:
        if region.label in FIGURES:
            texts.append(FIGURE_MARK)
        elif region.label is Label.TABLE:
            texts.append(cells_text(region.content or ""))
        elif is_body(region.label):
            texts.append(region_text(region))
    return texts


def true_order(elements: list[dict[str, Any]]) -> list[str]:
    texts = []
    for element in elements:
        if element["label"] in FIGURES:
            texts.append(FIGURE_MARK)
        elif element["label"] == Label.TABLE:
            texts.append(cells_text(element["html"]))
        elif is_body(element["label"]):
            texts.append(element["text"])
    return texts


@of_samples(*HELD)
def test_characters_of_the_body(parsed: Callable[[str, str], Document], name: str, text_layer: str) -> None:
    rate = character_error_rate(body(parsed(name, text_layer).pages), true_body(truth_of(name)["pages"]))
    assert rate <= HELD[name, text_layer], f"{rate:.2%}"


@of_all_but_pictures()
def test_headers_footers_and_page_numbers(parsed: Callable[[str, str], Document], name: str, text_layer: str) -> None:
    for page, truth in zip(parsed(name, text_layer).pages, truth_of(name)["pages"], strict=True):
        read = " ".join(region.content or "" for region in page.regions if region.label in FURNITURE)
        true = " ".join(element["text"] for element in truth["elements"] if element["label"] in FURNITURE)
        assert character_error_rate(read, true) <= (0.0 if (name, text_layer) in BORN_DIGITAL else 0.2), read
        assert true not in page.markdown


@of_all_but_pictures()
def test_tables(parsed: Callable[[str, str], Document], name: str, text_layer: str) -> None:
    for page, truth in zip(parsed(name, text_layer).pages, truth_of(name)["pages"], strict=True):
        read = [region.content or "" for region in page.regions if region.label is Label.TABLE]
        true = [element for element in truth["elements"] if element["label"] == Label.TABLE]
        assert len(read) == len(true)
        for html, element in zip(read, true, strict=True):
            score = teds(without_sections(html), element["html"])
            assert score >= (0.9 if element["bordered"] else 0.75), f"{score:.3f} {html}"
            # Read too narrow, a cell such as "20명" becomes "205명", which hardly changes the score.
            assert not Counter(numbers(element["html"])) - Counter(numbers(html))
            # A Korean cell that looks like ideographs: "구분" as "7是".
            assert not {character for character in html if "一" <= character <= "鿿"} - set(element["html"])


@of_samples(*HELD)
def test_reading_order(parsed: Callable[[str, str], Document], name: str, text_layer: str) -> None:
    for page, truth in zip(parsed(name, text_layer).pages, truth_of(name)["pages"], strict=True):
        score = reading_order(predicted_order(page), true_order(truth["elements"]))
        assert score.exact, (score, [true_order(truth["elements"])[index] for index in score.missing])


@of_all_but_pictures()
def test_title_and_heading_levels(parsed: Callable[[str, str], Document], name: str, text_layer: str) -> None:
    headings = [region for page in parsed(name, text_layer).pages for region in page.regions if region.level]
    true = [element for page in truth_of(name)["pages"] for element in page["elements"] if "level" in element]
    assert len(headings) <= len(true) + 1  # the mayor's signature may pass for a heading
    for element in true:
        best = max(headings, key=lambda region: fuzz.ratio(normalise(region.content or ""), element["text"]))
        assert character_error_rate(best.content or "", element["text"]) <= 0.1
        assert best.level == element["level"], element["text"]


@of_samples(("report.pdf", "auto"), ("report-scan.pdf", "auto"))
def test_paragraphs_are_joined_across_columns_and_pages(
    parsed: Callable[[str, str], Document], name: str, text_layer: str
) -> None:
    markdown = normalise(parsed(name, text_layer).markdown)
    for paragraph in truth_of(name)["joined_paragraphs"]:
        assert fuzz.partial_ratio(paragraph, markdown) >= (100 if name == "report.pdf" else 98), paragraph


@of_samples(("report.pdf", "auto"), ("report-scan.pdf", "auto"))
def test_captions_are_tied_to_their_figure_or_table(
    parsed: Callable[[str, str], Document], name: str, text_layer: str
) -> None:
    for page, truth in zip(parsed(name, text_layer).pages, truth_of(name)["pages"], strict=True):
        true = [element["caption_of"] for element in truth["elements"] if "caption_of" in element]
        captions = [region for region in page.regions if region.label is not Label.FORMULA_NUMBER]
        tied = [page.regions[region.caption_of].label for region in captions if region.caption_of is not None]
        assert tied == true


@of_samples(("report.pdf", "auto"), ("report-scan.pdf", "auto"))
def test_list_items_and_the_paragraph_after_them(
    parsed: Callable[[str, str], Document], name: str, text_layer: str
) -> None:
    lines = [normalise(line) for line in parsed(name, text_layer).markdown.splitlines()]
    items = [
        f"- {element['text']}"
        for page in truth_of(name)["pages"]
        for element in page["elements"]
        if element.get("list_item")
    ]
    read = [line for line in lines if line.startswith("- ")]
    assert len(read) == len(items)
    for item, line in zip(items, read, strict=True):
        assert character_error_rate(line, item) <= 0.02, line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["corpus.arrow", "corpus.parquet"])
def test_dataset_rows(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    truth = truth_of(name)
    expected = dict(zip(truth["ids"], truth["pages"], strict=True))
    pages = pages_of(samples_run(tmp_path_factory), name)
    assert len(pages) == len(expected)
    for page in pages:
        assert page.errors == []
        true = expected[page.page_id.removesuffix("-2")]  # of the same id in the other file
        rate = character_error_rate(body([page]), true_body([true]))
        assert rate <= 0.05, f"{page.page_id}: {rate:.2%}"
