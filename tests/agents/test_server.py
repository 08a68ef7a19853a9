"""``spark-events mcp``, asked by the protocol's own client over standard input and output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from spark_events.agents import server
from spark_events.history.options import Engine, ReportOptions
from spark_events.history.reading.database import Database
from spark_events.history.run import open_database
from spark_events.history.tables.all_tables import TABLES
from spark_events.jobs.plan_records import STATEMENT_CREATED, STATEMENT_ENDED
from tests.support.applications import cli
from tests.support.history_story import DAY, HOUR, Story, write
from tests.support.slow_log import slow_log
from tests.support.told_jobs import Told, lineage_record

mcp = pytest.importorskip("mcp.client", reason="the extra mcp is not installed")


def ask(folder: Path, options: tuple[str, ...], *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the tools of a server in this process, and its answer to each call: a dict, or an error's text.

    Args:
        folder: that relative paths are in.
        options: as for ``spark-events mcp``, each ``--name`` with its path.
    """
    paths: dict[str, tuple[str, ...]] = {}
    for name, path in zip(options[::2], options[1::2], strict=True):
        paths[name.removeprefix("--")] = (str(folder / path),)
    return _answers(server.make_server(server.Sources(**paths)), calls)


def ask_the_command(folder: Path, options: tuple[str, ...], *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Do so with a process, as agents' programs do."""
    from mcp.client.stdio import StdioServerParameters

    command, *arguments = cli("mcp", *options)
    path = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    process = StdioServerParameters(command=command, args=arguments, cwd=folder, env={"PATH": "", **path})
    return _answers(process, calls)


def _answers(asked: Any, calls: tuple[tuple[str, dict[str, Any]], ...]) -> list[Any]:
    async def talk() -> list[Any]:
        async with mcp.Client(asked) as client:
            listed = await client.list_tools()
            answers: list[Any] = [{tool.name: tool.annotations.read_only_hint for tool in listed.tools}]
            for name, values in calls:
                result = await client.call_tool(name, values)
                (content,) = result.content
                answers.append(content.text if result.is_error else json.loads(content.text))
            return answers

    return anyio.run(talk)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an event log, and the events of its replay."""
    folder = tmp_path_factory.mktemp("agents")
    (folder / "app-1").write_bytes(slow_log())
    reporter = "spark.events.reporter.f"
    conf = ("--conf", f"{reporter}.factory.class=file_log", "--conf", f"{reporter}.path=stored")
    subprocess.run(cli("replay", "app-1", *conf), cwd=folder, check=True, capture_output=True)
    return folder


def test_each_tool(folder: Path) -> None:
    """What it says is what the commands say; all are read-only."""
    tools, report, failures, why = ask_the_command(
        folder,
        ("--events", "stored", "--logs", "app-1"),
        ("report", {"app": "sample"}),
        ("failures", {}),
        ("why", {}),
    )
    assert tools == {"report": True, "failures": True, "why": True}
    (uptime,) = report["uptime"]
    assert (uptime["app_name"], uptime["status"]) == ("sample", "FINISHED")
    assert report["issues"][0]["issue"] == "straggler"
    assert report["rows"]["issues"] == 1
    assert report["rows"].keys() == {table.name for table in TABLES if table.heading}
    assert failures == {"failures": [], "rows": 0}
    # Of the application that a log tells of, stored events say nothing more.
    (explained,) = why["applications"]
    parts = explained["parts"]
    assert parts["driver alone"] + parts["driver within a query"] == 50_000
    assert explained["issues"][0]["lost_ms"] == 79_888


def test_an_application_that_is_not_there(folder: Path) -> None:
    """A name that is misspelt had no failures, either: an agent would say that all is well."""
    asked = [(tool, {"app": "sampel"}) for tool in ("report", "failures", "why")]
    _, *answers = ask(
        folder,
        ("--events", "stored", "--logs", "app-1"),
        *asked,
        ("report", {"app": "app-20261118120000-0001"}),
    )
    *wrong, of_id = answers
    for said in wrong:
        assert re.search("no application has (this|the) name or id", said)
    assert of_id["rows"]["uptime"] == 1


def test_an_application_whose_log_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app-2.lz4").write_bytes(b"LZ4Block" + bytes(64))
    _, answer = ask(tmp_path, ("--logs", "logs"), ("why", {"app": "sample"}))
    assert "no application has the name or id 'sample'" in answer
    assert "app-2" in answer


def test_of_stored_events_alone(folder: Path) -> None:
    _, why = ask(folder, ("--events", "stored"), ("why", {"app": "sample"}))
    (explained,) = why["applications"]
    assert explained["parts"] is None
    assert explained["issues"][0]["issue"] == "straggler"


@pytest.mark.extended
def test_of_a_long_history_the_latest(tmp_path: Path) -> None:
    days = server.MOST_ROWS + 20
    story = Story().application(-days * DAY, "RUNNING").query(-days * DAY, "RUNNING")
    for day in range(days):
        story.failure((day - days) * DAY + 1, f"ERROR_{day}")
        executor = {"job_kind": "executor", "executor_id": str(day), "host": "a", "lifetimeMs": HOUR}
        story.event((day - days) * DAY + 2, "ExecutorLostEvent", reason="out_of_memory", **executor)
    write(tmp_path / "stored", story)

    _, report, failures = ask(tmp_path, ("--events", "stored"), ("report", {}), ("failures", {}))

    for told in (report["failures"], failures["failures"]):
        assert "ERROR_219" in [row["error"] for row in told[:2]]
    assert report["rows"]["failures"] == failures["rows"] >= days
    assert [row["executor_id"] for row in report["executors"][:2]] == ["219", "218"]
    assert {len(report["executors"]), len(report["failures"])} == {server.MOST_ROWS}


def test_lineage(tmp_path: Path) -> None:
    """Which data feeds which, all of it or by the last part of a name, of a table or of a job."""
    told = Told(s="file_log", __file_log__path=str(tmp_path / "jobs"))
    flows = (("/d/raw", "/d/orders"), ("/d/orders", "/d/report"), ("/d/raw", "/d/big_report"))
    for number, (source, sink) in enumerate(flows):
        write = lineage_record(sink, source)
        told.record(STATEMENT_CREATED, executionId=number, lineage=write)
        told.record(STATEMENT_ENDED, executionId=number, failure=None)
    told.close()
    tools, whole, part, none, end = ask(
        tmp_path,
        ("--lineage", "jobs"),
        ("lineage", {}),
        ("lineage", {"of": "report"}),
        ("lineage", {"of": "reprot"}),
        ("lineage", {"of": "port"}),
    )
    _, of_job = ask(tmp_path, ("--lineage", "jobs"), ("lineage", {"of": whole["flows"][1]["job"]}))

    assert tools == {"lineage": True}
    assert (whole["rows"], whole["notes"]) == (3, [])
    assert of_job["flows"] == whole["flows"][1:2]
    assert "of port: no job has this name" in end
    (flow,) = part["flows"]
    assert (flow["source"], flow["sink"], flow["status"]) == ("/d/orders", "/d/report", "FINISHED")
    assert "of reprot: no job has this name" in none
    assert "did you mean" in none


def test_lineage_that_cannot_be_read(tmp_path: Path) -> None:
    """An answer without flows may be one of a file that is cut off."""
    (tmp_path / "x.lineage.0.jsonl.gz").write_bytes(b"\x1f\x8b\x08\0garbage")
    _, answer = ask(tmp_path, ("--lineage", "."), ("lineage", {}))
    (note,) = answer["notes"]
    assert (answer["rows"], "x.lineage.0.jsonl.gz: cannot be read to its end" in note) == (0, True)


def test_what_is_wrong(folder: Path) -> None:
    """An agent reads what to do about it, and the server goes on."""
    _, since, long, gone, fine = ask(
        folder,
        ("--events", "stored", "--logs", "nowhere"),
        ("report", {"since": "soon"}),
        ("report", {"since": "9x" * 50_000}),
        ("why", {}),
        ("failures", {}),
    )
    assert len(long) < 10_000
    assert long.startswith("Error executing tool report: since: '9x9x")
    assert "since: 'soon' is not valid; expected a duration" in since
    assert "nowhere: no such file or folder" in gone
    assert fine["rows"] == 0


def test_arguments_that_no_tool_has(folder: Path) -> None:
    """A filter that is misspelt would be none, and the answer about everything."""
    _, why, long, fine = ask(
        folder,
        ("--events", "stored"),
        ("why", {"application": "sample"}),
        ("failures", {"x" * 50_000: -1, "since": "1d"}),
        ("why", {"app": "sample"}),
    )
    assert why == "why: has no argument 'application'; allowed are app"
    assert len(long) < 10_000
    assert long.endswith("allowed are since, app")
    assert fine["rows"] == 1


def test_lineage_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    _, answer = ask(tmp_path, ("--lineage", "empty"), ("lineage", {}))
    assert "empty: no lineage files" in answer


def test_nothing_to_read(folder: Path) -> None:
    done = subprocess.run(cli("mcp"), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "mcp needs something to read: --events, --logs or --lineage" in done.stderr


def test_many_calls_at_once_read_one_after_the_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads as much as there is: forty at once would need the memory of forty reports."""
    reading: list[int] = []
    most: list[int] = []

    @contextmanager
    def open_counted(options: ReportOptions, engine: Engine) -> Iterator[Database]:
        reading.append(1)
        most.append(len(reading))
        with open_database(options, engine) as database:
            yield database
        reading.pop()

    monkeypatch.setattr(server, "open_database", open_counted)
    tools = server._Tools(server.Sources(events=(str(folder),)))
    begin = threading.Barrier(8)

    def call() -> None:
        begin.wait()
        tools.report()

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8
