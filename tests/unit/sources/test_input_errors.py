from pathlib import Path

from pagemill.sources.intake import input_error
from pagemill.sources.items import Item


def test_a_file_without_permission_is_unreadable_and_one_that_went_away_is_missing():
    item = Item(uri="q/a.pdf", name="a.pdf", origin=0, content=Path("q/a.pdf"))
    denied = input_error(item, PermissionError(13, "Permission denied"))
    assert (denied.category, denied.message) == ("unreadable", "'a.pdf' cannot be read: Permission denied")
    assert "permissions" in str(denied.remedy)
    assert input_error(item, FileNotFoundError(2, "No such file")).category == "missing"
