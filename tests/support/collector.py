"""A real OpenTelemetry Collector."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.paths import REPO
from tests.support.waiting import free_port, is_listening, wait_until


class Collector:
    """The OpenTelemetry Collector on ports of its own.

    Args:
        binary: the collector.
        folder: where it writes what it gets.
        config: its configuration; conf/ has the one that is shipped.
        environment: what the configuration takes from there.
    """

    def __init__(
        self,
        binary: Path,
        folder: Path,
        config: Path = REPO / "conf" / "otel-collector.yaml",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._binary = binary
        self.folder = folder
        self._config = config
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.grpc = f"http://127.0.0.1:{free_port()}"
        self.http = f"http://127.0.0.1:{free_port()}"
        self.prometheus = f"http://127.0.0.1:{free_port()}"

    def start(self) -> None:
        """Start it, unless it runs, and wait until it listens."""
        if self._process is not None:
            return
        environment = {
            **os.environ,
            "OTLP_GRPC": self.grpc.removeprefix("http://"),
            "OTLP_HTTP": self.http.removeprefix("http://"),
            "PROMETHEUS": self.prometheus.removeprefix("http://"),
            "OUT_DIR": str(self.folder),
            "QUEUE_DIR": str(self.folder / "queue"),
            "EVENTS_DIR": str(self.folder / "events"),
            **self._environment,
        }
        log = (self.folder / "collector.log").open("ab")
        self._process = subprocess.Popen(
            [str(self._binary), "--config", str(self._config)], env=environment, stdout=log, stderr=log
        )
        for endpoint in (self.grpc, self.http):
            host, port = endpoint.removeprefix("http://").split(":")
            wait_until(
                lambda h=host, p=port: self._listens(h, int(p)), f"the collector listens at {endpoint}"
            )

    def _listens(self, host: str, port: int) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            log = (self.folder / "collector.log").read_text(errors="replace")
            raise AssertionError(f"the collector has ended with {self._process.returncode}: {log[-2000:]}")
        return is_listening(host, port)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def kill(self) -> None:
        """End it by force, with no time to say anything."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)
        self._process = None

    def hang(self) -> None:
        """Let it answer nothing any longer, while its connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ids(self) -> list[str]:
        """Return the ``event.id`` of all log records that it wrote, in order."""
        return [record["attributes"]["event.id"] for record in self.log_records()]

    def log_records(self) -> list[dict[str, Any]]:
        """Return all log records that it wrote, with their resource and scope."""
        return list(self._records("logs.jsonl", "resourceLogs", "scopeLogs", "logRecords"))

    def spans(self) -> list[dict[str, Any]]:
        """Return all spans that it wrote, with their resource and scope."""
        return list(self._records("traces.jsonl", "resourceSpans", "scopeSpans", "spans"))

    def metrics(self) -> list[dict[str, Any]]:
        """Return all metrics that it wrote, request by request, with their resource and scope."""
        return list(self._records("metrics.jsonl", "resourceMetrics", "scopeMetrics", "metrics"))

    def _records(self, name: str, resources: str, scopes: str, records: str) -> Iterable[dict[str, Any]]:
        path = self.folder / name
        if not path.exists():
            return
        # The last line may be half written.
        for line in path.read_text().split("\n")[:-1]:
            for resource in json.loads(line)[resources]:
                for scope in resource[scopes]:
                    for record in scope[records]:
                        yield {
                            **record,
                            "attributes": attributes_of(record),
                            "resource": attributes_of(resource["resource"]),
                            "scope": scope["scope"]["name"],
                        }


def attributes_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return OTLP-JSON's list of attributes as a mapping, whole numbers and lists as such."""
    return {pair["key"]: _value(pair["value"]) for pair in message.get("attributes", ())}


def _value(wrapped: Mapping[str, Any]) -> Any:
    ((kind, value),) = wrapped.items()
    if kind == "arrayValue":
        return [_value(each) for each in value.get("values", ())]
    return int(value) if kind == "intValue" else value
