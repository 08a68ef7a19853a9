"""The supervisor's socket: whatever a driver sends there, the status of its program stays what it is."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.sources.driver.ending import last_word, witness
from spark_events.sources.driver.ending.process_exit import ProcessExit
from spark_events.sources.driver.ending.supervisor_link import send
from spark_events.spark.own_python import command_of
from spark_events.submit import supervisor
from spark_events.submit.supervisor import Applications
from tests.support.waiting import wait_until

NO_MESSAGES = [
    "7",
    "[" * 100_000,
    '{"application": [], "changed": {}}',
    '{"application": "a", "changed": 1}',
    "x",
]
PROGRAM = """
import os, socket, sys, time
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["SPARK_EVENTS_SUPERVISOR"])
    body = sys.argv[1].encode()
    connection.sendall(len(body).to_bytes(4, "big") + body)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # until it is read
sys.exit(7)
"""
FULL = "java.lang.OutOfMemoryError: Java heap space"
SUPERVISED = command_of("spark_events.submit.supervisor")
WITHOUT_A_SOCKET = """
import resource
from spark_events.submit.supervisor import main
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))  # one for its folder
main()
"""
NO_PROCESS = """
import os
def fork():
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = fork
"""
NO_THREAD = """
import threading
def start(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
"""
NO_FOLDER = """
import tempfile
def none_usable(*given, **named):
    raise FileNotFoundError(2, "No usable temporary directory found")
tempfile.mkdtemp = tempfile.gettempdir = none_usable
"""
SHORT = {"processes": NO_PROCESS, "threads": NO_THREAD, "folders": NO_FOLDER}


@pytest.mark.parametrize("sent", NO_MESSAGES, ids=lambda sent: sent[:20])
def test_what_is_no_message(tmp_path: Path, sent: str) -> None:
    """The connection is closed, nobody waits for it, and the next one is served."""
    applications = Applications(str(tmp_path / "socket"))
    applications.hear()
    for text in (sent, json.dumps({"said": "hello"})):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(applications.path)
            connection.sendall(len(text).to_bytes(4, "big") + text.encode())
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    wait_until(lambda: not applications._connections, "no connection is left")


@pytest.mark.parametrize(
    "sent", ['{"application": "a", "changed": {}}', '{"application": "a", "changed": {"1": "x"}}']
)
def test_a_testament_that_cannot_be_read(sent: str) -> None:
    """It costs the word about the end, and nothing else."""
    done = run(*SUPERVISED, sys.executable, "-c", PROGRAM, sent)

    assert done.returncode == 7, done.stderr
    assert "the end of a cannot be reported" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("status", "ended", "failures"),
    [(1, False, [f"RuntimeError: {FULL}\n"]), (-9, False, [""]), (1, True, [])],
)
def test_what_the_program_raised_is_why_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, ended: bool, failures: list[str]
) -> None:
    """A JVM whose memory is full tells nothing any more; of one that was killed, Python raises that it is gone."""
    told: list[str] = []
    monkeypatch.setattr(last_word, "tell", lambda *given: told.append(given[3].exception or ""))
    monkeypatch.setattr(witness, "PROCESS_EXIT", process_exit := ProcessExit())
    applications = Applications(str(tmp_path / "socket"))
    applications.hear()
    driver = witness.SupervisorWitness(applications.path, "app-1")
    driver.tell({"head": b"{}"})
    process_exit.note_unhandled(RuntimeError(FULL), None)
    if ended:
        driver.ended()
    driver._connection.close()
    applications.tell_ends(status, None)
    assert told == failures


def test_a_terminal_that_is_closed() -> None:
    """It tells the leader of its session alone, as which ``ssh -t`` starts this."""

    def lead() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run by nohup

    terminal, own = pty.openpty()
    command = [*SUPERVISED, sys.executable, "-c", "import time; print('runs', flush=True); time.sleep(600)"]
    leader = subprocess.Popen(
        command, stdin=own, stdout=own, stderr=own, start_new_session=True, preexec_fn=lead
    )
    os.close(own)
    try:
        assert os.read(terminal, 100).startswith(b"runs")
        os.close(terminal)
        leader.wait(60)
    finally:
        leader.kill()
    assert leader.returncode in (-signal.SIGHUP, 128 + signal.SIGHUP)


def test_a_testament_that_is_just_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread has it from the socket, and the supervisor looks before the thread goes on."""
    told: list[Any] = []
    looked, receive = threading.Event(), supervisor.receive

    def receive_late(connection: socket.socket) -> Any:
        message = receive(connection)
        assert not message or looked.wait(60)
        return message

    class Looking(Applications):
        def _is_unread(self) -> bool:
            is_unread = super()._is_unread()
            looked.set()
            return is_unread

    monkeypatch.setattr(last_word, "tell", lambda head, *others: told.append(head))
    monkeypatch.setattr(supervisor, "_END_WAIT_S", 0)
    monkeypatch.setattr(supervisor, "receive", receive_late)
    applications = Looking(str(tmp_path / "socket"))
    applications.hear()
    witness.SupervisorWitness(applications.path, "a").tell({"head": b'{"App ID": "a"}'})
    applications.tell_ends(1, None)
    assert told == [{"App ID": "a"}]


def test_a_testament_beside_one_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others' ends are told all the same."""
    told: list[Any] = []
    monkeypatch.setattr(last_word, "tell", lambda head, *others: told.append(head))
    monkeypatch.setattr(supervisor, "_END_WAIT_S", 0)
    applications = Applications(str(tmp_path / "socket"))
    applications.hear()
    for name, head in (("a", b"x"), ("b", b'{"App ID": "b"}')):
        witness.SupervisorWitness(applications.path, name).tell({"head": head})
    applications.tell_ends(1, None)
    assert told == [{"App ID": "b"}]


@pytest.fixture
def many_files() -> Iterator[None]:
    """Have 1,024 files open, so that the next ones have numbers that ``select()`` does not take."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2_048), limits[1]))
    with contextlib.ExitStack() as files:
        for _ in range(1_024):
            files.enter_context(open(os.devnull))
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_files")
def test_an_end_is_told_where_many_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's ``select()`` takes no file of a number above 1,023."""
    told: list[int] = []
    monkeypatch.setattr(last_word, "tell", lambda *given: told.append(given[3].exit_code))
    monkeypatch.setattr(supervisor, "_END_WAIT_S", 0)
    applications = Applications(str(tmp_path / "socket"))
    applications.hear()
    driver = witness.SupervisorWitness(applications.path, "app-1")
    driver.tell({"head": b"{}"})
    applications.tell_ends(1, None)
    driver._connection.close()
    assert told == [1]


def test_a_temporary_folder_with_a_long_path(tmp_path: Path) -> None:
    """Its sockets have addresses all the same, and what is said there is heard."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    program = """
import sys
from spark_events.sources.driver.ending.supervisor_link import keep_to_this_process
from spark_events.submit.supervisor import say
keep_to_this_process()
sys.exit(7 if say("hello") else 1)
"""
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = run(*SUPERVISED, sys.executable, "-c", program, env=environment)

    assert (done.returncode, done.stderr) == (7, "spark-events: INFO: hello\n")
    assert not list(folder.iterdir())


def test_no_socket_can_be_made() -> None:
    """The program runs, which is more important than the word about its end."""
    program = 'echo "of: $SPARK_EVENTS_SUPERVISOR"; kill -TERM $$'
    done = run(sys.executable, "-c", WITHOUT_A_SOCKET, "sh", "-c", program)

    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "of: \n")
    assert "WARNING: spark-events run does not watch the application (" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_an_application_sends_right_before_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is read, however long the supervisor has not had its turn."""
    applications = Applications(str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(applications.path)
        send(connection, {"said": "hello"})
    applications.hear()
    applications.tell_ends(0, None)

    assert capsys.readouterr().err == "spark-events: INFO: hello\n"


@pytest.mark.parametrize("stderr", ["", "import sys; sys.stderr = None"], ids=["", "stderr is closed"])
@pytest.mark.parametrize("short", SHORT)
def test_what_is_short(short: str, stderr: str) -> None:
    """The program runs, which is more important than the word about its end."""
    watched = f"from spark_events.submit.supervisor import main\n{stderr}\n{SHORT[short]}\nmain()"
    done = run(sys.executable, "-c", watched, "sh", "-c", "sleep 0.1; echo done; exit 7")

    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert bool(stderr) or "its end may go unreported" in done.stderr


def test_a_parent_that_ignores_the_ends_of_its_children() -> None:
    ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv({0!r}, {1!r})"
    command = [*SUPERVISED, "sh", "-c", "exit 7"]
    done = run(sys.executable, "-c", ignoring.format(sys.executable, command))

    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, 35, signal.SIGRTMAX])
