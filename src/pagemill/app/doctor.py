"""Checks that this machine has what a task needs. Each check says what it found, and how to get what is missing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from pagemill.config.model_cards import load_card
from pagemill.config.model_files import find_model
from pagemill.config.settings import available_cores
from pagemill.errors import NetworkError, PagemillError
from pagemill.inference.models import decode_served
from pagemill.inference.servers import server_root
from pagemill.serving.command import find_vllm
from pagemill.serving.detection import gpus, machine_memory_gib

_PROBE_S = 60.0  # for a child process; importing PyTorch from a cold disk takes a while
_SERVER_S = 5.0
_MIN_MEMORY_GIB = 4.0
_MIN_TEMPORARY = 2**30
_MIN_FILES = 1024
"""Open files: connections to servers, decoding processes, the run directory."""


class Readiness(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


class Area(StrEnum):
    """A task."""

    MACHINE = "machine"
    PARSE = "parse"
    GPU = "gpu"
    VLM = "vlm"
    SERVE = "serve"
    EMBED = "embed"
    SEARCH = "search"
    PUBLISH = "publish"


PURPOSE = {
    Area.MACHINE: "what every run needs",
    Area.PARSE: "parse with the embedded engines",
    Area.GPU: "layout detection with PyTorch",
    Area.VLM: "recognition by a model on a server",
    Area.SERVE: "start vLLM on this machine",
    Area.EMBED: "embed pages",
    Area.SEARCH: "index and search",
    Area.PUBLISH: "publish on the Hub",
}


class _Found(NamedTuple):
    what: str
    verdict: Readiness
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check of an area found."""

    area: Area
    what: str
    verdict: Readiness
    detail: str
    remedy: str | None


def examine(
    areas: Iterable[Area], *, servers: Sequence[str] = (), vllm: str | None = None, token: str | None = None
) -> Iterator[CheckResult]:
    """Check what the areas need, one after the other.

    Args:
        areas: The tasks.
        servers: Base URLs of model servers that should answer.
        vllm: Where vLLM is, as for ``serve-model --vllm``.
        token: For the Hub; None for that of the environment or of a login.
    """
    checks: dict[Area, list[Callable[[], _Found]]] = {
        Area.MACHINE: [_python, _cores_and_memory, _temporary_space, _open_files],
        Area.PARSE: [_embedded_engines, _tesseract],
        Area.GPU: [
            partial(_package, "torch", "gpu"),
            partial(_package, "transformers", "gpu"),
            _accelerator,
            partial(_model, "pp-doclayout-v3"),
        ],
        Area.VLM: [partial(_package, "aiohttp", "vlm"), *(partial(_server, url) for url in servers)],
        Area.SERVE: [partial(_vllm, vllm), _graphics_cards, partial(_model, "glm-ocr")],
        Area.EMBED: [_local_models, partial(_model, "qwen3-vl-embedding-2b")],
        Area.SEARCH: [_full_text],
        Area.PUBLISH: [partial(_package, "huggingface-hub", "hub"), partial(_hub_login, token)],
    }
    for area in areas:
        for check in checks[area]:
            yield CheckResult(area, *check())


def _python() -> _Found:
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    windows = platform.system() == "Windows"
    return _limited("system", found + windows * ": not tested", windows, "Linux and macOS are supported.")


def _cores_and_memory() -> _Found:
    memory_gib = machine_memory_gib()
    detail = f"{available_cores()} cores" + (f", {memory_gib:.1f} GiB of memory" if memory_gib else "")
    remedy = "Limit the pages in flight: --threads 1 --pages-in-flight 2"
    return _limited("machine", detail, memory_gib is not None and memory_gib < _MIN_MEMORY_GIB, remedy)


def _limited(what: str, detail: str, too_little: bool, remedy: str) -> _Found:
    return _Found(what, Readiness.WARNING, detail, remedy) if too_little else _Found(what, Readiness.OK, detail)


def _embedded_engines() -> _Found:
    code = (
        "from pagemill.layout.settings import LayoutSettings\n"
        "from pagemill.runtime import engines\n"
        "engines.load(engines.LAYOUT_ENGINES, 'onnx')(LayoutSettings()).close()\n"
        "engines.load(engines.TEXT_DETECTORS, 'rapidocr')()\n"
    )
    return _probed("embedded engines", code, "layout and text detection load", "Reinstall pagemill.")


def _tesseract() -> _Found:
    from pagemill.recognition.tesseract_engine import installed_languages

    languages = installed_languages()
    detail = f"reads {', '.join(sorted(languages))}"
    if "ko" not in languages:
        detail = "cannot read Korean" if languages else "not installed: Korean cannot be read"
    remedy = "sudo apt-get install tesseract-ocr tesseract-ocr-kor (macOS: brew install tesseract tesseract-lang)"
    return _limited("Tesseract", detail, "ko" not in languages, remedy)


def _temporary_space() -> _Found:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free in {folder}"
    return _limited("temporary files", detail, free < _MIN_TEMPORARY, "Free some space, or set TMPDIR.")


