"""Reads the files of the journal, of which some may be damaged, by a power cut for instance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from spark_events.ctas.transactions.transaction import Transaction
from spark_events.runtime.log_once import logger

ENTRY = ".json"


@dataclass(frozen=True, slots=True)
class Damage:
    """An entry that is not what spark-events writes.

    Attributes:
        file: its path.
        txid: the transaction's id.
        reason: what is wrong with it.
        used: the name of the entry before it that is used instead; empty if there is none.
    """

    file: str
    txid: str
    reason: str
    used: str

    def __str__(self) -> str:
        if self.used:
            return (
                f"{self.file}: is damaged ({self.reason}); the entry before it, {self.used}, is used instead"
            )
        files = f"{self.file.rpartition('/')[0]}/{self.txid}.*"
        return (
            f"{self.file}: is damaged ({self.reason}), and no entry before it can be used, so nothing is "
            f"known of transaction {self.txid}; restore the file, or remove {files} once its table is as you "
            "want it"
        )


class EntryFiles:
    """The entries and the locks in the folder of a journal.

    Args:
        storage: ``Storage.java``.
        folder: its path.

    Attributes:
        damage: by its path, each entry that was damaged when its transaction was last read.
    """

    def __init__(self, storage: Any, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self.damage: dict[str, Damage] = {}

    def latest(self, txid: str, numbers: Iterable[int]) -> Transaction | None:
        """Return a transaction by the last of its entries that can be read; None if there is none.

        Args:
            txid: its id.
            numbers: those of its entries.
        """
        numbers = sorted(numbers, reverse=True)
        damaged: dict[str, str] = {}
        for number in numbers:
            name = f"{txid}.{number:04d}{ENTRY}"
            # An empty one, torn while it was written, was never acted upon, so the one before it is the last.
            if text := self._storage.read(f"{self._folder}/{name}"):
                try:
                    transaction = Transaction.from_json(text)
                except ValueError as error:
                    damaged[f"{self._folder}/{name}"] = str(error)
                    continue
                self._record(txid, damaged, name)
                is_uncertain = transaction.is_uncertain or bool(damaged)
                return replace(transaction, number=numbers[0], is_uncertain=is_uncertain)
        self._record(txid, damaged, "")
        return None

    def lock(self, path: str) -> dict[str, Any]:
        """Return what a lock says; nothing if it is gone, or damaged: then it counts as free."""
        text = self._storage.read(path)
        if not text:
            return {}
        try:
            values = orjson.loads(text)
            if isinstance(values, dict):
                return values
            reason = "not an object of JSON"
        except ValueError as error:
            reason = str(error)
        logger.warning(
            "%s: is damaged (%s); the lock counts as free, and the next one replaces it", path, reason
        )
        return {}

    def _record(self, txid: str, damaged: dict[str, str], used: str) -> None:
        others = {path: known for path, known in self.damage.items() if known.txid != txid}
        own = {path: Damage(path, txid, reason, used) for path, reason in damaged.items()}
        self.damage = others | own
