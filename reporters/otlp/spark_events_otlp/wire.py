"""Puts serialised messages into a message around them, without parsing them.

A record is serialised once, when it happens, and sent perhaps much later; to parse it only to have it
serialised again would cost more than everything else about sending it.
"""

from __future__ import annotations


def field(number: int, message: bytes) -> bytes:
    """Return a message as a field of the message around it, as protobuf writes it.

    Args:
        number: of the field, from 1 to 15.
        message: serialised.
    """
    head = bytearray((number << 3 | 2,))
    size = len(message)
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + message
