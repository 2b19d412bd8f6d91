"""Checks that this machine has what a task needs. Each check reports what it found, and how to get what is missing."""

from __future__ import annotations

import asyncio
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
from importlib.util import find_spec

from pagemill.config.machine import available_cores
from pagemill.config.model_cards import load_card
from pagemill.config.model_files import find_model
from pagemill.errors import MissingDependencyError, NetworkError, PagemillError, lacks_extra
from pagemill.inference.models import decode_served
from pagemill.inference.servers import server_root
from pagemill.installation import reinstall
from pagemill.serving.command import find_vllm
from pagemill.serving.detection import gpus, machine_memory_gib

_PROBE_S = 60.0  # for a child process; importing PyTorch from a cold disk takes a while
_SERVER_S = 5.0
_MIN_MEMORY_GIB = 4.0
_MIN_TEMPORARY = 2**30
_MIN_FILES = 1024
"""Open files: connections to servers, decoding processes, the run directory."""
COMMON_SCRIPTS = ("HANGUL", "CYRILLIC", "ARABIC", "HEBREW", "DEVANAGARI", "THAI", "VIETNAMESE")
"""Those that ``scripts/install-system-packages`` installs."""
_START_SERVER = "Start one with pagemill serve-model, or check the address."

_Check = tuple[str, Callable[[], str]]
"""A requirement and its check, which raises an error if it is missing or insufficient."""


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
    MCP = "mcp"
    RAY = "ray"
    SERVE_MODEL = "serve-model"
    EMBED = "embed"
    SEARCH = "search"
    PUBLISH = "publish"


PURPOSE = {
    Area.MACHINE: "what every run needs",
    Area.PARSE: "parse with the embedded engines: pagemill parse",
    Area.GPU: "layout detection in PyTorch, which finds more regions: --layout-engine pp-doclayout-v3",
    Area.VLM: "recognition by a vision-language model on a server: --recognition-engine vlm",
    Area.SERVE: "serve parsing over HTTP: pagemill serve",
    Area.MCP: "tools for assistants: pagemill mcp",
    Area.RAY: "parse on many machines: --ray",
    Area.SERVE_MODEL: "start model servers on this machine: pagemill run, pagemill serve-model",
    Area.EMBED: "embed pages with a model: pagemill embed",
    Area.SEARCH: "index and search: pagemill index, pagemill search",
    Area.PUBLISH: "publish on the Hugging Face Hub: pagemill publish --repo",
}
"""What an area enables."""


class _LimitedError(PagemillError):
    """Usable with a disadvantage: a warning."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The finding of one check."""

    area: Area
    what: str
    verdict: Readiness
    detail: str
    remedy: str | None


def examine(areas: Iterable[Area], *, servers: Sequence[str] = (), vllm: str | None = None) -> Iterator[CheckResult]:
    """Check what the areas need, one after the other.

    Args:
        areas: The tasks.
        servers: Base URLs of model servers that should answer.
        vllm: Location of vLLM, as for ``serve-model --vllm``.
    """
    checks: dict[Area, list[_Check]] = {
        Area.MACHINE: [
            ("system", _python),
            ("machine", _cores_and_memory),
            ("temporary files", _temporary_space),
            ("open files", _open_files),
        ],
        Area.PARSE: [("embedded engines", _embedded_engines), ("scripts", _scripts), ("formulas", _formulas)],
        Area.GPU: [
            _package("torch", "gpu"),
            _package("transformers", "gpu"),
            *([("accelerator", _accelerator)] if find_spec("torch") else []),
            _model("pp-doclayout-v3"),
        ],
        Area.VLM: [_package("aiohttp", "vlm"), *((_server_name(url), partial(_server, url)) for url in servers)],
        Area.SERVE: [_package(name, "serve") for name in ("fastapi", "uvicorn", "python-multipart", "websockets")],
        Area.MCP: [_package("mcp", "mcp")],
        Area.RAY: [_package("ray", "ray")],
        Area.SERVE_MODEL: [("vLLM", partial(_vllm, vllm)), ("GPU", _graphics_cards), _model("glm-ocr")],
        Area.EMBED: [("sentence-transformers", _local_models), _model("qwen3-vl-embedding-2b")],
        Area.SEARCH: [("full text", _full_text)],
        Area.PUBLISH: [_package("huggingface-hub", "hub"), ("login", _hub_login)],
    }
    for area in areas:
        for what, check in checks[area]:
            try:
                yield CheckResult(area, what, Readiness.OK, check(), None)
            except PagemillError as error:
                verdict = Readiness.WARNING if isinstance(error, _LimitedError) else Readiness.MISSING
                yield CheckResult(area, what, verdict, error.message, error.remedy)


