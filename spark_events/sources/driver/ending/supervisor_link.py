"""How a driver talks to ``spark-events run``, its supervisor: messages of JSON over a socket of this machine.

Imports little: the supervisor is a small process.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any

SOCKET = "SPARK_EVENTS_SUPERVISOR"
"""The environment variable with the path of the socket on which the supervisor listens."""
NEW = "new "
"""How the place of a record in a testament begins that nobody has reported yet."""
RAISED = "raised"
"""The key, in a message and in a testament, of the exception that nobody handled, as Python prints it."""
_LENGTH = struct.Struct("!I")
_MOST_BYTES = 256 << 20
_path: str | None = None


def keep_to_this_process() -> None:
    """Take the path out of the environment: it does not see the ends of applications that this one starts."""
    global _path
    _path = os.environ.pop(SOCKET, None)


def path_of_socket() -> str | None:
    """Return the path of the socket on which this process's own supervisor listens; None if it has none."""
    return _path


@contextlib.contextmanager
def short_path(path: str) -> Iterator[str]:
    """Give a name of a socket that fits its address, which takes about 100 bytes; TMPDIR may be longer.

    Raises:
        OSError: there is no such folder.
    """
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message.

    Raises:
        OSError: the other side is gone, or does not read.
    """
    data = json.dumps(message).encode()
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None if the other side is gone.

    Raises:
        OSError: the connection is broken.
        ValueError: it is not a message.
    """
    head = _read(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > _MOST_BYTES:
        raise ValueError(f"a message of {length} bytes is too large")
    body = _read(connection, length)
    return None if body is None else dict(json.loads(body))


def _read(connection: socket.socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(1 << 20, length - len(data)))
        if not part:
            return None
        data += part
    return bytes(data)
