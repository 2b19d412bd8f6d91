"""The embedded engine: hashed character n-grams. No model, no download, every language; lexical similarity only.

Text is brought to NFKC, case-folded, and cut into words. Of each word, with its borders, all sequences of 2, 3 and 4
characters count; of Korean words also those of 4 and 6 letters (jamo), since an ending changes a syllable
("하다", "했다") and leaves most letters as they are. Each n-gram has a component and a sign by its hash (feature
hashing, arXiv:0902.2206), and the weight 1 + log(occurrences).

The weighting is *lnc.ltc* (Manning et al., Introduction to Information Retrieval, 6.4.3): how rare an n-gram is in the
corpus counts in the query only. So the vector of a page never depends on other pages, and pages may come and go. It
costs nothing: ``benchmarks/embedding_quality.py``.
"""

from __future__ import annotations

import hashlib
import io
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pagemill.config.model_cards import ImageBudget
from pagemill.embedding.base import EmbeddingInput, EngineIdentity, EngineSettings, Modality, Role, Vectors
from pagemill.errors import DamagedRunError, EngineError, UsageError
from pagemill.store.files import output_errors, reading_errors, write_whole

Hashes: TypeAlias = NDArray[np.uint64]

MODEL = "hashed character n-grams"
DIMENSION = 4096
STATISTICS = "ngram.statistics.npz"
"""Document frequency of each n-gram; in the folder of the vectors."""
_CHARACTERS = (2, 3, 4)
_JAMO = (4, 6)
_BUCKETS = 2**20
"""Buckets of the statistics: n-grams that share one count as one."""
_VERSION = 1
_NO_WORD = re.compile(r"[\W_]+")  # one class, no alternatives: linear
_KOREAN = re.compile("[\u1100-\u11ff]")
_SPACE = ord(" ")
_MAX_DIMENSION = 2**16


class NgramEngine:
    """Hashed character n-grams; see the module.

    Args:
        settings: Uses ``dimension``, and keeps its statistics in ``folder``.

    Raises:
        UsageError: A model or server was named, or the dimension is out of range.
        DamagedRunError: The statistics cannot be read.
    """

    name = "ngram"
    modalities = frozenset({Modality.TEXT})
    concurrency = 1
    image_budget: ImageBudget | None = None
    cut_texts = 0

    def __init__(self, settings: EngineSettings) -> None:
        if settings.model not in (None, MODEL) or settings.servers:
            raise UsageError(
                "the engine 'ngram' has no model and asks no server",
                remedy="Leave --model and --server out, or embed with another engine (pagemill embed --engine).",
            )
        self._dimension = settings.dimension or DIMENSION
        if not 64 <= self._dimension <= _MAX_DIMENSION:
            raise UsageError(
                f"--dimension {self._dimension} is not from 64 to {_MAX_DIMENSION:,}, as the engine 'ngram' needs",
                remedy=f"Choose such a value, or leave it out for {DIMENSION:,}.",
            )
        self.max_batch = settings.batch_size or 64
        self._path = settings.folder / STATISTICS
        self._frequencies, self._digests = _read_statistics(self._path)

    @property
    def identity(self) -> EngineIdentity:
        """The statistics are not part of it: they weigh queries only, so that all vectors stay comparable."""
        return EngineIdentity(
            engine=self.name,
            model=MODEL,
            revision=str(_VERSION),
            dimension=self._dimension,
            details={"characters": list(_CHARACTERS), "jamo": list(_JAMO), "weighting": "lnc.ltc"},
        )

    @property
    def statistics(self) -> str:
        """Digest of the statistics."""
        texts = len(self._digests)
        return hashlib.sha256(self._frequencies.tobytes() + texts.to_bytes(8)).hexdigest() if texts else ""

    def changed(self, texts: Iterable[str]) -> float:
        """Number of texts added or removed since the statistics were computed, relative to the texts then."""
        now = np.fromiter(map(_digest, texts), dtype=np.uint64)
        return len(np.setxor1d(now, self._digests)) / max(1, len(self._digests))

    def fit(self, texts: Iterable[str]) -> None:
        """Count and store the document frequency of each n-gram."""
        # In buckets, of a fixed size: a table of all n-grams would grow with the corpus.
        frequencies = np.zeros(_BUCKETS, dtype=np.uint32)
        digests = []
        for text in texts:
            frequencies[np.unique(_bucket(_ngrams(text)[0]))] += np.uint32(1)
            digests.append(_digest(text))
        self._frequencies, self._digests = frequencies, np.array(digests, dtype=np.uint64)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, frequencies=frequencies, digests=self._digests, version=np.int64(_VERSION))
        with output_errors(self._path):
            self._path.parent.mkdir(exist_ok=True)
        write_whole(self._path, [buffer.getvalue()], durable=True)

    def embed(self, inputs: Sequence[EmbeddingInput]) -> Vectors:
        """Compute a vector for each text.

        Raises:
            EngineError: A text is empty.
        """
        return np.stack([self._vector(each) for each in inputs])

    def close(self) -> None:
        """Does nothing: there is nothing to free."""

    def _vector(self, each: EmbeddingInput) -> NDArray[np.float32]:
        hashes, counts = _ngrams(each.text)
        if not hashes.size:
            raise EngineError("the engine 'ngram' cannot embed an empty text")
        # Sublinear: a word that is on a page ten times does not make it ten times as relevant.
        weights = 1 + np.log(counts)
        # Only queries are weighted by rarity, so that vectors of pages do not depend on other pages.
        if each.role is Role.QUERY and len(self._digests):
            weights *= self._rarity(hashes)
        # The sign is another bit of the hash than the place: n-grams that collide cancel out on average.
        places = (hashes % np.uint64(self._dimension)).astype(np.int64)
        signs = np.where(hashes >> np.uint64(63), -1.0, 1.0)
        vector = np.bincount(places, weights=weights * signs, minlength=self._dimension)
        if not vector.any():  # all weights cancel out, which is almost impossible; a zero vector is not allowed
            vector[places[0]] = 1.0
        return vector.astype(np.float32)

    def _rarity(self, hashes: Hashes) -> NDArray[np.float64]:
        """Inverse document frequency as in BM25, which stays over 0 for what is on every page."""
        frequencies = self._frequencies[_bucket(hashes)].astype(np.float64)
        rarity: NDArray[np.float64] = np.log1p((len(self._digests) - frequencies + 0.5).clip(0.5) / (frequencies + 0.5))
        return rarity


