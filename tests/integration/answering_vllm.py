"""A stand-in for ``vllm`` that answers as :mod:`pagemill_bench.testing.stub_server` does, each region by its own image.

It notes its lives as :mod:`fake_vllm` does, and heeds these words of ``FAKE_VLLM``: ``hang`` (never listens),
``dies-after=N`` (of the first life: ends at the Nth completion), ``dies-again`` (no later life comes up),
``latency=MS``, ``seats`` (computes as many requests at once as ``--max-num-seqs`` says) and ``needs=N`` (does not start
with fewer ``--max-num-batched-tokens``).
"""

import sys
import time

import fake_vllm

from pagemill_bench.testing import stub_server


def main() -> None:
    life = fake_vllm.note_life()
    words = dict(word.partition("=")[::2] for word in fake_vllm.WORDS)
    if "hang" in words:
        time.sleep(600)
    if life and "dies-again" in words:
        sys.exit("ValueError: a stone in the gears")
    if int(fake_vllm.option("--max-num-batched-tokens", "0")) < int(words.get("needs", "0")):
        sys.exit("ValueError: No available memory for the cache blocks.")
    model, port = fake_vllm.option("--served-model-name", "model"), fake_vllm.option("--port", "8000")
    arguments = ["--model", model, "--port", port, "--text", "Read from {image}", "--dimension", "8"]
    arguments += ["--latency-ms", words.get("latency", "0")]
    arguments += ["--dies-after", "0" if life else words.get("dies-after", "0")]
    if "seats" in words:
        arguments += ["--slots", fake_vllm.option("--max-num-seqs", "0")]
    stub_server.main(arguments)
