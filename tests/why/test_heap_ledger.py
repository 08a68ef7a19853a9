"""Each byte of executors' heap is booked once, for each second: held against a simulation by the millisecond."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_events.diagnosis.times.heap_ledger import (
    HEAP_ACCOUNTS,
    NEVER,
    UNMEASURED,
    WITH_STAGES,
    WITHOUT_STAGES,
    HeapLedger,
)
from spark_events.why.reading.read_logs import explain_logs
from tests.support.forked_commands import run_forked
from tests.support.sample_logs import NAMES
from tests.support.stored_logs import recorded_logs

HEAP = 64_000
END = 60
_CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "begin", "end"]), st.sampled_from("abc")), max_size=1
)


@given(
    st.lists(_CHANGES, min_size=END, max_size=END), st.dictionaries(st.sampled_from("ab"), st.integers(0, 90))
)
def test_by_the_millisecond(changes: list[list[tuple[str, str]]], peaks: dict[str, int]) -> None:
    ledger, expected = HeapLedger(), Counter[str]()
    living: set[str] = set()
    stages, any_lived = 0, False
    for time_ms, now in enumerate(changes, start=1):
        for what, executor in now:
            if what == "add":
                ledger.executor_added(executor, time_ms)
                living.add(executor)
                any_lived = True
            elif what == "remove":
                ledger.executor_removed(executor, time_ms)
                living.discard(executor)
            else:
                ledger.stages(time_ms, 1 if what == "begin" else -1)
                stages = max(0, stages + (1 if what == "begin" else -1))
        for executor in living:
            used = min(1_000 * peaks.get(executor, 0), HEAP)
            expected[(WITH_STAGES if stages else WITHOUT_STAGES) if used else UNMEASURED] += used or HEAP
            expected[NEVER] += HEAP - used if used else 0
    for executor, peak in peaks.items():
        ledger.used(executor, 1_000 * peak)
        ledger.used(executor, 0)

    booked = ledger.booked(HEAP, END + 1)
    assert booked == ({name: expected[name] // 1_000 for name in HEAP_ACCOUNTS} if any_lived else {})


def heap_byte_s(log: Path, ended_ms: int) -> tuple[int, int]:
    """Return what heap the executors of a log held in byte-seconds, by its lines alone, and how many they were."""
    heap, since, held_ms, executors = 1 << 30, {}, 0, 0
    for line in log.read_bytes().splitlines():
        record = orjson.loads(line)
        if record["Event"] == "SparkListenerEnvironmentUpdate":
            if "spark.master" not in record["Spark Properties"]:
                return 0, 0  # then nobody knows what its executors were given
            given = record["Spark Properties"].get("spark.executor.memory", "1g")
            heap = int(given[:-1]) << {"g": 30, "m": 20}[given[-1].lower()]
        elif record["Event"] == "SparkListenerExecutorAdded" and record["Executor ID"] != "driver":
            since[record["Executor ID"]] = record["Timestamp"]
            executors += 1
        elif record["Event"] == "SparkListenerExecutorRemoved":
            held_ms += record["Timestamp"] - since.pop(record["Executor ID"], record["Timestamp"])
    held_ms += sum(ended_ms - begun_ms for begun_ms in since.values())
    return heap * held_ms // 1_000, executors


@pytest.mark.parametrize("name", NAMES)
def test_sample_logs(name: str, event_logs: Path) -> None:
    """Of Spark's own samples: what they held, whether or not Spark measured its use; none in local mode."""
    log = event_logs / name
    if log.is_dir():
        pytest.skip("several files, of the same kinds")
    for explained in explain_logs([str(log)], {})[0]:
        held, executors = heap_byte_s(log, explained.ended_ms)
        assert sum(explained.heap_byte_s.values()) == pytest.approx(held, rel=0.001, abs=10)
        assert bool(explained.heap_byte_s) == bool(executors)


def test_as_it_is_shown(tmp_path: Path) -> None:
    """Of a recorded run whose executors were killed: in one sentence, as JSON, and on the page."""
    log = recorded_logs(tmp_path)["executor_faults"]
    done = run_forked("why", str(log), "--json", "why.json", "--html", "why.html", cwd=tmp_path, check=True)
    (explained,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    booked = explained["heap_byte_s"]
    whole = sum(booked.values())

    assert booked[NEVER] > whole // 2
    assert booked[UNMEASURED] == 0
    never = f"{round(100 * booked[NEVER] / whole)} % not seen in use"
    assert f"Heap that executors held: {whole / (1 << 30):.0f} GiB·s; {never}" in " ".join(
        done.stdout.split()
    )
    page = (tmp_path / "why.html").read_text()
    assert f"<td>{WITH_STAGES}</td>" in page
    assert UNMEASURED not in page
