"""A report on a part of the events: an application, a query, a period; of files and of a store."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_events.api.errors import NothingToReadError
from spark_events.history.history import History, read_history
from spark_events.history.options import Sla
from spark_events.history.reading.database import Database
from spark_events.history.selection import Selection
from spark_events.history.store.store import HistoryStore
from tests.support.forked_commands import run_forked
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write
from tests.support.hostile_texts import TEXTS

Ask = Callable[[Selection], History]
HALF_A_PAIR = "half a pair"


def stories() -> list[Story]:
    """Shop runs for three days: orders commits each hour, carts fails on the second day; nightly ran once."""
    shop = Story().application(0, "RUNNING").query(0, "RUNNING").query(0, "RUNNING", name="carts")
    for hour in range(1, 72):
        shop.checkpoint(hour * HOUR, MIN, HOUR)
    shop.event(HOUR + 40 * MIN, "CheckpointOverdueEvent", "orders", owedMs=40 * MIN)
    shop.failure(DAY + HOUR, "CARTS_GONE", name="carts").query(DAY + HOUR, "FAILED", name="carts")
    shop.query(3 * DAY - MIN, "FINISHED")
    nightly = Story("nightly", "app-2").application(DAY, "RUNNING").application(DAY + HOUR, "FINISHED")
    return [shop, nightly]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Where the events, and a store of each kind and each database, are, once a test has asked for them."""
    return {("log", ""): write(tmp_path_factory.mktemp("told") / "log", *stories())}


