"""Drives a headless Chromium over its DevTools pipe: no driver, no port, no extra package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip

_ANSWER_S = 60

# Chromium reads commands on descriptor 3 and writes answers on 4. A process with threads may not do this after a fork.
_WIRE = """
import os, sys
high = [os.dup2(int(fd), 100 + int(fd)) for fd in sys.argv[1:3]]
for low, fd in zip((3, 4), high):
    os.dup2(fd, low)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """One browser with one page. ``console`` collects messages, exceptions and security violations."""

    def __init__(self, profile: Path, *, width: int = 1440, height: int = 900) -> None:
        assert CHROMIUM is not None
        browser_reads, self._out = os.pipe()
        self._in, browser_writes = os.pipe()

        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WIRE, str(browser_reads), str(browser_writes), *command],
            pass_fds=(browser_reads, browser_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_reads)
        os.close(browser_writes)
        self._buffer = b""
        self._last_id = 0
        self._session: str | None = None
        self.console: list[str] = []
        self.loaded = False
        self._downloads: list[str] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method: str, *, to_browser: bool = False, **parameters: Any) -> dict[str, Any]:
        """Send a command to the page, or to the browser, and wait for its answer."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session and not to_browser:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], _ANSWER_S)[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("Chromium ended")
            self._buffer += data
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.console.append(str(message["params"]["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.console.append(str(message["params"]["args"]))
            case "Log.entryAdded":
                self.console.append(message["params"]["entry"]["text"])
            case "Page.loadEventFired":
                self.loaded = True
            case "Browser.downloadProgress" if message["params"]["state"] != "inProgress":
                self._downloads.append(message["params"]["state"])
        return message

    def open(self, page: Path | str, fragment: str = "") -> None:
        """Load a file or address and wait until it is loaded."""
        self.leave()  # so that a change of the fragment alone loads anew too
        self._load((page if isinstance(page, str) else page.as_uri()) + fragment)

    def leave(self) -> None:
        """Load an empty page."""
        self._load("about:blank")

    def _load(self, url: str) -> None:
        self.loaded = False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self._receive()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60) -> None:
        """Wait until an expression, or what it promises, is true."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"(async () => Boolean(await ({expression})))()"):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            self.evaluate("new Promise((resume) => setTimeout(resume, 20))")

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Enter text where the focus is."""
        self.call("Input.insertText", text=text)

    def center(self, selector: str) -> tuple[float, float]:
        """The middle of an element, in CSS pixels, once it is there and has stayed in place for a frame."""
        box = f"document.querySelector({json.dumps(selector)})?.getBoundingClientRect()"
        middle = f"(() => {{ const b = {box}; return b?.width ? [b.x + b.width / 2, b.y + b.height / 2] : null; }})()"
        deadline = time.monotonic() + 60
        while True:
            before, after = self.evaluate(
                f"new Promise((resume) => {{ const before = {middle};"
                f"requestAnimationFrame(() => requestAnimationFrame(() => resume([before, {middle}]))); }})"
            )
            if before is not None and before == after:
                x, y = after
                return x, y
            if time.monotonic() > deadline:
                raise TimeoutError(f"{selector} is not shown, or does not stay in place")

    def hover(self, selector: str) -> None:
        """Move the mouse over an element."""
        x, y = self.center(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click on an element."""
        self.hover(selector)
        x, y = self.center(selector)  # again: it may change under the mouse
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def choose_files(self, selector: str, paths: Sequence[Path]) -> None:
        """Choose files, or one folder, in a file input."""
        found = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        names = [str(path) for path in paths]
        self.call("DOM.setFileInputFiles", files=names, objectId=found["result"]["objectId"])

    def download_to(self, folder: Path) -> None:
        """Save downloads in a folder, under the names that the page gives them."""
        self.call(
            "Browser.setDownloadBehavior",
            to_browser=True,
            behavior="allow",
            downloadPath=str(folder),
            eventsEnabled=True,
        )

    def downloaded(self, path: Path) -> Path:
        """Wait for the next download to finish as this file."""
        while not self._downloads:
            self._receive()
        assert self._downloads.pop(0) == "completed"
        assert path.exists(), sorted(other.name for other in path.parent.iterdir())
        return path

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Set the size of the page, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def screenshot(self, path: Path) -> None:
        """Save what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        try:
            self.call("Browser.close")  # lets its children end too, so that the profile can be removed
            self._process.wait(20)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
