"""What the guard against repeated n-grams costs per token, by n and window, against plain loops over the window.

    python benchmarks/no_repeat_ngram.py [--tokens 4000]

``random`` sequences repeat nothing, in ``loop`` ones every n-gram has occurred before.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence

from pagemill.recognition.local.ngrams import NGramHistory

_VOCABULARY = 150_000
_PERIOD = 40  # tokens of a loop


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4000, help="length of a sequence")
    count = parser.parse_args().tokens
    source = random.Random(0)
    period = [source.randrange(_VOCABULARY) for _ in range(_PERIOD)]
    sequences = {
        "random": [source.randrange(_VOCABULARY) for _ in range(count)],
        "loop": [period[place % _PERIOD] for place in range(count)],
    }
    print("n | window | sequence | history, µs per token | plain loops, µs per token")
    for size, window in ((3, 90), (30, 90), (3, 1000), (30, 1000), (100, 1000)):
        for name, tokens in sequences.items():
            own, plain = (_cost(ban, tokens) for ban in (_history(size, window), _plain(size, window)))
            print(f"{size} | {window} | {name} | {own:.2f} | {plain:.2f}")


def _history(size: int, window: int) -> Callable[[Sequence[int]], int]:
    def ban(tokens: Sequence[int]) -> int:
        history = NGramHistory(size, window)
        banned = 0
        for token in tokens:
            history.extend((token,))
            banned += len(history.banned())
        return banned

    return ban


def _plain(size: int, window: int) -> Callable[[Sequence[int]], int]:
    def ban(tokens: Sequence[int]) -> int:
        banned = 0
        for end in range(1, len(tokens) + 1):
            prefix = tuple(tokens[end - size + 1 : end])
            starts = range(max(0, end - window), end - size + 1)
            banned += len({tokens[at + size - 1] for at in starts if tuple(tokens[at : at + size - 1]) == prefix})
        return banned

    return ban


def _cost(ban: Callable[[Sequence[int]], int], tokens: Sequence[int]) -> float:
    """Microseconds per token, the best of three."""
    best = min(_timed(ban, tokens) for _ in range(3))
    return best / len(tokens) * 1e6


def _timed(ban: Callable[[Sequence[int]], int], tokens: Sequence[int]) -> float:
    begun = time.perf_counter()
    ban(tokens)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
