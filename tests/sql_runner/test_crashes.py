"""What is killed between any two steps: the next deployment goes on, nothing runs twice, no row is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from tests.support.paths import APPS
from tests.support.query_shop import Bench

# They start Spark several times; a loaded machine takes long for that.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.extended]
FASTER = {"processing-time": "200 milliseconds"}
MORE_THAN_ALL = 60


def deploy(
    bench: Bench, manifest: dict[str, Any], plan: str, kill_after: int
) -> subprocess.CompletedProcess[str]:
    folder = bench.shop.write("m", manifest)
    arguments = [str(folder / "cheap.yaml"), str(bench.shop.folder / "tables.sql"), plan, str(kill_after)]
    return subprocess.run(
        [sys.executable, str(APPS / "sql_deploy.py"), bench.shop.store_url, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def new(bench: Bench) -> dict[str, Any]:
    return bench.shop.manifest()


def reconfigured(bench: Bench) -> dict[str, Any]:
    return bench.shop.manifest(trigger=FASTER)


def rewritten(bench: Bench) -> dict[str, Any]:
    return bench.shop.manifest(sql=f"SELECT id, price FROM {bench.shop.prefix}orders WHERE price < 5.5")


@pytest.mark.parametrize(
    ("change", "stride"),
    [
        (rewritten, 5),
        pytest.param(new, 1, marks=pytest.mark.thorough),
        pytest.param(reconfigured, 1, marks=pytest.mark.thorough),
        pytest.param(rewritten, 1, marks=pytest.mark.thorough),
    ],
)
def test_a_deployment_killed_after_any_step(
    bench: Bench, change: Callable[[Bench], dict[str, Any]], stride: int
) -> None:
    """One shop for all steps: each round changes back and forth, is killed a step later, and is repeated."""
    base, changed = bench.shop.manifest(), change(bench)
    plans = {id(each): bench.analyst.analyze(_parsed(bench, each)).fingerprint for each in (base, changed)}
    with bench.hosting():
        bench.shop.order(1)
        if change is not new:
            bench.deploy(base)
            bench.shop.wait_ids(bench.shop.cheap_ids())
        killed_at = 0
        for step in range(1, MORE_THAN_ALL, stride):
            run = deploy(bench, changed, plans[id(changed)], step)
            if run.returncode == 0:
                break
            assert run.returncode == -signal.SIGKILL, run.stderr[-2000:]
            killed_at = step
            (again,) = bench.deploy(changed)
            assert not again.failed, again
            assert bench.status().state == "RUNNING"
            assert _running(bench) == 1
            _round_is_exact(bench, change)
            if change is new:
                _forget(bench)
            else:
                (back,) = bench.deploy(base)
                assert not back.failed
    assert killed_at > (5 if change is new else 7) - stride, "the deployment has steps"


def _round_is_exact(bench: Bench, change: Callable[[Bench], dict[str, Any]]) -> None:
    """New rows come once; of one version all rows are there once."""
    bench.shop.order(1)
    version = bench.meta().query_version
    if change is reconfigured:
        bench.shop.wait_ids(bench.shop.cheap_ids())
        assert version == 1
    else:
        expected = bench.shop.cheap_ids() if change is new else _below(bench, 5.5)
        bench.shop.wait_ids(expected, version=version)


def _below(bench: Bench, price: float) -> list[int]:
    last = max(bench.shop.cheap_ids()) // 10 * 10 + 10
    return [number for number in range(last) if number % 10 < price]


def _forget(bench: Bench) -> None:
    """Stop the query and remove what the store knows of it, as for a new one; its versions go on."""
    bench.stop("cheap")
    bench.store.delete("manifests/cheap.yaml")
    bench.workspace.link("session-default").give("cheap", None)


def _running(bench: Bench) -> int:
    queries = bench.spark._jsparkSession.sharedState().activeStreamingQueries().values()
    return [query.name() for query in queries].count("cheap")


def _parsed(bench: Bench, manifest: dict[str, Any]) -> Any:
    return bench._read((manifest,)).by_name["cheap"]


def test_a_deployment_that_was_broken_off_is_written_down_by_the_next(bench: Bench) -> None:
    bench.shop.order(1)
    plan = bench.analyst.analyze(_parsed(bench, bench.shop.manifest())).fingerprint
    with bench.hosting():
        for step in range(1, MORE_THAN_ALL):
            deploy(bench, bench.shop.manifest(), plan, step)
            (planned,) = bench.plan(bench.shop.manifest())
            if planned.decision.action is Action.RECORD:
                break
            assert planned.decision.action is Action.START, planned.decision
        order = planned.current.order.id if planned.current and planned.current.order else ""
        (result,) = bench.deploy(bench.shop.manifest())

        assert (result.action, result.failed) == (Action.RECORD, False)
        assert bench.meta().deployment == order
        bench.shop.wait_ids(bench.shop.cheap_ids())


def test_the_manifest_is_written_after_the_deployment_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_events.sql_runner.deploy import steps

    seen: list[str] = []
    real = steps.write_deployed

    def look(store: Any, deployed: Any) -> None:
        seen.append(bench.status().state)
        real(store, deployed)

    monkeypatch.setattr(steps, "write_deployed", look)
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())

    assert seen == ["RUNNING"]


def test_a_savepoint_that_is_not_whole_is_made_again(bench: Bench) -> None:
    """As after an application that was killed while it copied."""
    from spark_events.sql_runner.store import layout
    from spark_events.sql_runner.store.savepoints import all_savepoints, latest_state, make_savepoint

    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
        bench.stop("cheap")
    meta, path = bench.meta(), layout.savepoint("cheap", 1, "half")
    bench.store.write(f"{path}/offsets/99", b"of a copy that was broken off")

    assert all_savepoints(bench.store, "cheap", 1) == []
    state = latest_state(bench.store, "cheap", meta)
    assert state is not None
    assert not state.is_savepoint
    made = make_savepoint(bench.store, "cheap", meta, "half")
    assert made.batch == 0
    assert "offsets/99" not in bench.store.sizes(path)


@pytest.fixture(autouse=True)
def _definitions(shop: Any) -> None:
    Path(shop.folder / "tables.sql").write_text(shop.definitions)
