"""The pictures of docs/gallery.md: pages of the samples in the web app, each beside what was read.

    python benchmarks/gallery.py [--out docs/assets/gallery]

Starts a server with an empty folder, sends the samples, and takes pictures with Chromium: WebP, 1,200 pixels wide.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

import pagemill
from chromium_pipe import Chromium

ROOT = Path(__file__).parents[1]
PICTURES = {
    "report": ("report.pdf", 1, "en"),
    "table": ("report.pdf", 2, "en"),
    "scan": ("report-scan.pdf", 1, "en"),
    "notice": ("notice-ko-scan.pdf", 1, "ko"),
}
"""By name: the sample, its page, and the language of the page and of the interface."""
_SIZE = (1440, 900)
_WIDTH = 1200
_QUALITY = 70


def take(url: str, out: Path) -> None:
    """Send the samples and take the pictures."""
    with (
        pagemill.Client(url) as client,
        tempfile.TemporaryDirectory() as profile,
        Chromium(Path(profile), width=_SIZE[0], height=_SIZE[1]) as browser,
    ):
        for name, (sample, number, language) in PICTURES.items():
            job = client.submit(ROOT / "samples" / sample, options={"languages": [language]})
            client.wait(job.id)
            browser.open(url)
            browser.evaluate(f"localStorage.setItem('pagemill-interface', '{language}')")
            browser.leave()
            browser.open(f"{url}/#/jobs/{job.id}/{1_000_000 + number}")
            browser.wait_for("document.querySelector('#sheet img')?.complete && document.querySelector('.box')")
            browser.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => 0)")
            browser.screenshot(Path(profile, "picture.png"))
            with Image.open(Path(profile, "picture.png")) as picture:
                small = picture.convert("RGB").resize((_WIDTH, _WIDTH * picture.height // picture.width))
            data = io.BytesIO()
            small.save(data, "WEBP", quality=_QUALITY, method=6)
            (out / f"{name}.webp").write_bytes(data.getvalue())
            print(f"{name}.webp: {len(data.getvalue()):,} bytes")


def main(arguments: list[str] | None = None) -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/assets/gallery")
    out = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "pagemill", "serve", "--port", "0", "--data", f"{data}/jobs"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert server.stdout is not None
            said = next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.:]+", line)))
            take(said, out)
        finally:
            server.terminate()
            server.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
