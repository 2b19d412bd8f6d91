"""What the tests of ``pagemill run`` share: pages, a vLLM that answers, a Hub, and the command as a process. Linux."""

import json
import re
from pathlib import Path
from typing import Any

from local_hub import TOKEN, LocalHub
from pagemill_process import PagemillProcess, environment
from PIL import Image, ImageDraw
from serving_world import World, own_ports

PAGES = 6
REGIONS = 2
"""That are read of each page; a third one is a picture."""


class Mill:
    """A place for runs.

    Args:
        folder: Where all of it is.
        packages: Folder of the engines of :mod:`fault_engines`.
    """

    def __init__(self, folder: Path, packages: Path) -> None:
        self.world = World(folder / "world", answering=True)
        self.scans = folder / "scans"
        self.out = folder / "out"
        self.port = own_ports()
        """Of its servers, so that they are not taken for those of other tests."""
        self.queries = folder / "queries.jsonl"
        self.log = folder / "log"
        self.words: tuple[str, ...] = ()
        """Of the fake vLLM."""
        self.more: dict[str, str] = {}
        """For the environment."""
        self._folder = folder
        self._packages = packages
        self._runs: list[PagemillProcess] = []
        self.scans.mkdir()
        for number in range(PAGES):
            draw_page(self.scans / f"page-{number}.png", number)
        self.queries.write_text(json.dumps({"query_id": "q1", "text": "Where is the mill?"}) + "\n")

    @property
    def said(self) -> str:
        """What all runs printed."""
        return self.log.read_text()

    def arguments(self, *more: str) -> list[str]:
        return [
            *("run", str(self.scans), "-o", str(self.out), "--vllm", str(self.world.program), "--profile", "l4"),
            *("--port", str(self.port), "--layout-engine", "fast", *more),
        ]

    def environment(self) -> dict[str, str]:
        state = {"XDG_STATE_HOME": str(self._folder / "state"), "HF_HOME": str(self._folder / "hf")}
        surroundings = environment(self._packages) | self.world.environment(*self.words) | state
        surroundings["PYTHONPATH"] = environment(self._packages)["PYTHONPATH"]
        for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "PAGEMILL_MODELS", "PAGEMILL_VLLM"):
            surroundings.pop(name, None)
        return surroundings | self.more

    def start(self, *arguments: str) -> PagemillProcess:
        """Start ``pagemill`` with these arguments, or with :meth:`arguments`."""
        run = PagemillProcess(arguments or self.arguments(), self.environment(), self.log)
        self._runs.append(run)
        return run

    def run(self, *arguments: str) -> int:
        """Run it to its end; nothing of it is left then."""
        run = self.start(*arguments)
        status = run.wait()
        self.assert_all_gone()
        return status

    def use(self, hub: LocalHub) -> None:
        self.more |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
        self.more |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

    def assert_all_gone(self) -> None:
        """No process is left, and so nobody of ours listens where servers were; another run of the tests may."""
        for run in self._runs:
            assert not run.members()
        assert not self.world.processes()

    def ports(self) -> list[int]:
        """Of all servers that were given to steps, the last one at the end."""
        return [int(port) for port in re.findall(r"--server http://127\.0\.0\.1:(\d+)", self.said)]

    def records(self) -> list[dict[str, Any]]:
        path = self.out / "ocr_results.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def assert_all_read(self, pages: int = PAGES) -> None:
        """Each page is there once, and each of its regions holds the answer to its own image."""
        records = self.records()
        assert len({record["page_id"] for record in records}) == len(records) == pages
        answers = [region["content"] for record in records for region in record["regions"] if region["content"]]
        assert len(set(answers)) == len(answers) == REGIONS * pages
        assert all(answer.lstrip("# ").startswith("Read from ") for answer in answers)
        assert all(record["status"] == "done" for record in records)

    def clear(self) -> None:
        for run in self._runs:
            run.clear()
        self.world.clear()


def draw_page(path: Path, number: int) -> None:
    """A page on which each region looks different from those of all other pages."""
    image = Image.new("RGB", (300, 400), "white")
    draw = ImageDraw.Draw(image)
    for place, top in enumerate((26, 70, 300)):
        draw.text((40, top), f"page {number}, region {place}", fill="black")
    image.save(path)
