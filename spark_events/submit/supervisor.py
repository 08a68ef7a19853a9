"""``spark-events run`` while spark-submit runs: passes signals on, sees how it ends, and may tell the end.

It is a process of its own that imports little. Whatever the caller does to it reaches spark-submit, and it
ends as that does, so that nobody has to know that it is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from spark_events.sources.driver.ending.supervisor_link import (
    NEW,
    RAISED,
    SOCKET,
    path_of_socket,
    receive,
    send,
    short_path,
)
from spark_events.spark.temporary_folders import temporary_folder

_PASSED_ON = frozenset(
    (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
)
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Those by which a JVM ends; SIGQUIT has it print its threads."""
_WAITED = _PASSED_ON | {signal.SIGCHLD}
_FROM_THE_KERNEL = 0x80
_PR_SET_PDEATHSIG = 1
_END_WAIT_S = 10.0
_READ_WAIT_S = 1.0
_LOOK_S = 0.01


def main() -> None:
    """Run ``python -m spark_events.submit.supervisor command…``, and end as the command does."""
    # A parent that ignores the ends of its children lets us inherit that, and we would wait forever.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Before there are threads, which inherit the mask: all these signals wait for ``sigwaitinfo``.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    command, status = sys.argv[1:], None
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder("run"))
            applications = Applications(str(folder / "socket"))
            child = _start(command, applications, before)
        except OSError as error:  # a full disk, say, a file system without sockets, or no more processes
            problem = error
        else:
            status = _watch(child, applications)
    if status is None:
        _run_unwatched(command, before, problem)
    _end_as(status)


def _watch(child: int, applications: Applications) -> int:
    """Watch the command to its end, tell the ends that its applications did not, and return its status."""
    status, wanted = _await(child)
    try:
        applications.tell_ends(status, wanted)
    except Exception as error:  # whatever is wrong with what they have left, their status stays theirs
        _say_error(f"an end cannot be reported: {type(error).__name__}: {error}")
    return status


