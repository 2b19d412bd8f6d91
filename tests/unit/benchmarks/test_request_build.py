import pytest

import crops as crop_bench
from request_build import request_tables


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crop_bench, "A4_300DPI", (1000, 900))


def test_without_glmocr_ours_are_measured():
    assert [len(table.rows) for table in request_tables(crops=1)] == [2, 2]
