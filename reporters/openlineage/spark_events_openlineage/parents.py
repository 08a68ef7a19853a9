"""Which run an application is a part of, such as an Airflow task's, and which it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from spark_events.api import ConfigError

_PREFIX = "spark.openlineage."


class ParentRun(NamedTuple):
    """A run.

    Attributes:
        namespace: of its job.
        name: of its job.
        run_id: a UUID.
    """

    namespace: str
    name: str
    run_id: str


class Dependency(NamedTuple):
    """A job, or one run of it, that has to complete first.

    Attributes:
        namespace: of the job.
        name: of the job.
        run_id: a UUID; empty for any run.
    """

    namespace: str
    name: str
    run_id: str = ""


def parse_dependency(text: str) -> Dependency:
    """Read ``namespace/name/run id`` or ``namespace/name``.

    Raises:
        ValueError: it is not of that form.
    """
    namespace, _, rest = text.partition("/")
    name, _, last = rest.rpartition("/")
    if namespace and name and _is_uuid(last):
        return Dependency(namespace, name, last)
    if namespace and rest:
        return Dependency(namespace, rest)
    raise ValueError("<namespace>/<job name>/<run id> or <namespace>/<job name>, where the run id is a UUID")


def parse_parent(text: str) -> ParentRun:
    """Read ``namespace/name/run id``, as OpenLineage's Airflow provider writes it.

    Raises:
        ValueError: it is not of that form.
    """
    namespace, _, rest = text.partition("/")
    name, _, run_id = rest.rpartition("/")
    if not (namespace and name and _is_uuid(run_id)):
        raise ValueError("<namespace>/<job name>/<run id>, where the run id is a UUID")
    return ParentRun(namespace, name, run_id)


def parent_of_properties(conf: Mapping[str, str], role: str) -> ParentRun | None:
    """Return the run that Spark's properties name, as Airflow's SparkSubmitOperator sets them.

    Args:
        conf: Spark's configuration.
        role: ``parent``, or ``rootParent`` for the outermost run.

    Returns:
        The run; None without its id, which alone makes a job's name a run.

    Raises:
        ConfigError: the id is not a UUID, or the job has no name or no namespace.
    """
    keys = [f"{_PREFIX}{role}{part}" for part in ("JobNamespace", "JobName", "RunId")]
    namespace, name, run_id = (conf.get(key, "") for key in keys)
    if not run_id:
        return None
    if not _is_uuid(run_id):
        raise ConfigError.of_value(keys[2], run_id, "the UUID of a run")
    if missing := [key for key, value in zip(keys, (namespace, name), strict=False) if not value]:
        raise ConfigError(f"{missing[0]}: missing; {keys[2]} names a run only together with its job")
    return ParentRun(namespace, name, run_id)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
