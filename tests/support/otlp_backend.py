"""An OTLP destination that answers as it is told, over gRPC and HTTP.

A fake, for answers that a real collector cannot be made to give by itself. It also stands behind a real
collector that passes its answers on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from spark_events_otlp.grpc_import import grpc

_GRPC_OF_HTTP = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}


@dataclass(frozen=True)
class Answer:
    """What the backend says to a request.

    Attributes:
        code: of HTTP; gRPC's that stands for it.
        retry_after_s: what it asks for.
        rejected: partial success.
        reason: why, in a partial success.
        delay_s: how long it takes.
        packed: whether gRPC's answer is compressed.
        body: of HTTP, in place of an OTLP answer.
        headers: of HTTP.
    """

    code: int = 200
    retry_after_s: int | None = None
    rejected: int = 0
    reason: str = "as told"
    delay_s: float = 0.0
    packed: bool = False
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def response(self) -> ExportLogsServiceResponse:
        response = ExportLogsServiceResponse()
        if self.rejected:
            response.partial_success.rejected_log_records = self.rejected
            response.partial_success.error_message = self.reason
        return response

    @property
    def metrics_response(self) -> ExportMetricsServiceResponse:
        response = ExportMetricsServiceResponse()
        if self.rejected:
            response.partial_success.rejected_data_points = self.rejected
            response.partial_success.error_message = self.reason
        return response


@dataclass
class Request:
    """One request that came.

    Attributes:
        ids: the ``event.id`` of each record, in order.
        headers: of HTTP or gRPC, in lower case.
        at: a time of ``time.monotonic``.
        size: in bytes, before compression.
    """

    ids: list[str]
    headers: dict[str, str]
    at: float
    size: int


class Backend(LogsServiceServicer):
    """Answers each request as ``behave`` says, and keeps what it took.

    Args:
        behave: from a request to the answer.
    """

    def __init__(self, behave: Callable[[Request], Answer] = lambda request: Answer()) -> None:
        self.behave = behave
        self.requests: list[Request] = []
        self.taken: list[str] = []
        self.taken_metrics: list[ExportMetricsServiceRequest] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {key.lower(): value for key, value in self.headers.items()}
                of_metrics = self.path.endswith("/v1/metrics")
                answer = (backend.take_metrics if of_metrics else backend.take)(body, headers)
                response = answer.metrics_response if of_metrics else answer.response
                content = response.SerializeToString() if answer.body is None else answer.body
                self.send_response(answer.code)
                if answer.retry_after_s is not None:
                    self.send_header("Retry-After", str(answer.retry_after_s))
                sent = {"Content-Type": "application/x-protobuf", **answer.headers}
                for key, value in {**sent, "Content-Length": str(len(content))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        self._grpc = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        add_LogsServiceServicer_to_server(self, self._grpc)
        self.grpc = f"http://127.0.0.1:{self._grpc.add_insecure_port('127.0.0.1:0')}"
        self._grpc.start()
        self.http = f"http://127.0.0.1:{self._http.server_port}"

    def take(self, body: bytes, headers: dict[str, str]) -> Answer:
        message = ExportLogsServiceRequest.FromString(body)
        ids = [
            next(a.value.string_value for a in record.attributes if a.key == "event.id")
            for resource in message.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]
        request = Request(ids, headers, time.monotonic(), len(body))
        answer = self.behave(request)
        time.sleep(answer.delay_s)  # to be slow is what it is told
        self.requests.append(request)
        if answer.code == 200:
            self.taken += ids
        return answer

    def take_metrics(self, body: bytes, headers: dict[str, str]) -> Answer:
        """Take one request of metrics, over HTTP alone."""
        request = Request([], headers, time.monotonic(), len(body))
        answer = self.behave(request)
        self.requests.append(request)
        if answer.code == 200:
            self.taken_metrics.append(ExportMetricsServiceRequest.FromString(body))
        return answer

    def Export(self, request: Any, context: Any) -> ExportLogsServiceResponse:  # noqa: N802 - gRPC's name
        metadata = {pair.key: pair.value for pair in context.invocation_metadata()}
        answer = self.take(request.SerializeToString(), metadata)
        if answer.code != 200:
            status = Status(code=_GRPC_OF_HTTP[answer.code].value[0], message="as told")
            if answer.retry_after_s is not None:
                info = RetryInfo()
                info.retry_delay.FromSeconds(answer.retry_after_s)
                detail = AnyMessage()
                detail.Pack(info)
                status.details.append(detail)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(_GRPC_OF_HTTP[answer.code], status.message)
        if answer.packed:
            context.set_compression(grpc.Compression.Gzip)
        return answer.response

    def close(self) -> None:
        self._grpc.stop(0).wait()
        self._http.shutdown()
        self._http.server_close()
