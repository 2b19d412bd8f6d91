"""Resolve serving options to servers: card, weights, machine, plan and command of each replica."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pagemill.config.hardware import Device, Profile
from pagemill.config.model_cards import ModelCard, ModelKind, load_card
from pagemill.config.model_files import MODELS_VARIABLE, find_in_mirror, find_model
from pagemill.config.serving import ONE_PER_GPU, ServingOptions
from pagemill.errors import MissingInputError, OutputError, PagemillError, UsageError
from pagemill.serving.addresses import free_port
from pagemill.serving.command import WHEREVER_IT_IS, check_version, find_vllm, server_arguments
from pagemill.serving.detection import gpus, resolve_profile, visible_devices
from pagemill.serving.memory import read_weights
from pagemill.serving.planning import ServingPlan, make_plan
from pagemill.serving.spec import FIRST_PORT, ServerSpec

T = TypeVar("T")

_LOGS_KEPT = 20
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Servers that are ready to be started."""

    card: ModelCard
    plan: ServingPlan
    specs: tuple[ServerSpec, ...]
    lacking: tuple[PagemillError, ...] = ()
    """What this machine lacks, in a dry run."""


def plan_for(options: ServingOptions) -> tuple[ModelCard, ServingPlan]:
    """The model card and the memory plan; needs no vLLM.

    Raises:
        UsageError: The model does not fit, or the options contradict each other.
    """
    card = load_card(options.model)
    if card.kind not in (ModelKind.RECOGNITION, ModelKind.EMBEDDING):
        raise UsageError(
            f"{card.name} is not a model for a server", remedy="'pagemill models list' shows what each is for."
        )
    if not card.server.supported:
        raise UsageError(
            f"vLLM does not have the model {card.name}",
            remedy=f"Run it in this process: --recognition-engine transformers --model {card.name}.",
        )
    profile = resolve_profile(options.profile)
    weights = read_weights(options.weights) if options.weights else None
    return card, make_plan(card, profile, options.wishes, weights)


def prepare(options: ServingOptions, *, dry: bool = False) -> Serving:
    """Prepare servers: find the model and vLLM, make the plan and the commands. Starts nothing; creates the log folder.

    Args:
        options: The model to serve, and its options.
        dry: Only show the commands, perhaps for another machine. What this one lacks (vLLM, the model, accelerators,
            the address to listen on) is listed in :attr:`Serving.lacking` instead of raised, and no folder is created.

    Raises:
        UsageError: The model does not fit, or the options contradict each other.
        MissingDependencyError: vLLM is not installed, or is too old for the model.
        MissingInputError: The model is not on this machine and the environment is set to offline, or the local mirror
            does not exist.
    """
    if options.replicas == ONE_PER_GPU:
        options = replace(options, replicas=max(1, _visible()))
    for name in ("--host", "--port"):
        if _value(options.extra, name) is not None:
            raise UsageError(f"{name} is an option of pagemill, too", remedy="Give it before the --.")
    if options.port is not None and not 0 < options.port <= 65536 - options.replicas:
        raise UsageError(f"there is no port {options.port}", remedy="Check --port.")
    card, plan = plan_for(options)
    lacking: list[PagemillError] = []

    def here(look: Callable[[], T], otherwise: T) -> T:
        """A property of this machine; in a dry run a default where it lacks it."""
        try:
            return look()
        except PagemillError as error:
            if not dry:
                raise
            lacking.append(error)
            return otherwise

    here(lambda: _check_host(options.host), None)
    vllm = here(lambda: find_vllm(options.vllm), WHEREVER_IT_IS)
    here(lambda: check_version(vllm, card), None)
    model = here(lambda: _model(card, options.weights), card.repository)
    one_each: list[str | None] = [*map(str, range(options.replicas))]
    devices = here(lambda: _devices(plan.profile, options.replicas), one_each)
    logs = _log_folder(options.logs, make=not dry)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"

    def command_of(port: int) -> list[str]:
        return server_arguments(vllm, card, plan, options, model=model, port=port)

    command_of(FIRST_PORT)  # raises for a wrong option before anything is started
    asked = _value(options.extra, "--max-model-len") or str(plan.budget.max_model_len)
    # vLLM also accepts 16k and auto: 0 then, so that a running server of any length is used.
    length = int(asked) if asked.isdecimal() else 0
    specs = tuple(
        ServerSpec(
            command=command_of,
            environment=vllm.environment() | ({} if device is None else {"CUDA_VISIBLE_DEVICES": device}),
            served_name=_value(options.extra, "--served-model-name") or card.name,
            model=model,
            max_model_len=length,
            log=logs / f"{card.name}-{stamp}-{number}.log",
            host=options.host,
            port=None if options.port is None else options.port + number,
            preferred_port=FIRST_PORT + number,
        )
        for number, device in enumerate(devices)
    )
    return Serving(card=card, plan=plan, specs=specs, lacking=tuple(lacking))


