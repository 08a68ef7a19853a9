"""The command line: the script ``spark-events``, and ``python -m spark_events``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line.

    Ctrl-C ends it without a word until a command begins, rather than with the traceback of an import.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from spark_events.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
