"""The supervisor with small works that die in all the ways there are; each in a process of its own."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PATIENCE_S = 120
HEAD = """
import os, signal, sys, time
from pagemill.runtime import supervisor as module
from pagemill.errors import PagemillError
from pagemill.runtime.supervisor import RECYCLE, supervise

def tell(*words):
    print(*words, flush=True)

def run(work, **options):
    try:
        status = supervise(work, **options)
    except PagemillError as error:
        tell(error.message)
        status = int(error.exit_code)
    tell("parent ends", status)
    sys.exit(status)
"""


def start(body: str) -> subprocess.Popen[str]:
    # A group of its own: in that of a suite whose shell has gone the kernel ignores SIGTSTP.
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def run(body: str) -> tuple[list[str], str, int]:
    process = start(body)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    return stdout.splitlines(), stderr, process.returncode


def state(pid: int) -> str:
    """As /proc tells it; X for a process that has ended and is buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody buried yet counts as ended)."""
    return state(pid) in "ZX"


def wait_for(event: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not event():
        assert time.monotonic() < end, otherwise
        time.sleep(0.01)


def wait_gone(pid: int) -> None:
    """Wait for the end of a process that is no child of ours."""
    wait_for(lambda: gone(pid), "it lives")


def wait_stopped(child: int) -> None:
    """Wait until a child of ours has stopped."""

    def has_stopped() -> bool:
        changed, status = os.waitpid(child, os.WUNTRACED | os.WNOHANG)
        assert not changed or os.WIFSTOPPED(status)
        return bool(changed)

    wait_for(has_stopped, "it runs")


def test_an_orderly_end_gives_its_status_and_flushes():
    told, stderr, status = run("""
def work(life):
    import atexit
    atexit.register(lambda: tell("exit handlers run"))
    sys.stdout.write("not flushed by hand\\n")
    tell(life.number, life.death, life.supervised, os.getppid() == parent)
    return 3
parent = os.getpid()
run(work)
""")
    assert told == ["not flushed by hand", "0 None True True", "exit handlers run", "parent ends 3"]
    assert (stderr, status) == ("", 3)


@pytest.mark.parametrize(
    ("way", "death"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("os.abort()", "SIGABRT"),
        ("os._exit(7)", "exit status 7"),  # a native library that calls exit()
        ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", f"signal {signal.SIGRTMIN + 3}"),
    ],
)
def test_a_death_is_reported_to_the_next_worker_and_to_the_user(way: str, death: str):
    told, stderr, status = run(f"""
def work(life):
    tell(life.number, life.death)
    if life.number == 0:
        life.vitals.in_flight = 6
        {way}
    tell(life.vitals.in_flight)
    return 0
run(work)
""")
    assert told == ["0 None", f"1 {death}", "0", "parent ends 0"]
    assert status == 0
    assert death in stderr
    assert "6 pages" in stderr
    assert stderr.count("\n") == 1
    assert "\x1b" not in stderr


@pytest.mark.parametrize(
    ("kills", "told_to_workers", "told_to_user"),
    [
        ("0", [None, None, None, "SIGKILL, sent by another process"], "sent by another process"),
        ("next(counter)", ["SIGKILL: memory ran out"] * 4, "memory ran out"),
        ("None", ["SIGKILL, as when memory runs out"] * 4, "as when memory runs out"),
    ],
)
def test_a_kill_from_outside_is_distinguished_from_one_for_lack_of_memory(
    kills: str, told_to_workers: list[str | None], told_to_user: str
):
    told, stderr, status = run(f"""
import itertools
counter = itertools.count()
module.out_of_memory_kills = lambda: {kills}
def work(life):
    tell(life.death)
    if life.number < 4:
        life.vitals.in_flight = 2
        life.vitals.postponed += 1
        os.kill(os.getpid(), signal.SIGKILL)
    return 0
run(work)
""")
    assert told == ["None", *map(str, told_to_workers), "parent ends 0"]
    assert status == 0
    assert stderr.count(told_to_user) == 4
    assert stderr.count("2 pages") == sum(death is not None for death in told_to_workers)


def test_a_worker_that_asks_for_it_is_replaced():
    told, stderr, status = run("""
def work(life):
    tell(life.number, life.death)
    life.vitals.postponed += 1
    return RECYCLE if life.number < 5 else 0
