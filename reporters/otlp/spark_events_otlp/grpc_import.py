"""Imports gRPC with settings that suit a driver.

- Without its fork handlers. With them, each process that the driver starts by fork and exec (PySpark's JVM,
  and whatever ``subprocess`` starts with ``preexec_fn``) waits for gRPC's threads, writes lines of gRPC to
  standard error, and may hang before it begins (grpc/grpc issues 17986 and 22624). No child of a driver goes
  on with the driver's channels.
- Without a line on standard error for each handshake that fails, which is about one a second for as long as a
  certificate is wrong. Its own documentation says that only errors are logged unless it is told otherwise.

A value that is set already stays. gRPC reads them once, when it is loaded.
"""

from __future__ import annotations

import os

_SETTINGS = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "ERROR"}

_added = {name: value for name, value in _SETTINGS.items() if name not in os.environ}
os.environ.update(_added)
try:
    import grpc
finally:
    for name in _added:
        del os.environ[name]

__all__ = ["grpc"]
