"""One line for each event."""

from __future__ import annotations

from datetime import datetime

from rich.console import Console
from rich.text import Text

from spark_events.api import Event, EventReporter, Severity, printable

_STYLES = {Severity.WARN: "yellow", Severity.ERROR: "bold red", Severity.FATAL: "bold red"}
_NAME_WIDTH = 27
# Other attributes are in the body already, or too long for a line.
_SHOWN = (
    "oldJobStatusMs",
    "durationMs",
    "inputRows",
    "fullSize",
    "numTasks",
    "waitMs",
    "exception.type",
    "errorClass",
    "sqlState",
    "failureLabel.type",
    "slaMs",
)


class ConsoleEventReporter(EventReporter):
    """Prints each event as one line.

    Args:
        stderr: print there, and not to stdout.
    """

    def __init__(self, stderr: bool) -> None:
        self._console = Console(stderr=stderr, soft_wrap=True, highlight=False)

    @property
    def destination(self) -> str:
        """The stream."""
        return "stderr" if self._console.stderr else "stdout"

    def notify_of_added_event(self, event: Event) -> None:
        """Print one event."""
        self._console.print(render(event, self._console.encoding))


def render(event: Event, encoding: str = "utf-8") -> Text:
    """Return an event as a line: local time, name, body, and the most useful attributes.

    Args:
        event: to show.
        encoding: of the stream; characters that it does not have are escaped.
    """

    def shown(text: str) -> str:
        return printable(text).encode(encoding, "backslashreplace").decode(encoding)

    try:
        moment = datetime.fromtimestamp(event.time_ms / 1000).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):  # beyond the year 9999
        moment = f"{event.time_ms} ms"
    details = " ".join(f"{key}={event.attributes[key]}" for key in _SHOWN if key in event.attributes)
    return Text.assemble(
        (f"{moment} ", "dim"),
        (f"{shown(event.name):<{_NAME_WIDTH}} ", "cyan"),
        (shown(event.body.strip().split("\n", 1)[0]), _STYLES.get(event.severity, "")),
        (f"  {shown(details)}" if details else "", "dim"),
    )
