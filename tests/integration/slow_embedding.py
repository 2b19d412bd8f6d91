"""An embedding engine for tests: slow enough to be killed, its vectors tell the text. Installed as a package."""

import hashlib
import os
import time

import numpy as np

from pagemill.embedding.base import EngineIdentity, Modality

DIMENSION = 32
LOG = "PAGEMILL_TEST_EMBEDDED"
"""Environment variable: the file that gets a character for each text that was embedded."""

HOLD = "PAGEMILL_TEST_HOLD"
"""Environment variable: a file; while it is there, nothing more is embedded."""


def vector_of(text: str) -> np.ndarray:
    """A vector that only this text has."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=DIMENSION)
    return vector / np.linalg.norm(vector)


class SlowEngine:
    name = "slow"
    modalities = frozenset({Modality.TEXT})
    identity = EngineIdentity(engine=name, model="slow", dimension=DIMENSION)
    max_batch = 2
    concurrency = 1
    image_budget = None
    cut_texts = 0

    def embed(self, inputs):
        time.sleep(0.01)
        if LOG in os.environ:
            with open(os.environ[LOG], "a") as log:  # noqa: PTH123
                log.write("." * len(inputs))
        while os.path.exists(os.environ.get(HOLD, "")):  # noqa: PTH110
            time.sleep(0.01)
        return np.stack([vector_of(each.text) for each in inputs])

    def close(self):
        pass


def create(settings):
    return SlowEngine()
