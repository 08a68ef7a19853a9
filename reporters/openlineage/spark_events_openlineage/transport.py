"""Passes events through openlineage-python's client: its tags and filters first, its transport at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import parent_run
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport
from openlineage.client.transport.composite import CompositeTransport
from openlineage.client.transport.http import HttpTransport
from requests import HTTPError, PreparedRequest, Response

from spark_events.api import ConfigError, Refused, RetryLater, text_without_queries, url_without_secrets
from spark_events.api.toolkit.http_once import OneTryAdapter, innermost, retry_after_ms
from spark_events_openlineage.branches import Branch, Branches
from spark_events_openlineage.source_code import without_user

_TRY_LATER = frozenset((408, 425, 429))
_CLIENTS_FAULT = 400
_SERVERS_FAULT = 500
_LONGEST_REASON = 200
_HINTS = {
    401: "see transport.auth",
    403: "see transport.auth",
    404: "see transport.url",
    405: "see transport.url",
    407: "the proxy requires authentication",
    421: "see transport.url",
}
"""What a wrong configuration is answered with: it may be mended, and costs no events until then."""


class Destination:
    """Where events go.

    Args:
        configure: returns the configuration of the client's transport; None leaves it to the environment and
            openlineage.yml. It is called before each event, because secrets in files are renewed.
        key: the configuration key, for error messages.

    Attributes:
        name: what it is, for messages, without a user and a password.

    Raises:
        ConfigError: the client cannot make such a transport.
    """

    def __init__(self, configure: Callable[[], dict[str, object] | None], key: str) -> None:
        self._configure = configure
        self._key = key
        self._config = configure()
        self._client = self._new_client(self._config)
        self._use(self._client.transport)
        self.name = _name(self._transport, _kind_of(self._config))

    def _new_client(self, config: dict[str, object] | None) -> OpenLineageClient:
        try:
            return OpenLineageClient(config={"transport": config} if config else None)
        except Exception as error:  # whatever a transport's constructor raises
            raise ConfigError(
                f"{self._key}: the transport {_kind_of(config)} cannot be created: "
                f"{text_without_queries(str(error))}"
            ) from error

    def _use(self, transport: Transport) -> None:
        self._transport = transport
        for over_http in _over_http(transport):
            over_http.config.adapter = _Adapter()
        self._branches = _branches(transport, self._emit)

    def _renew(self) -> None:
        """Have another transport if a secret is another one by now."""
        with suppress(ConfigError):  # its file is there again in a moment
            config = self._configure()
            if config != self._config:
                renewed = self._new_client(config).transport
                self._close_transport()
                self._config = config
                self._use(renewed)

    @property
    def tells_source_code(self) -> bool:
        """Whether the client is told to say where the code is; it looks for a folder ``.git``."""
        return not self._client.config.facets.source_code_location.disabled

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
        self._renew()
        if self._branches is not None:
            self._branches.send(record)
        else:
            self._emit(self._transport, self.name, record)

    def _emit(self, transport: Transport, name: str, record: bytes) -> None:
        for over_http in _over_http(transport):
            for scheme in ("http://", "https://"):
                over_http.session.mount(scheme, over_http.config.adapter)
        try:
            transport.emit(restored(json.loads(record)))
        except (OSError, BufferError) as error:  # those of requests are an OSError, too
            raise _meaning_of(error, name) from error
        except RuntimeError as error:  # of a composite transport, or of what gets a token
            cause = error.__cause__
            if isinstance(cause, OSError) and isinstance(later := _meaning_of(cause, name), RetryLater):
                raise later from error
            raise

    def close(self) -> None:
        """Close the transport."""
        self._close_transport()

    def _close_transport(self) -> None:
        if self._branches is not None:
            self._branches.close()
        self._transport.close(0)


def _kind_of(config: dict[str, object] | None) -> str:
    return str(config["type"]) if config else "of the environment"


def _branches(transport: Transport, emit: Callable[[Transport, str, bytes], None]) -> Branches | None:
    """Return the parts of a transport that sends to several, whether or not one fails; None for any other."""
    if not isinstance(transport, CompositeTransport):
        return None
    if not (transport.config.continue_on_failure and transport.config.continue_on_success):
        return None
    parts = transport.transports
    names = [_name(part, str(part.name or part.kind or "")) for part in parts]
    return Branches(
        [Branch(name, partial(emit, part, name)) for name, part in zip(names, parts, strict=True)]
    )


def _name(transport: Transport, otherwise: str) -> str:
    """Return what messages call a transport, without a user and a password."""
    return url_without_secrets(str(getattr(transport, "url", "") or transport.kind or otherwise))


def _meaning_of(error: Exception, name: str) -> Refused | RetryLater:
    if not isinstance(error, HTTPError) or error.response is None:
        return RetryLater(f"{name} cannot be reached: {text_without_queries(innermost(error))}")
    status, body = error.response.status_code, error.response.content
    answer = f"{name} answers {status}"
    if status >= _SERVERS_FAULT or status in _TRY_LATER:
        return RetryLater(answer, retry_after_ms(error.response.headers))
    if status < _CLIENTS_FAULT:
        return RetryLater(f"{answer}, a redirect, which is not followed; see transport.url")
    if status in _HINTS:
        return RetryLater(f"{answer} ({_HINTS[status]})", retry_after_ms(error.response.headers))
    return Refused(f"{answer}: {body[:_LONGEST_REASON].decode(errors='replace')}")


class _Adapter(OneTryAdapter):
    """Has the client take a redirect for what it is: an event that has not arrived."""

    def send(self, request: PreparedRequest, *arguments: Any, **keywords: Any) -> Response:
        answer = super().send(request, *arguments, **keywords)
        if 300 <= answer.status_code < _CLIENTS_FAULT:
            raise HTTPError("a redirect", request=request, response=answer)
        return answer


def _over_http(transport: Any) -> Iterator[HttpTransport]:
    """Yield the transports that use HTTP: others may contain them."""
    if isinstance(transport, HttpTransport):
        yield transport
    for inner in (*getattr(transport, "transports", ()), getattr(transport, "transport", None)):
        if isinstance(inner, Transport):
            yield from _over_http(inner)


class _Capture(Transport):
    """A transport that passes events on as JSON instead of sending them."""

    kind = "spark-events"

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def emit(self, event: Any) -> None:
        location = (event.job.facets or {}).get("sourceCodeLocation")
        if location is not None:  # the client's own, out of the folder .git
            location.url = without_user(location.url)
            location.repoUrl = without_user(location.repoUrl or location.url)
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
