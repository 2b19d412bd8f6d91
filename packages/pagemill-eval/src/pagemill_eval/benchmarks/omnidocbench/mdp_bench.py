"""MDPBench: pages in 17 languages, digital and photographed, matched as in OmniDocBench v1.5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from pagemill_eval.benchmark import Figure, Metric, Prediction, Rules, Sample, SampleScore, mean, scores_by_metric
from pagemill_eval.benchmarks.omnidocbench.benchmark import OmniDocBenchV15
from pagemill_eval.cdm.drawing import unavailable

LATIN = frozenset({"de", "en", "es", "fr", "id", "it", "nl", "pt", "vi"})
_DIGITAL_PARTS = 3


class MdpBench(OmniDocBenchV15):
    """MDPBench. As in its published figures, formulas are left out where CDM cannot be computed."""

    name = "mdpbench"
    title = "MDPBench"
    origin = "Yuliang-Liu/MultimodalOCR 794c36d (MDPBench)"
    hub_id = "Delores-Lin/MDPBench"
    hub_files = ("MDPBench_public.json", "MDPBench_img_public/*")
    image_folders = ("MDPBench_img_public", "images")
    metrics = (
        Metric(name="overall", description="Mean of 1 - text edit distance, TEDS and, with LaTeX, CDM of the page"),
        *OmniDocBenchV15.metrics[1:],
    )

    def load(self, path: Path) -> list[Sample]:
        """Pages of the published JSON file; an image's name gives its language, and a longer name a photograph."""
        samples = []
        for sample in super().load(path):
            stem = PurePosixPath(sample.id).stem
            parts = stem.split("_")
            groups = {"language": parts[0].lower(), "capture": "digital" if len(parts) == _DIGITAL_PARTS else "photo"}
            samples.append(msgspec.structs.replace(sample, groups=groups, prediction_names=(f"{stem}.md",)))
        return samples

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Scores of OmniDocBench v1.5, cut to 0 to 1; TEDS and CDM of a page are not cut before their mean."""
        score = super().score(sample, prediction, rules)
        text, *others = (score.metrics[name] for name in ("text_edit_distance", "teds", "cdm"))
        parts = [part for part in (None if text is None else max(0.0, 1 - text), *others) if part is not None]
        overall = min(1.0, max(0.0, math.fsum(parts) / len(parts))) if parts else None
        return msgspec.structs.replace(score, metrics={**score.metrics, "overall": overall})

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Percentages: means over pages, over languages, and over the rounded languages of a script."""
        languages: dict[str, list[SampleScore]] = {}
        for score in scores:
            languages.setdefault(score.groups.get("language", ""), []).append(score)
        by_language = {language: _percent(members) for language, members in sorted(languages.items())}

        def of_languages(latin: bool) -> Figure:
            values = [figure.value for language, figure in by_language.items() if (language in LATIN) == latin]
            found = mean(values, "mean of the languages' rounded figures")
            return found if found.value is None else msgspec.structs.replace(found, value=round(found.value, 1))

        captures = {
            name: [score for score in scores if score.groups.get("capture") == name] for name in ("digital", "photo")
        }
        return {
            "overall": msgspec.structs.replace(_percent(scores), note="formulas are left out" if unavailable() else ""),
            "overall_digital": _percent(captures["digital"]),
            "overall_photo": _percent(captures["photo"]),
            "overall_latin": of_languages(True),
            "overall_non_latin": of_languages(False),
            **{f"overall_{language}": figure for language, figure in by_language.items() if language},
        }


def _percent(scores: Sequence[SampleScore]) -> Figure:
    found = mean(scores_by_metric(scores, "overall"), "mean over pages, in percent, 1 decimal")
    return found if found.value is None else msgspec.structs.replace(found, value=round(found.value * 100, 1))
