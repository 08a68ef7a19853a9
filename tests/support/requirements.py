"""What a test needs of the machine: without it, it is skipped or, in CI, fails."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

from tests.support.paths import REPO

REQUIRE_ALL = "SPARK_EVENTS_REQUIRE_ALL" in os.environ
OTELCOL = REPO / ".cache" / "otelcol"


def missing(what: str) -> NoReturn:
    """Skip a test for want of something; in CI, fail it."""
    if REQUIRE_ALL:
        pytest.fail(f"{what}, and SPARK_EVENTS_REQUIRE_ALL is set")
    pytest.skip(what)


def need(command: str, package: str) -> str:
    """Return where a command is; without it, skip the test or, in CI, fail it."""
    return shutil.which(command) or missing(f"no {command} on the PATH: apt-get install {package}")
