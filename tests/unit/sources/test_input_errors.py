from pathlib import Path

import pytest

from pagemill.errors import CorruptInputError
from pagemill.sources.intake import input_error
from pagemill.sources.items import Item
from pagemill.sources.pages import _as_data


def test_a_file_without_permission_is_unreadable_and_one_that_went_away_is_missing():
    item = Item(uri="q/a.pdf", name="a.pdf", origin=0, content=Path("q/a.pdf"))
    denied = input_error(item, PermissionError(13, "Permission denied"))
    assert (denied.category, denied.message) == ("unreadable", "'a.pdf' cannot be read: Permission denied")
    assert "permissions" in str(denied.remedy)
    assert input_error(item, FileNotFoundError(2, "No such file")).category == "missing"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("b.pdf is damaged", "q/b.pdf is damaged"),
        ("q/b.pdf does not exist", "q/b.pdf does not exist"),
        ("page 3 is damaged", "q/b.pdf: page 3 is damaged"),
    ],
)
def test_a_failed_file_is_named_as_the_user_did(message: str, told: str):
    assert _as_data(CorruptInputError(message), "q/b.pdf").message == told
