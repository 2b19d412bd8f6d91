"""Finding the weights, and what is told when they are not there or not what they should be."""

import json
import sys

import pytest

from pagemill.errors import MissingDependencyError, MissingInputError, UnsupportedInputError
from pagemill.installation import install_extra
from pagemill.layout.pp_doclayout.settings import MODEL_ID
from pagemill.layout.pp_doclayout.weights import find_weights, load_model
from pagemill.layout.pp_doclayout_engine import create
from pagemill.layout.settings import LayoutSettings


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "pp_doclayout_v3", "id2label": {"0": "text"}}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


def test_a_folder_or_a_file_in_it(folder):
    assert find_weights(str(folder)) == folder
    assert find_weights(str(folder / "model.safetensors")) == folder


def test_what_is_missing_in_a_folder_is_named(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingInputError, match=r"no model\.safetensors") as caught:
        find_weights(str(folder))
    assert f"hf download {MODEL_ID}" in caught.value.remedy


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(MissingInputError, match="absent"):
        find_weights(str(tmp_path / "absent"))
    with pytest.raises(MissingInputError):
        find_weights("nothing")


def test_without_the_weights_in_the_cache_the_command_is_told_and_nothing_is_fetched(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def snapshot_download(model, **options):
        asked.append(options["local_files_only"])
        raise hub.errors.LocalEntryNotFoundError("not there")

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    with pytest.raises(MissingInputError, match="not in the cache") as caught:
        find_weights(MODEL_ID)
    assert f"hf download {MODEL_ID}" in caught.value.remedy
    assert asked == [True]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (b'{"model_type": "bert"}', "bert"),
        (b"[]", "cannot read"),
        (b"{", "cannot read"),
        (b"[" * 100_000, "cannot read"),
        (b'{"model_type": "pp_doclayout_v3"}', "id2label"),
        (b'{"model_type": "pp_doclayout_v3", "id2label": {"0": "text", "7": "table"}}', "id2label"),
    ],
)
def test_another_kind_of_model_is_told(folder, config, said):
    (folder / "config.json").write_bytes(config)
    with pytest.raises(UnsupportedInputError, match=said):
        load_model(folder, None)


def test_without_pytorch_the_command_that_installs_it_is_told(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="torch") as caught:
        create(LayoutSettings(model_path=folder))
    assert install_extra("gpu") in caught.value.remedy