create = NgramEngine
"""The entry point."""


def _ngrams(text: str) -> tuple[Hashes, NDArray[np.int64]]:
    """The n-grams of a text, each one once, and how often it occurs."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = f" {_NO_WORD.sub(' ', folded).strip()} "
    if not words.strip():  # nothing but punctuation, or nothing
        return np.unique(_hashes(_windows(" ".join(folded.split()), 1)), return_counts=True)
    found = [_hashes(_within_words(_windows(words, length))) for length in _CHARACTERS]
    letters = unicodedata.normalize("NFD", words)
    for length in _JAMO if _KOREAN.search(letters) else ():
        windows = _within_words(_windows(letters, length))
        windows = windows[((windows >= 0x1100) & (windows < 0x1200)).any(axis=1)]
        found.append(_mixed(_hashes(windows)))  # other hashes than those of as many characters
    return np.unique(np.concatenate(found), return_counts=True)


def _windows(text: str, length: int) -> NDArray[np.uint64]:
    """The code points of every sequence of ``length`` characters, shape (sequences, length)."""
    # UTF-32 has one number per character: the windows are a view, and no n-gram becomes a Python string.
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), dtype="<u4").astype(np.uint64)
    if len(codes) < length:
        return np.empty((0, length), dtype=np.uint64)
    windows: NDArray[np.uint64] = sliding_window_view(codes, length)
    return windows


def _within_words(windows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Windows without a space except at their ends."""
    is_broken: NDArray[np.bool_] = (windows[:, 1:-1] == _SPACE).any(axis=1)
    return windows[~is_broken]


def _hashes(windows: NDArray[np.uint64]) -> Hashes:
    hashes = np.full(len(windows), windows.shape[1], dtype=np.uint64)
    for codes in windows.T:
        hashes = _mixed(hashes + codes)
    return hashes


def _mixed(values: NDArray[np.uint64]) -> Hashes:
    """The finaliser of SplitMix64 (Steele et al. 2014): a bijection in which each bit changes half of the others."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _bucket(hashes: Hashes) -> NDArray[np.int64]:
    return (hashes % np.uint64(_BUCKETS)).astype(np.int64)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def _read_statistics(path: Path) -> tuple[NDArray[np.uint32], Hashes]:
    """Document frequency of each n-gram, and the digest of each text."""
    if not path.exists():
        return np.zeros(_BUCKETS, dtype=np.uint32), np.empty(0, dtype=np.uint64)
    try:
        # No pickles: a run directory may come from somebody else.
        with reading_errors(path), np.load(path, allow_pickle=False) as stored:
            frequencies, digests, version = stored["frequencies"], stored["digests"], int(stored["version"])
        whole = frequencies.shape == (_BUCKETS,) and frequencies.dtype == np.uint32
        if version != _VERSION or not whole or digests.ndim != 1 or digests.dtype != np.uint64:
            raise ValueError("it was written by another version")
    except (TypeError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedRunError(
            f"{path} cannot be used: {error}",
            remedy=f"Delete it: the next pagemill embed {path.parent.parent} makes it again.",
        ) from error
    return frequencies, digests
