"""A YARN and an HDFS that want Kerberos tickets: applications with a keytab, logs and the store in HDFS, no ticket."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.config import conf as fsspec_conf

from spark_events.api import ConfigError
from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.reading.log_positions import LogPositions
from spark_events.spark.file_systems import WEBHDFS
from spark_events.sql_runner.store.store import Store, StoreError
from tests.support.applications import App, AppRun, cli
from tests.support.file_log import Event, events_and_spans, file_events, of_name, statuses
from tests.support.kerberos import USER, Kdc, need_requests_kerberos, running_kdc
from tests.support.paths import APPS
from tests.support.plugins import Collecting
from tests.support.servers import TOKEN_LIFETIME_S
from tests.support.sql_session import ALL_RUNNING, FILES, SqlSession, manifests, order
from tests.support.waiting import wait_until
from tests.support.yarn_cluster import YarnCluster, running_yarn

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]
CLUSTER = ("--deploy-mode", "cluster")
SQUARES = str(APPS / "squares.py")
ASKS = "FSSPEC_WEBHDFS_KERBEROS"
KEYTAB = "KRB5_CLIENT_KTNAME"
GET_ONE = "get one with kinit or, for longer than a ticket lives, set KRB5_CLIENT_KTNAME to your keytab"


class Kerberized:
    """A YARN with its HDFS, the KDC whose tickets they want, and a user without one."""

    def __init__(self, yarn: YarnCluster, kdc: Kdc) -> None:
        self.yarn, self.kdc = yarn, kdc
        self.home = f"{yarn.hdfs.url}/user/{USER}"
        for words in (("-mkdir", "-p", f"{self.home}/logs"), ("-chown", "-R", USER, self.home)):
            yarn.hdfs.shell(*words)
        self.environment = {
            **kdc.environment,
            "HADOOP_CONF_DIR": str(yarn.conf_dir),
            "SPARK_SUBMIT_OPTS": kdc.java_option,
            WEBHDFS: yarn.hdfs.web,
            ASKS: "true",
        }

    def start(self, folder: Path, *words: str, **conf: str) -> App:
        """Start an application that its user gives a keytab, and whose event log goes to HDFS."""
        settings = {
            **self.yarn.conf(),
            **events_and_spans(folder / "events"),
            "spark.executor.instances": "1",
            "spark.yarn.maxAppAttempts": "1",
            "spark.kerberos.principal": USER,
            "spark.kerberos.keytab": str(self.kdc.user),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"{self.home}/logs",
            **{f"spark.{key.replace('__', '-').replace('_', '.')}": value for key, value in conf.items()},
        }
        return App(cli("run", *words), settings, folder, more=self.environment)

    def run(self, folder: Path, *words: str, **conf: str) -> tuple[AppRun, list[Event]]:
        """Run one to its end, and return that with its events."""
        run = self.start(folder, *words, **conf).end(400)
        return run, file_events(folder / "events")

    def command(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the user's."""
        environment = {**os.environ, **self.environment, **more}
        return subprocess.run(
            cli(*words), env=environment, capture_output=True, text=True, timeout=200, check=False
        )