def _python() -> str:
    found = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if platform.system() == "Windows":
        raise _LimitedError(f"{found}: not tested", remedy="Linux and macOS are supported.")
    return found


def _cores_and_memory() -> str:
    memory_gib = machine_memory_gib()
    detail = f"{available_cores()} cores" + (f", {memory_gib:.1f} GiB of memory" if memory_gib else "")
    if memory_gib is not None and memory_gib < _MIN_MEMORY_GIB:
        raise _LimitedError(detail, remedy="Limit the pages in flight: --threads 1 --pages-in-flight 2")
    return detail


def _temporary_space() -> str:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _MIN_TEMPORARY:
        raise _LimitedError(detail, remedy="Free some space, or set TMPDIR.")
    return detail


def _open_files() -> str:
    if platform.system() == "Windows":
        return "no relevant limit"
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # It is -1, which would pass for a limit that is too low.
    if limit == resource.RLIM_INFINITY:
        return "no limit"
    if limit < _MIN_FILES:
        raise _LimitedError(f"at most {limit:,}", remedy=f"Raise it: ulimit -n {_MIN_FILES}")
    return f"at most {limit:,}"


def _embedded_engines() -> str:
    code = (
        # Loaded for real: native libraries that are installed and do not fit this CPU or libc fail only then.
        "from pagemill.layout.settings import LayoutSettings\n"
        "from pagemill.runtime import engines\n"
        "engines.load(engines.LAYOUT_ENGINES, 'onnx')(LayoutSettings()).close()\n"
        "engines.load(engines.TEXT_DETECTORS, 'rapidocr')()\n"
    )
    _probed(code, f"Reinstall pagemill: {reinstall()}")
    return "layout and text detection load"


def _scripts() -> str:
    """Scripts that can be read, and the packages for those that cannot."""
    from pagemill.recognition.languages import LANGUAGE_OF_SCRIPT, plan, remedy_for
    from pagemill.runtime.text_reading import PRIMARY, offers

    engines = {offer.name: offer.languages for offer in offers().values()}
    found = plan(None, engines, PRIMARY)
    read = {script: found.engine_of(script) for script in LANGUAGE_OF_SCRIPT}
    own = "Latin, Chinese and Japanese"
    others = ", ".join(f"{script.title()} ({engine})" for script, engine in read.items() if engine)
    missing = [script for script in COMMON_SCRIPTS if not read[script]]
    detail = f"read: {own}" + (f", {others}" if others else "")
    if missing:
        raise _LimitedError(
            f"{detail}; not read: {', '.join(script.title() for script in missing)}",
            remedy=f"{remedy_for([LANGUAGE_OF_SCRIPT[script] for script in missing])};"
            " more accurate for most: pagemill models download cpu-best",
        )
    return detail


def _formulas() -> str:
    """Which engine reads the formulas of scans."""
    from pagemill.runtime.formula_reading import formula_offers

    if offers := formula_offers():
        return f"in scans read by {offers[0].name}"
    raise _LimitedError(
        "formulas in scans are output as plain characters, not LaTeX", remedy="pagemill models download cpu-best"
    )


