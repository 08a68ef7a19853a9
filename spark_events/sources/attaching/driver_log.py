"""The framework's log messages in a driver whose application has not set up logging."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress

from spark_events.runtime.log_once import logger


class DriverLog(logging.Handler):
    """Writes warnings and errors to standard error, one line each, with the framework's name and the level.

    Once the application adds a handler of its own to the root logger, only that handler writes them.
    Python's default would print the bare message, and nobody could tell where it comes from.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message, unless the application's own logging does, or standard error takes none.

        It may be closed, on a full disk, or a pipe that nobody reads.
        """
        if not logging.root.handlers:
            with suppress(Exception):
                sys.stderr.write(self.format(record) + "\n")


def tell(message: str, *values: object) -> None:
    """Log a sentence for whoever has started the application, though it is not a warning.

    An application that has set up its own logging gets it there, at its level; else it is on standard error.
    """
    if logger.isEnabledFor(logging.INFO):
        logger.info(message, *values)
    else:
        record = logger.makeRecord(logger.name, logging.INFO, __file__, 0, message, values, None)
        for handler in logger.handlers:
            if isinstance(handler, DriverLog):
                handler.emit(record)


def install() -> None:
    """Add the handler to the framework's logger, unless a command or the application has given it one."""
    _turn_on()
    if logger.handlers:
        return
    handler = DriverLog(logging.WARNING)
    handler.setFormatter(logging.Formatter("spark-events: %(levelname)s: %(message)s"))
    logger.addHandler(handler)


def _turn_on() -> None:
    """Undo what ``disable_existing_loggers``, which is a default, does to loggers that nobody has named.

    Whoever wants them silent sets their level.
    """
    for name, known in [*logger.manager.loggerDict.items()]:
        if isinstance(known, logging.Logger) and f"{name}.".startswith(f"{logger.name}."):
            known.disabled = False
