"""Seconds and memory of a report over 1 and 10 million events, here and with Spark, and of DuckDB's own sums.

Each measurement is a process of its own, from its start to its end, with what it starts; they take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.table import machine, write

_QUERIES = 50
DAY_MS = 86_400_000
_BEGIN_MS = 1_790_812_800_000
_SPAN_MS = 30 * DAY_MS
_SLA_MS = 60_000
_WAYS = {
    "local": "spark-events report",
    "spark": "spark-events report --engine spark",
    "duckdb": "DuckDB alone, the same sums",
}
HEAD = (
    '{"eventName":"%s","eventId":"%032x","timeUnixNano":"%d000000","observedTimeUnixNano":"%d123456",'
    '"severityNumber":9,"severityText":"INFO","scope":"spark_events.listeners","body":"%s",'
    '"attributes":{"app_name":"%s","app_id":"app-%d",%s"job_kind":"%s"}}\n'
)
CHECKPOINT = (
    '"query_name":"%s","query_id":"%s-id","run_id":"%s-%d","checkpointId":%d,"fullSize":104857600,'
    '"checkpointedSize":-1,"metadataSize":-1,"checkpointStatus":"COMPLETED","isUnaligned":"false",'
    '"checkpointType":"Checkpoint","durationMs":%d,"walCommitMs":12,"commitOffsetsMs":9,"sinceLastMs":%d,'
    '"owedMs":%d,"inputRows":50000,"checkpointLocation":"s3a://checkpoints/orders",'
)
_STATUS = '"query_name":"%s","query_id":"%s-id","run_id":"%s-%d","newJobStatus":"%s",'
_JOB = '"query_name":"%s","query_id":"%s-id","run_id":"%s-%d","job_id":"%d","newJobStatus":"%s",'


def generate(folder: Path, events: int) -> None:
    """Write the file logs of a fleet: each micro-batch is a checkpoint and a job, each 199th one fails."""
    folder.mkdir()
    per_query = events // _QUERIES
    for number in range(_QUERIES):
        name, app = f"query_{number}", f"app_{number}"
        path = folder / f"{app}__app-{number}.events.000001.jsonl"
        with path.open("w", buffering=1 << 20) as file:
            _write_query(file, number, name, app, per_query)


def _write_query(file: object, number: int, name: str, app: str, events: int) -> None:
    emit = file.write  # type: ignore[attr-defined]
    step_ms = 3 * _SPAN_MS // events
    count = run = batch = 0

    def event(kind: str, what: str, ms: int, body: str, attributes: str) -> None:
        nonlocal count
        count += 1
        identity = (number << 64) + count
        emit(HEAD % (what, identity, ms, ms, body, app, number, attributes, kind))

    def status(ms: int, new: str) -> None:
        event("query", "JobStatusChangeEvent", ms, f"query {new}", _STATUS % (name, name, name, run, new))

    event("application", "JobStatusChangeEvent", _BEGIN_MS, "CREATED", '"newJobStatus":"CREATED",')
    event("application", "JobStatusChangeEvent", _BEGIN_MS, "RUNNING", '"newJobStatus":"RUNNING",')
    status(_BEGIN_MS, "CREATED")
    status(_BEGIN_MS, "RUNNING")
    while count < events - 8:
        batch += 1
        ms = _BEGIN_MS + batch * step_ms
        for new in ("RUNNING", "FINISHED"):
            job = _JOB % (name, name, name, run, batch, new)
            event("job", "JobStatusChangeEvent", ms - 50, f"job {batch} {new}", job)
        took = 500 + batch * 7919 % 70_000
        checkpoint = CHECKPOINT % (name, name, name, run, batch, took, step_ms, max(step_ms, took))
        event("query", "CheckpointEvent", ms, f"micro-batch {batch} committed", checkpoint)
        if batch % 199 == 0:
            status(ms + 1, "FAILED")
            failure = _STATUS[: _STATUS.index('"newJob')] % (name, name, name, run)
            failure += (
                '"errorClass":"KAFKA_DATA_LOSS","exception.message":"gone","failureLabel.type":"SYSTEM",'
            )
            event("query", "JobFailureEvent", ms + 1, "failed", failure)
            run += 1
            status(ms + step_ms // 3, "RESTARTING")
            status(ms + step_ms // 2, "RUNNING")


_DUCKDB = """
create table events as
  select any_value(struct_pack(t := timeUnixNano::bigint // 1000000, name := eventName, a := attributes)) as e
  from read_ndjson('{folder}/*.jsonl', columns = {{
    eventName: 'varchar', eventId: 'varchar', timeUnixNano: 'varchar', attributes: 'struct("job_kind" varchar,
    app_name varchar, query_name varchar, run_id varchar, newJobStatus varchar, checkpointStatus varchar,
    durationMs bigint, owedMs bigint, errorClass varchar, "failureLabel.type" varchar)'}})
  where attributes."job_kind" <> 'job'
  group by eventId;
create table intervals as
  select e.a.app_name as app, e.a.query_name as query, e.a.newJobStatus as status, e.t as since,
    coalesce(lead(e.t) over (partition by e.a.app_name, e.a.query_name order by e.t, e.a.newJobStatus),
      (select max(e.t) from events)) as until
  from events where e.name = 'JobStatusChangeEvent';
create table uptime as
  select app, query, sum(until - since) filter (status = 'RUNNING') as up_ms from intervals group by all;
create table sla as
  select e.a.app_name as app, e.a.query_name as query, make_timestamp(e.t * 1000)::date as day,
    count(*) as completed, count(*) filter (e.a.durationMs > {sla}) as late_by_duration,
    count(*) filter (e.a.owedMs > {sla}) as late_by_gap, max(e.a.durationMs) as worst
  from events where e.name = 'CheckpointEvent' group by all;
create table failures as
  select make_timestamp(e.t * 1000)::date as day, e.a.errorClass as error, count(*) as n
  from events where e.name = 'JobFailureEvent' group by all;
"""


def measure(way: str, folder: Path) -> None:
    """Make one report, and print its sums: they have to agree."""
    if way == "duckdb":
        import duckdb

        with tempfile.TemporaryDirectory() as database:
            connection = duckdb.connect(f"{database}/bench.duckdb")
            connection.execute(_DUCKDB.format(folder=folder, sla=_SLA_MS))
            up = connection.execute("select sum(up_ms) from uptime where query is not null").fetchone()
            sla = connection.execute("select sum(completed), sum(late_by_duration) from sla").fetchone()
            failed = connection.execute("select sum(n) from failures").fetchone()
        assert up is not None
        assert sla is not None
        assert failed is not None
        print(json.dumps([int(up[0]), *map(int, sla), int(failed[0] or 0)]))
        return
    out = folder.parent / "report.json"
    command = [str(Path(sys.executable).with_name("spark-events")), "report", str(folder), "--engine", way]
    options = ["--json", str(out), "--sla", f"{_SLA_MS}ms"]
    subprocess.run([*command, *options], stdout=subprocess.DEVNULL, check=True)
    report = json.loads(out.read_bytes())
    up_ms = sum(row["up_ms"] for row in report["uptime"] if row["kind"] == "query")
    sla_rows, failures = report["checkpoint_sla"], report["failures"]
    completed, late = (sum(row[name] for row in sla_rows) for name in ("completed", "late_by_duration"))
    print(json.dumps([up_ms, completed, late, sum(row["count"] for row in failures)]))


def _measured(way: str, folder: Path) -> tuple[float, float, list[int]]:
    """Return seconds, the most MiB that all its processes together had, and the sums."""
    command = [sys.executable, "-m", "bench.history", "--measure", way, str(folder)]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    most, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            most[0] = max(most[0], _memory_of_group(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    assert process.returncode == 0
    return seconds, most[0] / (1 << 20), json.loads(out.splitlines()[-1])


def _memory_of_group(group: int) -> int:
    """Return the resident bytes of all processes of a group; what they share is counted for each."""
    pages = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[2]) == group:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure both ways on both sizes in turn, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    sizes: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for events in options.sizes:
            generate(Path(temporary) / str(events), events)
            files = (Path(temporary) / str(events)).iterdir()
            sizes[events] = sum(path.stat().st_size for path in files) / 1e9
        for _ in range(options.rounds):
            for events in options.sizes:
                sums = {}
                for way in _WAYS:
                    seconds, memory, sums[way] = _measured(way, Path(temporary) / str(events))
                    found.setdefault((way, events), []).append((seconds, memory))
                assert sums["local"] == sums["spark"] == sums["duckdb"], sums
    _report(found, sizes, options.rounds)


def _report(
    found: dict[tuple[str, int], list[tuple[float, float]]], sizes: dict[int, float], rounds: int
) -> None:
    lines = [
        "From the start of the command to its end, with the start of a JVM where there is one; all ways give "
        f"the same sums; median of {rounds} rounds, in turn ({machine()}; `make bench`):",
        "",
        "| | events | seconds | events/s | most memory of all its processes |",
        "| --- | --- | --- | --- | --- |",
    ]
    for way, title in _WAYS.items():
        for events, size in sizes.items():
            seconds, memory = (statistics.median(column) for column in zip(*found[way, events], strict=True))
            lines.append(
                f"| {title} | {events:,} ({size:.1f} GB) | {seconds:.0f} | {events / seconds:,.0f} | "
                f"{memory:,.0f} MiB |"
            )
    lines.append("")
    for events in sizes:
        ratios = [
            statistics.median(
                ours[0] / alone[0]
                for ours, alone in zip(found[way, events], found["duckdb", events], strict=True)
            )
            for way in ("local", "spark")
        ]
        lines.append(
            f"Of {events:,} events, the report takes {ratios[0]:.1f} times as long as DuckDB alone, and with "
            f"Spark {ratios[1]:.1f} times."
        )
    write("history", lines)


if __name__ == "__main__":
    main()
