"""An OTLP gRPC server that notes when each log record came in."""

from __future__ import annotations

import time
from concurrent import futures
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)


class Sink(LogsServiceServicer):
    """Keeps, for each record, its event name, its job kind, its own time and the time of receipt, in ns."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, int, int]] = []
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        add_LogsServiceServicer_to_server(self, self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Export(self, request: Any, context: Any) -> ExportLogsServiceResponse:  # noqa: N802 - gRPC's name
        """Take one request."""
        now = time.time_ns()
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    kinds = [a.value.string_value for a in record.attributes if a.key == "job_kind"]
                    self.received.append((record.event_name, kinds[0], record.time_unix_nano, now))
        return ExportLogsServiceResponse()

    def close(self) -> None:
        """Stop serving."""
        self._server.stop(0).wait()
