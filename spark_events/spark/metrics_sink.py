"""Settings with which Spark's own metrics system sends to us: its GraphiteSink, and its source of the JVM."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

INSTANCES = ("driver", "executor")
"""Those that send; not ``*``, for a standalone cluster's own processes may read the same file."""
_SINK = "spark.metrics.conf.{}.sink.sparkEvents."
DRIVER_SINK = _SINK.format("driver")
"""A sink of its own name, beside those that you have configured."""
NAMESPACE = "spark.metrics.namespace"
_DRIVER_HOST = "spark.driver.host"


def sink_settings(conf: Mapping[str, str], port: int, token: str) -> dict[str, str]:
    """Return Spark's settings that let the driver and all executors send their metrics to the driver.

    Args:
        conf: Spark's configuration so far; its own values of these settings are kept.
        port: where the driver receives them.
        token: what each name begins with; empty for none.
    """
    settings: dict[str, str] = {}
    for instance in INSTANCES:
        sink = {
            "class": "org.apache.spark.metrics.sink.GraphiteSink",
            "host": driver_host(conf),
            "port": str(port),
            "protocol": "tcp",
            "period": "10",
            "unit": "seconds",
            **({"prefix": token} if token else {}),
        }
        settings |= {_SINK.format(instance) + key: value for key, value in sink.items()}
        source = f"spark.metrics.conf.{instance}.source.jvm.class"
        settings[source] = "org.apache.spark.metrics.source.JvmSource"
    return {key: value for key, value in settings.items() if key not in conf}


def missing_lines(conf: Mapping[str, str], ports: range | None) -> str | None:
    """Return what to do if a port is configured, but Spark is not told to send there; None if all is well."""
    if ports is None or f"{DRIVER_SINK}port" in conf:
        return None
    lines = (f"  {key} {value}" for key, value in sink_settings(conf, ports[0], "").items())
    return (
        "spark.metrics.executors.sink.port: spark-events run tells Spark to send its metrics there; if you "
        "attach in your code, add these lines to spark-defaults.conf, with the host at which executors reach "
        "the driver:\n" + "\n".join(lines)
    )


def driver_host(conf: Mapping[str, str]) -> str:
    """Return where executors reach the driver: as configured, or by this machine's outward address."""
    configured = conf.get(_DRIVER_HOST) or os.environ.get("SPARK_LOCAL_HOSTNAME")
    configured = configured or os.environ.get("SPARK_LOCAL_IP")
    if configured:
        return configured
    if conf.get("spark.master", "local").startswith("local"):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the system chooses the interface
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])


def first_free(ports: range) -> int:
    """Return the first port of a range that nobody listens on; the last where there is none."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    return ports[-1]
