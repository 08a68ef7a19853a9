"""Executors that stages ask for by resource profiles, which may be given other memory than the settings say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
import pytest

from tests.support.applications import App
from tests.support.executors import losses_without_memory, observed, replay
from tests.support.file_log import file_events
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
MIB = 1 << 20


def test_what_each_was_given(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a profile that was there before attach and of one that came later; a replay says the same."""
    # Where a cluster on this machine finds the scripts to start executors with.
    monkeypatch.setenv("SPARK_HOME", os.path.dirname(pyspark.__file__))
    conf, _ = observed(tmp_path)
    conf = {
        **conf,
        "spark.master": "local-cluster[2,1,1024]",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "0",
    }
    run = App([sys.executable, str(APPS / "resource_profiles.py")], conf, tmp_path).end()
    assert (run.code, run.out) == (0, "3\n3\n"), run.err[-3000:]

    lost = losses_without_memory(file_events(tmp_path / "live"))
    limits = {(of_one["reason"], of_one["memoryLimit.heap"] // MIB) for of_one in lost.values()}
    assert limits == {("application_ended", 600), ("application_ended", 700)}
    assert losses_without_memory(replay(tmp_path / "logs", tmp_path / "replayed")) == lost
