"""What a model answers is untrusted: mutated answers through the parsers of whole pages and of descriptions.

    python benchmarks/fuzz_answers.py [--inputs N] [--seed N]

Sound answers (a grounded page; a description in JSON) are mutated: pieces are deleted, repeated, exchanged, cut off,
and replaced by what means something to a parser, or by any character. An exception, or an input that takes longer than
``--limit`` seconds, ends the command with that input; so does a result out of its bounds. At the end each parser gets
hostile texts of 1/4, 1/2 and 1 MB; printed are the times, which must grow like the length.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

from pagemill.config.model_cards import load_card
from pagemill.describing.answers import MAX_ROWS, MAX_SUMMARY, problems, read_description
from pagemill.extraction.answers import read_answer as read_json
from pagemill.inference.chat import Answer
from pagemill.recognition.vlm.page_answers import read_answer as read_page

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = load_card("deepseek-ocr").cleanup
PAGE = (
    "<|ref|>title<|/ref|><|det|>[[100, 50, 900, 90]]<|/det|>\n# A mill\n\n"
    "<|ref|>image<|/ref|><|det|>[[100, 320, 480, 600], [1, 2, 3, 4]]<|/det|>\n\n"
    "<|ref|>table<|/ref|><|det|>[[520, 320, 900, 600]]<|/det|>\n\n"
    "<|ref|>table_caption<|/ref|><|det|>[[520, 300, 900, 318]]<|/det|>\n<center>Table 1</center>\n"
    "<table><tr><td>1</td><td rowspan=2>2</td></tr></table>\n\n"
    "<|ref|>equation<|/ref|><|det|>[[1, 7, 9, 75]]<|/det|>\n\\[ a = \\frac{b}{c} \\]\n<｜end▁of▁sentence｜>"
)
DESCRIPTION = json.dumps(
    {
        "language": "ko",
        "summary": 'A chart of "paper" made.\\n종이.',
        "keywords": ["paper", "종이"],
        "data": [["Quarter", "t"], ["Q1", "4.5"], ["Q2", ""]],
    },
    ensure_ascii=False,
)
PIECES = (
    *("<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "[[", "]]", "[", "]", "{", "}", '"', "\\", "\\u", "\\ud800", ","),
    *("null", "true", "1e999", "-", "999999999999999999999999", "NaN", "<table", "</table>", "<td>", "rowspan=99999"),
    *("```", "$$", "\\[", "\\frac{", "<center>", "</think>", "|", "\0", "\ud800", "\u202e", "é" * 20, " " * 30, "</s>"),
)
HOSTILE = (
    *("<|ref|>", "<|ref|>a<|/ref|><|det|>[[", "<|ref|>a<|/ref|><|det|>[[1,2,3,4]]<|/det|>x", "[", "[[1,", '{"a":', "<"),
    *(
        '{"summary":"',
        '"\\u0000',
        "<table>",
        "<td>",
        "<table><tr><td>x</td></tr></table>",
        "$$",
        "\\frac{",
        "```\n",
        "a ",
    ),
    *("<center>", "|", "| a |\n", "\\", "\n", " ", "<!--", "&amp;", '["a",', "</think>", "9", "<|det|>", "x\u200b"),
)


def mutated(sound: str, drawn: random.Random) -> str:
    """A text that differs from a sound one in some places."""
    text = sound
    for _ in range(drawn.randint(1, 6)):
        start = drawn.randrange(len(text) + 1)
        end = min(len(text), start + drawn.randrange(1, 40))
        how = drawn.randrange(6)
        if how == 0:
            text = text[:start] + text[end:]
        elif how == 1:
            text = text[:end] + text[start:end] * drawn.randrange(1, 20) + text[end:]
        elif how == 2:
            text = text[:start] + drawn.choice(PIECES) + text[end:]
        elif how == 3:
            text = text[:start] + chr(drawn.randrange(0x3000)) + text[start:]
        elif how == 4:
            text = text[start:] + text[:start]
        else:
            text = text[:start]
    return text


def page(text: str) -> None:
    """Through the parser of whole pages."""
    elements, _ = read_page(text, STEPS)
    assert all(0.0 <= side <= 1.0 for element in elements for box in element.boxes for side in box)


def description(text: str) -> None:
    """Through the parser of descriptions."""
    for reason in ("stop", "length"):
        values = read_json(Answer(text=text, finish_reason=reason), keep_blanks=True).values
        if values is not None:
            problems(values)
            found = read_description(values)
            assert found is None or 0 < len(found.summary) <= MAX_SUMMARY
            assert found is None or len(found.chart or ()) <= MAX_ROWS


def too_long(number: int, frame: object) -> None:
    """The handler of the alarm."""
    raise TimeoutError("the input takes too long")


def check(parse: Callable[[str], None], text: str, limit: float) -> None:
    """Parse a text within a time limit.

    Raises:
        SystemExit: Something is wrong.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        parse(text)
    except Exception as error:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(f"{type(error).__name__}: {error}\n{text[:2000]!r}")
        sys.exit(1)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="mutated inputs in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds of computing that one input may take")
    arguments = parser.parse_args()
    signal.signal(signal.SIGVTALRM, too_long)
    parsers = {"page": (page, PAGE), "description": (description, DESCRIPTION)}
    for name, (parse, sound) in parsers.items():
        drawn = random.Random(f"{name} {arguments.seed}")
        begun = time.process_time()
        count = arguments.inputs // len(parsers)
        for _ in range(count):
            check(parse, mutated(sound, drawn), arguments.limit)
        seconds = time.process_time() - begun
        print(f"{name}: {count:,} mutated inputs in {seconds:.0f} s, no exception, none over {arguments.limit:g} s")
    for name, (parse, sound) in parsers.items():
        worst = (0.0, "", [0.0])
        for unit in HOSTILE:
            times = []
            for size in (2**18, 2**19, 2**20):
                text = (sound[: len(sound) // 2] if unit == "9" else "") + unit * (size // len(unit))
                times.append(min(_timed(parse, text, 10 * arguments.limit) for _ in range(2)))
            worst = max(worst, (times[-1] / max(times[0], 0.005), unit, times))
            print(f"{name} {unit!r:45} " + "  ".join(f"{1000 * each:7.1f} ms" for each in times))
        print(f"{name}: four times the text takes at most {worst[0]:.1f} times as long ({worst[1]!r})")


def _timed(parse: Callable[[str], None], text: str, limit: float) -> float:
    begun = time.process_time()
    check(parse, text, limit)
    return time.process_time() - begun


if __name__ == "__main__":
    main()
