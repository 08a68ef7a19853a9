"""What ``attach`` does where the driver's JVM is not as it should be, which no real one can be made to show."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from spark_events.api import ApplicationInfo, ConfigError
from spark_events.api.errors import NothingToAttachToError
from spark_events.sources.attaching import attachment
from spark_events.sources.attaching.attach_targets import AttachTarget

CONF = {"spark.app.name": "x", "spark.app.id": "a-1", "spark.events.reporter.c.factory.class": "console"}
Fails = Callable[..., Any]


def raising(error: Exception) -> Fails:
    def fail(*given: object) -> Any:
        raise error

    return fail


def no_class() -> Exception:
    """What Py4J raises where the JVM has no such class, as Janino's."""
    return TypeError("'JavaPackage' object is not callable")


def target(make_source: Fails, conf: Callable[[], Mapping[str, str]] = lambda: CONF) -> AttachTarget:
    return AttachTarget(
        "a-1", conf, lambda conf: ApplicationInfo("x", "a-1"), lambda: "3.5", True, make_source
    )


@pytest.mark.parametrize(
    "failing",
    [
        lambda given: target(raising(no_class())),
        lambda given: target(raising(ConfigError("spark.x: 1 is too few"))),
        lambda given: target(raising(no_class()), raising(OSError("gone"))),
        raising(ConnectionRefusedError("the JVM is gone")),
    ],
    ids=["no class", "a configuration", "no configuration", "no JVM"],
)
def test_whatever_fails_the_application_continues(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failing: Fails
) -> None:
    """The log has it; only ``strict`` raises it."""
    monkeypatch.setattr(attachment, "target_of", failing)
    with caplog.at_level(logging.ERROR):
        assert not attachment.attach_to(object(), False, None).active  # type: ignore[arg-type]
    assert caplog.records
    with pytest.raises((TypeError, ConfigError, OSError)):
        attachment.attach_to(object(), True, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_no_session_is_refused(strict: bool) -> None:
    with pytest.raises(
        NothingToAttachToError, match="takes a SparkSession or a SparkContext, and was given: str"
    ):
        attachment.attach_to("spark", strict, None)  # type: ignore[arg-type]
