"""``spark-events report``, as a user runs it, and its page in a real browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from spark_events.history.tables.all_tables import TABLES
from tests.support.applications import on_a_terminal
from tests.support.browser import browser
from tests.support.forked_commands import run_forked
from tests.support.history_story import DAY, HOUR, MARKUP, MIN, T0, fleet, write
from tests.support.waiting import wait_until


class Run:
    """A report that has been made."""

    def __init__(self, folder: Path, *arguments: str, paths: tuple[str, ...] = ("log",)) -> None:
        done = run_forked("report", *paths, *arguments, cwd=folder, env={**os.environ, "COLUMNS": "120"})
        self.folder, self.code, self.out, self.err = folder, done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("report")
    write(folder / "log", *fleet())
    outputs = ("--html", "page.html", "--json", "report.json", "--parquet", "tables", "--store", "store")
    return Run(folder, "--sla", "1h", "--sla", "orders=30s", *outputs)


def test_terminal(made: Run) -> None:
    """The worst first, with its numbers."""
    assert made.code == 0, made.err
    lines = [" ".join(line.split()) for line in made.out.splitlines()]
    assert next(line for line in lines if "shop" in line) == (
        "shop / orders FAILED 80.00 % 6 h 2 2 1 11-21 06:00 5 h 5 h"
    )
    assert "nightly FINISHED 11-21 02:00 5 h 1 h 2 2 0 0 11-21 07:00" in lines
    assert "shop / orders overdue 30.0 s 90.47 % 20 1 2 0 40.0 s 6 h" in lines
    assert "KAFKA_GONE" in made.out
    assert "2026-11-20 00:00:00 to 2026-11-21 07:00:00 UTC (1 d 7 h)" in made.out


def test_json(made: Run) -> None:
    """All tables, as they are."""
    report = json.loads((made.folder / "report.json").read_text())
    (orders,) = [row for row in report["uptime"] if row["query_name"]]
    assert (report["sla_ms"], report["sla_by_query"]) == (3_600_000, {"orders": 30_000})
    assert (orders["down_ms"], orders["mttr_ms"], orders["mtbf_ms"]) == (6 * HOUR, 5 * HOUR, 12 * HOUR)
    of_days = {row["date"]: row for row in report["uptime_per_day"] if row["query_name"]}
    assert [of_days["2026-11-20"][name] for name in ("down_ms", "mtbf_ms", "mttr_ms")] == [
        4 * HOUR,
        19 * HOUR,
        None,
    ]
    assert [of_days["2026-11-21"][name] for name in ("down_ms", "mtbf_ms", "mttr_ms")] == [
        2 * HOUR,
        5 * HOUR,
        5 * HOUR,
    ]
    days = {row["date"]: row["late_by_gap"] for row in report["checkpoint_sla_per_day"]}
    assert days == {"2026-11-20": 0, "2026-11-21": 2}
    assert [row["error"] for row in report["failures"]] == ["out_of_memory", "OUT_OF_MEMORY", "KAFKA_GONE"]


def test_tables(made: Run) -> None:
    """A folder of Parquet for each, which others can read."""
    from pyarrow import parquet

    names = {path.name for path in (made.folder / "tables").iterdir()}
    assert names == {table.name for table in TABLES}
    rows = parquet.read_table(made.folder / "tables" / "uptime").to_pylist()
    assert {row["app_name"]: row["up_ms"] for row in rows if row["kind"] == "application"} == {
        "shop": 31 * HOUR,
        "nightly": None,
    }
    days = parquet.read_table(made.folder / "tables" / "uptime_per_day").to_pylist()
    assert min(row["date"] for row in days) == date(2026, 11, 20)


@pytest.mark.extended
@pytest.mark.spark
def test_spark_makes_the_same(made: Run, java: str) -> None:
    """The same JSON."""
    options = ("--sla", "1h", "--sla", "orders=30s", "--json", "spark.json")
    run = Run(made.folder, "--engine", "spark", *options)
    assert run.code == 0, run.err
    by_spark, by_duckdb = (
        json.loads((made.folder / name).read_text()) for name in ("spark.json", "report.json")
    )
    assert by_spark == by_duckdb


def test_no_java_and_no_pyspark(made: Run) -> None:
    """Neither is touched: what Python would import is an error."""
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None; sys.argv = ['spark-events', 'report', "
        "'log']; from spark_events.cli.main import main; main()"
    )
    environment = {"PATH": "", "COLUMNS": "120"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=made.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "KAFKA_GONE" in done.stdout


def test_store_alone(made: Run) -> None:
    """The next report needs no events: the store has them."""
    run = Run(
        made.folder, "--store", (made.folder / "store").as_uri(), "--since", "6h", "--sla", "30s", paths=()
    )
    assert run.code == 0, run.err
    assert "2026-11-21 01:00:00 to 2026-11-21 07:00:00 UTC (6 h)" in run.out
    assert "83.33 %" in run.out


@pytest.mark.parametrize(
    ("arguments", "paths", "said"),
    [
        ((), (), "give the PATHs of stored events, or --store"),
        (("--retain", "400d"), ("log",), "--retain drops days of a store: give its folder with --store"),
        (
            ("--retain", "long", "--store", "s"),
            ("log",),
            "--retain: 'long' is not valid; expected a duration",
        ),
        ((), ("nowhere",), "nowhere: no such file or folder\n"),
        (("--sla", "soon"), ("log",), "--sla: 'soon' is not valid; expected a duration"),
        (("--sla", "orders=10"), ("log",), "--sla: '10' is not valid; expected a duration such as"),
        (("--since", "24"), ("log",), "a number needs a unit; did you mean 24s?"),
        (("--sla", "orders=0s"), ("log",), "--sla orders=0s: an SLA has to be longer than 0 ms"),
        (("--since", "x"), ("log",), "--since: 'x' is not valid; expected a duration"),
        (("--html", "no/folder/page.html"), ("log",), "no/folder/page.html: cannot be written"),
        (("--json", "log"), ("log",), "log: cannot be written"),
        (("--engine", "flink"), ("log",), "'--engine': 'flink' is not one of"),
        (
            ("--earliest", "2026-11-25T12:00", "--latest", "2026-11-25"),
            ("log",),
            "--latest 2026-11-25: must be after --earliest 2026-11-25T12:00",
        ),
        (("--earliest", "foo"), ("log",), "--earliest foo: expected a time such as 2026-11-25"),
        (
            ("--engine", "local", "--store", "s3://b/x"),
            ("log",),
            "s3://b/x: --engine local writes to this machine",
        ),
        pytest.param(
            ("--master", "nonsense"), ("log",), "Spark could not be started", marks=pytest.mark.spark
        ),
    ],
)
def test_wrong(made: Run, arguments: tuple[str, ...], paths: tuple[str, ...], said: str) -> None:
    """One message and the exit code of its kind; no traceback."""
    run = Run(made.folder, *arguments, paths=paths)
    code = {"nowhere: no such file or folder\n": 4, "Spark could not be started": 3}
    assert run.code == code.get(said, 2), run.err
    assert said in run.err
    assert "Traceback" not in run.err
    assert run.out == ""


def write_large(folder: Path) -> None:
    """Write events that take seconds to read."""
    (log,) = write(folder, *fleet()).iterdir()
    once = log.read_bytes()
    with log.open("wb") as file:
        file.writelines(once for _ in range(10_000))


def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C in the middle is one word and exit code 130; nothing is written, and nothing is left."""
    write_large(tmp_path / "log")
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        on_a_terminal("report", "log", "--html", "page.html"),
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: list((tmp_path / "temporary").glob("spark-events-own-report-*")), "it has begun")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=280)

    assert (process.returncode, said.strip()) == (130, "interrupted")
    assert not (tmp_path / "page.html").exists()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.spark
