"""The conformance kit against the reporter."""

import tempfile
from pathlib import Path

from spark_events_sqlite import SqliteReporterFactory

from spark_events.api.testing import EventReporterConformance


class TestSqlite(EventReporterConformance):
    factory = SqliteReporterFactory

    def make_options(self):
        return {"path": str(Path(tempfile.mkdtemp()) / "events.db")}
