"""Files in a store that no spark-events has written, or that were damaged since: each is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_events.api import ConfigError
from spark_events.sql_runner.deploy.decision import Action, Decision
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.deploy.workspace import Workspace
from spark_events.sql_runner.manifest.folder import read_folder
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.checkpoints import begin_checkpoint
from spark_events.sql_runner.store.deployed import DeployedQuery, read_deployed, write_deployed
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.host_files import HostStatus, QueryStatus, write_orders, write_status
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.savepoints import make_savepoint
from spark_events.sql_runner.store.store import DamagedFile, Store, StoreError
from tests.support.sql_orders import deployed_in, run_order
from tests.support.sql_truth_deploy import Known


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1]", b"{}", b'{"at_ms": 1, "new": 2}', b"[[[", b""])
def test_a_history(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history" / "q").mkdir(parents=True)
    (tmp_path / "history" / "q" / "000000000000001-x.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"history/q/000000000000001-x.json is not what this version"):
        read_history(Store(str(tmp_path)), "q")


@pytest.mark.parametrize("content", [b"\xff\xfe\xff", b"[1]", b"name: q\nmeta: 3\n", b"meta: {a: 1}", b""])
def test_a_manifest(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "q.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"manifests/q.yaml"):
        read_deployed(Store(str(tmp_path)), "q")


HOST = "session-default"
DAMAGED = b"\xff\xfe\xff"


@pytest.fixture
def workspace(store: Store) -> Workspace:
    """Give a store with a session that runs a query."""
    Lease(store, layout.host_lease(HOST), "session", 30_000).take()
    running = deployed_in(HOST)
    order = run_order(running)
    write_orders(store, HOST, {"q": order})
    write_status(
        store,
        HOST,
        HostStatus("app", "local", 1, "4.3.0", {"q": QueryStatus(order.id, "RUNNING", 1, started=True)}),
    )
    write_deployed(store, running)
    return Workspace(store.url, Placement())


class Unchanged(Known):
    """An analyst for whom a query is the one that is deployed."""

    def is_same_query(self, *_: object) -> bool:
        return True


def rows(workspace: Workspace) -> dict[str, QueryRow]:
    return {row.name: row for row in workspace.status().rows}


def test_status_names_a_damaged_manifest_and_shows_all_others(workspace: Workspace) -> None:
    workspace.store.write(layout.manifest("damaged"), DAMAGED)

    found = rows(workspace)
    assert (found["q"].state, found["q"].is_well) == ("RUNNING", True)
    assert (found["damaged"].state, found["damaged"].is_well) == ("UNKNOWN", False)
    assert "manifests/damaged.yaml" in found["damaged"].error


def test_a_query_that_runs_although_its_manifest_is_damaged_is_shown_with_both(workspace: Workspace) -> None:
    workspace.store.write(layout.manifest("q"), DAMAGED)

    row = rows(workspace)["q"]
    assert (row.state, row.version, row.is_well) == ("RUNNING", 1, False)
    assert "manifests/q.yaml" in row.error


@pytest.mark.parametrize("file", [layout.orders("session-b"), layout.status("session-b")])
def test_status_names_a_damaged_file_of_an_application_and_shows_the_others(
    workspace: Workspace, file: str
) -> None:
    write_deployed(workspace.store, _named("other", "session-b"))
    write_orders(workspace.store, "session-b", {})
    workspace.store.write(file, DAMAGED)

    found = rows(workspace)
    assert found["q"].state == "RUNNING"
    assert (found["other"].state, found["other"].is_well) == ("UNKNOWN", False)
    assert workspace.status().problems == (found["other"].error,)
    assert file in found["other"].error
    with pytest.raises(DamagedFile, match=file):
        workspace.stop("q", savepoint=False)


def test_status_names_a_damaged_lease_of_deployments(workspace: Workspace) -> None:
    file = f"{layout.DEPLOY_LEASE}/000000001.json"
    workspace.store.write(file, DAMAGED)

    assert rows(workspace)["q"].state == "RUNNING"
    (problem,) = workspace.status().problems
    assert file in problem


def test_a_query_whose_manifest_is_damaged_can_be_forgotten_but_not_stopped(workspace: Workspace) -> None:
    workspace.store.write(layout.manifest("damaged"), DAMAGED)
    with pytest.raises(ConfigError, match=r"manifests/damaged.yaml"):
        workspace.stop("damaged", savepoint=False)
    workspace.forget("damaged", state=False)

    assert set(rows(workspace)) == {"q"}


def test_a_query_that_will_find_its_checkpoint_gone_is_not_taken_for_one_that_runs(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The application has just come back, and has not looked yet."""
    deployed, store = workspace.queries()["q"].recorded, workspace.store
    assert deployed is not None
    begin_checkpoint(store, deployed.meta.checkpoint, "a")
    for file in ("offsets/0", "commits/0"):
        store.write(f"{deployed.meta.checkpoint}/{file}", b"v1\n{}")
    savepoint = make_savepoint(store, "q", deployed.meta, "s")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "q.yaml").write_text("name: q\ntarget-table: t\nsql: SELECT 1\n")
    coming = HostStatus(
        "app", "local", 1, "4.3.0", {"q": QueryStatus(deployed.meta.deployment, "CREATED", 1)}
    )
    write_status(store, HOST, coming)

    def planned() -> Decision:
        analyst: Any = Unchanged([], "")
        (query,) = workspace.plan(analyst, read_folder(tmp_path / "manifests", None).or_fail())
        return query.decision

    assert planned().action is not Action.RESUME
    store.delete(deployed.meta.checkpoint)
    assert planned().action is Action.RESUME
    assert savepoint.path in planned().reason


def _named(name: str, host: str) -> DeployedQuery:
    return DeployedQuery.parse({**deployed_in(host).values(), "name": name}, "")