def _package(package: str, extra: str) -> _Check:
    return package, partial(_version, package, extra)


def _version(package: str, extra: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise lacks_extra("not installed", extra) from error


def _local_models() -> str:
    try:
        return _version("sentence-transformers", "embed")
    # Servers and the embedded engine make vectors without it.
    except MissingDependencyError as error:
        raise _LimitedError(
            "not installed, and only needed to load models in this process", remedy=error.remedy
        ) from error


def _accelerator() -> str:
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
    found = _probed(code, "Check the driver, and that this PyTorch is built for it.")
    # PyTorch for the CPU is what `pip install torch` brings on some machines with a GPU: worth a word, not a failure.
    if found.startswith("none"):
        raise _LimitedError(found, remedy="A page takes about a second on the CPU.")
    return found


def _graphics_cards() -> str:
    try:
        cards = gpus()
    except PagemillError as error:
        raise _LimitedError(error.message, remedy=error.remedy) from error
    if not cards:
        remedy = "vLLM needs a GPU; use a server on another machine: --server URL"
        raise _LimitedError("none, or no NVIDIA driver", remedy=remedy)
    return "; ".join(f"{card.name}, {card.memory_gib:.0f} GiB" for card in cards)


def _vllm(place: str | None) -> str:
    found = find_vllm(place)
    return f"{found.version or 'of unknown version'}, {found.path}"


def _model(name: str) -> _Check:
    card = load_card(name)

    def find() -> str:
        if folder := find_model(card):
            return str(folder)
        size = f"not on this machine ({card.download_bytes / 1e9:.1f} GB)"
        raise _LimitedError(size, remedy=f"pagemill models download {name}")

    return card.title, find


def _server_name(url: str) -> str:
    """Its address without a password; empty for an invalid address."""
    try:
        return server_root(url)
    except PagemillError:
        return "server"


def _server(url: str) -> str:
    """Ask a server for its models."""
    try:
        names = asyncio.run(_served_names(server_root(url)))
    # Whatever answers at that address may answer with anything, also with JSON nested without end.
    except (ValueError, RecursionError) as error:
        raise NetworkError("not an OpenAI-compatible server", remedy=_START_SERVER) from error
    return f"serves {', '.join(names) or 'nothing'}"


async def _served_names(root: str) -> list[str]:
    from pagemill.inference.exchange import AttemptFailedError, Exchange

    exchange = Exchange(os.environ.get("PAGEMILL_API_KEY"))
    try:
        return [served.name for served in decode_served(await exchange.request(f"{root}/v1/models", _SERVER_S))]
    except AttemptFailedError as error:
        raise NetworkError(error.message, remedy=_START_SERVER) from error
    finally:
        await exchange.close()


def _full_text() -> str:
    import sqlite3

    from pagemill.retrieval.database import require_full_text

    require_full_text()
    return f"SQLite {sqlite3.sqlite_version} with FTS5"


def _hub_login() -> str:
    try:
        from huggingface_hub import get_token
    except ImportError as error:
        raise lacks_extra("unknown", "hub") from error
    # Not verified with the Hub: the check would need the network, and count as a use of the token.
    if get_token():
        return "there is a token (not verified)"
    raise MissingDependencyError("there is no token", remedy="Log in: hf auth login, or set HF_TOKEN.")


def _probed(code: str, remedy: str) -> str:
    """Run Python code in a child process, to isolate this one from libraries that crash or hang."""
    try:
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=_PROBE_S)
    except subprocess.TimeoutExpired as error:
        raise MissingDependencyError(f"no answer within {_PROBE_S:g} s", remedy=remedy) from error
    if process.returncode:
        lines = process.stderr.strip().splitlines()
        raise MissingDependencyError(lines[-1] if lines else f"exit status {process.returncode}", remedy=remedy)
    return process.stdout.strip()
