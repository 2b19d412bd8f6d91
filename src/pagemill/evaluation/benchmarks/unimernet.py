"""UniMERNet's test set: images of formulas and their LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pagemill.errors import InputError, MissingInputError
from pagemill.evaluation.benchmark import (
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
    mean,
    scores_by_metric,
    stamp,
)
from pagemill.evaluation.files import read_text
from pagemill.evaluation.text import edit_distance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SUBSETS = ("spe", "cpe", "sce", "hwe")
"""Simple printed, complex printed, screen captured and handwritten expressions."""
_NAMED = re.compile(r"\\(?:operatorname|mathrm|text|mathbf)\s?\*? \{.*?\}")
_LETTER, _OTHER = "[a-zA-Z]", r"[\W_^\d]"
_SPACES = [
    re.compile(rf"(?!\\ )({before})\s+?({after})")
    for before, after in ((_OTHER, _OTHER), (_OTHER, _LETTER), (_LETTER, _OTHER))
]


class UniMerNet(Benchmark):
    """UniMERNet test: 23,757 formulas in four subsets, whose means are averaged.

    The official CDM needs a LaTeX renderer and is not computed; the edit distance is the official one.
    """

    name = "unimernet"
    title = "UniMERNet test"
    kind = Kind.LATEX
    origin = "opendatalab/UniMERNet 5a2c80d"
    hub_id = "wanderkid/UniMER_Dataset"
    primary = "edit_distance"
    metrics = (
        Metric(name="edit_distance", description="Normalised edit distance of the source", higher_is_better=False),
        Metric(name="exact", description="1 if the normalised source is equal"),
    )

    def load(self, path: Path) -> list[Sample]:
        """Formulas of a folder with ``spe.txt`` and ``spe/0000000.png``, and so on."""
        if not path.is_dir():
            raise MissingInputError(f"{path} is not a folder", remedy="Give the folder that holds spe.txt.")
        folder = next((each for each in (path, path / "UniMER-Test") if (each / "spe.txt").is_file()), path)
        samples = []
        for subset in SUBSETS:
            if not (folder / f"{subset}.txt").is_file():
                continue
            for number, latex in enumerate(_lines(folder / f"{subset}.txt")):
                image = folder / subset / f"{number:07}.png"
                samples.append(
                    Sample(
                        id=f"{subset}/{number:07}",
                        truth=latex,
                        input=Input(path=image) if image.is_file() else None,
                        prediction_names=(f"{subset}/{number:07}.tex", f"{subset}/{number:07}.txt"),
                        groups={"subset": subset},
                    )
                )
        if not samples:
            raise InputError(
                f"{folder} holds none of spe.txt, cpe.txt, sce.txt, hwe.txt", remedy="Unpack UniMER-Test.zip."
            )
        return checked_ids(samples, folder)

    def predictions(self, path: Path, samples: Sequence[Sample]) -> Callable[[Sample], Prediction]:
        """LaTeX in a folder: a file a subset with a line for each formula, or a file a formula."""
        files = {subset: path / f"{subset}.txt" for subset in SUBSETS if (path / f"{subset}.txt").is_file()}
        if not files:
            return super().predictions(path, samples)
        return _Lines({subset: _lines(file) for subset, file in files.items()})

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Edit distance of the normalised source."""
        text = (prediction.text or "") if prediction.status is Status.SCORED else ""
        predicted, truth = normal(text), normal(sample.truth)
        distance = edit_distance(predicted, truth) if prediction.status is Status.SCORED else 1.0
        pair = Pair(kind=Kind.LATEX, truth=sample.truth, prediction=text, metric="edit_similarity", score=1 - distance)
        return SampleScore(
            id=sample.id,
            status=prediction.status,
            metrics={"edit_distance": distance, "exact": float(distance == 0.0)},
            pairs=[pair],
            groups=sample.groups,
            error=prediction.error or "",
        )

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Mean of the subsets' means, and means over all formulas."""
        subsets = [[score for score in scores if score.groups.get("subset") == subset] for subset in SUBSETS]
        means = [mean(scores_by_metric(each, "edit_distance"), "").value for each in subsets if each]
        return {
            "cdm": Figure(
                value=None, samples=0, aggregation="mean of the subsets' means", note="unavailable: not computed"
            ),
            "edit_distance": mean(means, "mean of the subsets' means"),
            "edit_distance_samples": mean(scores_by_metric(scores, "edit_distance"), "mean over formulas"),
            "exact": mean(scores_by_metric(scores, "exact"), "share of formulas"),
        }

    def scorer(self) -> str:
        """Stamp of a result."""
        return stamp(self.origin)


class _Lines:
    def __init__(self, lines: dict[str, list[str]]) -> None:
        self._lines = lines

    def __call__(self, sample: Sample) -> Prediction:
        """The line of a formula; beyond the last one it is missing."""
        subset, number = sample.id.split("/")
        lines = self._lines.get(subset, [])
        return Prediction(text=lines[int(number)] if int(number) < len(lines) else None)


def normal(latex: str) -> str:
    """LaTeX without the white space that has no meaning."""
    latex = _NAMED.sub(lambda match: match[0].replace(" ", ""), latex.strip())
    while True:
        shorter = latex
        for pattern in _SPACES:
            shorter = pattern.sub(r"\1\2", shorter)
        if shorter == latex:
            return latex
        latex = shorter


def _lines(file: Path) -> list[str]:
    return read_text(file).removesuffix("\n").split("\n")
