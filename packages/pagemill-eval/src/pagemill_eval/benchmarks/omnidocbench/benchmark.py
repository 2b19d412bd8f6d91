"""OmniDocBench v1.5: loader, scores of a page, figures over pages."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from rapidfuzz.distance import Levenshtein

from pagemill.errors import TooLargeError
from pagemill_eval.benchmark import (
    Benchmark,
    Figure,
    Input,
    Kind,
    Metric,
    Pair,
    Prediction,
    Rules,
    Sample,
    SampleScore,
    Status,
    checked_ids,
    contained,
    mean,
    scores_by_metric,
    stamp,
)
from pagemill_eval.benchmarks.omnidocbench.normalise import normal_table
from pagemill_eval.benchmarks.omnidocbench.pages import PageMatch, TextPair, match_page
from pagemill_eval.benchmarks.omnidocbench.truth import Page, composed, true_elements
from pagemill_eval.cdm import OMNIDOCBENCH_V15, CdmRules, cdm
from pagemill_eval.cdm.drawing import unavailable, version
from pagemill_eval.files import one_file, read_json
from pagemill_eval.reading_order import order_edit_distance
from pagemill_eval.teds import reference_teds
from pagemill_eval.text import edit_distance, normalise

MAX_CHARACTERS = 500_000
"""Characters of a predicted page; more are runaway output. The rules' regular expressions take quadratic time."""


