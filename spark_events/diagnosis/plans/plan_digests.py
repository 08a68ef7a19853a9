"""What tells whether two parts of plans do the same: digests of their nodes, from below to above."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple

from spark_events.diagnosis.plans.column_meanings import ColumnMeanings
from spark_events.diagnosis.plans.node import FILES, Node, without_ids
from spark_events.diagnosis.plans.shared_work import is_heavy, work_of

_IN_PYTHON = re.compile(r"Python|InPandas|InArrow", re.ASCII)
_RESULT = re.compile(r"\)(#\d+)", re.ASCII)
"""Of a call in the text of such a node."""


class Digest(NamedTuple):
    """What a node and all below it do; it is not comparable if others may have computed a part of it.

    Attributes:
        reads_cache: whether it does no more than to read what is cached.
        functions: tells the functions in Python that are called from others; 0 if none are. One that is
            made anew, or a DataFrame that is, has another number, too.
    """

    name: str
    size: int
    comparable: bool = True
    heavy: bool = False
    reads_cache: bool = False
    functions: int = 0


def digest_of(node: Node, is_cached: bool, below: list[Digest], not_kept: tuple[str, ...]) -> Digest:
    """Return the digest of a node, from those of its children.

    Args:
        is_cached: whether a cache is to keep what it makes.
        below: the digests of its children.
        not_kept: how the names of nodes begin that no cache could keep.
    """
    digest = sha256()
    parts = [without_ids(node.text), node.metadata.get("Location", ""), str(is_cached)]
    if not node.children and not is_cached:  # each time, a cache computes what it lacks
        parts += [str(node.rows), *(str(node.metrics.get(name)) for name in FILES)]
    for part in (*parts, *(each.name for each in below)):
        digest.update(part.encode(errors="replace") + b"\n")
    own = not node.name.startswith(not_kept)
    size = 1 + sum(each.size for each in below)
    reads_cache = bool(below) and all(each.reads_cache for each in below) and not is_heavy(node)
    comparable = own and all(each.comparable for each in below)
    functions = _functions(node, below)
    return Digest(digest.hexdigest()[:16], size, comparable, reads_cache=reads_cache, functions=functions)


def digest_of_work(
    node: Node, columns: ColumnMeanings, below: list[Digest], not_kept: tuple[str, ...]
) -> Digest:
    """Return the digest of what a node does, from those of its children."""
    digest = sha256(b"work\n")
    if node.is_cut:  # what is cut may differ
        digest.update(f"{node.rows} rows\n".encode())
    for part in (work_of(node, columns), *(each.name for each in below)):
        digest.update(part.encode(errors="replace") + b"\n")
    comparable = not node.name.startswith(not_kept) and all(each.comparable for each in below)
    heavy = is_heavy(node) or any(each.heavy for each in below)
    size, functions = 1 + sum(each.size for each in below), _functions(node, below)
    return Digest(digest.hexdigest()[:16], size, comparable, heavy, functions=functions)


def _functions(node: Node, below: list[Digest]) -> int:
    """Return the number of the functions that a node and those below it call; see ``Digest``.

    Plans have their names only, which several may share, and an id for the result of each call, which all
    plans that are made of the same DataFrame have.
    """
    own = _RESULT.findall(node.text) if _IN_PYTHON.search(node.name) else ()
    parts = (*own, *(each.functions for each in below if each.functions))
    return hash(parts) if parts else 0