run(work)
""")
    assert told == [f"{number} None" for number in range(6)] + ["parent ends 0"]
    assert stderr.count("fresh process") == 5
    assert status == 0


@pytest.mark.parametrize("way", ["os.kill(os.getpid(), signal.SIGSEGV)", "return RECYCLE"])
def test_three_deaths_without_a_page_in_between_are_enough(way: str):
    told, _, status = run(f"""
def work(life):
    tell(life.number)
    if life.number == 1:
        life.vitals.done += 1
    {way}
run(work)
""")
    assert told[:4] == ["0", "1", "2", "3"]  # the page that ended in 1 begins a new count
    assert "3 times in a row" in told[4]
    assert told[5:] == ["parent ends 11"]
    assert status == 11


def test_with_pages_in_flight_there_is_more_patience():
    told, _, _ = run("""
def work(life):
    tell(life.number)
    life.vitals.in_flight = life.number != 2
    os.abort()
run(work, busy_deaths=5)
""")
    assert told[:6] == ["0", "1", "2", "3", "4", "5"]
    assert "6 times in a row" in told[6]
    assert told[7:] == ["parent ends 11"]


def test_a_worker_that_gives_no_sign_of_life_is_killed():
    told, stderr, status = run("""
import ctypes
def work(life):
    tell(life.number, life.death)
    if life.number == 1:
        return 0
    life.vitals.in_flight = 1
    life.vitals.beats += 1
    ctypes.PyDLL(None).sleep(60)  # holds the interpreter lock
module.CHECK_S = 0.02
run(work, silence_s=0.05)
""")
    assert told[0] == "0 None"
    assert told[1].startswith("1 no sign of life for 0.")
    assert "no sign of life" in stderr
    assert status == 0


def test_a_silent_worker_that_gets_little_cpu_time_is_not_killed():
    told, stderr, status = run("""
import itertools
def work(life):
    life.vitals.beats += 1
    for _ in range(30):  # silent for three times the limit
        os.kill(os.getppid(), signal.SIGALRM)
        time.sleep(0.001)
    tell(life.number)
    return 0
readings = itertools.count(0, 3600)  # of a tenth of a core
module.process_clock = lambda pid: lambda: next(readings)
module.CHECK_S = 3600
run(work, silence_s=10 * 3600)
""")
    assert (told[0], stderr, status) == ("0", "", 0)


def test_signs_of_life_keep_a_worker_alive_and_so_does_silence_before_the_first():
    told, _, status = run("""
def work(life):
    for beats in [0] * 30 + [1] * 300:  # each check is asked for here: a busy machine makes nobody late
        life.vitals.beats += beats
        os.kill(os.getppid(), signal.SIGALRM)
        time.sleep(0.001)
    tell(life.number)
    return 0
module.CHECK_S = 3600
run(work, silence_s=10 * 3600)
""")
    assert (told, status) == (["0", "parent ends 0"], 0)


def test_a_second_signal_ends_a_worker_that_does_not_listen():
    process = start("""
def work(life):
    signal.signal(signal.SIGINT, lambda *_: None)
    tell("ready", os.getpid())
    while True:
        time.sleep(60)
module.CHECK_S = module.SAME_REQUEST_S = 0.02
run(work)
""")
    worker = ready(process)

    def has_ended() -> bool:  # two signals may arrive as one, however far apart they are sent
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    wait_for(has_ended, "it lives")
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (stdout, stderr, process.returncode) == ("", "", -signal.SIGINT)
    assert gone(worker)


def test_an_exception_in_the_worker_is_a_defect_and_no_death():
    told, stderr, status = run("""
def work(life):
    raise ZeroDivisionError("oops")
run(work)
""")
    assert told == ["parent ends 1"]
    assert "ZeroDivisionError: oops" in stderr
    assert status == 1


DRAINS = """
def work(life):
    stops = []
    signal.signal(signal.SIGINT, lambda *_: stops.append("INT"))
    signal.signal(signal.SIGTERM, lambda *_: stops.append("TERM"))
    tell("ready", os.getpid())
    while len(stops) < {signals}:
        time.sleep(0.01)  # not pause(): the signal may come just before it
    tell(*stops)
    {then}
    return 130