def _open_files() -> _Found:
    if platform.system() == "Windows":
        return _Found("open files", Readiness.OK, "no relevant limit")
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _Found("open files", Readiness.OK, "no limit")
    return _limited("open files", f"at most {limit:,}", limit < _MIN_FILES, f"ulimit -n {_MIN_FILES}")


def _package(package: str, extra: str) -> _Found:
    try:
        return _Found(package, Readiness.OK, version(package))
    except PackageNotFoundError:
        return _Found(package, Readiness.MISSING, "not installed", f"pip install 'pagemill[{extra}]'")


def _local_models() -> _Found:
    found = _package("sentence-transformers", "embed")
    if found.verdict is Readiness.OK:
        return found
    return _Found(found.what, Readiness.OK, f"not installed: only needed for local models ({found.remedy})")


def _accelerator() -> _Found:
    torch = _package("torch", "gpu")
    if torch.verdict is not Readiness.OK:
        return _Found("accelerator", Readiness.MISSING, "PyTorch is not installed", torch.remedy)
    code = (
        "import torch\n"
        "if torch.cuda.is_available():\n"
        "    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]\n"
        "    print('CUDA', torch.version.cuda, *names, sep=', ')\n"
        "elif torch.backends.mps.is_available():\n"
        "    print('Apple GPU')\n"
        "else:\n"
        "    print('none: PyTorch computes on the CPU')\n"
    )
    found = _probed("accelerator", code, None, "Check the driver, and that this PyTorch is built for it.")
    if found.detail.startswith("none"):
        return _Found(found.what, Readiness.WARNING, found.detail, "A page takes about a second on the CPU.")
    return found


def _graphics_cards() -> _Found:
    try:
        cards = gpus()
    except PagemillError as error:
        return _Found("GPU", Readiness.WARNING, error.message, error.remedy)
    if not cards:
        remedy = "vLLM needs a GPU; use a server on another machine: --server URL"
        return _Found("GPU", Readiness.WARNING, "none, or no NVIDIA driver", remedy)
    return _Found("GPU", Readiness.OK, "; ".join(f"{card.name}, {card.memory_gib:.0f} GiB" for card in cards))


def _vllm(place: str | None) -> _Found:
    try:
        found = find_vllm(place)
        return _Found("vLLM", Readiness.OK, f"{found.version or 'of unknown version'}, {found.path}")
    except PagemillError as error:
        return _Found("vLLM", Readiness.MISSING, error.message, error.remedy)


def _model(name: str) -> _Found:
    card = load_card(name)
    folder = find_model(card)
    detail = str(folder) if folder else f"not on this machine ({card.download_bytes / 1e9:.1f} GB)"
    return _limited(card.title, detail, folder is None, f"pagemill models download {name}")


def _server(url: str) -> _Found:
    """Ask a server for its models."""
    name, remedy = "server", "Start one with pagemill serve-model, or check the address."
    try:
        name = server_root(url)
        names = asyncio.run(_served_names(name))
    except PagemillError as error:
        return _Found(name, Readiness.MISSING, error.message, error.remedy or remedy)
    except (ValueError, RecursionError):
        return _Found(name, Readiness.MISSING, "not an OpenAI-compatible server", remedy)
    return _Found(name, Readiness.OK, f"serves {', '.join(names) or 'nothing'}")


async def _served_names(root: str) -> list[str]:
    from pagemill.inference.exchange import AttemptFailedError, Exchange

    exchange = Exchange(os.environ.get("PAGEMILL_API_KEY"))
    try:
        return [served.name for served in decode_served(await exchange.request(f"{root}/v1/models", _SERVER_S))]
    except AttemptFailedError as error:
        raise NetworkError(error.message) from error
    finally:
        await exchange.close()


def _full_text() -> _Found:
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError as error:
        return _Found("full text", Readiness.MISSING, str(error), "Use a Python whose SQLite has FTS5, as most do.")
    return _Found("full text", Readiness.OK, f"SQLite {sqlite3.sqlite_version} with FTS5")


def _hub_login(token: str | None) -> _Found:
    try:
        from huggingface_hub import get_token
    except ImportError:
        return _Found("login", Readiness.MISSING, "unknown", "pip install 'pagemill[hub]'")
    if token or get_token():
        return _Found("login", Readiness.OK, "there is a token (not verified)")
    return _Found("login", Readiness.MISSING, "there is no token", "hf auth login, or set HF_TOKEN")


def _probed(what: str, code: str, good: str | None, remedy: str) -> _Found:
    """Run Python code in a child process, so that a library that crashes or hangs does not do so here."""
    try:
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=_PROBE_S)
    except subprocess.TimeoutExpired:
        return _Found(what, Readiness.MISSING, f"no answer within {_PROBE_S:g} s", remedy)
    if process.returncode:
        said = process.stderr.strip().splitlines()
        return _Found(what, Readiness.MISSING, said[-1] if said else f"exit status {process.returncode}", remedy)
    return _Found(what, Readiness.OK, good or process.stdout.strip())
