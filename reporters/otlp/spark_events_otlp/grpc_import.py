"""Imports gRPC without its fork handlers.

With them, each process that the driver starts by fork and exec (PySpark's JVM, and whatever ``subprocess``
starts with ``preexec_fn``) waits for gRPC's threads, writes lines of gRPC to standard error, and may hang
before it begins (grpc/grpc issues 17986 and 22624). No child of a driver goes on with the driver's channels.
A value that is set already stays. gRPC reads it once, when it is loaded.
"""

from __future__ import annotations

import os

_SWITCH = "GRPC_ENABLE_FORK_SUPPORT"

if _SWITCH in os.environ:
    import grpc
else:
    os.environ[_SWITCH] = "0"
    try:
        import grpc
    finally:
        del os.environ[_SWITCH]

__all__ = ["grpc"]
