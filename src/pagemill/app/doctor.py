"""Is everything there that a task needs? Each check says what it found, and how to mend what it did not."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.config.model_cards import load_card
from pagemill.config.model_files import find_model
from pagemill.config.settings import available_cores
from pagemill.errors import NetworkError, PagemillError
from pagemill.inference.models import decode_served
from pagemill.inference.servers import server_root
from pagemill.serving.command import find_vllm
from pagemill.serving.detection import gpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_PROBE_S = 60.0  # of another program; importing PyTorch from a cold disk takes a while
_SERVER_S = 5.0
_LEAST_MEMORY = 4 * 2**30
_LEAST_TEMPORARY = 2**30
_LEAST_FILES = 1024
"""Open files: connections to servers, decoding processes, the run directory."""


class Verdict(StrEnum):
    """What a check came to."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


class Area(StrEnum):
    """What somebody wants to do."""

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


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: Area
    what: str
    verdict: Verdict
    detail: str
    remedy: str | None = None


def examine(
    areas: Iterable[Area], *, servers: Sequence[str] = (), vllm: str | None = None, token: str | None = None
) -> Iterator[Finding]:
    """Look at what the areas need, one after the other.

    Args:
        areas: What is wanted.
        servers: Base URLs of model servers that should answer.
        vllm: Where vLLM is, as ``serve-model --vllm`` takes it.
        token: For the Hub; None for the one of the environment or of a login.
    """
    checks: dict[Area, list[Callable[[], Finding]]] = {
        Area.MACHINE: [_python, _cores_and_memory, _temporary_space, _open_files],
        Area.PARSE: [_embedded_engines, _tesseract],
        Area.GPU: [
            functools.partial(_package, Area.GPU, "torch", "gpu"),
            functools.partial(_package, Area.GPU, "transformers", "gpu"),
            _accelerator,
            functools.partial(_model, Area.GPU, "pp-doclayout-v3"),
        ],
        Area.VLM: [
            functools.partial(_package, Area.VLM, "aiohttp", "vlm"),
            *(functools.partial(_server, url) for url in servers),
        ],
        Area.SERVE: [
            functools.partial(_vllm, vllm),
            _graphics_cards,
            functools.partial(_model, Area.SERVE, "glm-ocr"),
        ],
        Area.EMBED: [
            functools.partial(_optional, Area.EMBED, "sentence-transformers", "embed", "local models"),
            functools.partial(_model, Area.EMBED, "qwen3-vl-embedding-2b"),
        ],
        Area.SEARCH: [_full_text],
        Area.PUBLISH: [
            functools.partial(_package, Area.PUBLISH, "huggingface-hub", "hub"),
            functools.partial(_hub_login, token),
        ],
    }
    for area in areas:
        for check in checks[area]:
            yield check()


def _python() -> Finding:
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if platform.system() == "Windows":
        return Finding(
            Area.MACHINE, "system", Verdict.WARNING, f"{found}: not tried there", "Linux and macOS are supported."
        )
    return Finding(Area.MACHINE, "system", Verdict.OK, found)


def _cores_and_memory() -> Finding:
    memory = _memory_bytes()
    detail = f"{available_cores()} cores" + (f", {memory / 2**30:.1f} GiB of memory" if memory else "")
    if memory is not None and memory < _LEAST_MEMORY:
        return Finding(
            Area.MACHINE,
            "machine",
            Verdict.WARNING,
            detail,
            "Keep few pages under way: --threads 1 --pages-in-flight 2",
        )
    return Finding(Area.MACHINE, "machine", Verdict.OK, detail)


def _memory_bytes() -> int | None:
    """What this process may use: the machine's memory, or less where its control group says so; None: nobody tells."""
    if not hasattr(os, "sysconf"):  # Windows
        return None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return min(memory, int(limit)) if limit != "max" else memory
    except (OSError, ValueError):
        return memory


def _embedded_engines() -> Finding:
    code = (
        "from pagemill.layout.settings import LayoutSettings\n"
        "from pagemill.runtime import engines\n"
        "engines.load(engines.LAYOUT_ENGINES, 'onnx')(LayoutSettings()).close()\n"
        "engines.load(engines.TEXT_DETECTORS, 'rapidocr')()\n"
    )
    return _probed(Area.PARSE, "embedded engines", code, "layout and text detection load", "Reinstall pagemill.")


def _tesseract() -> Finding:
    from pagemill.recognition.tesseract_engine import installed_languages

    languages = installed_languages()
    if "ko" in languages:
        return Finding(Area.PARSE, "Tesseract", Verdict.OK, f"reads {', '.join(sorted(languages))}")
    return Finding(
        Area.PARSE,
        "Tesseract",
        Verdict.WARNING,
        "cannot read Korean" if languages else "not installed: Korean cannot be read",
        "sudo apt-get install tesseract-ocr tesseract-ocr-kor (macOS: brew install tesseract tesseract-lang)",
    )


def _temporary_space() -> Finding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _LEAST_TEMPORARY:
        return Finding(Area.MACHINE, "temporary files", Verdict.WARNING, detail, "Free some space, or set TMPDIR.")
    return Finding(Area.MACHINE, "temporary files", Verdict.OK, detail)


