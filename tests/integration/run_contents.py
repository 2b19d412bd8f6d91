"""What a finished run directory holds, to compare two runs over the same input."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

VOLATILE = ("timings", "attempts")
"""Fields of a record in which two runs over the same input may differ."""
COUNTS = ("pages", "failed", "documents", "regions", "crops", "failures_by_kind", "warnings_by_kind")


def records(out: Path) -> list[dict[str, Any]]:
    """All page records, by their place in the input."""
    lines = (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda record: record["page_idx"])


def texts(out: Path) -> list[dict[str, Any]]:
    """All texts, by their place in the input."""
    lines = (out / "parsed_texts.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda text: text["page_idx"])


def contents(out: Path) -> dict[str, Any]:
    """Everything that two runs over the same input must agree on: records, texts, documents, crops, counts."""
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return {
        "records": [{k: v for k, v in record.items() if k not in VOLATILE} for record in records(out)],
        "texts": texts(out),
        "documents": _digests(out / "documents"),
        "crops": _digests(out / "crops"),
        "counts": {name: run[name] for name in COUNTS},
    }


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """In what two runs differ, one short line a piece; empty when they agree."""
    lines = []
    for part in ("documents", "crops", "counts"):
        names = sorted(found[part].keys() | expected[part].keys())
        lines += [
            f"{part} {name}: {found[part].get(name, 'absent')} instead of {expected[part].get(name, 'none')}"
            for name in names
            if found[part].get(name) != expected[part].get(name)
        ]
    for part in ("records", "texts"):
        lines += [
            f"{part}: {page} stands there {times} times"
            for page, times in Counter(row["page_id"] for row in found[part]).items()
            if times > 1
        ]
        mine = {row["page_id"]: row for row in found[part]}
        theirs = {row["page_id"]: row for row in expected[part]}
        lines += [f"{part}: {page} is missing" for page in theirs.keys() - mine.keys()]
        lines += [f"{part}: {page} should not be there" for page in mine.keys() - theirs.keys()]
        for page in theirs.keys() & mine.keys():
            fields = [name for name in theirs[page] if mine[page].get(name) != theirs[page][name]]
            lines += [f"{part}: {page} differs in {', '.join(fields)}"] if fields else []
    return lines


def leftovers(out: Path) -> list[str]:
    """Temporary files that a finished run should not have left."""
    return sorted(str(path.relative_to(out)) for path in out.rglob("*tmp*"))


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(_lasting(path)).hexdigest() for path in folder.iterdir()}


def _lasting(path: Path) -> bytes:
    """The bytes of a file; DocJSON without the volatile fields of its pages."""
    if path.suffix != ".json":
        return path.read_bytes()
    document = json.loads(path.read_text(encoding="utf-8"))
    for page in document["pages"]:
        for name in VOLATILE:
            page.pop(name, None)
    return json.dumps(document).encode()
