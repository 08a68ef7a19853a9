"""The program's own signal handlers, which Python calls in the middle of whatever the main thread does."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType


@contextmanager
def held_signals() -> Iterator[None]:
    """Let the handlers of signals run only after this block.

    What they raise is meant for the program, such as the TimeoutError of a time limit: in the middle of our
    code, it would be taken for an error of ours. Ctrl-C is not held, and what Python does not handle itself
    is done at once.
    """
    if threading.current_thread() is not threading.main_thread():  # where no handler runs
        yield
        return
    arrived: dict[int, None] = {}

    def hold(number: int, _: FrameType | None) -> None:
        arrived[number] = None

    handlers = {
        int(number): handler
        for number in signal.valid_signals() - {signal.SIGINT}
        if callable(handler := signal.getsignal(number))
    }
    for number in handlers:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is hold:
                signal.signal(number, handler)
        with ExitStack() as stack:  # also if one of them raises, the others run
            for came in reversed(arrived):
                stack.callback(handlers[came], came, sys._getframe())
