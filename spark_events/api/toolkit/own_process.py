"""The process that calls a plugin's code: a child that the code forks must not go on with its work."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import NoReturn


class OwnProcess:
    """What calls of a plugin's code are made within; it may be used any number of times.

    A child that a call forks, and that returns from it or raises, ends there, as a program does: by
    ``sys.exit`` with its code, by any other error with 1. In the process itself, nothing happens.
    """

    def __init__(self) -> None:
        self._process = os.getpid()

    def __enter__(self) -> None:
        """Begin a call."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        """End a call, and the process if it is another one."""
        if os.getpid() != self._process:
            end_child(error)


def end_child(error: BaseException | None) -> NoReturn:
    """End this process, which has not made the call, with the error that came out of it; None for none."""
    status = 1
    try:
        if error is None:
            status = 0
        elif not isinstance(error, SystemExit):
            traceback.print_exception(error)
        elif error.code is None or isinstance(error.code, int):
            status = (error.code or 0) & 0xFF
        else:
            sys.stderr.write(f"{error.code}\n")
        sys.stderr.flush()
    except Exception:
        status = 1  # there is no stderr
    finally:
        # What a program does as it ends is its first process's, and so is what stdout has not written.
        os._exit(status)
