import json

import pytest

from pagemill.document.json_text import json_text


@pytest.mark.parametrize("text", ["a\u2028b\u2029c\x85d", "a\u2028\ud800"])
def test_json_is_one_line_for_every_reader(text: str) -> None:
    written = json_text({"text": text})
    assert written.splitlines() == [written]
    assert json.loads(written)["text"] == text.replace("\ud800", "\ufffd")
