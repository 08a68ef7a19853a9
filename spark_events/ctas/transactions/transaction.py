"""A transaction as recorded in the journal, with everything that another process needs to end it."""

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
from spark_events.runtime.redaction import REDACTED
from spark_events.spark.owner import Owner

_MOST_OF_NAME = 40
"""Databases do not take names of any length."""


class Level(str, enum.Enum):
    """How a table is made atomically."""

    NATIVE = "native"
    """The catalog stages tables itself, as Delta's and Iceberg's do."""
    POINTER = "pointer"
    """One call to the catalog points at complete files."""
    RENAME = "rename"
    """A table is renamed; when it replaces another, the name is unused for a moment."""
    TRANSACTIONAL = "transactional"
    """One database transaction renames the table and records that."""
    RECOVERABLE = "recoverable"
    """The table is visible while it is written; if that fails, it is removed."""


class Purpose(str, enum.Enum):
    """What to do if there is such a table already (Flink's ``StagingPurpose``, and REPLACE)."""

    CREATE = "CREATE"
    CREATE_IF_NOT_EXISTS = "CREATE_IF_NOT_EXISTS"
    REPLACE = "REPLACE"
    CREATE_OR_REPLACE = "CREATE_OR_REPLACE"

    @property
    def replaces(self) -> bool:
        """Whether an existing table is replaced."""
        return self in (Purpose.REPLACE, Purpose.CREATE_OR_REPLACE)


class State(str, enum.Enum):
    """How far a transaction has come."""

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
    """The full name of a table."""

    catalog: str
    database: str
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.database, self.name) if part)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction in one of its states.

    Attributes:
        txid: its id, which is also in the table's properties (``ctas.txid``).
        state: how far it has come.
        number: of the entry in the journal, from 0.
        at_ms: when it entered the state, in ms since the epoch.
        begun_ms: when it began, in ms since the epoch.
        owner: who runs it.
        publisher: which of the publishers can end it.
        catalog_id: distinguishes the catalog from others of the same name.
        level: how it is made atomic.
        purpose: what to do if there is such a table.
        path: the table.
        table: what the table will be, as Spark's parser found it.
        stage: the folder or the table that nobody else writes to.
        location: the future place of the table's files; empty if the catalog decides.
        previous: the table that existed at the beginning; None if there was none.
        written: what was written, by ``rows``, ``bytes`` and ``files``.
        collect_after_ms: when the files of the previous table may be removed, in ms since the epoch; 0 if
            there are none, or they are gone.
        checkpoint: the checkpoint of a bounded stream; empty if there is none.
        reason: why it was aborted.
        is_uncertain: whether it may have come further, because a later entry was damaged.
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
    is_uncertain: bool = False

    @property
    def is_resumable(self) -> bool:
        """Whether it has a checkpoint from which its statement can continue."""
        return bool(self.checkpoint) and self.state is State.INTENT and not self.is_uncertain

    @property
    def moves_files(self) -> bool:
        """Whether its files are moved to a LOCATION before it is published."""
        return self.location != self.stage

    @property
    def hidden_name(self) -> str:
        """The temporary name of the table while it is being made."""
        return f"ctas_{self.txid[-8:]}_{self.path.name[:_MOST_OF_NAME]}"

    @property
    def old_name(self) -> str:
        """The name of the previous table once it has been moved out of the way."""
        return f"ctas_old_{self.txid[-8:]}_{self.path.name[:_MOST_OF_NAME]}"

    def advanced(self, state: State, **changes: Any) -> Transaction:
        """Return the next entry, which may be of the same state."""
        at_ms = self.at_ms if state is self.state else now_ms()
        return replace(self, state=state, number=self.number + 1, at_ms=at_ms, **changes)

    def masked(self, secret: re.Pattern[str]) -> Transaction:
        """Return a version that may be shown, without the values of options whose keys indicate secrets."""
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
        """Return the transaction that ``to_json`` described.

        Raises:
            ValueError: the text does not describe a transaction.
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
            raise ValueError(f"not a transaction: {error!r}") from error


_NAMES = frozenset(attribute.name for attribute in fields(Transaction))


def is_txid(text: str) -> bool:
    """Return whether a text is one of the ids that ``new_txid`` returns."""
    return re.fullmatch(r"\d{8}T\d{6}-[0-9a-f]{8}", text, re.ASCII) is not None


def new_txid() -> str:
    """Return an id that sorts by time, to the second."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