@pytest.fixture(scope="module")
def cluster(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc, running_yarn(kdc) as yarn:
        yield Kerberized(yarn, kdc)


@pytest.fixture
def kerberized(cluster: Kerberized, monkeypatch: pytest.MonkeyPatch) -> Kerberized:
    """The same, as this process and its user without a ticket see it."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    # fsspec has read its variables when it was imported.
    monkeypatch.setitem(fsspec_conf, "webhdfs", {"kerberos": True})
    cluster.kdc.log_out()
    return cluster


@pytest.mark.parametrize("mode", [(), CLUSTER], ids=["client mode", "cluster mode"])
def test_an_application_with_a_keytab(kerberized: Kerberized, tmp_path: Path, mode: tuple[str, ...]) -> None:
    """Reported live, and told alike by its event log in HDFS, which is read with a ticket."""
    run, events = kerberized.run(tmp_path, *mode, SQUARES)
    assert run.code == 0, run.err[-3000:]
    assert statuses(events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    need_requests_kerberos()
    kerberized.kdc.log_in()
    attempt = "_1" if mode else ""
    log = f"{kerberized.home}/logs/eventlog_v2_{events[0]['attributes']['app_id']}{attempt}"
    reporters = (f"{key}={value}" for key, value in events_and_spans(tmp_path / "replayed").items())
    replayed = kerberized.command("replay", log, *(word for conf in reporters for word in ("--conf", conf)))
    assert replayed.returncode == 0, replayed.stderr
    assert changes(file_events(tmp_path / "replayed")) == changes(events)


def changes(events: list[Event]) -> list[tuple[str, str]]:
    """Return each change of a status, with the id of its event."""
    told = of_name(events, "JobStatusChangeEvent")
    return [(event["eventId"], event["attributes"]["newJobStatus"]) for event in told]


def test_a_driver_without_a_ticket(kerberized: Kerberized, tmp_path: Path) -> None:
    """The past that it is to be compared with is in HDFS: it says so, and the job suffers nothing."""
    need_requests_kerberos()
    past = {"events_issue_kinds": "regression", "events_issue_regression_dir": f"{kerberized.home}/past"}
    run, events = kerberized.run(tmp_path, SQUARES, master="local[1]", **past)
    assert run.code == 0, run.err[-3000:]
    assert statuses(events, "job") == ["RUNNING", "FINISHED"]
    # spark-submit sends both of Python's streams to its own output.
    said = [line for line in run.out.splitlines() if GET_ONE in line]
    place = "spark-events: WARNING: spark.events.issue.regression.dir: this run is"
    assert [line.partition(" not kept,")[0].partition(" compared with none")[0] for line in said] == [
        place
    ] * 2
    assert "Traceback" not in run.out + run.err


COMMANDS = {
    "replay": ("replay", "{home}/logs"),
    "follow": ("follow", "{home}/logs"),
    "report": ("report", "{home}/events"),
    "why": ("why", "{home}/logs"),
    "sql status": ("sql", "status", "--store", "{home}/queries"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_without_a_ticket(kerberized: Kerberized, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Or with one that has expired, or that does not ask for Kerberos at all."""
    need_requests_kerberos()
    words = [word.format(home=kerberized.home) for word in command]
    state = {"HOME": str(tmp_path)}
    kerberized.kdc.log_in(lifetime_s=1)
    is_valid = ["klist", "-s"]
    wait_until(lambda: subprocess.run(is_valid, check=False).returncode, "the ticket has expired")
    expired = kerberized.command(*words, **state)
    kerberized.kdc.log_out()
    without = kerberized.command(*words, **state)
    for done in (expired, without):
        assert (done.returncode, done.stdout) == (3, "")
        (error,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
        assert error.startswith(f"error {'store ' * ('sql' in words)}{words[-1]}: cannot be ")
        assert error.endswith(GET_ONE)
    unasked = kerberized.command(*words, **state, **{ASKS: ""})
    assert f"set {ASKS}=true, pip install requests-kerberos, and get a ticket with kinit" in unasked.stderr
    for done in (expired, without, unasked):
        assert "Traceback" not in done.stderr


def test_logs_are_followed_for_longer_than_a_ticket(
    kerberized: Kerberized, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a ticket, it says so and goes on when there is one again; with a keytab it gets one by itself."""
    need_requests_kerberos()
    go = tmp_path / "go"
    query = kerberized.start(
        tmp_path, *CLUSTER, str(APPS / "watched_orders.py"), f"{kerberized.home}/{tmp_path.name}", str(go)
    )
    events = tmp_path / "events"
    kerberized.kdc.log_in()
    conf = {"spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory"}
    before = len(Collecting.instances)
    follower = Follower(f"{kerberized.home}/logs", conf, LogPositions(tmp_path / "positions"))

    def followed() -> set[str]:
        follower.poll()
        seen = (event for reporter in Collecting.instances[before:] for event in reporter.events)
        return {str(event.attributes["checkpointId"]) for event in seen if event.name == "CheckpointEvent"}

    query.wait_for(followed, "it is followed")
    kerberized.kdc.log_out()
    query.wait_for(lambda: followed() and GET_ONE in caplog.text, "it says that there is no ticket")
    known = followed()
    kerberized.kdc.log_in()
    query.wait_for(lambda: followed() > known, "it goes on with a new ticket")

    kerberized.kdc.log_out()
    monkeypatch.setenv(KEYTAB, str(kerberized.kdc.user))
    known = {
        str(event["attributes"]["checkpointId"]) for event in of_name(file_events(events), "CheckpointEvent")
    }
    query.wait_for(lambda: followed() > known, "it goes on with a keytab")
    go.touch()
    assert query.end().code == 0
    follower.stop()
    follower.run()
    ours = [record for record in caplog.records if record.name.startswith("spark_events")]
    assert not any(record.exc_info for record in ours)


def test_the_store_of_queries(kerberized: Kerberized, tmp_path: Path) -> None:
    """A session in cluster mode, with a keytab of its own: its container has no ticket of the user's."""
    need_requests_kerberos()
    kerberized.kdc.log_in()
    manifests(tmp_path)
    order(tmp_path, 1, 120)
    in_container = {
        **kerberized.kdc.environment,
        KEYTAB: f"./{kerberized.kdc.user.name}",
        "KRB5CCNAME": "MEMORY:",
    }
    in_container |= {name: kerberized.environment[name] for name in (WEBHDFS, ASKS)}
    conf = {
        **kerberized.yarn.conf(),
        "spark.yarn.dist.files": str(kerberized.kdc.user),
        **{f"spark.yarn.appMasterEnv.{name}": value for name, value in in_container.items()},
    }
    store = {"SPARK_EVENTS_SQL_STORE": f"{kerberized.home}/{tmp_path.name}"}
    session = SqlSession(tmp_path, conf, {**kerberized.environment, **store}, lambda: "")
    try:
        session.app.wait_for(lambda: session.submitted(r"application_\d+_\d+"), "the session is submitted")
        session.command("deploy", "queries", *FILES, "--timeout", "500")
        assert session.states() == ALL_RUNNING
        session.app.wait_for(lambda: session.rows("expensive_orders") == [1], "the first row is there")
        session.command("session", "--end")
        assert session.app.end(400).code == 0
    finally:
        if not session.app.ended:
            session.app.kill()


def test_a_store_whose_ticket_is_gone(kerberized: Kerberized) -> None:
    need_requests_kerberos()
    kerberized.kdc.log_in()
    store = Store(f"{kerberized.home}/one")
    store.write("locks/x", b"whole")
    assert store.read("locks/x") == b"whole"
    kerberized.kdc.log_out()
    another = Store(f"{kerberized.home}/one")
    with pytest.raises(StoreError, match=f"one: locks/x cannot be read: .*{GET_ONE}"):
        another.read("locks/x")
    with pytest.raises(ConfigError, match=f"one: cannot be reached: .*{GET_ONE}"):
        another.check()


def test_a_query_that_outlives_its_tokens(kerberized: Kerberized, tmp_path: Path) -> None:
    """Its driver gets new ones from the keytab; nobody takes that for a failure."""
    go = tmp_path / "go"
    state = f"{kerberized.home}/{tmp_path.name}"
    words = (*CLUSTER, str(APPS / "watched_orders.py"), state, str(go))
    query = kerberized.start(tmp_path, *words)

    def checkpoints_ns() -> list[int]:
        return [
            int(each["timeUnixNano"]) for each in of_name(file_events(tmp_path / "events"), "CheckpointEvent")
        ]

    query.wait_for(checkpoints_ns, "it runs")
    first_ns = checkpoints_ns()[0]
    lifetime_ns = TOKEN_LIFETIME_S * 1_500_000_000
    wait_until(lambda: checkpoints_ns()[-1] > first_ns + lifetime_ns, "it has outlived them", 400)
    go.touch()
    assert query.end().code == 0
    events = file_events(tmp_path / "events")
    assert statuses(events, "query") == ["CREATED", "RUNNING", "CANCELED"]
    assert not of_name(events, "JobFailureEvent")
