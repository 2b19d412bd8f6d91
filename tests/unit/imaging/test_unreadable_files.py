from pathlib import Path

import pytest

from pagemill.errors import MissingInputError, UnreadableInputError
from pagemill.imaging.decode import decode_image
from pagemill.imaging.pdf import open_pdf


@pytest.mark.parametrize("open_file", [decode_image, lambda path: open_pdf(path, None)])
def test_a_file_that_is_there_and_cannot_be_read_is_not_missing(open_file, tmp_path: Path):
    with pytest.raises(UnreadableInputError, match="Is a directory") as caught:
        open_file(tmp_path)
    assert caught.value.category == "unreadable"
    assert caught.value.remedy
    with pytest.raises(MissingInputError, match="does not exist"):
        open_file(tmp_path / "none")
