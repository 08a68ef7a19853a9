"""The paths of everything in the store."""

from __future__ import annotations

import hashlib
import uuid

MANIFESTS = "manifests"
HOSTS = "hosts"
LOCKS = "locks"
DEPLOY_LEASE = "locks/deploy"
FOLDERS = frozenset((MANIFESTS, HOSTS, LOCKS, "checkpoints", "savepoints", "history", "targets"))
"""The folders of a store: there is at least one of them once somebody has tried to deploy."""
SESSION, APPLICATION = "session-", "application-"
"""The prefixes of the names of applications that host queries: of many, and of one."""
SAVEPOINT_COMPLETE = "_metadata"
"""The file that a savepoint gets last; one without it is not whole."""


def manifest(name: str) -> str:
    """Return the file of the deployed manifest."""
    return f"{MANIFESTS}/{name}.yaml"


def checkpoints(name: str, version: int | None = None) -> str:
    """Return the folder with the checkpoints of a query, or of one of its versions."""
    return f"checkpoints/{name}" if version is None else f"checkpoints/{name}/{version}"


def savepoints(name: str, version: int | None = None) -> str:
    """Return the folder with the savepoints of a query, or of one of its versions."""
    return f"savepoints/{name}" if version is None else f"savepoints/{name}/{version}"


def savepoint(name: str, version: int, savepoint_id: str) -> str:
    """Return the folder of a savepoint."""
    return f"{savepoints(name, version)}/savepoint-{savepoint_id}"


def history(name: str) -> str:
    """Return the folder with a file for each deployment of a query."""
    return f"history/{name}"


def host(name: str) -> str:
    """Return the folder of an application that runs queries."""
    return f"{HOSTS}/{name}"


def target(folder: str) -> str:
    """Return the file that says which checkpoint's query was the last to write into a folder of files."""
    return f"targets/{hashlib.sha256(folder.encode()).hexdigest()[:20]}.json"


def host_lease(host: str) -> str:
    """Return the folder of the lease of an application that runs queries."""
    return f"{HOSTS}/{host}/lease"


def orders(host: str) -> str:
    """Return the file with the orders for an application."""
    return f"{HOSTS}/{host}/wanted.json"


def status(host: str) -> str:
    """Return the file with the status of an application."""
    return f"{HOSTS}/{host}/status.json"


def ended(host: str) -> str:
    """Return the file that marks an application as ended on request."""
    return f"{HOSTS}/{host}/ended.json"


def starting(host: str) -> str:
    """Return the file that marks an application that is being started."""
    return f"{HOSTS}/{host}/starting.json"


def end_request(host: str) -> str:
    """Return the file that asks an application to stop its queries and end."""
    return f"{HOSTS}/{host}/end.json"


def new_id() -> str:
    """Return an id for an order, a checkpoint, a savepoint or an entry: twelve letters and digits."""
    return uuid.uuid4().hex[:12]
