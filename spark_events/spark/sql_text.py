"""Names and texts as SQL has them."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(parts: Iterable[str]) -> str:
    """Return the name of a table or a column, by its parts, each between backticks."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def literal(text: str) -> str:
    """Return a text between quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