class OmniDocBenchV15(Benchmark):
    """OmniDocBench v1.5: 1,355 pages of nine kinds of documents, in English and Chinese.

    Official rules skip pages without a prediction. By pagemill's rules such a page counts as an empty one, and both
    sides are composed to NFC first.
    """

    name = "omnidocbench-v1.5"
    title = "OmniDocBench v1.5"
    kind = Kind.MARKDOWN
    origin = "OmniDocBench v1.5 (pichiu/OmniDocBench 7bd6c2e)"
    hub_id: ClassVar[str | None] = "opendatalab/OmniDocBench"
    hub_files: ClassVar[tuple[str, ...]] = ("OmniDocBench.json", "images/*")
    most_nodes: ClassVar[int | None] = None
    """Maximum number of nodes of a table that is scored, if the official scorer gives up earlier than TEDS has to."""
    image_folders: ClassVar[tuple[str, ...]] = ("images",)
    skips_missing: ClassVar[bool] = True
    """Whether the official scorer leaves a page without a prediction out."""
    primary = "overall"
    cdm_rules: ClassVar[CdmRules] = OMNIDOCBENCH_V15
    rounds_components: ClassVar[bool] = True
    """Whether the components of ``overall`` are rounded to 3 decimals."""
    metrics = (
        Metric(name="overall", description="Mean of 1 - text edit distance, TEDS and, with LaTeX, CDM of the page"),
        Metric(name="text_edit_distance", description="Edit distance of text", higher_is_better=False),
        Metric(name="teds", description="TEDS, mean over the page's tables"),
        Metric(name="teds_s", description="TEDS-S, mean over the page's tables"),
        Metric(name="cdm", description="CDM, mean over the page's display formulas"),
        Metric(name="formula_edit_distance", description="Edit distance of display formulas", higher_is_better=False),
        Metric(name="reading_order_edit_distance", description="Edit distance of the order", higher_is_better=False),
        Metric(
            name="character_error_rate",
            description="Of matched text, NFC, with spaces and punctuation",
            higher_is_better=False,
            bounded=False,
        ),
    )

    def load(self, path: Path) -> list[Sample]:
        """Pages of the published JSON file, or of the folder that holds it beside ``images/``."""
        file = one_file(path, ("OmniDocBench.json", "*.json"), "pages")
        samples = []
        for page in read_json(file, list[Page]):
            name = str(contained(page.page_info.image_path))
            samples.append(
                Sample(
                    id=name,
                    truth=page,
                    input=self._image(file.parent, name),
                    prediction_names=prediction_names(name),
                    groups=_groups(page),
                )
            )
        return checked_ids(samples, file)

    def _image(self, folder: Path, name: str) -> Input | None:
        places = (folder / image_folder / name for image_folder in (*self.image_folders, "."))
        return next((Input(path=place) for place in places if place.is_file()), None)

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Match the page and score its pairs."""
        markdown, note = markdown_of(prediction)
        if prediction.status is not Status.SCORED and rules is Rules.OFFICIAL and self.skips_missing:
            return prediction.score(sample, dict.fromkeys((metric.name for metric in self.metrics), None))
        page = sample.truth
        if rules is Rules.PAGEMILL:
            markdown, page = unicodedata.normalize("NFC", markdown), composed(page)
        found = self.match(page, markdown, rules)
        metrics, terms, pairs = page_scores(found, self)
        return prediction.score(sample, metrics, *pairs, terms=terms, note=note or found.note or too_large(pairs))

    def normal_table(self, text: str) -> str:
        """What of a table counts."""
        return normal_table(text)

    def match(self, page: Page, markdown: str, rules: Rules) -> PageMatch:
        """Match a page's truth with its prediction."""
        return match_page(*true_elements(page), markdown)

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Means over the pages that have an element of the kind; texts and tables also over all of them."""
        pages = "mean over pages that have it"

        def of_pages(name: str) -> Figure:
            return mean(scores_by_metric(scores, name), pages)

        text, teds = of_pages("text_edit_distance"), of_pages("teds")
        drawn = mean(scores_by_metric(scores, "cdm"), pages, unavailable())
        return {
            "overall": self._overall(text, [teds, drawn], unavailable()),
            "overall_without_cdm": self._overall(text, [teds], "text and tables alone: not the published Overall"),
            "text_edit_distance": text,
            "text_edit_distance_whole": _whole(scores),
            "text_edit_distance_samples": _of_samples(scores, "texts"),
            "teds": teds,
            "teds_samples": _of_samples(scores, "teds"),
            "teds_s": of_pages("teds_s"),
            "teds_s_samples": _of_samples(scores, "teds_s"),
            "cdm": drawn,
            "cdm_samples": _of_samples(scores, "cdm", unavailable()),
            "formula_edit_distance": of_pages("formula_edit_distance"),
            "reading_order_edit_distance": of_pages("reading_order_edit_distance"),
            "character_error_rate": of_pages("character_error_rate"),
        }

    def scorer(self) -> str:
        """Stamp of a result."""
        return f"{stamp(self.origin, 'lxml', 'pylatexenc', 'beautifulsoup4', 'scipy')}; {version()}"

    def _overall(self, text: Figure, others: Sequence[Figure], note: str) -> Figure:
        """Mean of the components in percent."""
        digits = 3 if self.rounds_components else 15
        values = [None if text.value is None else (1 - round(text.value, digits)) * 100]
        values += [None if other.value is None else round(other.value * 100, digits) for other in others]
        known = [value for value in values if value is not None]
        aggregation = "mean of components"
        if len(known) < len(values):
            note = note if note.startswith("unavailable") else "a component is missing"
            return Figure(value=None, samples=0, aggregation=aggregation, note=note)
        samples = max(other.samples for other in (text, *others))
        return Figure(value=math.fsum(known) / len(known), samples=samples, aggregation=aggregation, note=note)


def prediction_names(image: str) -> tuple[str, ...]:
    """Names of a page's prediction: in the image's folder, and without it, as the official scorer looks for them."""

    def names(image: str) -> tuple[str, ...]:
        stem = image[:-4]
        bare = stem.replace(".pdf", "")
        return f"{stem}.md", f"{bare}.mmd", f"{bare}.md", f"{image}.md"

    return tuple(dict.fromkeys((*names(image), *names(PurePosixPath(image).name))))


def page_scores(
    found: PageMatch, benchmark: OmniDocBenchV15
) -> tuple[dict[str, float | None], dict[str, Any], list[Pair]]:
    """A page's metrics, what figures over pages need beside them, and the pairs to show."""
    tables, pairs = [], []
    for truth, predicted in found.tables:
        score, structure, note = _teds(truth, predicted, benchmark)
        tables.append((score, structure))
        pairs.append(
            Pair(
                kind=Kind.HTML,
                truth=truth,
                prediction=predicted,
                metric="teds",
                score=min(1.0, max(0.0, score)),
                note=note,
            )
        )
    formulas = [(pair.raw_prediction, pair.raw_truth) for pair in found.formulas]
    drawn = [] if unavailable() else cdm(formulas, benchmark.cdm_rules)
    cdms = [each.f1 or 0.0 for each in drawn]  # a true formula that cannot be drawn is 0 by the rules
    pairs += [_shown(pair, Kind.TEXT) for pair in found.texts]
    pairs += [_shown(pair, Kind.LATEX, each.note if each else "") for pair, each in zip_longest(found.formulas, drawn)]
    text = edit_ratio(found.texts)
    teds = math.fsum(score for score, _ in tables) / len(tables) if tables else found.without_tables
    page_cdm = math.fsum(cdms) / len(cdms) if cdms else None if unavailable() else found.without_formulas
    components = [value for value in (None if text is None else 1 - text, teds, page_cdm) if value is not None]
    metrics = {
        "overall": math.fsum(components) / len(components) if components else None,
        "text_edit_distance": text,
        "teds": teds,
        "teds_s": math.fsum(structure for _, structure in tables) / len(tables) if tables else found.without_tables,
        "cdm": page_cdm,
        "formula_edit_distance": edit_ratio(found.formulas),
        "reading_order_edit_distance": (
            order_edit_distance(found.predicted_order, found.true_order)
            if found.predicted_order or found.true_order
            else None
        ),
        "character_error_rate": _error_rate(found.texts),
    }
    terms = {
        "distance": sum(pair.distance for pair in found.texts),
        "length": sum(pair.length for pair in found.texts),
        "texts": [edit_distance(pair.prediction, pair.truth) for pair in found.texts],
        "teds": [score for score, _ in tables],
        "teds_s": [structure for _, structure in tables],
        "cdm": cdms,
    }
    return metrics, terms, pairs