@pytest.mark.thorough
def test_ctrl_c_with_spark(java: str, tmp_path: Path) -> None:
    """Ctrl-C in the middle, which reaches the JVM as well, is one word and exit code 130; nothing is written."""
    write_large(tmp_path / "log")
    out = tmp_path / "out.txt"
    # By the event log of the report itself, one sees when it is in the middle.
    logs = tmp_path / "logs"
    logs.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
    }
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in conf.items()))
    with out.open("w") as file:
        process = subprocess.Popen(
            on_a_terminal("report", "log", "--engine", "spark", "--html", str(tmp_path / "page.html")),
            cwd=tmp_path,
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    started = "SparkListenerJobStart"
    wait_until(
        lambda: any(started in file.read_text() for file in logs.rglob("*") if file.is_file()),
        "it computes",
        60,
    )
    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(30) == 130
    assert out.read_text().rstrip().endswith("interrupted")
    assert "Traceback" not in out.read_text()
    assert not (tmp_path / "page.html").exists()


# -- the page -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def show(made: Run) -> Iterator[Callable[[str], Any]]:
    """Open the page in light or dark."""
    with browser() as open_page:
        yield lambda scheme: open_page(made.folder / "page.html", scheme)


@pytest.fixture(scope="module")
def page(show: Callable[[str], Any]) -> Any:
    return show("light")


def test_page_numbers(page: Any) -> None:
    """What a person reads off it."""
    tiles = {name: page.inner_text(f"#{name}") for name in ("applications", "queries", "down", "outages")}
    assert tiles == {"applications": "2", "queries": "1", "down": "1", "outages": "2"}
    assert page.inner_text("#met") == "90.47 %"
    assert page.inner_text("#overdue") == "1"
    first = page.inner_text("#uptime tr:nth-child(2)").split("\t")
    assert first[:2] + first[3:12] == [
        "shop / orders", "FAILED", "80.00 %", "1 d", "6 h", "2", "2", "1", "12 h", "5 h", "5 h",
    ]  # fmt: skip
    runs = page.inner_text("#runs tr:nth-child(2)").split("\t")
    assert runs == [
        "nightly", "FINISHED", "2026-11-21 02:00:00", "5 h", "1 h", "2", "2", "0", "0", "0",
        "2026-11-21 07:00:00",
    ]  # fmt: skip
    checkpoints = page.inner_text("#checkpoints tr:nth-child(2)").split("\t")
    assert checkpoints[1:] == ["30.0 s", "90.47 %", "20", "1", "2", "0", "40.0 s", "11.5 s", "6 h"]
    failed = page.inner_text("#failed tr:nth-child(3)").split("\t")
    assert failed[2] == f"OUT_OF_MEMORY\n{MARKUP}"


def test_page_links(page: Any) -> None:
    """Above all there is a link to each section, and each leads to it."""
    links = page.locator("nav a")
    targets = [links.nth(number).get_attribute("href") for number in range(links.count())]
    headings = page.locator("h2").all_inner_texts()
    assert links.all_inner_texts() == [
        heading.removesuffix(" (UTC)")
        for heading in headings
        if heading not in ("Timeline", "About this report")
    ]
    assert "Uptime" in links.all_inner_texts()
    assert [target for target in targets if page.locator(target).count() != 1] == []


def test_page_executors(page: Any) -> None:
    """One that ended, with how full it was."""
    executor = page.inner_text("#executors tr:nth-child(2)").split("\t")
    assert executor == [
        "nightly", "7", "node-1", "11-20 02:10:00", "11-20 02:40:00", "30 min", "decommissioned",
        "512 MiB", "1 GiB", "50.00 %",
    ]  # fmt: skip


def test_page_executors_over_time(page: Any) -> None:
    """Each from its start to its end; one that was lost has a mark there."""
    titles = [
        title.split(": ")[1] for title in page.locator("#executor-lanes rect title").all_text_contents()
    ]
    went = "decommissioned after 30 min, heap 512 MiB of 1 GiB, 2026-11-20 02:40:00 UTC"
    was_lost = "out_of_memory after 30 min, heap 512 MiB of 1 GiB, 2026-11-20 02:30:00 UTC"
    assert sorted(titles) == [went, was_lost, was_lost]
    alive, mark = (page.locator(f"#executor-lanes rect.{state}") for state in ("up", "down"))
    boxes = {alive.nth(i).text_content().split(":")[0]: alive.nth(i).bounding_box() for i in range(2)}
    assert list(boxes) == ["nightly 8", "nightly 7"], "by their starts"
    an_hour = boxes["nightly 8"]["width"] * 2
    assert boxes["nightly 7"]["x"] - boxes["nightly 8"]["x"] == pytest.approx(an_hour / 6, abs=0.5)
    end = boxes["nightly 8"]["x"] + boxes["nightly 8"]["width"]
    assert mark.bounding_box()["x"] + mark.bounding_box()["width"] == pytest.approx(end, abs=0.5)


def test_page_is_text_and_alone(page: Any) -> None:
    """Nothing in an event is taken as markup; nothing is fetched; there is nothing to complain of."""
    assert page.title().startswith("Spark fleet report: 2026-11-20")
    assert page.locator("script").count() == 0
    assert page.locator("#failed b").count() == 0
    assert page.complaints == []


def test_page_timeline(page: Any) -> None:
    """An outage stands where it was, and is as wide as it was long."""
    whole = page.locator(
        "#timeline rect.up, #timeline rect.down, #timeline rect.starting, #timeline rect.stopped"
    )
    boxes = [(whole.nth(i).get_attribute("class"), whole.nth(i).bounding_box()) for i in range(whole.count())]
    left = min(box["x"] for _, box in boxes)
    right = max(box["x"] + box["width"] for _, box in boxes)
    an_hour = (right - left) / 31
    down = sorted(round((box["x"] - left) / an_hour, 1) for state, box in boxes if state == "down")
    wide = sorted(round(box["width"] / an_hour, 1) for state, box in boxes if state == "down")
    # FAILED and RESTARTING, and FAILED at the end.
    assert (down, wide) == ([20.0, 24.0, 30.0], [1.0, 1.0, 4.0])
    assert any("FAILED for 4 h" in title for title in whole.locator("title").all_text_contents())


def test_page_sla_line(page: Any) -> None:
    """Points above the line were late, those below were not."""
    line = page.locator("svg.chart line.sla").bounding_box()["y"]
    for kind, above in (("late", True), ("point", False)):
        points = page.locator(f"svg.chart circle.{kind}")
        assert points.count() > 0
        for number in range(points.count()):
            box = points.nth(number).bounding_box()
            assert (box["y"] + box["height"] / 2 < line) == above
    assert page.locator("svg.chart circle.late").count() == 1
    # It stands at the six hours for which it was owed: the axis goes to the next round time.
    assert "12 h" in page.locator("svg.chart text.axis").all_text_contents()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_readable(show: Callable[[str], Any], scheme: str) -> None:
    """Texts and states stand out from what is behind them, in light and in dark (WCAG: 4.5 and 3)."""
    page = show(scheme)
    card = colour(page, ".card", "backgroundColor")
    assert (luminance(card) < 0.1) == (scheme == "dark")
    for selector, kind, least in (
        ("#uptime td", "color", 4.5),
        ("#uptime th", "color", 4.5),
        (".faint", "color", 4.5),
        (".bad", "color", 4.5),
        ("#timeline rect.up", "fill", 3),
        ("#timeline rect.down", "fill", 3),
        ("svg.chart circle.point", "fill", 3),
    ):
        assert contrast(colour(page, selector, kind), card) >= least, (selector, kind)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()


def colour(page: Any, selector: str, kind: str) -> tuple[float, ...]:
    text = page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{kind}")
    return tuple(float(part) for part in re.findall(r"[\d.]+", text)[:3])


def luminance(rgb: tuple[float, ...]) -> float:
    """Return the relative luminance, as WCAG 2 has it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in rgb)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_days_of_the_story() -> None:
    """The story's own times are what the tests say they are."""
    assert (T0 % DAY, MIN * 60) == (0, HOUR)


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize(
    ("paths", "output"),
    [(["log"], "log/day.jsonl"), (["log/day.jsonl"], "log/day.jsonl"), (["log/day.jsonl"], "link.html")],
    ids=["a file of a log", "the file itself", "a link to it"],
)
def test_events_are_not_overwritten(tmp_path: Path, option: str, paths: list[str], output: str) -> None:
    """The argument of an option is easily forgotten, and the next word taken for it."""
    file = write(tmp_path / "log", *fleet(), name="day.jsonl") / "day.jsonl"
    (tmp_path / "link.html").symlink_to(file)
    before = file.read_bytes()
    done = run_forked("report", *paths, option, output, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{option} {output}: is one of the files that the report is made of" in done.stderr
    assert file.read_bytes() == before
