"""Where the reporter may listen, and what to say where it cannot."""

from __future__ import annotations

import errno
import socket

from spark_events.api import ConfigError, ReporterConfig
from spark_events_prometheus.options import BIND_ADDRESS, PORT

_OF_ONE_PORT = (errno.EADDRINUSE, errno.EACCES, errno.EPERM)


def family_of(address: str) -> socket.AddressFamily:
    """Return the family of sockets for an address, or for a name."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def free_port(address: str, port: int) -> int:
    """Return a port that could be listened on: the given one, or any if that is 0.

    Raises:
        OSError, TypeError, ValueError: it is taken, or the address cannot be listened on.
    """
    with bound(address, port) as candidate:
        return int(candidate.getsockname()[1])


def bound(address: str, port: int) -> socket.socket:
    """Return a socket that is bound to a port as the server's is.

    Raises:
        OSError, TypeError, ValueError: it is taken, or the address cannot be listened on.
    """
    candidate = socket.socket(family_of(address))
    try:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        candidate.bind((address, port))
    except BaseException:
        candidate.close()
        raise
    return candidate


def other_port_may_do(error: Exception) -> bool:
    """Return whether an error is one of the port, and not of the address."""
    of_name = isinstance(error, socket.gaierror)  # which has numbers of its own
    return isinstance(error, OSError) and not of_name and error.errno in _OF_ONE_PORT


def cannot_listen(config: ReporterConfig, error: Exception) -> ConfigError:
    """Return the error of a configuration whose address, or all of whose ports, cannot be listened on."""
    address, ports = config.get(BIND_ADDRESS), config.get(PORT)
    reason = getattr(error, "strerror", None) or error
    if not other_port_may_do(error):
        return ConfigError(
            f"{config.key(BIND_ADDRESS.name)}: cannot listen on {address!r} ({reason}); give an address of "
            "this machine, such as 127.0.0.1 or ::1, or 0.0.0.0 for all"
        )
    shown = f"{ports[0]}-{ports[-1]}" if len(ports) > 1 else str(ports[0])
    return ConfigError(
        f"{config.key(PORT.name)}: cannot listen on port {shown} of {address} ({reason}); "
        "give another port, or a range such as 9249-9260"
    )
