"""The factory of the console reporter."""

from __future__ import annotations

from spark_events.api import EventReporterFactory, Option, ReporterConfig, option_types
from spark_events_console.reporter import ConsoleEventReporter

STREAM = Option(
    "stream", option_types.choice("stderr", "stdout"), "stderr", "where to print: stderr or stdout"
)


class ConsoleEventReporterFactory(EventReporterFactory):
    """Creates the console reporter."""

    shares_threads = True
    options = (STREAM,)

    def create(self, config: ReporterConfig) -> ConsoleEventReporter:
        """Create the reporter."""
        return ConsoleEventReporter(stderr=config.get(STREAM) == "stderr")
