"""The file of refused records: its bound, its reasons, and what is counted when it is replaced."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spark_events.runtime.sending.dead_letters import DeadLetters


class Letters:
    """Dead letters in a folder, and what was lost."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.lost: Counter[str] = Counter()
        self.path = folder / "refused.jsonl"
        self.letters = DeadLetters(
            self.path, max_bytes, bytes.decode, lambda cause, count: self.lost.update({cause: count})
        )

    def all(self) -> list[dict[str, Any]]:
        """Return the letters that are still there, oldest first."""
        paths = (self.path.with_name("refused.jsonl.1"), self.path)
        return [json.loads(line) for path in paths if path.exists() for line in path.open()]

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.path.parent.iterdir())


@pytest.mark.parametrize("at_once", [1, 1_000])
def test_their_bound_holds_however_many_come_at_once(tmp_path: Path, at_once: int) -> None:
    """Two files within the bound have the newest; each letter is there, or counted as lost."""
    made = Letters(tmp_path, 20_000)
    records = [b"%d" % number for number in range(1_000)]
    for start in range(0, len(records), at_once):
        made.letters.add(records[start : start + at_once], "bad", at_once)
    kept = [letter["record"] for letter in made.all()]

    assert made.size <= 20_000
    assert 0 < len(kept) < len(records)
    assert kept == [str(number) for number in range(1_000 - len(kept), 1_000)]
    assert made.lost == {"dead_letters_full": len(records) - len(kept)}


def test_a_letter_that_is_too_large_is_counted(tmp_path: Path) -> None:
    made = Letters(tmp_path, 1_000)
    made.letters.add([b"small", b"x" * 5_000, b"last"], "bad", 3)

    assert [letter["record"] for letter in made.all()] == ["small", "last"]
    assert made.lost == {"dead_letters_full": 1}


def test_a_long_reason_is_cut(tmp_path: Path) -> None:
    made = Letters(tmp_path, 1 << 20)
    made.letters.add([b"record"], "A" * 100_000, 1)

    assert made.all()[0]["reason"] == "A" * 1_000


def test_what_was_delivered_is_not_lost_with_the_file(tmp_path: Path) -> None:
    """A partial success does not say which records it refused: all are kept, and none of them is lost twice."""
    made = Letters(tmp_path, 4_000)
    for number in range(10):
        made.letters.add([b"%d" % record for record in range(20)], f"bad {number}", 1)

    assert {(letter["refused"], letter["of"]) for letter in made.all()} == {(1, 20)}
    assert made.lost == {}
