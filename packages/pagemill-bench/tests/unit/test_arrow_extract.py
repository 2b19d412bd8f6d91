"""Extraction from shards, on small pages."""

from pathlib import Path

import pytest

from pagemill_bench import arrow_extract
from pagemill_bench.arrow_extract import RECODED, extraction_rows


def test_stored_bytes_stay_the_same_and_encoding_again_changes_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(arrow_extract, "A4_300DPI", (200, 280))
    rows = extraction_rows(tmp_path, pages=RECODED + 1, threads=2)
    assert [(name, pages, files) for name, pages, *_, files in rows] == [
        ("JPEG: raw bytes", RECODED + 1, "the same"),
        ("JPEG: raw bytes, 2 threads", RECODED + 1, "the same"),
        ("JPEG: decode, encode again", RECODED, "others"),
        ("PNG: raw bytes", RECODED + 1, "the same"),
        ("PNG: raw bytes, 2 threads", RECODED + 1, "the same"),
        ("PNG: decode, encode again", RECODED, "others"),
    ]
    for _, _, milliseconds, rate, times, _ in rows:
        assert rate == pytest.approx(1000 / milliseconds)
        assert times > 0
