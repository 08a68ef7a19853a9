"""The commands, as a person runs them: a session on a standalone cluster, deployments, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.store import Store
from tests.support.applications import App, cli, kill_all, without_jvms_words
from tests.support.file_log import file_events, of_name, statuses
from tests.support.paths import REPO
from tests.support.query_shop import HOST, Shop
from tests.support.spark_cluster import SparkCluster
from tests.support.sql_commands import QUIET, run, tables
from tests.support.waiting import wait_until
from tests.support.warm_commands import WarmCommands

pytestmark = pytest.mark.timeout(900)  # Spark starts several times; a loaded machine takes long for that


class Session:
    """The session application, configured by its spark-defaults.conf."""

    def __init__(self, shop: Shop, master: str) -> None:
        self.shop = shop
        self.master = master
        self.events = shop.folder / "events"
        self.link = HostLink(Store(shop.store_url), HOST)
        self.app = self.start()

    def start(self) -> App:
        conf = {
            "spark.master": self.master,
            "spark.executor.memory": "600m",
            "spark.log.level": "WARN",
            "spark.events.reporter.file.factory.class": "file_log",
            "spark.events.reporter.file.path": str(self.events),
            "spark.job-status-changed.listener.log.factory.class": "file_log",
            "spark.job-status-changed.listener.log.path": str(self.events / "lineage"),
        }
        app = App(cli("sql", "session", "--store", self.shop.store_url, *QUIET), conf, self.shop.folder)
        app.wait_for(lambda: self.link.is_alive, "the session is there")
        return app


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, java: str) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def session(shop: Shop, cluster: SparkCluster) -> Iterator[Session]:
    session = Session(shop, cluster.master)
    yield session
    if not session.app.ended:
        session.app.kill()


@pytest.mark.spark
class TestOneDay:
    """In order: each test goes on from where the one before has ended."""

    def test_validate(self, shop: Shop, warm: WarmCommands) -> None:
        folder = shop.write(
            "queries",
            shop.manifest(sql="SELECT id,\n  prise\nFROM orders"),
            shop.manifest("other", target_table="nowhere"),
        )
        wrong = run(shop, "validate", str(folder), *tables(shop))

        assert wrong.returncode == 3
        errors = without_jvms_words(wrong.stderr)
        assert [line.partition(" ")[0] for line in errors] == ["error", "error"], "Spark says nothing"
        place = next(
            n for n, line in enumerate((folder / "cheap.yaml").read_text().splitlines(), 1) if "prise" in line
        )
        assert errors[0].startswith(f"error {folder}/cheap.yaml:{place}: cheap: [UNRESOLVED_COLUMN")
        assert "nowhere: not found" in errors[1]
        assert run(shop, "validate", str(folder), "--syntax-only", warm=warm).stdout == "ok 2 manifests\n"

    def test_without_a_session_nothing_is_deployed(self, shop: Shop, warm: WarmCommands) -> None:
        folder = shop.write("queries", shop.manifest())
        gone = run(shop, "deploy", str(folder), *tables(shop), warm=warm)

        assert gone.returncode == 3
        assert "session 'default' has never run with store" in gone.stderr
        assert f"spark-events sql session --store {shop.store_url} --session default" in gone.stderr
        assert Store(shop.store_url).names(layout.MANIFESTS) == []

    def test_deploy_then_plan_then_status(self, shop: Shop, session: Session, warm: WarmCommands) -> None:
        shop.order(2)
        folder = shop.write("queries", shop.manifest(), shop.manifest("other", target_table="other"))
        deployed = run(shop, "deploy", str(folder), *tables(shop))

        assert deployed.returncode == 0, deployed.stderr
        assert deployed.stdout.splitlines() == [
            "ok cheap version 1: start with a clean state",
            "ok other version 1: start with a clean state",
        ]
        shop.wait_ids(shop.cheap_ids())
        planned = run(shop, "plan", str(folder), *tables(shop), "--json", warm=warm)
        assert planned.returncode == 0, planned.stderr
        assert [(each["name"], each["action"]) for each in json.loads(planned.stdout)] == [
            ("cheap", "nothing"),
            ("other", "nothing"),
        ]
        status = run(shop, "status", warm=warm)
        assert status.returncode == 0
        assert [line.split()[:2] for line in status.stdout.splitlines()[1:]] == [
            ["cheap", "RUNNING"],
            ["other", "RUNNING"],
        ]

    def test_one_failing_manifest_stops_no_other(
        self, shop: Shop, session: Session, warm: WarmCommands
    ) -> None:
        shop.write(
            "queries",
            shop.manifest(sql="SELECT nothing FROM orders"),
            shop.manifest("other", target_table="other", trigger={"processing-time": "1s"}),
        )
        deployed = run(shop, "deploy", str(shop.folder / "queries"), *tables(shop), warm=warm)

        assert deployed.returncode == 3
        assert "failed cheap version 1: error:" in deployed.stdout
        assert (
            "ok other version 1: stop with a savepoint, and start from it, savepoints/other/1/"
            in deployed.stdout
        )
        assert run(shop, "status", warm=warm).returncode == 0, "the one that is deployed runs on"

    def test_of_two_deployers_one_wins_and_the_other_says_so(self, shop: Shop, session: Session) -> None:
        other = shop.manifest("other", target_table="other", trigger={"processing-time": "500ms"})
        folder = shop.write("queries", shop.manifest(), other)
        results: list[Any] = []
        threads = [
            threading.Thread(target=lambda: results.append(run(shop, "deploy", str(folder), *tables(shop))))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        lost, won = sorted(results, key=lambda each: each.stdout)
        assert (won.returncode, lost.returncode) == (0, 3), (won.stderr, lost.stderr)
        assert "another deployment is running:" in lost.stderr
        assert "process" in lost.stderr
        assert "ok other version 1: stop with a savepoint" in won.stdout

    def test_a_wrong_yaml_stops_all(self, shop: Shop, session: Session, warm: WarmCommands) -> None:
        folder = shop.write("queries", shop.manifest())
        (folder / "broken.yaml").write_text("name: [")
        wrong = run(shop, "deploy", str(folder), *tables(shop), "--prune", warm=warm)

        assert wrong.returncode == 3
        assert f"error {folder}/broken.yaml:1: not YAML" in wrong.stderr
        assert run(shop, "status", warm=warm).returncode == 0

    def test_stop_and_history(self, shop: Shop, session: Session, warm: WarmCommands) -> None:
        stopped = run(shop, "stop", "cheap", "--savepoint", warm=warm)

        assert stopped.returncode == 0, stopped.stderr
        assert stopped.stdout.startswith(
            "ok cheap version 1: stop with a savepoint, savepoints/cheap/1/savepoint-"
        )
        assert run(shop, "stop", "cheap", warm=warm).stdout == "cheap is not running\n"
        nobody = run(shop, "stop", "nobody", warm=warm)
        assert (nobody.returncode, "there is cheap, other" in nobody.stderr) == (3, True)
        found = json.loads(run(shop, "history", "cheap", "--json", warm=warm).stdout)
        assert [entry["action"] for entry in found] == ["start", "stop"]
        shown = run(shop, "history", "cheap", warm=warm).stdout
        assert "why: the user asked for it" in shown
        assert run(shop, "history", "nobody", warm=warm).returncode == 4

    def test_forget(self, shop: Shop, session: Session, warm: WarmCommands) -> None:
        runs = run(shop, "forget", "other", warm=warm)
        assert runs.returncode == 3
        assert "'other': is to run; stop it first with" in runs.stderr

        forgotten = run(shop, "forget", "cheap", warm=warm)

        assert (forgotten.returncode, forgotten.stdout) == (0, "ok cheap: forgotten\n")
        assert [row["name"] for row in json.loads(run(shop, "status", "--json", warm=warm).stdout)] == [
            "other"
        ]
        assert run(shop, "history", "cheap", warm=warm).returncode == 0

    def test_a_session_that_is_killed_comes_back_with_its_queries(
        self, shop: Shop, session: Session, warm: WarmCommands
    ) -> None:
        shop.order(1)
        shop.wait_ids(shop.cheap_ids(), "other")
        os.killpg(session.app.process.pid, signal.SIGKILL)
        kill_all(_driver_pids(shop))
        session.app.process.wait()
        wait_until(lambda: not session.link.is_alive, "it is known to be gone")
        status = run(shop, "status", warm=warm)
        assert status.returncode == 1
        assert "GONE" in status.stdout
        assert "session 'default' is not running: app-" in status.stdout
        shop.order(2)

        session.app = session.start()

        shop.wait_ids(shop.cheap_ids(), "other")
        assert run(shop, "status", warm=warm).returncode == 0

    def test_a_second_session_of_the_name_is_refused(
        self, shop: Shop, session: Session, warm: WarmCommands
    ) -> None:
        second = run(shop, "session", warm=warm)

        assert second.returncode == 3
        assert "session 'default' is already running" in second.stderr

    def test_ctrl_c_stops_the_queries_and_ends_the_session(
        self, shop: Shop, session: Session, warm: WarmCommands
    ) -> None:
        session.app.process.send_signal(signal.SIGINT)
        ended = session.app.end()

        assert ended.code == 0, ended.err[-3000:]
        assert "stopping the queries after their micro-batches" in ended.err
        assert Lease(Store(shop.store_url), layout.host_lease(HOST), "", 0).holder() is None
        checkpoint = Store(shop.store_url).names(layout.checkpoints("other", 1))[0]
        folder = f"{layout.checkpoints('other', 1)}/{checkpoint}"
        begun, committed = (
            [name for name in Store(shop.store_url).names(f"{folder}/{log}") if name.isdigit()]
            for log in ("offsets", "commits")
        )
        assert begun == committed
        status = run(shop, "status", warm=warm)
        assert status.returncode == 0, "it was ended on purpose"
        assert "ENDED" in status.stdout
        assert "session 'default' has ended; its queries start again when it does" in status.stdout

    def test_all_of_it_was_reported_under_the_manifests_names(self, session: Session) -> None:
        events = file_events(session.events)

        names = {event["attributes"]["query_name"] for event in of_name(events, "CheckpointEvent")}
        assert names == {"cheap", "other"}
        states = statuses(
            [event for event in events if event["attributes"].get("query_name") == "other"], "query"
        )
        assert states.count("CREATED") == 1, "the next application continues from its checkpoint"
        assert "RESTARTING" in states

    def test_so_was_their_lineage(self, shop: Shop, session: Session) -> None:
        lines = [
            line for path in (session.events / "lineage").iterdir() for line in path.read_text().splitlines()
        ]
        of_query = [line for line in lines if '"cheap"' in line and f"{shop.folder}/out" in line]

        assert of_query
        assert any(f"{shop.folder}/orders" in line for line in of_query)


def _driver_pids(shop: Shop) -> list[int]:
    """Return the processes of the session's driver, which has a group of its own."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if shop.store_url in command and "sql_runner/host/application.py" in command:
                found.append(int(folder.name))
    return found