run(work)
"""


def ready(process: subprocess.Popen[str]) -> int:
    """The worker's process id, once it is ready."""
    return int(first_line(process).split()[1])


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE_S)[0], "it says nothing"
    return process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on(number: signal.Signals):
    process = start(DRAINS.format(signals=1, then=""))
    worker = ready(process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert stdout.splitlines() == [number.name.removeprefix("SIG"), "parent ends 130"]
    assert stderr == ""
    assert gone(worker)


def test_a_signal_to_the_whole_group_and_one_sent_twice_arrive_once():
    """Ctrl-C reaches the foreground group; ``timeout`` signals its child and then the group."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + DRAINS.format(signals=1, then="signal.sigtimedwait([], 0.3); tell(*stops)")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    ready(process)
    process.send_signal(signal.SIGTERM)
    os.killpg(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=PATIENCE_S)
    assert stdout.splitlines() == ["TERM", "TERM", "parent ends 130"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_dies_of_the_signal_takes_its_parent_along(number: signal.Signals):
    process = start("""
def work(life):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    tell("ready", os.getpid())
    while True:
        signal.pause()
run(work)
""")
    ready(process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (stdout, stderr, process.returncode) == ("", "", -number)


def test_a_death_while_stopping_is_the_end():
    process = start(DRAINS.format(signals=1, then="os.abort()"))
    ready(process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert stdout.splitlines() == ["INT", "parent ends 130"]
    assert "SIGABRT" in stderr


def test_ignored_signals_stay_ignored():
    told, _, status = run("""
signal.signal(signal.SIGINT, signal.SIG_IGN)
def work(life):
    tell(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
    os.kill(os.getppid(), signal.SIGINT)
    return 0
run(work)
""")
    assert (told, status) == (["True True", "parent ends 0"], 0)


def test_the_handlers_come_back_and_no_child_is_left():
    told, _, _ = run("""
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGALRM)]
supervise(lambda life: os.abort() if life.number == 0 else 0)
tell(before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGALRM)])
tell(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL))
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    tell("no child")
""")
    assert told == ["True", "set() (0.0, 0.0)", "no child"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("platform", ["linux", "other"])
def test_a_worker_does_not_outlive_its_parent(platform: str):
    process = start(f"""
def work(life):
    child = os.fork()
    if not child:
        signal.pause()
    tell("ready", os.getpid(), child)
    while True:
        signal.pause()
from pagemill import processes
processes.sys = type(sys)("sys")
processes.sys.__dict__.update(vars(sys), platform="{platform}")
run(work)
""")
    _, worker, child = first_line(process).split()
    process.kill()
    process.wait(timeout=PATIENCE_S)
    wait_gone(int(worker))
    if platform == "other":  # with its whole group; on Linux each child asks for that by itself
        wait_gone(int(child))
    else:
        os.kill(int(child), signal.SIGKILL)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_dead_worker_leaves_behind_is_killed():
    told, _, status = run("""
def work(life):
    if life.number:
        return 0
    child = os.fork()
    if not child:
        signal.pause()
    tell(child)
    os.abort()
run(work)
""")
    wait_gone(int(told[0]))
    assert (told[1:], status) == (["parent ends 0"], 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_pause_stops_both_and_both_continue():
    process = start(DRAINS.format(signals=1, then=""))
    worker = ready(process)
    process.send_signal(signal.SIGTSTP)
    wait_stopped(process.pid)
    wait_for(lambda: state(worker) == "T", "it runs")  # a process stops when it is next scheduled
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=PATIENCE_S)
    assert stdout.splitlines() == ["INT", "parent ends 130"]


def test_a_terminal_gets_its_cursor_back_after_a_death():
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    body = "run(lambda life: (sys.stderr.write('\\x1b[?25l half a bar'), sys.stderr.flush(), os.abort())"
    body += " if life.number == 0 else 0)"
    process = subprocess.Popen([sys.executable, "-c", HEAD + body], stderr=slave, stdout=subprocess.DEVNULL)
    process.wait(timeout=PATIENCE_S)
    shown = os.read(master, 65536).decode()
    os.close(slave)
    os.close(master)
    assert "half a bar\r\x1b[2K\x1b[?25hThe worker process died (SIGABRT)" in shown


def test_the_parent_is_light():
    told, _, _ = run("""
def work(life):
    return 0
supervise(work)
import threading
heavy = {"numpy", "cv2", "pyarrow", "onnxruntime", "rich", "sqlite3", "asyncio"}
tell(threading.active_count(), *sorted(heavy & {*sys.modules}))
""")
    assert told == ["1"]