def too_large(pairs: Iterable[Pair]) -> str:
    """The reason that a predicted table has no score."""
    return next((pair.note for pair in pairs if pair.prediction and pair.note), "")


def edit_ratio(pairs: Sequence[TextPair]) -> float | None:
    """Sum of distances over the sum of lengths; None without pairs."""
    if not pairs:
        return None
    length = sum(pair.length for pair in pairs)
    return sum(pair.distance for pair in pairs) / length if length else 0.0


def _error_rate(pairs: Sequence[TextPair]) -> float | None:
    texts = [(normalise(pair.raw_prediction), normalise(pair.raw_truth)) for pair in pairs]
    length = sum(len(truth) for _, truth in texts)
    return sum(Levenshtein.distance(*text) for text in texts) / length if length else None


def _shown(pair: TextPair, kind: Kind, note: str = "") -> Pair:
    return Pair(
        kind=kind,
        truth=pair.raw_truth,
        prediction=pair.raw_prediction,
        metric="edit_similarity",
        score=1 - edit_distance(pair.prediction, pair.truth),
        note=note,
    )


def _teds(truth: str, predicted: str, benchmark: OmniDocBenchV15) -> tuple[float, float, str]:
    if not predicted:
        return 0.0, 0.0, "no table was predicted"
    one, two, most = benchmark.normal_table(predicted), benchmark.normal_table(truth), benchmark.most_nodes
    try:
        return (
            reference_teds(one, two, most_nodes=most),
            reference_teds(one, two, structure_only=True, most_nodes=most),
            "",
        )
    except TooLargeError as error:
        return 0.0, 0.0, error.message


def _whole(scores: Iterable[SampleScore]) -> Figure:
    terms = [score.terms for score in scores if score.terms.get("texts")]
    length = sum(term["length"] for term in terms)
    value = sum(term["distance"] for term in terms) / length if length else None
    return Figure(
        value=value,
        samples=len(terms),
        aggregation="one ratio of all pages' texts",
        note="" if length else "no page has text",
    )


def _of_samples(scores: Iterable[SampleScore], name: str, note: str = "") -> Figure:
    values = [value for score in scores for value in score.terms.get(name, ())]
    return mean(values, "mean over elements of all pages", note)


def markdown_of(prediction: Prediction) -> tuple[str, str]:
    """The scored text, and the reason if it is not the prediction."""
    text = prediction.text if prediction.status is Status.SCORED else None
    if text is not None and len(text) > MAX_CHARACTERS:
        return "", f"the prediction has over {MAX_CHARACTERS:,} characters: scored as an empty page"
    return text or "", ""


def _groups(page: Page) -> dict[str, str]:
    attributes = page.page_info.page_attribute
    found = {}
    for name in ("data_source", "language", "layout", "subset"):
        value = attributes.get(name)
        if isinstance(value, str) and value:
            found[name] = value
    return found
