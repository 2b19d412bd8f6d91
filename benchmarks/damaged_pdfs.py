"""What becomes of damaged PDFs: copies of sound ones with flipped bits, holes, cuts and false numbers, in one run.

Each damaged file must end as pages that are read, failed or warned of: a run that crashes, hangs or has no record of a
file is a defect, and so is a second run that says something else than the first. Prints the figures; exits with 1 on a
defect. The files are the same for the same seed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))

Damage = Callable[[bytearray, random.Random], None]


def flip_bits(data: bytearray, chance: random.Random) -> None:
    """One to 64 bits."""
    for _ in range(2 ** chance.randrange(7)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def flip_bits_of_the_structure(data: bytearray, chance: random.Random) -> None:
    """Bits of bytes that are no part of a stream."""
    places = [match.start() for match in re.finditer(rb"obj|/[A-Z][a-zA-Z]+|xref|\d{10} \d{5}|endstream|<<|>>", data)]
    for _ in range(2 ** chance.randrange(6)):
        data[chance.choice(places) + chance.randrange(3)] ^= 1 << chance.randrange(8)


def cut(data: bytearray, chance: random.Random) -> None:
    """The end is missing."""
    del data[chance.randrange(20, len(data)) :]


def cut_the_start(data: bytearray, chance: random.Random) -> None:
    """The first bytes are missing, but for the header."""
    del data[9 : chance.randrange(10, len(data) // 2)]


def hole(data: bytearray, chance: random.Random) -> None:
    """Zeros, as a disk gives them that was not written."""
    size = min(2 ** chance.randrange(4, 16), len(data) // 2)
    place = chance.randrange(len(data) - size)
    data[place : place + size] = bytes(size)


def lost_piece(data: bytearray, chance: random.Random) -> None:
    """A piece is missing, so that all that follows moves."""
    size = min(2 ** chance.randrange(1, 14), len(data) // 2)
    place = chance.randrange(len(data) - size)
    del data[place : place + size]


def doubled_piece(data: bytearray, chance: random.Random) -> None:
    """A piece is there twice."""
    size = min(2 ** chance.randrange(1, 14), len(data) // 2)
    place = chance.randrange(len(data) - size)
    data[place:place] = data[place : place + size]


def false_number(data: bytearray, chance: random.Random) -> None:
    """A count, a length, a reference or an offset is another number."""
    numbers = list(re.finditer(rb"(?<=[ \[/])-?\d{1,10}(?=[ \]/>\n\r])", data))
    for _ in range(chance.randrange(1, 5)):
        match = chance.choice(numbers)
        new = str(chance.choice([0, 1, -1, 7, 2**31 - 1, 10**9, chance.randrange(10**6)])).encode()
        data[match.start() : match.end()] = new[: match.end() - match.start()].rjust(match.end() - match.start())


def foreign_line_ends(data: bytearray, chance: random.Random) -> None:
    """As after a transfer as text."""
    data[:] = data.replace(b"\n", b"\r\n")


DAMAGES: tuple[Damage, ...] = (
    *(flip_bits, flip_bits_of_the_structure, cut, cut_the_start, hole, lost_piece, doubled_piece, false_number),
    foreign_line_ends,
)


def write_damaged(sources: list[Path], folder: Path, count: int, seed: int) -> list[Path]:
    """Write so many damaged copies; their names tell the damage."""
    files = []
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        source = sources[number % len(sources)]
        damage = DAMAGES[number // len(sources) % len(DAMAGES)]
        data = bytearray(source.read_bytes())
        damage(data, chance)
        file = folder / f"{number:04}-{damage.__name__}-{source.name}"
        file.write_bytes(data)
        files.append(file)
    return files


def parse(folder: Path, out: Path, limit_s: float, options: list[str]) -> tuple[int | None, str]:
    """Exit status (None for a run that hung) and what was said."""
    command = [
        sys.executable,
        "-m",
        "pagemill",
        "parse",
        str(folder),
        "-o",
        str(out),
        "--quiet",
        "--no-report",
        *options,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stderr


def decode(folder: Path, out: Path) -> tuple[int | None, str]:
    """The same of a run that opens and renders all pages and reads none, in this process."""
    from decoding_run import run

    return int(run(out, folder).exit_code), ""


def outcome(out: Path) -> dict[str, list[tuple[str, str, int]]]:
    """Of each file: page id, how it ended and how much is missing."""
    files: dict[str, list[tuple[str, str, int]]] = {}
    for line in (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        category = record["errors"][0]["category"] if record["errors"] else ""
        ended = "warned" if category and record["status"] == "done" else record["status"]
        entry = (record["page_id"], f"{ended} {category}".strip(), record["missing"])
        files.setdefault(Path(record["source"]).name, []).append(entry)
    return {name: sorted(entries) for name, entries in files.items()}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="+", metavar="PDF", help="sound PDFs")
    parser.add_argument("--count", type=int, default=300, help="damaged files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600.0, metavar="SECONDS", help="time limit of a run")
    parser.add_argument("--options", default="", help="further options for pagemill parse, as one string")
    parser.add_argument("--decode-only", action="store_true", help="open and render the pages, and do not read them")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the files there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch) / "damaged"
        folder.mkdir(parents=True, exist_ok=True)
        out = Path(scratch) / "out"
        files = write_damaged(arguments.pdf, folder, arguments.count, arguments.seed)

        def parse_or_decode() -> tuple[int | None, str]:
            if arguments.decode_only:
                return decode(folder, out)
            return parse(folder, out, arguments.limit, arguments.options.split())

        start = time.perf_counter()
        code, messages = parse_or_decode()
        seconds = time.perf_counter() - start
        if code is None:
            print(f"the run hung: it took more than {arguments.limit:.0f} s")
            return 1
        first = outcome(out)
        again, _ = parse_or_decode()
        same = outcome(out) == first and again == code
    ends = Counter(ended for entries in first.values() for _, ended, _ in entries)
    missing = sum(count for entries in first.values() for _, _, count in entries)
    lost = [file.name for file in files if file.name not in first]
    unread = sum(all(ended.startswith("failed") for _, ended, _ in entries) for entries in first.values())
    print(f"{len(files)} damaged files, {sum(ends.values())} records, {missing:,} pages missing, {seconds:.0f} s")
    print(f"files of which no page is read: {unread}")
    print("| end | records |\n|---|--:|")
    for ended, count in ends.most_common():
        print(f"| {ended} | {count} |")
    print(f"\nexit status {code}, in the second run {again}; same records: {'yes' if same else 'no'}")
    print(f"files without a record: {', '.join(lost) or 'none'}")
    crashed = code < 0 or code == 1 or "Traceback" in messages
    if crashed:
        print(messages[-2000:])
    return 1 if crashed or lost or not same else 0


if __name__ == "__main__":
    sys.exit(main())