def _check_host(host: str) -> None:
    try:
        free_port(host)
    except OSError as error:
        raise UsageError(
            f"no server can listen at {host!r} on this machine: {error.strerror or error}",
            remedy="Check --host: 127.0.0.1 for this machine alone, 0.0.0.0 for all that reach it.",
        ) from error


def _model(card: ModelCard, weights: Path | None) -> str:
    """The model argument of vLLM: a folder, or a name on the Hub."""
    if weights is not None:
        return str(weights.absolute())
    mirror = os.environ.get(MODELS_VARIABLE)
    if mirror and not Path(mirror).expanduser().is_dir():
        raise MissingInputError(
            f"{MODELS_VARIABLE} names {mirror}, which is not a folder",
            remedy=f"Check it, unset it, or fill it: pagemill models download {card.name} --to {mirror}.",
        )
    if mirrored := find_in_mirror(card.repository):
        return str(mirrored.absolute())
    offline = any(os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"} for name in _OFFLINE)
    if offline and card.repository and find_model(card) is None:
        raise MissingInputError(
            f"{card.name} is not on this machine, and HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set",
            remedy=f"Fetch it where there is one: pagemill models download {card.name}; or give --weights FOLDER.",
        )
    return card.repository


def _devices(profile: Profile, replicas: int) -> list[str | None]:
    """The accelerator of each replica; None leaves the choice to vLLM."""
    if profile.device is not Device.CUDA or replicas == 1:
        return [None] * replicas
    visible, count = visible_devices(), _visible()
    # Without NVML and CUDA_VISIBLE_DEVICES they cannot be counted: vLLM will report a missing one itself.
    if replicas > count and (count or visible is not None):
        raise UsageError(
            f"{replicas} replicas need {replicas} accelerators; {count} can be seen",
            remedy="Lower --replicas, or check CUDA_VISIBLE_DEVICES.",
        )
    return [*(visible or map(str, range(replicas)))][:replicas]


def _visible() -> int:
    """Accelerators that this process may use."""
    visible = visible_devices()
    return len(gpus()) if visible is None else len(visible)


def _log_folder(given: Path | None, *, make: bool) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = given or Path(state) / "pagemill" / "servers"
    if not make:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Only in our own folder: in one that the user names, other files may match.
        if given is None:
            for path in sorted(folder.glob("*.log*"), key=_changed)[:-_LOGS_KEPT]:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"the folder of the servers' logs, {folder}, cannot be made: {error.strerror or error}",
            remedy="Set XDG_STATE_HOME to a folder that can be written.",
        ) from error
    return folder


def _changed(path: Path) -> float:
    """Modification time of a file; 0 if another process has just deleted it."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


def _value(words: tuple[str, ...], name: str) -> str | None:
    """The value that a command line gives to a flag, the last one; None without it."""
    found = None
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == name:
            found = following
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found
