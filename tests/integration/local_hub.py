"""A small Hub on this machine: enough of its API for the real client to fill and read datasets and to fetch models."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_of_the_tests"
LARGE = (".parquet", ".npy", ".tar", ".safetensors")
"""Suffixes that the Hub keeps apart from Git, as its .gitattributes says."""


@dataclass
class Repository:
    """A dataset."""

    private: bool = False
    branches: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"main": {}})
    commits: list[str] = field(default_factory=list)


class LocalHub(ThreadingHTTPServer):
    """State and faults of the Hub; a context manager."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Repository] = {}
        self.models: dict[str, dict[str, bytes]] = {}
        """Files of each model."""
        self.breaks_after: int | None = None
        """Bytes of a large file after which the connection of a download breaks."""
        self.may_send = threading.Event()
        """Large files are sent when it is set."""
        self.may_send.set()
        self.damaged: set[str] = set()
        """Files that arrive with another first byte."""
        self.objects: dict[str, bytes] = {}
        """Large files by SHA-256, whether a commit names them or not."""
        self.requests: list[str] = []
        self.uploads_until_failure: int | None = None
        """Large files that are taken before uploads fail."""
        self.on_upload = lambda: None
        self.failure_status = 403
        self.spoil = False
        """Damage what a commit stores."""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever)

    def __enter__(self) -> LocalHub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_send.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    def uploads(self) -> int:
        return sum(request.startswith("PUT") for request in self.requests)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LocalHub

    def do_GET(self) -> None:
        self.handle_request(b"")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.handle_request(self.body())

    def do_PUT(self) -> None:
        self.handle_request(self.body())

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def handle_request(self, body: bytes) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        writes = self.command == "POST" and not path.endswith(("/paths-info", "/validate-yaml"))
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer({"error": "Invalid credentials"}, status=401)
            return
        for pattern, method in _ROUTES:
            if match := re.fullmatch(pattern, path):
                method(self, body, *match.groups())
                return
        self.answer({"error": "no such route"}, status=404)

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        known = name in self.server.repositories
        if not known:
            private = bool(asked.get("private")) or asked.get("visibility") == "private"
            self.server.repositories[name] = Repository(private=private)
        self.answer({"url": f"{self.server.url}/datasets/{name}", "id": name}, status=409 if known else 200)

    def validate(self, body: bytes) -> None:
        card = json.loads(body)["content"]
        wrong = next((line for line in card.splitlines() if line.startswith("license:") and "nonsense" in line), None)
        errors = [{"message": f"{wrong} is not valid"}] if wrong else []
        self.answer({"errors": errors, "warnings": []}, status=400 if errors else 200)

    def branch(self, body: bytes, name: str, branch: str) -> None:
        branches = self.server.repositories[name].branches
        known = branch in branches
        branches.setdefault(branch, dict(branches["main"]))
        self.answer({}, status=409 if known else 200)

    def info(self, body: bytes, name: str, revision: str | None = None) -> None:
        repository = self.server.repositories.get(name)
        if repository is None:
            self.answer({"error": "Repository not found"}, status=404, headers={"X-Error-Code": "RepoNotFound"})
            return
        files = repository.branches[self.branch_of(name, revision or "main")]
        siblings = [{"rfilename": path} for path in files]
        self.answer({"id": name, "sha": "a" * 40, "private": repository.private, "siblings": siblings, "tags": []})

    def preupload(self, body: bytes, name: str, revision: str) -> None:
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for file in json.loads(body)["files"]
        ]
        self.answer({"files": files})

    def batch(self, body: bytes, name: str) -> None:
        objects = []
        for wanted in json.loads(body)["objects"]:
            answer = dict(wanted)
            if wanted["oid"] not in self.server.objects:
                answer["actions"] = {"upload": {"href": f"{self.server.url}/storage/{wanted['oid']}", "header": {}}}
            objects.append(answer)
        self.answer({"transfer": "basic", "objects": objects})

    def store(self, body: bytes, digest: str) -> None:
        left = self.server.uploads_until_failure
        if left is not None:
            if left == 0:
                self.answer({"error": "no"}, status=self.server.failure_status)
                return
            self.server.uploads_until_failure = left - 1
        if hashlib.sha256(body).hexdigest() != digest:
            self.answer({"error": "wrong digest"}, status=400)
            return
        self.server.objects[digest] = body
        self.server.on_upload()
        self.answer({})

    def commit(self, body: bytes, name: str, revision: str) -> None:
        files = self.server.repositories[name].branches[revision]
        for line in body.splitlines():
            entry = json.loads(line)
            kind, value = entry["key"], entry["value"]
            if kind == "header":
                self.server.repositories[name].commits.append(value["summary"])
            elif kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                data = self.server.objects[value["oid"]]
                files[value["path"]] = b"spoilt" + data[6:] if self.server.spoil else data
            elif kind == "deletedFile":
                del files[value["path"]]
        self.answer({"commitUrl": f"{self.server.url}/datasets/{name}/commit/b", "commitOid": "b" * 40})

    def tree(self, body: bytes, name: str, revision: str, folder: str | None = None) -> None:
        """Everything in a folder, whether the client asks for all of it or not."""
        files = self.server.repositories[name].branches[self.branch_of(name, revision)]
        prefix = f"{folder}/" if folder else ""
        inside = {path: data for path, data in files.items() if path.startswith(prefix)}
        if folder and not inside:
            self.answer({"error": "not found"}, status=404, headers={"X-Error-Code": "EntryNotFound"})
            return
        folders = {path.rsplit("/", 1)[0] for path in inside if "/" in path.removeprefix(prefix)}
        listed = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in folders]
        self.answer([_entry(path, data) for path, data in inside.items()] + listed)

    def paths_info(self, body: bytes, name: str, revision: str) -> None:
        text = body.decode()
        asked = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
        files = self.server.repositories[name].branches[self.branch_of(name, revision)]
        self.answer([_entry(path, files[path]) for path in asked if path in files])

    def branch_of(self, name: str, revision: str) -> str:
        """The only commit is that of the main branch."""
        return revision if revision in self.server.repositories[name].branches else "main"

    def file(self, body: bytes, name: str, revision: str, path: str) -> None:
        data = self.server.repositories[name].branches[self.branch_of(name, revision)].get(path)
        if data is None:
            self.answer({"error": "not found"}, status=404, headers={"X-Error-Code": "EntryNotFound"})
            return
        self.send_file(path, data)

    def model(self, body: bytes, name: str, revision: str | None = None) -> None:
        files = self.server.models.get(name)
        if files is None:
            self.answer({"error": "Repository not found"}, status=404, headers={"X-Error-Code": "RepoNotFound"})
            return
        siblings = [{"rfilename": path} for path in files]
        self.answer({"id": name, "sha": "a" * 40, "private": False, "siblings": siblings, "tags": []})

    def model_tree(self, body: bytes, name: str, revision: str) -> None:
        self.answer([_entry(path, data) for path, data in self.server.models[name].items()])

    def model_file(self, body: bytes, name: str, revision: str, path: str) -> None:
        self.send_file(path, self.server.models[name][path])

    def send_file(self, path: str, data: bytes) -> None:
        """The part of a file that is asked for, until the connection breaks."""
        data = b"?" + data[1:] if path in self.server.damaged else data
        etag = hashlib.sha256(data).hexdigest() if path.endswith(LARGE) else _git_digest(data)
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": "a" * 40, "Accept-Ranges": "bytes"}
        first, last, status = 0, len(data) - 1, 200
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last, status = int(asked[1]), min(int(asked[2] or last), last), 206
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        if path.endswith(LARGE) and self.command == "GET":
            self.server.may_send.wait()
        left = self.server.breaks_after
        if left is None or not path.endswith(LARGE) or self.command == "HEAD":
            self.send(data[first : last + 1], status=status, headers=headers, kind="application/octet-stream")
            return
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(last + 1 - first)}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data[first : first + left])
        self.close_connection = True

    def answer(self, value: object, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send(json.dumps(value).encode(), status=status, headers=headers or {})

    def send(self, data: bytes, *, status: int = 200, headers: dict[str, str], kind: str = "application/json") -> None:
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def _entry(path: str, data: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": _git_digest(data)}
    if path.endswith(LARGE):
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return entry


def _git_digest(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


_NAME = r"([^/]+/[^/]+)"
_ROUTES = [
    (r"/api/repos/create", _Handler.create),
    (r"/api/validate-yaml", _Handler.validate),
    (rf"/api/datasets/{_NAME}/branch/([^/]+)", _Handler.branch),
    (rf"/api/datasets/{_NAME}/preupload/([^/]+)", _Handler.preupload),
    (rf"/api/datasets/{_NAME}/commit/([^/]+)", _Handler.commit),
    (rf"/api/datasets/{_NAME}/tree/([^/]+)(?:/(.+))?", _Handler.tree),
    (rf"/api/datasets/{_NAME}/paths-info/([^/]+)", _Handler.paths_info),
    (rf"/api/datasets/{_NAME}/revision/([^/]+)", _Handler.info),
    (rf"/api/datasets/{_NAME}", _Handler.info),
    (rf"/datasets/{_NAME}\.git/info/lfs/objects/batch", _Handler.batch),
    (r"/storage/([0-9a-f]{64})", _Handler.store),
    (rf"/datasets/{_NAME}/resolve/([^/]+)/(.+)", _Handler.file),
    (rf"/api/models/{_NAME}/tree/([^/]+)", _Handler.model_tree),
    (rf"/api/models/{_NAME}/revision/([^/]+)", _Handler.model),
    (rf"/api/models/{_NAME}", _Handler.model),
    (rf"/{_NAME}/resolve/([^/]+)/(.+)", _Handler.model_file),
]
