"""Applications that ``spark-events run`` submits to a Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.applications import App, cli
from tests.support.kubernetes.cluster import KubernetesCluster
from tests.support.spark import _BASE_CONF

CLUSTER = ("--deploy-mode", "cluster")
# In cluster mode, Spark itself gives the driver its address.
_OF_DRIVERS_HERE = ("spark.driver.host", "spark.driver.bindAddress")


def submit(
    cluster: KubernetesCluster,
    folder: Path,
    *words: str,
    conf: Mapping[str, str] | None = None,
    program: Sequence[str] = tuple(cli("run")),
) -> App:
    """Start ``spark-events run``, or another program that submits.

    Args:
        cluster: where it runs.
        folder: for its files; drivers in cluster mode see it, too.
        words: of the command line, after the program's.
        conf: more of Spark's settings.
        program: what submits.
    """
    folder.mkdir(exist_ok=True)
    own = cluster.conf()
    in_cluster = words[: len(CLUSTER)] == CLUSTER
    if in_cluster:
        own |= host_path("share", folder)
    else:
        own |= cluster.conf_outside()
    # No file of the user's who runs the tests may say where a cluster is.
    more = {"KUBECONFIG": "/dev/null"}
    return App([*program, *words], {**own, **(conf or {})}, folder, more=more, base=base_conf(in_cluster))


def base_conf(in_cluster: bool) -> dict[str, str]:
    """Return the settings of all tests, as far as they hold for a driver in a pod, or for one here."""
    return {key: value for key, value in _BASE_CONF.items() if not (in_cluster and key in _OF_DRIVERS_HERE)}


def host_path(name: str, folder: Path) -> dict[str, str]:
    """Return the settings with which a driver's pod sees a folder of this machine, at the same path."""
    volume = f"spark.kubernetes.driver.volumes.hostPath.{name}"
    return {f"{volume}.options.path": str(folder), f"{volume}.mount.path": str(folder)}


def local(path: Path) -> str:
    """Return an application's file that the image has, as spark-submit names it in cluster mode."""
    return f"local://{path}"
