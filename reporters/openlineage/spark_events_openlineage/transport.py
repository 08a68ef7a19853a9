"""Passes events through openlineage-python's client: its tags and filters first, its transport at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import parent_run
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport
from requests import HTTPError, RequestException

from spark_events.api import ConfigError, Refused, RetryLater, text_without_queries, url_without_secrets

_TRY_LATER = frozenset((408, 425, 429))
_SERVERS_FAULT = 500


class Destination:
    """Where events go.

    Args:
        config: of the client's transport; None leaves it to the environment and openlineage.yml.
        key: the configuration key, for error messages.

    Attributes:
        name: what it is, for messages, without a user and a password.

    Raises:
        ConfigError: the client cannot make such a transport.
    """

    def __init__(self, config: dict[str, object] | None, key: str) -> None:
        kind = config["type"] if config else "of the environment"
        try:
            self._client = OpenLineageClient(config={"transport": config} if config else None)
        except Exception as error:  # whatever a transport's constructor raises
            raise ConfigError(
                f"{key}: the transport {kind} cannot be created: {text_without_queries(str(error))}"
            ) from error
        self._transport = self._client.transport
        name = str(getattr(self._transport, "url", "") or self._transport.kind or kind)
        self.name = url_without_secrets(name)

    def prepare(self, event: RunEvent, take: Callable[[bytes], None]) -> None:
        """Pass an event to ``take`` as JSON, after the client's tags and filters, which may drop it."""
        if self._transport.kind == "noop":
            return
        self._client.transport = _Capture(take)
        self._client.emit(event)

    def send(self, record: bytes) -> None:
        """Send one event.

        Raises:
            RetryLater: the catalog is away.
            Refused: it will never take this event.
        """
        try:
            self._transport.emit(restored(json.loads(record)))
        except HTTPError as error:
            status = error.response.status_code if error.response is not None else _SERVERS_FAULT
            answer = f"{self.name} answers {status}"
            if status >= _SERVERS_FAULT or status in _TRY_LATER:
                raise RetryLater(answer) from error
            raise Refused(f"{answer}: {error.response.text[:200]}") from error
        except (RequestException, OSError, TimeoutError, BufferError) as error:
            raise RetryLater(f"{self.name} cannot be reached: {text_without_queries(str(error))}") from error

    def close(self) -> None:
        """Close the transport."""
        self._transport.close(0)


class _Capture(Transport):
    """A transport that passes events on as JSON instead of sending them."""

    kind = "spark-events"

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def emit(self, event: Any) -> None:
        self._take(Serde.to_json(event).encode())


def restored(event: dict[str, Any]) -> RunEvent:
    """Return an event as the client's transports want it: Kafka's makes a key of its job, or its parent's."""
    run, job = event["run"], event["job"]
    facets = run.get("facets") or {}
    if parent := facets.get("parent"):
        facets["parent"] = _parent(parent)
    return RunEvent(
        eventTime=event["eventTime"],
        producer=event["producer"],
        eventType=RunState(event["eventType"]),
        run=Run(runId=run["runId"], facets=facets),
        job=Job(namespace=job["namespace"], name=job["name"], facets=job.get("facets") or {}),
        inputs=[InputDataset(**dataset) for dataset in event.get("inputs") or ()],
        outputs=[OutputDataset(**dataset) for dataset in event.get("outputs") or ()],
    )


def _parent(facet: dict[str, Any]) -> parent_run.ParentRunFacet:
    root = facet.get("root")
    return parent_run.ParentRunFacet(
        run=parent_run.Run(**facet["run"]),
        job=parent_run.Job(**facet["job"]),
        root=parent_run.Root(
            run=parent_run.RootRun(**root["run"]),
            job=parent_run.RootJob(**root["job"]),
        )
        if root
        else None,
        producer=facet["_producer"],
    )
