"""spark-submit's command line for applications that host queries."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark_events.sql_runner.deploy.launch import submit_command, tail
from spark_events.sql_runner.deploy.placement import Placement

OURS = f"spark.pyspark.driver.python={sys.executable}"


@pytest.mark.parametrize(
    ("options", "conf", "is_ours"),
    [
        ([], {}, True),
        (["--deploy-mode", "client"], {"spark.submit.deployMode": "cluster"}, True),
        (["--conf", "spark.pyspark.python=/opt/py"], {}, False),
        (["--deploy-mode", "cluster"], {}, False),
        (["--deploy-mode=cluster"], {}, False),
        ([], {"spark.submit.deployMode": "cluster"}, False),
        (["--properties-file", "{}/cluster.conf"], {}, False),
    ],
)
def test_which_python_the_driver_has(
    java: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    conf: dict[str, str],
    is_ours: bool,
) -> None:
    """The deployer's own, but for a container: there it has another path, which the cluster's settings say."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cluster.conf").write_text("spark.submit.deployMode cluster\n")
    placement = Placement(master="yarn", options=[word.format(tmp_path) for word in options], conf=conf)
    command = submit_command("/store", "session-default", placement, {}, single=False)
    assert (OURS in command) == is_ours


@pytest.mark.parametrize("size", [0, 10, 1 << 40])
def test_the_end_of_a_log(tmp_path: Path, size: int) -> None:
    """Of months of deployments, only the end is read."""
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write("Tür zu".encode())
    assert tail(log).endswith("Tür zu")
