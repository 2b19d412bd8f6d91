"""A web server that serves the files of a folder, and fails where it is told to."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class FaultyWeb:
    """A context manager; serves at a free port of this machine.

    Args:
        folder: What is served.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broken = range(0)
        """Bytes of files: a request that wants one of them is answered with status 500."""
        self.cut = False
        """The answer to such a request ends before its first one of them instead."""
        self.ranges = True
        """Requests for a part of a file get that part; else the whole file."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, name: str) -> str:
        """Address of a file."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = (web.folder / self.path.lstrip("/")).read_bytes()
                wanted = _RANGE.fullmatch(self.headers.get("Range", "")) if web.ranges else None
                first = int(wanted[1]) if wanted else 0
                last = min(int(wanted[2]) if wanted and wanted[2] else len(data) - 1, len(data) - 1)
                hit = self.command == "GET" and any(first <= place <= last for place in web.broken)
                if hit and not web.cut:
                    self.send_error(500)
                    return
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(last - first + 1))
                self.send_header("ETag", f'"{len(data)}"')
                if web.ranges:
                    self.send_header("Accept-Ranges", "bytes")
                if wanted:
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data[first : web.broken.start if hit else last + 1])
                    self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
