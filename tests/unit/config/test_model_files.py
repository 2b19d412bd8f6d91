import json

import pytest

from pagemill.config.model_cards import load_card
from pagemill.config.model_files import MODELS_VARIABLE, download_model, find_model, is_complete
from pagemill.errors import NetworkError, NoSpaceError, UsageError


def make_model(folder, shards=None, missing=()):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    names = shards or ["model.safetensors"]
    for name in set(names) - set(missing):
        (folder / name).write_bytes(b"w")
    if shards:
        weights = {f"layer.{index}": name for index, name in enumerate(shards)}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    return folder


@pytest.fixture
def no_cache(monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(MODELS_VARIABLE, raising=False)


def test_complete(tmp_path):
    assert is_complete(make_model(tmp_path / "one"))
    shards = ["a.safetensors", "b.safetensors"]
    assert is_complete(make_model(tmp_path / "two", shards=shards))
    assert not is_complete(make_model(tmp_path / "three", shards=shards, missing=shards[1:]))


WEIGHT_MAPS = ["{}", "3", '{"a": 1}', '{"a": "../secret"}']


@pytest.mark.parametrize("index", ["", "[]", "{}", *(f'{{"weight_map": {each}}}' for each in WEIGHT_MAPS)])
def test_an_index_that_is_damaged_or_names_files_elsewhere_is_not_complete(tmp_path, index):
    folder = make_model(tmp_path / "m")
    (tmp_path / "secret").write_text("x")
    (folder / "model.safetensors.index.json").write_text(index)
    assert not is_complete(folder)


def test_neither_configuration_nor_weights(tmp_path):
    assert not is_complete(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert not is_complete(tmp_path)


def test_the_mirror_comes_first(monkeypatch, tmp_path, no_cache):
    card = load_card("glm-ocr")
    assert find_model(card) is None
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    assert find_model(card) is None
    folder = make_model(tmp_path / "glm-ocr")
    assert find_model(card) == folder


def test_the_layout_engine_looks_into_the_mirror(monkeypatch, tmp_path, no_cache):
    from pagemill.layout.pp_doclayout.settings import MODEL_ID
    from pagemill.layout.pp_doclayout.weights import find_weights

    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    folder = make_model(tmp_path / "pp-doclayout-v3")
    assert find_weights(MODEL_ID) == folder


def test_offline_is_respected(monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(NetworkError, match="HF_HUB_OFFLINE"):
        download_model(load_card("glm-ocr"), folder=tmp_path)


def test_a_disk_that_is_too_small_is_reported_before_the_download(monkeypatch, tmp_path):
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 10**12, 10**9))
    with pytest.raises(NoSpaceError, match=r"needs 2\.7 GB"):
        download_model(load_card("glm-ocr"), folder=tmp_path / "not" / "yet")


def test_a_card_without_a_repository(tmp_path):
    import msgspec

    with pytest.raises(UsageError, match="no repository"):
        download_model(msgspec.structs.replace(load_card("glm-ocr"), repository=""), folder=tmp_path)
