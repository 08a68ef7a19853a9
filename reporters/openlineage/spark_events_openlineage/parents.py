"""Which run an application is a part of, such as an Airflow task's."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID


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


def parse_parent(text: str) -> ParentRun:
    """Read ``namespace/name/run id``, as OpenLineage's Airflow provider writes it.

    Raises:
        ValueError: it is not of that form.
    """
    namespace, _, rest = text.partition("/")
    name, _, run_id = rest.rpartition("/")
    try:
        UUID(run_id)
    except ValueError:
        name = ""
    if not (namespace and name):
        raise ValueError("<namespace>/<job name>/<run id>, where the run id is a UUID")
    return ParentRun(namespace, name, run_id)