def _open_files() -> Finding:
    if platform.system() == "Windows":
        return Finding(Area.MACHINE, "open files", Verdict.OK, "no limit that matters")
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_FILES:
        return Finding(Area.MACHINE, "open files", Verdict.WARNING, f"at most {limit}", f"ulimit -n {_LEAST_FILES}")
    shown = "no limit" if limit == resource.RLIM_INFINITY else f"at most {limit:,}"
    return Finding(Area.MACHINE, "open files", Verdict.OK, shown)


def _package(area: Area, package: str, extra: str) -> Finding:
    try:
        return Finding(area, package, Verdict.OK, version(package))
    except PackageNotFoundError:
        return Finding(area, package, Verdict.MISSING, "not installed", f"pip install 'pagemill[{extra}]'")


def _optional(area: Area, package: str, extra: str, use: str) -> Finding:
    found = _package(area, package, extra)
    if found.verdict is Verdict.OK:
        return found
    return Finding(area, package, Verdict.OK, f"not installed: only needed for {use} (pip install 'pagemill[{extra}]')")


def _accelerator() -> Finding:
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
    try:
        version("torch")
    except PackageNotFoundError:
        return Finding(
            Area.GPU, "accelerator", Verdict.MISSING, "PyTorch is not installed", "pip install 'pagemill[gpu]'"
        )
    found = _probed(Area.GPU, "accelerator", code, None, "Check the driver, and that this PyTorch is built for it.")
    if found.detail.startswith("none"):
        return Finding(found.area, found.what, Verdict.WARNING, found.detail, "A page takes about a second there.")
    return found


def _graphics_cards() -> Finding:
    try:
        cards = gpus()
    except PagemillError as error:
        return Finding(Area.SERVE, "GPU", Verdict.WARNING, error.message, error.remedy)
    if not cards:
        remedy = "vLLM needs a GPU; use a server on another machine: --server URL"
        return Finding(Area.SERVE, "GPU", Verdict.WARNING, "none, or no NVIDIA driver", remedy)
    return Finding(
        Area.SERVE, "GPU", Verdict.OK, "; ".join(f"{card.name}, {card.memory_gib:.0f} GiB" for card in cards)
    )


def _vllm(place: str | None) -> Finding:
    try:
        found = find_vllm(place)
        return Finding(Area.SERVE, "vLLM", Verdict.OK, f"{found.version or 'of unknown version'}, {found.path}")
    except PagemillError as error:
        return Finding(Area.SERVE, "vLLM", Verdict.MISSING, error.message, error.remedy)


def _model(area: Area, name: str) -> Finding:
    card = load_card(name)
    folder = find_model(card)
    if folder is not None:
        return Finding(area, card.title, Verdict.OK, str(folder))
    return Finding(
        area,
        card.title,
        Verdict.WARNING,
        f"not on this machine ({card.download_bytes / 1e9:.1f} GB)",
        f"pagemill models download {name}",
    )


def _server(url: str) -> Finding:
    """Ask a server for its models."""
    try:
        root = server_root(url)
    except PagemillError as error:
        return Finding(Area.VLM, "server", Verdict.MISSING, error.message, error.remedy)
    remedy = "Start one with pagemill serve-model, or check the address."
    try:
        names = asyncio.run(_served_names(root))
    except PagemillError as error:
        return Finding(Area.VLM, root, Verdict.MISSING, error.message, error.remedy or remedy)
    except (ValueError, RecursionError):
        return Finding(Area.VLM, root, Verdict.MISSING, "not an OpenAI-compatible server", remedy)
    return Finding(Area.VLM, root, Verdict.OK, f"serves {', '.join(names) or 'nothing'}")


async def _served_names(root: str) -> list[str]:
    from pagemill.inference.exchange import AttemptFailedError, Exchange

    exchange = Exchange(os.environ.get("PAGEMILL_API_KEY"))
    try:
        return [served.name for served in decode_served(await exchange.get(f"{root}/v1/models", _SERVER_S))]
    except AttemptFailedError as error:
        raise NetworkError(error.message) from error
    finally:
        await exchange.close()


def _full_text() -> Finding:
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
        except sqlite3.OperationalError as error:
            remedy = "Use a Python whose SQLite has FTS5, as most have."
            return Finding(Area.SEARCH, "full text", Verdict.MISSING, str(error), remedy)
    return Finding(Area.SEARCH, "full text", Verdict.OK, f"SQLite {sqlite3.sqlite_version} with FTS5")


def _hub_login(token: str | None) -> Finding:
    try:
        from huggingface_hub import get_token
    except ImportError:
        return Finding(Area.PUBLISH, "login", Verdict.MISSING, "cannot be looked up", "pip install 'pagemill[hub]'")
    if token or get_token():
        return Finding(Area.PUBLISH, "login", Verdict.OK, "there is a token (not tried)")
    return Finding(Area.PUBLISH, "login", Verdict.MISSING, "there is no token", "hf auth login, or set HF_TOKEN")


def _probed(area: Area, what: str, code: str, good: str | None, remedy: str) -> Finding:
    """Run Python code in a process of its own: a library that crashes or hangs there does not do so here."""
    try:
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=_PROBE_S)
    except subprocess.TimeoutExpired:
        return Finding(area, what, Verdict.MISSING, f"no answer within {_PROBE_S:g} s", remedy)
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        return Finding(area, what, Verdict.MISSING, said[-1] if said else f"exit status {ended.returncode}", remedy)
    return Finding(area, what, Verdict.OK, good or ended.stdout.strip())