@pytest.fixture(params=["files", "store", "store of parts"])
def ask(
    request: pytest.FixtureRequest,
    database: Database,
    written: dict[tuple[str, str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Ask:
    """Return the history of a selection, from files or from a store that holds the same."""
    paths, sla = [str(written["log", ""])], Sla(2 * HOUR)
    if request.param == "files":
        return lambda selection: read_history(database, paths, sla, selection)[0]
    kind = (request.param, type(database).__name__)
    if kind not in written:
        folder = tmp_path_factory.mktemp("store")
        store = HistoryStore(database, str(folder))
        store.add(paths, sla)
        if request.param == "store of parts":
            store.retain(DAY)
        written[kind] = folder
    return lambda selection: HistoryStore(database, str(written[kind])).history(sla, selection)


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ("empty", HALF_A_PAIR)])
def test_any_name(database: Database, tmp_path: Path, name: str) -> None:
    """A statement of SQL has each as it is."""
    text = TEXTS[name]
    path = str(write(tmp_path / "log", Story(text).application(0, "RUNNING")))
    history, _ = read_history(database, [path], Sla(HOUR, {text: MIN}), Selection(app=text))

    assert [row["app_name"] for row in history.tables().uptime] == [text]
    assert not history.worst_checkpoints([(text, text)], 10)


def test_a_name_that_cannot_be_stored(database: Database, tmp_path: Path) -> None:
    """An argument of bytes that are not UTF-8 is one."""
    path = str(write(tmp_path / "log", Story().application(0, "RUNNING")))
    with pytest.raises(NothingToReadError, match="no application has this name or id; there are shop"):
        read_history(database, [path], selection=Selection(app=TEXTS[HALF_A_PAIR]))[0].tables()


def test_an_application(ask: Ask) -> None:
    for name in ("nightly", "app-2"):
        history = ask(Selection(app=name))
        assert {row["app_name"] for rows in history.tables().values() for row in rows} == {"nightly"}
    assert history.period.until_ms == T0 + DAY + HOUR


def test_an_application_that_commits_only(ask: Ask) -> None:
    """Its checkpoints are among the sums, and in the chart."""
    history = ask(Selection(app="shop"))
    (orders,) = history.tables().checkpoint_sla

    assert orders["query_name"] == "orders"
    assert orders["completed"] >= 24
    assert history.worst_checkpoints([("shop", "orders")], 10)


def test_a_query(ask: Ask) -> None:
    tables = ask(Selection(query="carts")).tables()

    assert {row["query_name"] for row in tables.uptime} == {"carts"}
    assert tables.checkpoint_sla == []
    # Nightly ran once, without a query; the other tables have what belongs to the query's application.
    assert ask(Selection()).tables().runs != []
    assert {row["app_name"] for rows in tables.values() for row in rows} == {"shop"}


def test_up_to_a_time(ask: Ask) -> None:
    """What comes later is as if it had not happened: carts runs, and the day of the end has one part."""
    at_ms = T0 + 2 * DAY + 5 * HOUR + MIN
    history = ask(Selection(query="orders", since_ms=T0 + 2 * DAY + HOUR + MIN, until_ms=at_ms))
    tables = history.tables()

    assert (history.period.since_ms, history.period.until_ms) == (T0 + 2 * DAY + HOUR + MIN, at_ms)
    assert [row["completed"] for row in tables.checkpoint_sla] == [4]
    assert [row["status"] for row in tables.uptime] == ["RUNNING"]


def test_a_period_that_begins_with_the_last_event(ask: Ask) -> None:
    """What was over before it takes no time of it."""
    last_ms = ask(Selection()).period.until_ms
    uptime = ask(Selection(since_ms=last_ms)).tables().uptime
    times = [row[name] for row in uptime for name in ("up_ms", "down_ms", "longest_outage_ms", "mttr_ms")]

    assert times
    assert not any(times)


def test_up_to_a_time_within_the_life_of_drivers(database: Database, tmp_path: Path) -> None:
    """Two of one name at once, and a job that began only later: a store keeps one heartbeat for each day."""
    one, other = (
        Story("shop", name)
        .application(ms, "RUNNING")
        .query(ms, "RUNNING", name=name)
        .heartbeats(ms, 50 * MIN)
        for name, ms in (("one", 0), ("other", 10 * MIN))
    )
    for minute in range(1, 51):
        one.checkpoint(minute * MIN, 1_000, 1_000, name="one")
    other.query(45 * MIN, "RUNNING", name="late")
    path = str(write(tmp_path / "log", one, other))
    store = HistoryStore(database, str(tmp_path / "store"))
    store.add([path])
    selection = Selection(until_ms=T0 + 30 * MIN)
    for history in (read_history(database, [path], None, selection)[0], store.history(None, selection)):
        tables = history.tables()
        assert {(row["query_name"], row["status"], row["outages"]) for row in tables.uptime} == {
            ("", "RUNNING", 0),
            ("one", "RUNNING", 0),
            ("other", "RUNNING", 0),
        }
        assert {row["last_heard_ms"] - T0 for row in tables.uptime} == {30 * MIN}
        assert not tables.failures


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(app="shops"), "--app shops: no application has this name or id; there are nightly, shop"),
        (Selection(query="order"), "--query order: no query has this name; there are carts, orders"),
        (Selection(until_ms=T0 - DAY), "there is no event"),
        (Selection(since_ms=T0 + 9 * DAY), "there is no event after 2026-11-29"),
    ],
)
def test_nothing_of_it(ask: Ask, selection: Selection, said: str) -> None:
    with pytest.raises(NothingToReadError, match=said):
        ask(selection).tables()


def report(folder: Path, *options: str) -> tuple[int, str, str]:
    done = run_forked("report", "log", *options, cwd=folder, env={**os.environ, "COLUMNS": "140"})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selected")
    write(folder / "log", *stories())
    return folder


def test_options(folder: Path) -> None:
    code, out, err = report(
        folder,
        "--app",
        "shop",
        "--query",
        "orders",
        "--from",
        "2026-11-20T05:30",
        "--until",
        "2026-11-20 08:30Z",
    )

    assert code == 0, err
    assert "2026-11-20 05:30:00 to 2026-11-20 08:30:00 UTC (3 h)" in out
    assert "orders" in out
    assert not {"carts", "nightly"} & set(out.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--since", "1h", "--from", "2026-11-20"), "--since and --from both say where the report begins"),
        (("--now", "--until", "2026-11-20"), "--now and --until both say where the report ends"),
        (("--from", "2026-11-21", "--until", "2026-11-20"), "--until 2026-11-20: must be after --from"),
        (("--since", "0s"), "--since 0s: must be longer than 0, such as 12h or 7d"),
        (("--from", "yesterday"), "--from yesterday: expected a time such as 2026-11-25"),
        (("--fail-on", "down,sloth"), "--fail-on sloth: expected one of down, failures, sla, overdue"),
        (("--fail-on", "down,,sla"), "--fail-on down,,sla: a rule without a name: expected one of down,"),
        (("--sla", "=5s"), "--sla =5s: names no query; expected a duration, or QUERY=DURATION"),
        (("--earliest", "2100-01-01"), "--earliest 2100-01-01: must be before --latest, which is tomorrow"),
        (("--store", ""), "report: the argument after --store is empty; is a variable of the shell not set?"),
        (("--store=",), "report: the value of --store is empty; is a variable of the shell not set?"),
        (("--json", "-", "--html", "-"), "--html and --json: only one of them can be -"),
    ],
)
def test_wrong_options(folder: Path, options: tuple[str, ...], said: str) -> None:
    code, out, err = report(folder, *options)

    assert (code, out) == (2, "")
    assert said in err


