"""A streaming query on a Kubernetes, in cluster mode, that knows nothing of who watches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.applications import App, cli
from tests.support.file_log import Event, events_and_spans, file_events, of_name
from tests.support.kubernetes.cluster import KubernetesCluster
from tests.support.kubernetes.submission import CLUSTER, local, submit
from tests.support.paths import APPS


class Query:
    """A streaming query in cluster mode, until it is told to go.

    Args:
        kubernetes: where it runs.
        folder: for its files.
        conf: more of Spark's settings.
        name: of this submission.
        program: what submits it.
    """

    def __init__(
        self,
        kubernetes: KubernetesCluster,
        folder: Path,
        conf: Mapping[str, str],
        name: str = "query",
        program: Sequence[str] = tuple(cli("run")),
    ) -> None:
        self._kubernetes, self._go = kubernetes, folder / name / "go"
        self._events = folder / name / "events"
        application = (local(APPS / "watched_orders.py"), str(folder / name / "state"), str(self._go))
        all_conf = {**events_and_spans(self._events), **conf}
        words = (*CLUSTER, *application)
        self.app: App = submit(kubernetes, folder / name, *words, conf=all_conf, program=program)
        self.app.wait_for(lambda: of_name(self.events, "CheckpointEvent"), "the query runs")

    @property
    def events(self) -> list[Event]:
        return file_events(self._events)

    @property
    def driver(self) -> str:
        """The pod of its driver."""
        (pod,) = self._kubernetes.running("driver", self.events[0]["attributes"]["app_id"])
        return pod

    def end(self) -> None:
        self._go.touch()
        run = self.app.end()
        assert run.code == 0, run.err[-3000:]
