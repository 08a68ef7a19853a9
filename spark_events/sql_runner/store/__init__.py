"""The store: manifests, orders, statuses, checkpoints and savepoints, on any file system of fsspec."""
