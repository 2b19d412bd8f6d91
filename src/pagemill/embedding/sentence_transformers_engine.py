"""The engine ``sentence-transformers``: any local model of that library, for texts, images, or both together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagemill.config.model_cards import ImageBudget
from pagemill.embedding.base import EmbeddingInput, EngineIdentity, EngineSettings, Modality, Role
from pagemill.errors import MissingInputError, UsageError, lacks_extra, unreadable

try:
    from sentence_transformers import SentenceTransformer
except ImportError as error:
    raise lacks_extra("embedding in this process needs sentence-transformers", "embed") from error

_BATCH = 32
_PROMPTS = {
    Role.QUERY: ("query",),
    Role.PASSAGE: ("corpus", "passage", "document"),
    Role.IMAGE: ("corpus", "passage", "document", "image"),
}
"""Names of the prompts of each role in models; of several the last one is used."""
_PARTS = {Modality.TEXT: "text", Modality.IMAGE: "image", Modality.IMAGE_WITH_TEXT: ("image", "text")}
"""Names of modalities in the library."""
_SAMPLES = 64
_SAMPLE = 2**16


class SentenceTransformersEngine:
    """A model in this process.

    Args:
        settings: Model, device and batch size.

    Raises:
        UsageError: No model is named, or servers are.
        MissingInputError: There is no such model.
    """

    name = "sentence-transformers"
    concurrency = 1
    image_budget: ImageBudget | None = None

    def __init__(self, settings: EngineSettings) -> None:
        if not settings.model or settings.servers:
            raise UsageError(
                "the engine 'sentence-transformers' runs a model here",
                remedy="Name its folder, or its name on the Hub, with --model, and no --server.",
            )
        try:
            # A model's folder may contain code, which is never run.
            self._model: Any = SentenceTransformer(settings.model, device=settings.device, trust_remote_code=False)
        except Exception as error:  # the library has no common error for files that are not models
            raise MissingInputError(
                f"the model {settings.model} cannot be loaded: {error}",
                remedy="Pass the folder of a model that sentence-transformers can load.",
            ) from error
        self.max_batch = settings.batch_size or _BATCH
        self.cut_texts = 0
        self.modalities = frozenset(modality for modality, parts in _PARTS.items() if self._model.supports(parts))
        prompts: dict[str, str] = self._model.prompts
        self._prompts = {role: prompts[name] for role, names in _PROMPTS.items() for name in names if prompts.get(name)}
        folder = Path(settings.model)
        self.identity = EngineIdentity(
            engine=self.name,
            model=str(folder.absolute()) if folder.is_dir() else settings.model,
            revision=_digest(folder) if folder.is_dir() else _commit(self._model),
            dimension=int(self._model.get_embedding_dimension()),
            instructions={role.value: prompt for role, prompt in self._prompts.items()},
        )

    def embed(self, inputs: Sequence[EmbeddingInput]) -> NDArray[Any]:
        """Compute one vector per input; the model's tokenizer truncates long texts."""
        vectors = np.empty((len(inputs), self.identity.dimension), dtype=np.float32)
        groups: dict[tuple[Role, Modality], list[int]] = {}
        # The library takes one prompt and one kind of input per call.
        for index, each in enumerate(inputs):
            groups.setdefault((each.role, each.modality), []).append(index)
        for (role, _), indices in groups.items():
            given = [_given(inputs[index]) for index in indices]
            prompt = self._prompts.get(role)
            self._count_cut([(prompt or "") + inputs[index].text for index in indices])
            vectors[indices] = self._model.encode(
                given,
                prompt=prompt,
                batch_size=len(given),
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return vectors

    def close(self) -> None:
        """Free the model."""
        del self._model

    def _count_cut(self, texts: Sequence[str]) -> None:
        limit = self._model.max_seq_length
        # A token is at least a byte: shorter texts need not be tokenized a second time.
        long = [text for text in texts if limit and len(text.encode()) > limit]
        if long:
            lengths = self._model.tokenizer(long, truncation=False, padding=False, verbose=False)["input_ids"]
            self.cut_texts += sum(len(tokens) > limit for tokens in lengths)


create = SentenceTransformersEngine
"""The entry point."""


def _given(each: EmbeddingInput) -> Any:
    """An input in the form of the library."""
    if each.image is None:
        return each.text
    from PIL import Image

    image = Image.fromarray(each.image)
    return {"image": image, "text": each.text} if each.text else image


def _digest(folder: Path) -> str:
    """SHA-256 over a model's files; of large ones their size and samples all over them, as the whole takes too long."""
    digest = hashlib.sha256()
    try:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
                size = path.stat().st_size
                digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
                starts = list(range(0, size, _SAMPLE))
                if len(starts) > _SAMPLES:  # from the first byte to the last: models tuned in part differ inside
                    starts = [index * (size - _SAMPLE) // (_SAMPLES - 1) for index in range(_SAMPLES)]
                with path.open("rb") as stream:
                    for start in starts:
                        stream.seek(start)
                        digest.update(stream.read(_SAMPLE))
    except OSError as error:
        raise unreadable(str(folder), error) from error
    return digest.hexdigest()


def _commit(model: Any) -> str:
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or "")
