"""What adding a day to a store costs, when the store is short and when it is long.

A hundredth of 500 queries with a checkpoint every 10 s: 43,200 events a day. One day after the other is
added, each by a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.history import CHECKPOINT, DAY_MS, HEAD
from bench.table import machine, write

_BEGIN_MS = 1_767_225_600_000
_EVENTS = 43_200
_QUERIES = 50
_COMPARED = 10


def generate(folder: Path, day: int) -> None:
    """Write the events of a day."""
    folder.mkdir()
    with (folder / "fleet__app-1.events.000001.jsonl").open("w") as file:
        for number in range(_EVENTS):
            time_ms = _BEGIN_MS + day * DAY_MS + number * DAY_MS // _EVENTS
            query, batch = f"query_{number % _QUERIES}", day * _EVENTS + number
            own = CHECKPOINT % (query, query, query, 1, batch, 800 + number % 900, 10_000, 10_000)
            body = f"query '{query}' completed a checkpoint"
            event_id = day * _EVENTS + number
            head = ("CheckpointEvent", event_id, time_ms, time_ms, body, "fleet", 1, own, "query")
            file.write(HEAD % head)


def add(store: Path, events: Path) -> float:
    """Return the seconds of adding the events of a folder, in a process of its own."""
    command = [sys.executable, "-m", "spark_events.cli.main", "report", str(events), "--store", str(store)]
    began = time.perf_counter()
    subprocess.run([*command, "--since", "1d"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Add one day after the other, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, seconds = Path(name), []
        for day in range(options.days):
            events = folder / "events"
            generate(events, day)
            seconds.append(add(folder / "store", events))
            for path in events.iterdir():
                path.unlink()
            events.rmdir()
        size = sum(path.stat().st_size for path in (folder / "store").rglob("*.parquet"))
        (index,) = sorted((folder / "store").glob("store-*.json"))[-1:]
        days = len(json.loads(index.read_text())["days"])
    first = statistics.median(seconds[1 : 1 + _COMPARED])
    last = statistics.median(seconds[-_COMPARED:])
    write(
        "store",
        [
            f"{_EVENTS:,} events a day, added one day after the other; each time a report on the last day; "
            f"medians of {_COMPARED} days ({machine()}; `python -m bench.store`):",
            "",
            "| the store has | adding a day |",
            "| --- | --- |",
            f"| 1 to {_COMPARED} days | {first:.2f} s |",
            f"| {days - _COMPARED} to {days - 1} days | {last:.2f} s, {last / first:.2f} times as long |",
            "",
            f"A day takes {size / days / 1e6:.1f} MB. At this rate 500 queries with a checkpoint every 10 s, "
            f"a hundred times as many events, take {size / days * 100 * 365 / 1e9:.0f} GB a year.",
        ],
    )


if __name__ == "__main__":
    main()
