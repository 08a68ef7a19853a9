"""A transaction as the journal has it: all that another process needs to end it."""

from __future__ import annotations

import enum
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from typing import Any

import orjson

from spark_events.api.event import now_ms
from spark_events.runtime.owner import Owner
from spark_events.runtime.redaction import REDACTED

_MOST_OF_NAME = 40
"""Databases do not take names of any length."""


class Level(str, enum.Enum):
    """How a table comes to be all or nothing."""

    NATIVE = "native"
    """The catalog stages tables itself, as Delta's and Iceberg's do."""
    POINTER = "pointer"
    """One call to the catalog points at files that are whole."""
    RENAME = "rename"
    """A table of another name is renamed; to replace one, its name is free for a moment."""
    TRANSACTIONAL = "transactional"
    """A transaction of the database renames the table and says so."""
    RECOVERABLE = "recoverable"
    """The table can be seen while it is written; what fails is removed."""


class Purpose(str, enum.Enum):
    """What is to be done where there is such a table already (Flink's ``StagingPurpose``, and REPLACE)."""

    CREATE = "CREATE"
    CREATE_IF_NOT_EXISTS = "CREATE_IF_NOT_EXISTS"
    REPLACE = "REPLACE"
    CREATE_OR_REPLACE = "CREATE_OR_REPLACE"

    @property
    def replaces(self) -> bool:
        """Whether a table that is there is replaced."""
        return self in (Purpose.REPLACE, Purpose.CREATE_OR_REPLACE)


class State(str, enum.Enum):
    """How far a transaction is."""

    INTENT = "INTENT"
    PREPARED = "PREPARED"
    COMMITTING = "COMMITTING"
    COMMITTED = "COMMITTED"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"

    @property
    def terminal(self) -> bool:
        """Whether nothing is left to decide."""
        return self in (State.COMMITTED, State.ABORTED)


@dataclass(frozen=True, slots=True)
class TablePath:
    """Where a table stands."""

    catalog: str
    database: str
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.database, self.name) if part)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction in one of its states.

    Attributes:
        txid: its id, which also stands in the table's properties (``ctas.txid``).
        state: how far it is.
        number: of the entry in the journal, from 0.
        at_ms: when it came into the state, in ms since the epoch.
        begun_ms: when it began, in ms since the epoch.
        owner: who runs it.
        publisher: which of the publishers can end it.
        catalog_id: tells the catalog from another of the same name.
        level: how it is all or nothing.
        purpose: what is to be done where there is such a table.
        path: the table.
        table: what the table will be, as Spark's parser found it.
        stage: the folder or the table that nobody else writes to.
        location: where the files of the table will lie; empty where the catalog decides.
        previous: the table that was there at the beginning; None where there was none.
        written: what was written, by ``rows``, ``bytes`` and ``files``.
        collect_after_ms: when the files of the table before may go, in ms since the epoch; 0 where there
            are none, or they are gone.
        checkpoint: the checkpoint of a bounded stream; empty where there is none.
        reason: why it was aborted.
    """

    txid: str
    state: State
    number: int
    at_ms: int
    begun_ms: int
    owner: Owner
    publisher: str
    catalog_id: str
    level: Level
    purpose: Purpose
    path: TablePath
    table: Mapping[str, Any]
    stage: str = ""
    location: str = ""
    previous: Mapping[str, Any] | None = None
    written: Mapping[str, int] = field(default_factory=dict)
    collect_after_ms: int = 0
    checkpoint: str = ""
    reason: str = ""

    @property
    def is_resumable(self) -> bool:
        """Whether its checkpoint tells how far it was, so that its statement can go on."""
        return bool(self.checkpoint) and self.state is State.INTENT

    @property
    def moves_files(self) -> bool:
        """Whether its files are moved to a LOCATION before it is published."""
        return self.location != self.stage

    @property
    def hidden_name(self) -> str:
        """The name of a table that stands for this one while it is made."""
        return f"ctas_{self.txid[-8:]}_{self.path.name[:_MOST_OF_NAME]}"

    @property
    def old_name(self) -> str:
        """The name of the table before, once it has made room."""
        return f"ctas_old_{self.txid[-8:]}_{self.path.name[:_MOST_OF_NAME]}"

    def advanced(self, state: State, **changes: Any) -> Transaction:
        """Return the next entry."""
        return replace(self, state=state, number=self.number + 1, at_ms=now_ms(), **changes)

    def masked(self, secret: re.Pattern[str]) -> Transaction:
        """Return what may be shown: without the values of options whose key tells of a secret."""
        options = {
            key: REDACTED if secret.search(key) else value
            for key, value in (self.table.get("options") or {}).items()
        }
        return replace(self, table={**self.table, "options": options})

    def to_json(self) -> str:
        """Return the descriptor that another process can recover from."""
        return orjson.dumps(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Transaction:
        """Return what ``to_json`` had.

        Raises:
            ValueError: it is none.
        """
        values = orjson.loads(text)
        try:
            return cls(
                **{
                    **{name: values[name] for name in values if name in _NAMES},
                    "state": State(values["state"]),
                    "level": Level(values["level"]),
                    "purpose": Purpose(values["purpose"]),
                    "owner": Owner(**values["owner"]),
                    "path": TablePath(**values["path"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no transaction: {error!r}") from error


_NAMES = frozenset(attribute.name for attribute in fields(Transaction))


def new_txid() -> str:
    """Return an id that sorts by time."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
