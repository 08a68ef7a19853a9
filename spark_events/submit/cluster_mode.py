"""``spark-events run`` in cluster mode: the driver's Python attaches there, by configuration alone.

The driver runs in a container, where Spark starts the interpreter that ``spark.pyspark.driver.python`` names,
as in client mode. The application, its name and its arguments stay what they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_events.api.errors import UsageError

DRIVER_PYTHON = "spark.pyspark.driver.python"
PYTHON = "spark.pyspark.python"
LAUNCHER = "spark-events-python"
USERS_PYTHON = "SPARK_EVENTS_DRIVER_PYTHON"
"""The environment variable that says which interpreter the user asked for."""
_FILES = "spark.yarn.dist.files"
_SCRIPT = Path(__file__).with_name("driver_python.sh")


@dataclass(frozen=True, slots=True)
class _Cluster:
    """How a cluster starts a driver's Python.

    Attributes:
        python: what it is to start instead of the user's interpreter.
        environment: what keys of variables of the driver's environment begin with.
        ships: whether spark-submit brings it there; otherwise it is a part of the driver's image.
    """

    python: str
    environment: str
    ships: bool


_YARN = _Cluster(f"./{LAUNCHER}", "spark.yarn.appMasterEnv.", ships=True)
_KUBERNETES = _Cluster(LAUNCHER, "spark.kubernetes.driverEnv.", ships=False)


def cluster_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which a driver in cluster mode attaches by itself.

    Args:
        conf: the configuration that spark-submit will read.

    Raises:
        UsageError: the cluster runs no Python driver, or not by Spark's configuration.
    """
    cluster = _cluster_of(conf.get("spark.master") or os.environ.get("MASTER") or "")
    settings = {DRIVER_PYTHON: cluster.python}
    if cluster.ships:
        settings[_FILES] = ",".join(filter(None, (conf.get(_FILES), f"{_SCRIPT.as_uri()}#{LAUNCHER}")))
    if users := _users_python(conf, cluster):
        settings[f"{cluster.environment}{USERS_PYTHON}"] = users
    return settings


def _cluster_of(master: str) -> _Cluster:
    if master == "yarn":
        return _YARN
    if master.startswith("k8s://"):
        return _KUBERNETES
    raise UsageError(
        f"deploy mode 'cluster' with master {master!r}: spark-events run supports it on YARN and Kubernetes; "
        "spark-submit refuses Python there: use --deploy-mode client, or see docs/deploy/standalone.md"
    )


def _users_python(conf: Mapping[str, str], cluster: _Cluster) -> str | None:
    """Return the interpreter that the configuration names for the driver; None leaves it to the cluster.

    The script that is shipped to YARN reads the variables itself, where they are set.
    """
    variables = () if cluster.ships else ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
    keys = (DRIVER_PYTHON, PYTHON, *(cluster.environment + name for name in variables))
    return next(filter(None, map(conf.get, keys)), None)
