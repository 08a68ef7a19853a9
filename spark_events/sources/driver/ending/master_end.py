"""Why YARN's ApplicationMaster has ended the application, read once the way to the JVM is shut down."""

from __future__ import annotations

import os
import tempfile
import time

from spark_events.sources.driver.bridge import DriverBridge
from spark_events.sources.ending import Ending, by_spark_itself

_LOOK_EVERY_S = 0.02
_MOST_BYTES = 4096


class MasterEndFile:
    """A file in which the driver's JVM says it; see ``MasterEnd.java``.

    Args:
        bridge: in that JVM, which is this process's parent.
    """

    def __init__(self, bridge: DriverBridge) -> None:
        self._parent = os.getppid()
        self._descriptor, path = tempfile.mkstemp(prefix="spark-events-end-")
        try:
            bridge.java.writeMasterEndTo(path)
        finally:
            os.unlink(path)  # the JVM has opened it

    def read(self, wait_s: float) -> Ending | None:
        """Return what it says; None if the JVM ends without saying anything, or not in time.

        Args:
            wait_s: how long to wait for that, in s.
        """
        until = time.monotonic() + wait_s
        while True:
            lives = os.getppid() == self._parent
            said = os.pread(self._descriptor, _MOST_BYTES, 0).decode(errors="replace")
            if said:
                code, _, why = said.partition("\n")
                return by_spark_itself(why, int(code))
            if not lives or time.monotonic() > until:
                return None
            time.sleep(_LOOK_EVERY_S)

    def close(self) -> None:
        """Give the file up."""
        os.close(self._descriptor)
