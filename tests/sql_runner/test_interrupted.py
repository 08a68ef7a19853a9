"""Deployers that are killed between two steps: what ran comes back with the next deployment, and until then shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.host_link import DeploymentError, HostLink
from spark_events.sql_runner.deploy.steps import Steps
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.history import BEGUN, HistoryEntry, read_history
from tests.support.query_shop import Bench
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.extended]


class Killed(Exception):  # noqa: N818 - says what happened
    """Stands for SIGKILL: nothing of the deployer runs after it."""


@pytest.fixture
def hosted(bench: Bench) -> Iterator[Bench]:
    """Give a bench where the cheap orders run."""
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
        yield bench


def bad(bench: Bench, **keys: Any) -> dict[str, Any]:
    sql = f"SELECT id, raise_error('no such price') + price AS price FROM {bench.shop.prefix}orders"
    return bench.shop.manifest(sql=sql, **keys)


def killed_at(bench: Bench, owner: type, method: str, *manifests: dict[str, Any]) -> None:
    """Deploy, and be killed when a method is called."""

    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, kill)
        with pytest.raises(Killed):
            bench.deploy(*manifests)


def runs_as_before(bench: Bench) -> None:
    bench.shop.order(1)
    bench.shop.wait_ids(bench.shop.cheap_ids(), version=1)
    assert bench.meta().query_version == 1
    row = bench.status()
    assert (row.state, row.wanted, row.is_well, row.error) == ("RUNNING", True, True, "")


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        pytest.param(Steps, "start", id="after it had stopped the good version"),
        pytest.param(HostLink, "wait_started", id="after its order for the bad one"),
        pytest.param(Steps, "resumed", id="after it had withdrawn the bad one"),
    ],
)
def test_the_good_version_comes_back(hosted: Bench, owner: type, method: str) -> None:
    killed_at(hosted, owner, method, bad(hosted))
    wait_until(lambda: not hosted.status().is_well, "status says so")

    (result,) = hosted.deploy(bad(hosted))

    assert result.failed
    assert "no such price" in result.text
    assert "version 1 runs again as it was deployed" in result.text
    runs_as_before(hosted)


def test_it_goes_on_from_its_state_when_its_manifest_is_back(hosted: Bench) -> None:
    """As a new version, it would read everything again."""
    killed_at(hosted, HostLink, "wait_started", bad(hosted))
    wait_until(lambda: not hosted.status().is_well, "status says so")
    query_id = hosted.meta().query_id

    (result,) = hosted.deploy(hosted.shop.manifest())

    assert (result.action, result.version, result.failed) == (Action.RESUME, 1, False), result.text
    assert hosted.meta().query_id == query_id
    runs_as_before(hosted)


def test_it_comes_back_for_a_manifest_that_is_wrong_by_now(hosted: Bench) -> None:
    killed_at(hosted, Steps, "start", bad(hosted))
    row = hosted.status()
    assert (row.wanted, row.is_well) == (True, False)
    assert "its deployment was interrupted" in row.error

    (result,) = hosted.deploy(hosted.shop.manifest(sql="SELECT nothing FROM nowhere"))

    assert (result.action, result.failed) == (Action.FAIL, True)
    assert "version 1 runs again as it was deployed" in result.text
    runs_as_before(hosted)


def test_what_was_stopped_on_purpose_stays_stopped(hosted: Bench) -> None:
    hosted.stop("cheap")
    killed_at(hosted, HostLink, "wait_started", bad(hosted))

    (result,) = hosted.deploy(bad(hosted))

    assert result.failed
    row = hosted.status()
    assert (row.state, row.wanted) == ("CANCELED", False)


def test_a_stop_ends_what_an_interrupted_deployment_wanted(hosted: Bench) -> None:
    killed_at(hosted, Steps, "start", bad(hosted))

    assert hosted.workspace.stop("cheap", savepoint=False) is not None

    row = hosted.status()
    assert (row.state, row.wanted, row.is_well) == ("CANCELED", False, True)


def test_a_query_that_is_being_deployed_is_well(hosted: Bench) -> None:
    killed_at(hosted, Steps, "start", bad(hosted))

    (idle,) = hosted.workspace.rows()
    with hosted.workspace.deploying():
        (row,) = hosted.workspace.rows()

    assert (idle.is_well, row.is_well, row.error) == (False, True, "is being deployed")


def test_a_deployment_that_never_began_starts_anew(bench: Bench) -> None:
    """There is no state of a version whose first micro-batch never came, and none is missing."""
    with bench.hosting():
        killed_at(bench, HostLink, "wait_started", bench.shop.manifest())
    bench.store.delete("checkpoints")

    (planned,) = bench.plan(bench.shop.manifest())

    assert planned.decision.action is Action.START, planned.decision
    assert "was interrupted before its first micro-batch" in planned.decision.reason


@pytest.mark.parametrize(
    ("end", "action"), [(HistoryEntry.end, Action.START), (lambda *_: None, Action.FAIL)], ids=["", "killed"]
)
def test_a_deployment_that_never_began_starts_anew_although_its_manifest_is_damaged(
    hosted: Bench, monkeypatch: pytest.MonkeyPatch, end: Any, action: Action
) -> None:
    """History says that it failed; one that does not say how it ended may have run."""

    def gone(*_: Any) -> None:
        raise DeploymentError("the application is gone")

    changed = hosted.shop.manifest(sql=f"SELECT id, price FROM {hosted.shop.prefix}orders")
    hosted.stop("cheap")
    with monkeypatch.context() as patch:
        patch.setattr(HostLink, "wait_started", gone)
        patch.setattr(HistoryEntry, "end", end)
        assert [result.failed for result in hosted.deploy(changed)] == [True]
    hosted.stop("cheap")
    hosted.store.write(layout.manifest("cheap"), b"\xff\xfe")
    hosted.store.delete("checkpoints")

    (planned,) = hosted.plan(changed)

    assert (planned.decision.action, planned.current.version) == (action, 2), planned.decision


def test_a_deployer_killed_before_the_end_of_history_leaves_an_entry(hosted: Bench) -> None:
    changed = hosted.shop.manifest(trigger={"processing-time": "200 milliseconds"})
    killed_at(hosted, HistoryEntry, "end", changed)

    assert [each.decision.action for each in hosted.plan(changed)] == [Action.NOTHING]
    found = read_history(hosted.store, "cheap")
    assert [(entry.action, entry.result) for entry in found] == [("start", "done"), ("restart", BEGUN)]


def test_a_batch_that_was_broken_off_before_a_bad_version_came_is_written_once(bench: Bench) -> None:
    """It is in the folder's log, but not committed; the bad version claims the folder, and writes nothing."""
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
        wait_until(lambda: bench.status().batch == 0, "its batch is committed")
    for file in ("0", ".0.crc"):
        bench.store.delete(f"{bench.meta().checkpoint}/commits/{file}")
    bench.shop.order(1)
    # The application is away: it comes back with the order for the bad version.
    (given,) = bench.deploy(bad(bench))
    assert "is not running" in given.text
    with bench.hosting():
        (result,) = bench.deploy(bad(bench))
        assert "version 1 runs again as it was deployed" in result.text
        bench.shop.wait_ids(bench.shop.cheap_ids(), version=1)
        runs_as_before(bench)
