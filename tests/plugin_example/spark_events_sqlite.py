"""Writes events into a SQLite database."""

import json
import sqlite3

from spark_events.api import Event, EventReporter, EventReporterFactory, Option, ReporterConfig, RetryLater
from spark_events.api import option_types as types

PATH = Option.must("path", types.LOCAL_PATH, "the database; made where it is not there")


class SqliteReporter(EventReporter):
    def __init__(self, path):
        self._path, self._database, self._rows = path, None, []

    def open(self):
        self._database = sqlite3.connect(self._path)
        self._database.execute("CREATE TABLE IF NOT EXISTS events (id PRIMARY KEY, time_ms, event)")

    def notify_of_added_event(self, event: Event):
        told = {"id": event.id, "name": event.name, "body": event.body, **event.all_attributes}
        self._rows.append((json.dumps(event.id), event.time_ms, json.dumps(told, default=str)))

    def flush(self):
        try:
            with self._database:  # one transaction
                self._database.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", self._rows)
        except sqlite3.OperationalError as error:  # another process writes, or the disk is full
            raise RetryLater(f"{self._path}: {error}") from error
        self._rows.clear()

    def close(self):
        if self._database is not None:
            self._database.close()


class SqliteReporterFactory(EventReporterFactory):
    options = (PATH,)

    def create(self, config: ReporterConfig):
        return SqliteReporter(config.get(PATH))
