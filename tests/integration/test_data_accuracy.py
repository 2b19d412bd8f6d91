"""The embedded engines on public data with truth: each score of docs/accuracy.md stays in its band.

The samples of this repository have theirs in test_samples_accuracy.py.
"""

import os
from pathlib import Path

import pytest

from data_accuracy import SETS

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BANDS = {
    ("korean", "CER"): (0.0, 0.05),
    ("pubtabnet", "TEDS"): (0.90, 1.0),
    ("pubtabnet", "TEDS-S"): (0.94, 1.0),
    ("olmocr-bench-sample", "tests passed"): (0.90, 1.0),
}
"""Lowest and highest score by folder and metric: what was measured, less the effect of one or two samples."""


@pytest.mark.parametrize("name", sorted({folder for folder, _ in BANDS}))
def test_scores_are_in_their_band(name: str) -> None:
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    scores = {score.metric: score.value for score in SETS[name](Path(root) / name)}
    wanted = {metric: band for (folder, metric), band in BANDS.items() if folder == name}
    assert scores.keys() == wanted.keys()
    for metric, (low, high) in wanted.items():
        assert low <= scores[metric] <= high, scores
