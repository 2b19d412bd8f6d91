"""A stand-in for ``vllm``: serves what pagemill asks of a server, and misbehaves as ``FAKE_VLLM`` says.

``FAKE_VLLM`` holds words: ``crash`` (at the start), ``oom`` (the same, with vLLM's words), ``busy`` (its port is
taken), ``hang`` (never listens), ``late`` (binds its port, notes that in a file ``bound``, and listens once the file
``listen`` is there), ``stubborn`` (ignores SIGTERM), ``children`` (has children that ignore signals, one in a session
of its own), ``dies-again`` (crashes at the start from the second life on), ``flood`` (prints much), ``buried`` (the
cause stands far above the end of the log), ``locked`` (names its models to nobody without a key). In the folder
``FAKE_VLLM_STATE`` it notes its lives; it is unwell while the file ``sick`` or ``mute`` is there.
"""

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WORDS = os.environ.get("FAKE_VLLM", "").split()
STATE = Path(os.environ.get("FAKE_VLLM_STATE", "."))
STUBBORN_CHILD = """
import signal, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        while (STATE / "mute").exists():
            time.sleep(0.01)
        body = b""
        status = 200
        if self.path == "/health":
            status = 503 if (STATE / "sick").exists() else 200
        elif self.path == "/v1/models" and "locked" in WORDS:
            status = 401
        elif self.path == "/v1/models":
            row = {
                "id": option("--served-model-name", "model"),
                "root": sys.argv[2],
                "max_model_len": int(option("--max-model-len", "16384")),
            }
            body = json.dumps({"object": "list", "data": [row]}).encode()
        else:
            status = 404
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def note_life() -> int:
    """Note this life and give its number, from 0."""
    number = 0
    while True:
        try:
            with (STATE / f"life-{number}.json").open("x") as file:
                json.dump({"pid": os.getpid(), "argv": sys.argv, "cuda": os.environ.get("CUDA_VISIBLE_DEVICES")}, file)
            return number
        except FileExistsError:
            number += 1


def main() -> None:
    life = note_life()
    print("INFO loading the model", flush=True)
    if "stubborn" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "children" in WORDS:
        for session in (False, True):
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", STUBBORN_CHILD], start_new_session=session, stdout=subprocess.PIPE
            )
            assert child.stdout is not None
            child.stdout.readline()
    if "flood" in WORDS:
        print("x" * 200_000, flush=True)
    if "buried" in WORDS:
        sys.exit("ValueError: the root of it\n" + "  a frame\n" * 50 + "RuntimeError: see root cause above")
    if "oom" in WORDS:
        sys.exit(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nRuntimeError: Engine core failed"
        )
    if "busy" in WORDS and life == 0:
        sys.exit("OSError: [Errno 98] Address already in use")
    if "crash" in WORDS or ("dies-again" in WORDS and life):
        sys.exit("ValueError: a stone in the gears")
    if "hang" in WORDS:
        time.sleep(600)
    ThreadingHTTPServer.daemon_threads = True
    address = (option("--host", "127.0.0.1"), int(option("--port", "8000")))
    server = ThreadingHTTPServer(address, Handler, bind_and_activate=False)
    server.server_bind()
    (STATE / "bound").touch()
    while "late" in WORDS and not (STATE / "listen").exists():
        time.sleep(0.01)
    server.server_activate()
    server.serve_forever()


if __name__ == "__main__":
    main()
