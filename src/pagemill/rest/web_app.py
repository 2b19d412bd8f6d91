"""The web app: its files, under a content security policy that blocks everything else.

The program is ``web/`` with the viewer of the report (``export/viewer/``): modules and styles as they are, no build.
The files are public; what they show they ask the server for, with the key that the user enters.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from pagemill.rest.errors import NotFoundError
from pagemill.rest.server import Server

_FOLDERS = {"web": "pagemill.rest", "viewer": "pagemill.export"}
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",  # page images are fetched with the key, so they are shown from memory
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-cache",  # asked for again, by its hash: an upgraded server has other files
}


class _File(NamedTuple):
    content: bytes
    type: str
    tag: str


def router(server: Server) -> APIRouter:
    """Routes of the web app: ``/``, ``/docs`` (the HTTP interface) and ``/static/FOLDER/NAME``. They need no key."""
    del server  # the app asks for everything over HTTP
    routes = APIRouter(include_in_schema=False)
    known = _read_files()

    @routes.get("/")
    def index(request: Request) -> Response:
        return _answer(known["web/index.html"], request)

    @routes.get("/docs")
    def interface(request: Request) -> Response:
        return _answer(known["web/api.html"], request)

    @routes.get("/static/{folder}/{name}")
    def static(folder: str, name: str, request: Request) -> Response:
        # A look-up among the files that were read at the start: what a client sends is never a path.
        file = known.get(f"{folder}/{name}")
        if file is None:
            raise NotFoundError("the web app has no such file")
        return _answer(file, request)

    return routes


def _read_files() -> dict[str, _File]:
    """All files of the app by folder and name."""
    known = {}
    for folder, package in _FOLDERS.items():
        for entry in (files(package) / folder).iterdir():
            suffix = entry.name[entry.name.rfind(".") :]
            if suffix in _TYPES:
                content = entry.read_bytes()
                # By content, not by time: builds that can be repeated give all files one time.
                tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
                known[f"{folder}/{entry.name}"] = _File(content, _TYPES[suffix], tag)
    return known


def _answer(file: _File, request: Request) -> Response:
    headers = {**HEADERS, "ETag": file.tag}
    if request.headers.get("If-None-Match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.type, headers=headers)
