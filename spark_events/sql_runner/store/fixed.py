"""The properties that a checkpoint fixes: Spark takes them from there, whatever the session says."""

from __future__ import annotations

import json

from spark_events.sql_runner.store.store import Store

_OFFSETS = "offsets"


def fixed_properties(store: Store, checkpoint: str) -> dict[str, str]:
    """Return the properties with which a checkpoint's last micro-batch began; none before the first.

    Spark writes them beside the offsets, such as the number of shuffle partitions and the state store's
    provider, since its state depends on them.

    Args:
        store: has the checkpoint.
        checkpoint: its folder, or that of a savepoint, from the store's.

    Raises:
        StoreError: the store cannot be read.
    """
    batches = [int(name) for name in store.names(f"{checkpoint}/{_OFFSETS}") if name.isdecimal()]
    data = store.read(f"{checkpoint}/{_OFFSETS}/{max(batches)}") if batches else None
    if data is None:
        return {}
    try:
        _, metadata, *_ = data.decode().splitlines()
        return {str(key): str(value) for key, value in json.loads(metadata)["conf"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # not a log that we know: nothing can be said about it