class Applications:
    """What the applications that spark-submit runs have left in case they cannot tell their end.

    Args:
        path: of the socket to listen on.

    Raises:
        OSError: there can be no socket.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._testaments: dict[str, dict[str, str]] = {}
        self._connections: list[socket.socket] = []
        self._being_read = 0  # messages that the sockets may no longer have, and the testaments have not yet
        self._changed = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX)
        with short_path(path) as short:
            self._socket.bind(short)
        self._socket.listen(16)

    def hear(self) -> None:
        """Begin to take what they send, in threads; what they have sent before waits in the socket."""
        if not _begin(self._accept):
            _say_error("no thread can be started: if the application is killed, its end may go unreported")
            self._socket.close()  # who connects shall not wait

    def tell_ends(self, status: int, signaled: signal.Signals | None) -> None:
        """Tell how each application ended that did not tell it itself.

        Args:
            status: of spark-submit, as ``subprocess`` has it.
            signaled: the last signal that was passed on to it.
        """
        time_ms = time.time_ns() // 1_000_000
        self._await_what_was_sent()
        with self._changed:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.sendall(b"%d\n" % status)
            # Their own Python may still be about it, now that it knows how the JVM ended.
            self._changed.wait_for(lambda: not self._testaments or not self._connections, _END_WAIT_S)
            testaments = dict(self._testaments)
        if not testaments:
            return
        for application in testaments:
            try:
                self._tell_end(application, testaments, status, signaled, time_ms)
            except Exception as error:  # the others' ends are told all the same
                _say_error(f"the end of {application} cannot be reported: {type(error).__name__}: {error}")

    def _tell_end(
        self,
        application: str,
        testaments: dict[str, dict[str, str]],
        status: int,
        signaled: signal.Signals | None,
        time_ms: int,
    ) -> None:
        """Tell one application's end, at this time, unless that is another's to tell, or none."""
        from spark_events.listeners.record_fields import APP_ID
        from spark_events.sources.driver.ending.last_word import Rest, ending_by_status, tell
        from spark_events.sources.ending import by_signal

        testament = testaments[application]
        new = [json.loads(text) for place, text in testament.items() if place.startswith(NEW)]
        if any(record.get(APP_ID) in testaments for record in new):
            return  # it was attached to meanwhile
        if new and not status and signaled is None:
            return  # its program has given Spark up, and done without
        raised = testament.pop(RAISED, None)
        others = (text for place, text in testament.items() if not place.startswith(NEW))
        head, *known = map(json.loads, others)
        path = os.path.join(os.path.dirname(self.path), f"{application}.rest")
        rest = b""
        with contextlib.suppress(OSError), open(path, "rb") as file:
            rest = file.read()
        left = Rest.read(rest)
        # Of what the JVM knows, its jobs are up to date; without it, those that Python has told.
        if rest:
            known = [record for record in known if record.get("Event") != "SparkListenerJobStart"]
        end_ms = left.time_ms if left.end else time_ms
        ending = ending_by_status(status, left.end, raised)
        if not status and signaled is not None:  # it may end with 0 after a signal
            ending = by_signal(signaled.name)
        tell(head, [*known, *left.known], [*new, *left.records], ending, end_ms)

    def _await_what_was_sent(self) -> None:
        """Read what was sent before: an application may end right after it has said something."""
        until_s = time.monotonic() + _READ_WAIT_S
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_READ_WAIT_S)
            with short_path(self.path) as short:
                connection.connect(short)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # it is closed once all that came before it are accepted
        with self._changed:
            while time.monotonic() < until_s and self._is_unread():
                self._changed.wait(_LOOK_S)

    def _is_unread(self) -> bool:
        """Return whether there is more to read. ``select.select`` takes no descriptor above 1,023."""
        poll = select.poll()
        for connection in self._connections:
            poll.register(connection, select.POLLIN)
        return self._being_read > 0 or bool(poll.poll(0))

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with self._changed:
                self._connections.append(connection)
            if not _begin(self._serve, connection):
                self._forget(connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(Exception):  # whatever was sent that is not a message
                while self._read(connection):
                    pass
        finally:
            self._forget(connection)

    def _read(self, connection: socket.socket) -> bool:
        """Wait for a message, and take it; return False if there comes none any longer."""
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.poll()
        with self._changed:
            self._being_read += 1
        message = None
        try:
            message = receive(connection)
        finally:
            with self._changed:
                self._being_read -= 1
                if message:
                    self._take(message)
                self._changed.notify_all()
        return bool(message)

    def _forget(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.remove(connection)
            self._changed.notify_all()
        connection.close()

    def _take(self, message: dict[str, Any]) -> None:
        if said := message.get("said"):
            _say("INFO", said)
            return
        if message.get("ended"):
            self._testaments.pop(message["application"], None)
            return
        if raised := message.get(RAISED):
            if testament := self._testaments.get(message["application"]):
                testament[RAISED] = raised
            return
        testament = self._testaments.setdefault(message["application"], {})
        for place, text in message["changed"].items():
            testament.pop(place, None)
            if text is not None:
                testament[place] = text


def say(text: str) -> bool:
    """Let the supervisor of this application, if there is one, say something on its standard error.

    The application's own is no place for it: spark-submit writes that to standard output, among its results.
    """
    path = path_of_socket()
    if path is None:
        return False
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        with short_path(path) as short:
            connection.connect(short)
        send(connection, {"said": text})
        return True
    return False


def _begin(run: Callable[..., None], *arguments: Any) -> bool:
    """Run something in a thread of its own, and return whether there is one."""
    try:
        threading.Thread(target=run, args=arguments, daemon=True).start()
    except RuntimeError:  # the user, or the container, may have no more
        return False
    return True


def _start(command: list[str], applications: Applications, mask: Any) -> int:
    """Start a command, and hear from now on what its applications say.

    Args:
        command: with its arguments.
        applications: those that it runs.
        mask: the signals that it blocks.

    Returns:
        Its process.

    Raises:
        OSError: there can be no other process.
    """
    child = os.fork()
    if child == 0:
        _become(command, applications.path, mask)
    applications.hear()  # only now: it is not safe to fork a process that has threads
    return child


def _is_for_leaders(number: int) -> bool:
    """Return whether a signal of the terminal reaches this process alone; others reach its whole group.

    A terminal that is closed says so to the leader of its session, as ``ssh -t host spark-events run`` is.
    """
    return number == signal.SIGHUP and os.getsid(0) == os.getpid()


def _await(child: int) -> tuple[int, signal.Signals | None]:
    """Wait until a process ends, and pass on what it is sent.

    Returns:
        Its status, as ``subprocess`` has it; and the last signal of those that end it that was passed on.
    """
    last: signal.Signals | None = None
    while True:
        got = signal.sigwaitinfo(_WAITED)
        if got.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status), last
        elif got.si_code != _FROM_THE_KERNEL or _is_for_leaders(got.si_signo):
            if got.si_signo in _ENDING:
                last = signal.Signals(got.si_signo)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, got.si_signo)


def _run_unwatched(command: list[str], mask: Any, problem: OSError) -> NoReturn:
    """Become the command: the user's application runs, whatever is wrong here."""
    _say(
        "WARNING",
        f"spark-events run does not watch the application ({problem}): "
        "if it is killed, its end may go unreported",
    )
    os.environ.pop(SOCKET, None)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _execute(command)


def _become(command: list[str], path: str, mask: Any) -> NoReturn:
    """Become the command, in the child."""
    try:
        # SIGKILL of the parent is one of spark-submit.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.environ[SOCKET] = path
        _execute(command)
    finally:
        os._exit(2)


def _execute(command: list[str]) -> NoReturn:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _say_error(f"{command[0]} cannot be run: {error.strerror}")
    os._exit(2)


def _say_error(sentence: str) -> None:
    _say("ERROR", sentence)


def _say(level: str, sentence: str) -> None:
    with contextlib.suppress(Exception):  # it may be closed, or on a full disk
        sys.stderr.write(f"spark-events: {level}: {sentence}\n")
        sys.stderr.flush()


def _end_as(status: int) -> NoReturn:
    """End with an exit code, or by the signal whose negative number the status is."""
    if status >= 0:
        sys.exit(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = -status  # also of signals without a name, such as 35
    with contextlib.suppress(OSError, ValueError):  # SIGKILL needs neither, and the C library keeps 32 and 33
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