def test_it_ends_by_the_signal_by_which_the_command_did(number: int) -> None:
    """Also by one that has no name."""
    done = run(*SUPERVISED, "sh", "-c", f"kill -{int(number)} $$")
    assert (done.returncode, done.stderr) == (-number, "")


def test_a_signal_that_the_c_library_keeps_for_itself() -> None:
    """The exit code is a shell's for it."""
    done = run(sys.executable, "-c", "from spark_events.submit.supervisor import _end_as; _end_as(-33)")
    assert (done.returncode, done.stderr) in ((161, ""), (-33, ""))


@pytest.mark.parametrize(("sent", "kept"), [("SIGTERM", "SIGTERM"), ("SIGQUIT", "None"), ("SIGUSR1", "None")])
def test_signals_that_end_no_jvm_are_no_cause_of_its_end(sent: str, kept: str) -> None:
    """Of SIGQUIT, it prints its threads, and goes on."""
    code = f"""
import os, signal
from spark_events.submit import supervisor
signal.signal(signal.{sent}, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, supervisor._WAITED)
signal.signal(signal.{sent}, signal.SIG_DFL)
child = os.fork()
if child == 0:
    os.kill(os.getppid(), signal.{sent})
    os._exit(0)
status, last = supervisor._await(child)
print(status, last and last.name)
"""
    assert run(sys.executable, "-c", code).stdout == f"0 {kept}\n"


def test_a_thread_that_cannot_be_started_for_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed, so that the application knows, and the next one is served."""
    applications = Applications(str(tmp_path / "socket"))
    applications.hear()
    start = threading.Thread.start
    none_left = iter([RuntimeError("can't start new thread")])

    def start_or_not(thread: threading.Thread) -> None:
        for error in none_left:
            raise error
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_not)
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(applications.path)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    wait_until(lambda: not applications._connections, "no connection is left")


def test_a_project_with_modules_named_like_pythons_own(tmp_path: Path) -> None:
    """They are in the current folder, and nothing of ours; spark-submit imports none of them, either."""
    for module in ("signal", "resource", "secrets", "queue", "spark_events"):
        (tmp_path / f"{module}.py").write_text("raise RuntimeError('imported')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = run(*SUPERVISED, "sh", "-c", "exit 7", cwd=tmp_path, env=environment)

    assert (done.returncode, done.stderr) == (7, "")


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, **options)
