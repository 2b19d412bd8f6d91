"""How hits are shown."""

from pathlib import Path

import pytest

from pagemill.cli.search import _print
from pagemill.retrieval.hits import SearchHit


@pytest.mark.parametrize(("number", "shown"), [(12, "30, page 12, text"), (0, "30, text"), (None, "30, text")])
def test_a_page_that_counts_from_0_is_shown_by_its_id(
    capsys: pytest.CaptureFixture[str], number: int | None, shown: str
):
    hit = SearchHit(
        rank=1,
        score=0.1,
        page_id=f"30_{number}",
        doc_id="30",
        source="corpus.parquet",
        page_number=number,
        language="ko",
        region=0,
        label="text",
        bbox_2d=(0, 0, 1, 1),
        crop=None,
        snippet="mill",
        marks=(),
        parts={},
    )
    _print([hit], Path("out"))
    assert f"30_{number}  {shown}  [" in capsys.readouterr().out