def test_json_to_standard_output(folder: Path) -> None:
    """Nothing but the JSON, for jq; nor is there a file of that name."""
    code, out, err = report(folder, "--json", "-")

    assert code == 0, err
    assert {row["app_name"] for row in json.loads(out)["uptime"]} == {"shop", "nightly"}
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        ("down", ["--fail-on down: shop / carts"]),
        ("down,failures,down", ["--fail-on down: shop / carts", "--fail-on failures: shop / carts"]),
        ("sla", ["--fail-on sla: shop / orders"]),
        ("issues,slower", []),
    ],
)
def test_fail_on(folder: Path, rules: str, broken: list[str]) -> None:
    code, out, err = report(folder, "--fail-on", rules, "--sla", "30m")

    assert code == (1 if broken else 0)
    assert "carts" in out
    assert [line.removeprefix("error ") for line in err.splitlines() if "--fail-on" in line] == broken


def test_a_single_run_is_slower_than_none(folder: Path) -> None:
    """Those that it would be compared with are left out: rather say so than find that all is well."""
    code, _, err = report(folder, "--app", "app-2", "--fail-on", "slower")

    assert code == 2
    assert "--fail-on slower: --app app-2 is the id of one run" in err
    assert "give its name, nightly" in err
    assert report(folder, "--app", "nightly", "--fail-on", "slower")[0] == 0


def test_fail_on_an_overdue_commit(folder: Path) -> None:
    """At the end there is none; some hours after a commit there is."""
    assert report(folder, "--fail-on", "overdue", "--sla", "30m")[0] == 0

    code, _, err = report(
        folder, "--fail-on", "overdue", "--sla", "30m", "--query", "orders", "--until", "2026-11-20T01:45"
    )
    assert code == 1
    assert "--fail-on overdue: shop / orders" in err


def test_fail_on_a_commit_that_never_came(tmp_path: Path) -> None:
    """Its query hung, and was stopped."""
    story = Story("shop").application(0, "RUNNING").query(0, "RUNNING").checkpoint(MIN, MIN, MIN)
    write(tmp_path / "log", story.query(HOUR, "CANCELED", owedMs=59 * MIN))

    assert report(tmp_path, "--fail-on", "sla,overdue", "--sla", "2h")[0] == 0
    code, out, err = report(tmp_path, "--fail-on", "sla,overdue", "--sla", "30m")
    assert code == 1
    assert "--fail-on sla: shop / orders" in err
    assert "--fail-on overdue" not in err
    assert re.search(r"shop / orders .* 50(\.0+)? %", out)


def test_the_sentence_that_a_page_opens_with(folder: Path, tmp_path: Path) -> None:
    """What is wrong at the end, and how bad it was; of an application that did well, that it did."""

    def sentence(*options: str) -> str:
        page = tmp_path / "page.html"
        code, _, err = report(folder, "--html", str(page), *options)
        assert code == 0, err
        (found_it,) = re.findall(r'<p id="headline">(.*?)</p>', page.read_text(), re.S)
        return " ".join(re.sub(r"<[^>]+>", "", found_it).split())

    assert sentence("--sla", "2h") == "1 down: shop / carts. 1 outage of 1 d 22 h (shop / carts)."
    assert sentence("--app", "nightly") == "Nothing is down; everything has ended. No outages."
    (told,) = re.findall(r"1 down: shop / carts. (.*)", sentence("--since", "1h"))
    assert told == "No outage began; of this time, one from before takes 1 h (shop / carts)."
