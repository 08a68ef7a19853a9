"""Who tells the end if the driver's Python cannot: the parent of both processes, or else the driver's JVM."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from spark_events.listeners.long_texts import cut
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.driver.ending.master_end import MasterEndFile
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
from spark_events.sources.driver.ending.supervisor_link import (
    RAISED,
    path_of_socket,
    send,
    short_path,
)
from spark_events.sources.ending import Ending
from spark_events.sources.interactive import is_kernel
from spark_events.spark.own_python import command_of

LAST_WORD = "spark_events.sources.driver.ending.last_word"
_JOB = "job "


Changes = Mapping[str, bytes | None]
"""Changes of a testament: by what it is, JSON of the record that tells it; None where that is over."""


class Witness(Protocol):
    """Learns what there is to tell, and tells it if this process ends without a word."""

    def tell(self, changed: Changes) -> None:
        """Take changes of the testament.

        Raises:
            Exception: py4j's, or of a socket; the witness is gone.
        """

    def ended(self) -> None:
        """Take note that this process has told the end."""

    def status_of_jvm(self, wait_s: float) -> int | None:
        """Return the status of the JVM, as ``subprocess`` has it, once it has ended; None if unknown."""

    def end_by_master(self, wait_s: float) -> Ending | None:
        """Return the end that YARN's ApplicationMaster gave the application; None for none."""


class JvmWitness:
    """The driver's JVM, which starts another Python if this one ends without a word.

    Args:
        spark_context: PySpark's SparkContext.
        bridge: in its JVM.
    """

    def __init__(self, spark_context: Any, bridge: DriverBridge) -> None:
        self._bridge = bridge
        self._process: subprocess.Popen[bytes] | None = getattr(spark_context._gateway, "proc", None)
        descriptor, path = tempfile.mkstemp(prefix="spark-events-word-")
        try:
            command = command_of(LAST_WORD)
            python_path = os.pathsep.join(sys.path)
            bridge.prepare_last_word(os.getpid(), command, python_path, path, None)
        finally:
            os.unlink(path)  # the JVM has opened it
        if is_kernel():
            bridge.java.awaitKernel()
        on_yarn = self._process is None and str(spark_context.master) == "yarn"
        self._master_end = MasterEndFile(bridge) if on_yarn else None
        self._word = descriptor
        PROCESS_EXIT.leave_word_in(descriptor)

    def tell(self, changed: Changes) -> None:
        """Hand them to the JVM, which knows jobs by itself."""
        lines = [
            place.encode() if text is None else place.encode() + b"\t" + text
            for place, text in changed.items()
            if not place.startswith(_JOB)
        ]
        if lines:
            self._bridge.java.changeTestament(b"\n".join(lines).decode())

    def ended(self) -> None:
        """Need no word any more; the bridge itself learns of the end."""
        if PROCESS_EXIT.word == self._word:  # and not that of another application, which began meanwhile
            PROCESS_EXIT.leave_word_in(None)
        if self._master_end is not None:
            self._master_end.close()

    def status_of_jvm(self, wait_s: float) -> int | None:
        """Wait for the JVM if it is a child of this process, as it is in plain Python."""
        if self._process is None:
            return None
        try:
            return self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def end_by_master(self, wait_s: float) -> Ending | None:
        """Wait for the word of an ApplicationMaster in the JVM, while the JVM lives."""
        return self._master_end.read(wait_s) if self._master_end is not None else None


class SupervisorWitness:
    """``spark-events run``, the parent of the JVM.

    Args:
        path: of the socket on which it listens.
        application: the id of this process's application.
    """

    def __init__(self, path: str, application: str) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(2)
        with short_path(path) as short:
            self._connection.connect(short)
        self._process = os.getpid()
        PROCESS_EXIT.hand_on = self._raised

    def tell(self, changed: Changes) -> None:
        """Send them."""
        texts = {place: text.decode() if text is not None else None for place, text in changed.items()}
        self._send({"application": self._application, "changed": texts})

    def ended(self) -> None:
        """Say that there is nothing left to tell."""
        if PROCESS_EXIT.hand_on == self._raised:
            PROCESS_EXIT.hand_on = None
        try:
            self._send({"application": self._application, "ended": True})
            self._connection.close()
        except OSError as error:  # it may be gone
            logger.debug("could not say to spark-events run that all is told: %r", error)

    def status_of_jvm(self, wait_s: float) -> int | None:
        """Wait for the supervisor's word that spark-submit has ended.

        If the supervisor itself is gone, the kernel has killed spark-submit with it.
        """
        try:
            self._connection.settimeout(wait_s)
            said = self._connection.makefile("rb").readline()
        except OSError:
            return None
        return int(said) if said else -signal.SIGKILL

    def end_by_master(self, wait_s: float) -> Ending | None:
        """Return None: in client mode, the ApplicationMaster is elsewhere."""

    def _raised(self, trace: str) -> None:
        """Say what ends the program: in a JVM whose memory is full, nothing tells its end any more."""
        if os.getpid() != self._process:
            return
        try:
            self._send({"application": self._application, RAISED: cut(trace)})
        except OSError as error:
            logger.debug("could not say to spark-events run what was raised: %r", error)

    def _send(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            send(self._connection, message)


def open_witness(spark_context: Any, bridge: DriverBridge) -> Witness | None:
    """Return the best witness there is; None if there is none."""
    path = path_of_socket()
    if path:
        try:
            witness = SupervisorWitness(path, str(spark_context.applicationId))
            rest = str(Path(path).with_name(f"{spark_context.applicationId}.rest"))
            bridge.prepare_last_word(os.getpid(), None, "", None, rest)
            return witness
        except Exception as error:
            logger.debug("spark-events run does not listen at %s: %r", path, error)
    try:
        return JvmWitness(spark_context, bridge)
    except Exception as error:  # py4j's, or of the file system: ends are then told by this process alone
        logger.warning("the driver's JVM cannot report an end by a signal: %r", error)
        return None
