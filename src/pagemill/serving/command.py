"""The command line of a model server: the location of vLLM, and its arguments."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pagemill.config.model_cards import ModelCard
from pagemill.config.serving import ServingOptions
from pagemill.errors import MissingDependencyError, UsageError
from pagemill.serving.planning import ServingPlan

VARIABLE = "PAGEMILL_VLLM"
"""Environment variable with the location of vLLM."""
INSTALL = "python -m venv vllm-env && vllm-env/bin/pip install vllm"


@dataclass(frozen=True, slots=True)
class Vllm:
    """An installed vLLM."""

    path: Path
    """The program."""

    @property
    def version(self) -> str | None:
        """Its version by its metadata, as running it takes ten seconds of imports; None without any."""
        for entry in sorted(self.path.parent.parent.glob("lib/python3*/site-packages/vllm*.dist-info")):
            if version := re.match(r"vllm(?:_\w+)?-(\d+(?:\.\d+)*)", entry.name):
                return version[1]
        return None

    def environment(self) -> dict[str, str]:
        """The environment of a server: ours, without telemetry and colours, with its own programs first on PATH.

        Run-time compilers (Triton, FlashInfer) look there for ``ninja``, which pip installs beside ``vllm``.
        """
        return {
            # Before the environment: a user who sets these variables decides.
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            **os.environ,
            # After it: colours and delayed lines would spoil the log, which the diagnosis reads.
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
            "PATH": os.pathsep.join([str(self.path.parent), os.environ.get("PATH", os.defpath)]),
        }


WHEREVER_IT_IS = Vllm(Path("vllm"))
"""Placeholder for vLLM in commands that are only shown, on a machine without it."""


def find_vllm(given: str | None = None) -> Vllm:
    """Find vLLM: at ``given``, in ``PAGEMILL_VLLM``, in pagemill's own environment, on ``PATH``.

    Args:
        given: An executable or the folder of an environment.

    Raises:
        MissingDependencyError: It is not installed.
    """
    for source, place in (("--vllm", given), (VARIABLE, os.environ.get(VARIABLE))):
        if place:
            return _at(Path(place).expanduser(), source)
    own = Path(sys.executable).parent / "vllm"
    if found := shutil.which(own) or shutil.which("vllm"):
        return Vllm(Path(found).absolute())
    raise MissingDependencyError(
        "vLLM is not installed",
        remedy=f"It needs an environment of its own: {INSTALL}; then --vllm vllm-env, or {VARIABLE}=vllm-env.",
    )


def check_version(vllm: Vllm, card: ModelCard) -> None:
    """Check that vLLM is new enough for a model, if its version is known.

    Raises:
        MissingDependencyError: It is too old.
    """
    wanted = card.server.min_vllm
    if wanted and vllm.version and _numbers(vllm.version) < _numbers(wanted):
        raise MissingDependencyError(
            f"{card.title} needs vLLM {wanted} or later; {vllm.path} is {vllm.version}",
            remedy=f"Install a newer one: {INSTALL}.",
        )


def server_arguments(
    vllm: Vllm, card: ModelCard, plan: ServingPlan, options: ServingOptions, *, model: str, port: int
) -> list[str]:
    """The command line of a server. vLLM takes the last of plan and user where a flag is given more than once.

    Args:
        vllm: The installation.
        card: The model.
        plan: Its sizing, and the flags that its card always needs.
        options: The user's; the card's optional flags are among them.
        model: Local folder or name on the Hub.
        port: Port it listens on.

    Raises:
        UsageError: The card has no such option, or names no model.
    """
    unknown = [name for name in options.options if name not in card.server.optional]
    if unknown:
        raise UsageError(
            f"the model card {card.name} has no option {unknown[0]!r}",
            remedy=f"It has: {', '.join(card.server.optional) or 'none'}.",
        )
    if not model:
        raise UsageError(f"the model card {card.name} names no model", remedy="Give its folder with --weights.")
    chosen = [word for name in options.options for word in card.server.optional[name]]
    return [
        *(str(vllm.path), "serve", model, "--served-model-name", card.name, *plan.arguments),
        *(*chosen, *options.extra, "--host", options.host, "--port", str(port)),
    ]


def _at(place: Path, source: str) -> Vllm:
    program = place / "bin" / "vllm" if place.is_dir() else place
    if not os.access(program, os.X_OK):
        raise MissingDependencyError(
            f"{source}: {place} is neither a program nor the folder of an environment with vLLM",
            remedy=f"Run: {INSTALL}",
        )
    return Vllm(program.absolute())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
