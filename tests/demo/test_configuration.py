"""The configuration that the demo runs with: its own, whatever the user's is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.demo import demonstration
from spark_events.listeners.settings import turned_off
from spark_events.spark.conf import default_properties_file


class StartedError(Exception):
    """Raised in place of a session's start."""


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_the_users_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Else its spans and events would go where the user's real ones go."""
    users = tmp_path / ("conf" if variable == "SPARK_HOME" else "")
    users.mkdir(exist_ok=True)
    (users / "spark-defaults.conf").write_text("spark.traces.reporter.f.factory.class file_log")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("SPARK_EVENTS_ENABLED", "false")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.events.reporter.x.path=/x pyspark-shell")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    before = dict(os.environ)
    seen: list[Mapping[str, str]] = []

    def start(_: str, conf: Mapping[str, str]) -> None:
        seen.append(conf)
        assert default_properties_file() is None
        assert os.listdir(os.environ["SPARK_CONF_DIR"]) == []
        assert turned_off(conf) == ""
        assert "PYSPARK_SUBMIT_ARGS" not in os.environ
        raise StartedError

    monkeypatch.setattr(demonstration, "start_session", start)
    monkeypatch.setattr(demonstration, "ensure_java", lambda: "Java")
    with pytest.raises(StartedError):
        demonstration.run_demo(demonstration.DemoOptions(None, "grpc", "0", "5s"), tmp_path, lambda _: None)

    assert len(seen) == 1
    assert dict(os.environ) == before


def test_what_is_missing_is_said_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one command that brings all of it."""

    def find_spec(package: str) -> object:
        return None if package in ("pyspark", "prometheus_client", "cramjam", "fsspec") else object()

    monkeypatch.setattr(demonstration, "find_spec", find_spec)
    options = demonstration.DemoOptions(None, "grpc", "0", "5s")
    with pytest.raises(ConfigError, match=r"pip install 'spark-events\[eventlog,prometheus,spark\]'"):
        demonstration.run_demo(options, tmp_path, print)
