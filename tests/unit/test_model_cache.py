"""Each model is loaded once a process."""

import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pagemill import model_cache
from pagemill.model_cache import cached, release_models, version_of


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_cache, "_models", {})


class Model: ...


def test_threads_wait_for_the_one_that_loads():
    made = []
    all_asked = threading.Barrier(8)

    def load() -> Model:
        made.append(Model())
        return made[-1]

    def ask(_: int) -> Model:
        all_asked.wait()
        return cached("model", load)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(8))) == set(made)
    assert len(made) == 1


def test_models_of_two_keys_load_side_by_side():
    both_load = threading.Barrier(2, timeout=30)

    def load() -> Model:
        both_load.wait()
        return Model()

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda key: cached(key, load), "ab")
    assert first is not second


def test_a_failure_is_not_kept():
    def fail() -> Model:
        raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        cached("model", fail)
    assert isinstance(cached("model", Model), Model)


def test_a_released_model_is_freed_once_nobody_uses_it():
    used = cached("model", Model)
    watched = weakref.ref(used)
    release_models()
    assert cached("model", Model) is not used
    del used
    gc.collect()
    assert watched() is None


def test_a_file_that_was_rewritten_is_another_model(tmp_path: Path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    before = version_of(path)
    assert version_of(path) == before
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert version_of(path) != before