@pytest.mark.extended
@pytest.mark.spark
def test_the_beginning_of_the_page(tmp_path: Path, java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two blocks of commands with which docs/sql-runner.md begins."""
    installed = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{installed}{os.pathsep}{os.environ['PATH']}")
    page = (REPO / "docs" / "sql-runner.md").read_text()
    session, rest, *_ = [part.split("```")[0] for part in page.split("```\n")[1::2]]
    shutil.copytree(REPO / "conf" / "sql-runner", tmp_path / "conf" / "sql-runner")
    tables = tmp_path / "conf" / "sql-runner" / "tables.sql"
    tables.write_text(tables.read_text().replace("/tmp/spark-events-sql", str(tmp_path)))
    store = Store(str(tmp_path / "store"))

    def script(text: str) -> list[str]:
        return ["bash", "-ec", text.replace("/tmp/spark-events-sql", str(tmp_path))]

    app = App(script(session), {}, tmp_path)
    try:
        # A reader who is fast: plan and deploy come while it starts.
        link = HostLink(store, HOST)
        app.wait_for(lambda: link.is_starting or link.is_alive, "the session starts")
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        done = subprocess.run(
            script(rest),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout
        assert "expensive-orders  RUNNING" in done.stdout
        assert "session 'default' has ended" in done.stdout
        assert app.end().code == 0
    finally:
        if not app.ended:
            app.kill()
    assert list((tmp_path / "expensive_orders").glob("*.parquet"))


class TestWrongOptions:
    def test_a_store_that_cannot_be_reached(self, shop: Shop, warm: WarmCommands) -> None:
        shop.write("queries", shop.manifest())
        wrong = run(shop, "status", "--store", "nope://x", warm=warm)

        assert wrong.returncode == 3
        assert "store nope://x: its file system cannot be used" in wrong.stderr

    def test_a_session_that_cannot_be_called_so(self, shop: Shop, warm: WarmCommands) -> None:
        wrong = run(shop, "session", "--session", "a/b", warm=warm)

        assert wrong.returncode == 3
        assert "--session" in wrong.stderr
        assert "'a/b' is not valid; expected letters, digits" in " ".join(wrong.stderr.split())

    def test_a_folder_that_is_not_there(self, shop: Shop, warm: WarmCommands) -> None:
        assert "nowhere: is not a folder" in run(shop, "validate", "nowhere", warm=warm).stderr

    def test_definitions_that_are_not_there(self, shop: Shop, warm: WarmCommands) -> None:
        folder = shop.write("queries", shop.manifest())
        wrong = run(shop, "validate", str(folder), "--table-definition-path", "nowhere.sql", warm=warm)

        assert wrong.returncode == 3
        assert "--table-definition-path nowhere.sql: cannot be read" in wrong.stderr
