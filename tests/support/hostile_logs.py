"""Event logs with a hostile text wherever a text can be."""

from __future__ import annotations

import json
from typing import Any

from tests.support import spark_records as r


def log_of(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def application(text: str) -> tuple[dict[str, Any], ...]:
    return (
        r.application_start(**{"App Name": text}),
        r.query_started(10, name=text),
        r.job_start(20, 1, group=text, spark__job__description=text),
        r.execution("Start", 30, 7, description=text),
        r.stage("Submitted", 40),
        r.stage("Completed", 50, reason=text),
        r.execution("End", 60, 7, errorMessage=text),
        r.job_end(70, 1, text),
        r.executor("Removed", 75, **{"Removed Reason": text}),
        r.terminated(exception=text or "x", time=r.T0 + 80),
        r.application_end(90),
    )
