"""The public interface changes on purpose only."""

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("pagemill_eval")  # the commands of the tools are in it
pytest.importorskip("pagemill_bench")

from public_api import FILE, KEYWORDS, keywords, public_api


def test_the_public_interface_is_the_recorded_one() -> None:
    assert public_api().splitlines() == FILE.read_text(encoding="utf-8").splitlines(), (
        "If the change is meant, run `python scripts/public_api.py` and say it in CHANGELOG.md."
    )


def test_the_keywords_of_python_follow_from_the_declared_options() -> None:
    assert keywords() == KEYWORDS.read_text(encoding="utf-8"), "Run `python scripts/public_api.py`."
