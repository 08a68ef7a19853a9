"""What users, files and clocks may bring: names, messages, times, numbers, nesting, sizes."""

from __future__ import annotations

from typing import Any

LONG_MESSAGE = 'x\u0001\u001b[31m{"a":1}<script>'
"""Repeated half a million times, it was once too large for the driver bridge."""
TEXTS = {
    "empty": "",
    "blank": " \t ",
    "escape": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J",
    "controls": "".join(map(chr, [*range(1, 32), *range(127, 160)])),
    "nul": "before\0after",
    "lines": "first\nsecond\r\nthird\x0bfourth\x0cfifth\u2028sixth\u2029seventh",
    "markup": "[bold]b[/bold] [/red] <script>alert('x')</script> &amp; {{ 7 * 7 }} {% raw %}",
    "quotes": "\"'`\\ \\n \\u001b %s %(a)s {0} ${HOME} $(id) ; -- /* #",
    "directions": "abc\u202edef\u2066ghi\u2069\u200f\u061c",
    "astral": "\U0001f4a5\U0001f468\u200d\U0001f469\u200d\U0001f466 e\u0301 \ufeff \uffff",
    "half a pair": "half \ud83d of a pair, and \udca5 of another",
    "path": "../../../../etc/passwd/\\..\\.. ~ * ? [a-z]",
    "json": '{"eventName": "JobStatusChangeEvent", "a": [1, {"b": null}]}\n{"c',
    "labels": 'a="b",c=d;e:f|g{h}',
    "long": "a long name " * 10_000,
    "wide": "\u6f22\ud55c\u3042" * 50,
}
"""Texts that a name, a message or a description may be."""
TIMES_MS = (
    -(2**63),
    -1,
    0,
    1,
    946_684_800_000,  # the year 2000, before there was Spark
    253_402_300_800_000,  # the year 10000
    2**63 // 1_000_000,  # the last of which the ns are a signed number
    2**64 // 1_000_000,
    2**63 - 1,
    2**63,
    10**30,
)
"""What a broken clock may tell, in ms since the epoch."""
NUMBERS: tuple[Any, ...] = (
    *TIMES_MS,
    1e308,
    -1e-308,
    float("nan"),
    float("inf"),
    float("-inf"),
    True,
    None,
    "17",
    "seventeen",
    "",
    [],
    [1],
    {},
    {"a": 1},
)
"""What may stand where a number is expected."""
STEERING = frozenset(
    chr(code)
    for code in (
        *range(32),
        *range(127, 160),
        0x61C,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),
    )
) - {"\n"}
"""What may not reach a terminal from a text of users; lines of our own end with a newline."""


def steering(text: str) -> set[str]:
    """Return what in a text would steer a terminal."""
    return STEERING.intersection(text)


def nested(levels: int) -> Any:
    """Return a list within a list, and so on."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value
