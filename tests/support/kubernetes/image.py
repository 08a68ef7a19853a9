"""What the image of a driver has: this machine's Spark and Python, and the entry point of Spark's own image."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from spark_events.spark.conf import spark_home
from tests.support.paths import REPO
from tests.support.requirements import OTELCOL

SPARK = "spark-events"
_ENTRY_POINT = "/opt/entrypoint.sh"
_WORK = "/opt/spark/work-dir"
# As resource-managers/kubernetes/docker/src/main/dockerfiles/spark/entrypoint.sh does, shortened.
_SCRIPT = """\
#!/bin/bash
set -e
readarray -t options < <(env | grep SPARK_JAVA_OPT_ | sort -t_ -k4 -n | sed 's/[^=]*=\\(.*\\)/\\1/g')
path="${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}$SPARK_CLASSPATH:$SPARK_HOME/jars/*:$SPARK_DIST_CLASSPATH"
case "$1" in
  driver)
    shift
    exec "$SPARK_HOME/bin/spark-submit" \\
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \\
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@" ;;
  executor)
    exec "$JAVA_HOME/bin/java" "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \\
      -cp "$path" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \\
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \\
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \\
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME" ;;
  *)
    exec "$@" ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Image:
    """What containers begin with: the files are the same for all, as they are this machine's.

    Attributes:
        layer: the folder that lies above this machine's files.
        shown: the folders of this machine that are at the same path in it.
        environment: its variables.
        work_dir: where it runs.
    """

    layer: Path
    shown: tuple[Path, ...]
    environment: dict[str, str]
    work_dir: str = _WORK

    def entry_point(self, name: str) -> str | None:
        """Return what the image of a name runs, with the container's arguments; None: there is no such image."""
        programs = {
            SPARK: _ENTRY_POINT,
            "otel/opentelemetry-collector-contrib": str(OTELCOL) if OTELCOL.exists() else None,
            "prom/prometheus": shutil.which("prometheus"),
        }
        return programs.get(name.partition(":")[0])


def spark_image(layer: Path) -> Image:
    """Return an image with Spark, and with spark-events in the driver's Python.

    Args:
        layer: an empty folder.
    """
    script = Path(f"{layer}{_ENTRY_POINT}")
    script.parent.mkdir(parents=True)
    script.write_text(_SCRIPT)
    script.chmod(0o755)
    Path(f"{layer}{_WORK}").mkdir(parents=True)
    home, java = spark_home(), java_home()
    assert home is not None
    environment = {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin")),
        "PYTHONPATH": os.pathsep.join(map(str, (REPO, *sorted(REPO.glob("reporters/*"))))),
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(home),
        "HOME": "/root",
        "LANG": "C.UTF-8",
    }
    shown = {REPO, Path(sys.prefix), Path(sys.base_prefix), home, java}
    # One that lies in another is shown with it.
    tops = (
        path for path in shown if not any(path != other and path.is_relative_to(other) for other in shown)
    )
    return Image(layer, tuple(sorted(tops)), environment)


def java_home() -> Path:
    """Return the home of the Java itself: containers have another class path than the tests' archive is of."""
    java = shutil.which("java")
    return Path(java).resolve().parents[1] if java else Path(os.environ["JAVA_HOME"])
