"""Reporters that send records to another process until they are acknowledged."""

from __future__ import annotations

import abc
import base64
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from spark_events.api import option_types as types
from spark_events.api.config import Option
from spark_events.api.reporter import Reporter

JOURNAL_DIR = Option.optional(
    "journal.dir",
    types.LOCAL_PATH,
    "local folder for records that are not delivered yet; without it they wait in memory",
)
JOURNAL_MAX_BYTES = Option(
    "journal.max.bytes", types.at_least(65_536, types.SIZE), 256 << 20, "maximum size of the journal"
)
JOURNAL_MAX_AGE = Option.optional(
    "journal.max.age",
    types.at_least(1_000, types.DURATION),
    "older records are dropped and counted; no limit by default",
)
JOURNAL_FSYNC = Option(
    "journal.fsync",
    types.FSYNC,
    "interval",
    "when to sync to disk, in case the machine crashes: never, interval (every second) or always",
)
JOURNAL_OPTIONS: tuple[Option[Any], ...] = (JOURNAL_DIR, JOURNAL_MAX_BYTES, JOURNAL_MAX_AGE, JOURNAL_FSYNC)
"""What the factory of a ``SendingReporter`` adds to its ``options``; the runtime reads them."""


class Outbox(Protocol):
    """Accepts records to send, in order."""

    def put(self, record: bytes) -> None:
        """Add one record."""


class SendingReporter(Reporter):
    """A reporter that turns each item into bytes once, and sends batches of them until they are acknowledged.

    Its ``notify_of_added_…`` puts one record into ``outbox``. The runtime stores it, in the journal if
    ``journal.dir`` is set, and calls ``send`` with stored records, oldest first, until they are delivered,
    including those that an earlier run of the same application left behind.

    ``send`` and ``close`` are called from another thread than the rest, each thread one call at a time.

    Attributes:
        outbox: set by the runtime before ``open``.
        max_request_records: the most records that ``send`` is given.
        max_request_bytes: the most bytes that they have in total; a single record may have more.
    """

    outbox: Outbox
    max_request_records: ClassVar[int] = 2_048
    max_request_bytes: ClassVar[int] = (4 << 20) - (64 << 10)

    @property
    def context(self) -> bytes:
        """Common data of all records of this run, such as OTLP's resource; stored beside them."""
        return b""

    @abc.abstractmethod
    def send(self, records: Sequence[bytes], context: bytes) -> None:
        """Send records in order. Returning means that the destination has them.

        Args:
            records: as they were put into the outbox.
            context: of the run that put them there.

        Raises:
            RetryLater: the destination is away, or asks for a later try.
            Refused: it will never take this request.
            PartlyRefused: it took the request, but for some records.
        """

    def readable(self, record: bytes) -> Any:
        """Return a record in a form that JSON can hold, for the file of refused records."""
        return {"base64": base64.b64encode(record).decode()}
