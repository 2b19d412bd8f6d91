import json

import pytest
from click.testing import CliRunner

from pagemill.cli.models import command
from pagemill.config.model_cards import card_names, tessdata_names
from pagemill.config.model_files import MODELS_VARIABLE
from pagemill.errors import MissingInputError


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "mirror"))
    return tmp_path / "mirror"


def test_list_names_every_card(mirror):
    listed = json.loads(CliRunner().invoke(command, ["list", "--json"], catch_exceptions=False).stdout)
    assert [row["name"] for row in listed] == [*card_names(), *tessdata_names()]
    assert all(row["licence"] and row["languages"] for row in listed)
    text = CliRunner().invoke(command, ["list"], catch_exceptions=False).stdout
    assert all(name in text for name in [*card_names(), *tessdata_names()])


def test_where(mirror):
    with pytest.raises(MissingInputError, match="glm-ocr") as error:
        CliRunner().invoke(command, ["where", "glm-ocr"], catch_exceptions=False)
    assert "models download glm-ocr" in error.value.remedy
    folder = mirror / "glm-ocr"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    assert CliRunner().invoke(command, ["where", "glm-ocr"], catch_exceptions=False).stdout.strip() == str(folder)
