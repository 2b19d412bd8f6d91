"""UniMERNet's test set: images of formulas and their LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pagemill.errors import InputError, MissingInputError
from pagemill_eval import benchmark as base
from pagemill_eval.benchmark import Figure, Prediction, Rules, Sample, SampleScore
from pagemill_eval.cdm import UNIMERNET as CDM_RULES
from pagemill_eval.cdm import Cdm, cdm
from pagemill_eval.cdm.drawing import RUN_FORMULAS, draw, unavailable, version
from pagemill_eval.files import read_text
from pagemill_eval.text import bleu, bleu_counts, edit_distance

SUBSETS = ("spe", "cpe", "sce", "hwe")
"""Simple printed, complex printed, screen captured and handwritten expressions."""
_UPRIGHT = re.compile(r"\\(?:operatorname|mathrm|text|mathbf)\s?\*? \{")
"""Commands whose argument is text, with the space before it without which the rules do not see them."""
_GAP = re.compile(r"(?<=(\S))\s+(?=(\S))")


class UniMerNet(base.Benchmark):
    """UniMERNet test: 23,757 formulas in four subsets, whose means are averaged.

    CDM is that of the official scorer but for the cutting into tokens; it needs LaTeX.
    """

    name = "unimernet"
    title = "UniMERNet test"
    kind = base.Kind.LATEX
    origin = "opendatalab/UniMERNet 5a2c80d"
    hub_id = "wanderkid/UniMER_Dataset"
    hub_files = ("UniMER-?est.zip",)
    primary = "edit_distance"
    batch = RUN_FORMULAS // 2
    metrics = (
        base.Metric(name="edit_distance", description="Normalised edit distance of the source", higher_is_better=False),
        base.Metric(name="cdm", description="F1 of symbols at their place, drawn by LaTeX"),
        base.Metric(name="exact", description="1 if the normalised source is equal"),
    )

    def load(self, path: Path) -> list[Sample]:
        """Formulas of a folder with ``spe.txt`` and ``spe/0000000.png``, and so on."""
        if not path.is_dir():
            raise MissingInputError(f"{path} is not a folder", remedy="Pass the folder that contains spe.txt.")
        folder = next((each for each in (path, *path.glob("UniMER-?est")) if (each / "spe.txt").is_file()), path)
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
                        input=base.Input(path=image) if image.is_file() else None,
                        prediction_names=(f"{subset}/{number:07}.tex", f"{subset}/{number:07}.txt"),
                        groups={"subset": subset},
                    )
                )
        if not samples:
            raise InputError(
                f"{folder} contains none of spe.txt, cpe.txt, sce.txt, hwe.txt",
                remedy="Unpack UniMER-Test.zip, and pass its folder.",
            )
        return base.checked_ids(samples, folder)

    def predictions(self, path: Path, samples: Sequence[Sample]) -> Callable[[Sample], Prediction]:
        """LaTeX in a folder: a file a subset with a line for each formula, or a file a formula."""
        files = {subset: path / f"{subset}.txt" for subset in SUBSETS if (path / f"{subset}.txt").is_file()}
        if not files:
            return super().predictions(path, samples)
        lines = {(subset, number): line for subset, file in files.items() for number, line in enumerate(_lines(file))}

        def predicted(sample: Sample) -> Prediction:
            subset, number = sample.id.split("/")
            return Prediction(text=lines.get((subset, int(number))))

        return predicted

    def prepare(self, batch: Sequence[tuple[Sample, Prediction]]) -> None:
        """Draw all formulas of a batch in one run."""
        if not unavailable():
            draw(latex for sample, prediction in batch for latex in (sample.truth, prediction.scored_text))

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Edit distance of the normalised source, and CDM."""
        text = prediction.scored_text
        predicted, truth = normal(text), normal(sample.truth)
        distance = edit_distance(predicted, truth) if prediction.status is base.Status.SCORED else 1.0
        drawn = Cdm(None, "") if unavailable() else cdm([(text, sample.truth)], CDM_RULES)[0]
        pair = base.Pair(
            kind=self.kind,
            truth=sample.truth,
            prediction=text,
            metric="edit_similarity",
            score=1 - distance,
            note=drawn.note,
        )
        metrics = {"edit_distance": distance, "cdm": drawn.f1, "exact": float(distance == 0.0)}
        return prediction.score(sample, metrics, pair, terms={"bleu": bleu_counts(predicted, truth)})

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Mean of the subsets' means, and means over all formulas."""
        subsets = [[score for score in scores if score.groups.get("subset") == subset] for subset in SUBSETS]
        cdms = base.scores_by_metric(scores, "cdm")
        undrawn = 0 if unavailable() else cdms.count(None)
        note = unavailable() or (f"{undrawn:,} true formulas cannot be drawn and do not count" if undrawn else "")

        def of_subsets(name: str, note: str = "") -> Figure:
            values = [base.mean(base.scores_by_metric(subset, name), "").value for subset in subsets]
            return base.mean(values, "mean of the subsets' means", note)

        return {
            "cdm": of_subsets("cdm", note),
            "expression_rate": base.mean(
                [None if f1 is None else float(f1 == 1.0) for f1 in cdms], "share of formulas", note
            ),
            "edit_distance": of_subsets("edit_distance"),
            "bleu": base.mean(
                [bleu(score.terms["bleu"] for score in subset) for subset in subsets if subset],
                "mean of the subsets' BLEU",
            ),
            "edit_distance_samples": base.mean(base.scores_by_metric(scores, "edit_distance"), "mean over formulas"),
            "exact": base.mean(base.scores_by_metric(scores, "exact"), "share of formulas"),
        }

    def scorer(self) -> str:
        """Stamp of a result."""
        return f"{base.stamp(self.origin, 'scipy')}; {version()}"


def normal(latex: str) -> str:
    """LaTeX without the white space that has no meaning."""
    latex = latex.strip()
    parts: list[str] = []
    place = 0
    while opening := _UPRIGHT.search(latex, place, latex.rfind("}") + 1):
        parts.append(latex[place : opening.start()])
        place = latex.index("}", opening.end())
        parts.append(latex[opening.start() : place].replace(" ", ""))
    return _GAP.sub(_kept_space, "".join([*parts, latex[place:]]))


def _kept_space(gap: re.Match[str]) -> str:
    """White space by its neighbours: none next to a symbol, one space between letters.

    A backslash and letters beyond ASCII are neither for the rules, which only shorten the space beside them.
    """
    before, after = "other" if gap[1] == "\\" else _kind(gap[1]), _kind(gap[2])
    if before == after == "other":
        return gap[0][:2]
    return gap[0][:1] if "other" in (before, after) or before == after == "letter" else ""


def _kind(character: str) -> str:
    if character.isascii():
        return "letter" if character.isalpha() else "sign"
    return "other" if character.isalnum() and not character.isdecimal() else "sign"


def _lines(file: Path) -> list[str]:
    return read_text(file).removesuffix("\n").split("\n")
