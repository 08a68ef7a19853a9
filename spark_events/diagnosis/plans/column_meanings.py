"""What the columns of a plan are made of, whatever ids Spark gives them.

A view is resolved anew each time that it is used, and a function that builds a DataFrame builds it anew at
each call: what they do is the same, and their columns have other ids.
"""

from __future__ import annotations

import re
from hashlib import sha256

from spark_events.diagnosis.plans.node import Node, items

_NAMED = re.compile(r"([A-Za-z_][\w.]*)#(\d+)L?", re.ASCII)
_AS = " AS "
_UNNAMED = "UDF("
"""How Spark calls a function that has no name: two of them look alike, whatever they do."""


class ColumnMeanings:
    """Knows of the columns of one plan what they are made of; it is told of nodes from below to above."""

    def __init__(self) -> None:
        self._meanings: dict[str, str] = {}
        self._misses_some = False

    def take(self, node: Node) -> None:
        """Take the columns that a node adds; of a list that is cut, nobody knows the rest."""
        if node.name.startswith(("Scan ", "BatchScan ")):
            source = f"{node.name} {node.metadata.get('Location', '')}"
            for name, number in _NAMED.findall(node.text):
                self._meanings.setdefault(number, _digest(f"{name} of {source}"))
            return
        self._misses_some = self._misses_some or node.is_cut
        for item in items(node.text) if _AS in node.text else ():
            expression, separator, named = item.rpartition(_AS)
            alias = _NAMED.fullmatch(named.strip())
            if separator and alias is not None:
                is_unknown = _UNNAMED in expression
                made = named.strip() if is_unknown else self.in_text(expression.strip())
                self._meanings.setdefault(alias[2], _digest(made))

    def in_text(self, text: str) -> str:
        """Return a node's text, in which each column is named by what it is made of instead of by its id.

        Columns of which nobody knows that keep their ids if they may be among those that were cut, else
        their names: those of an aggregation say what it adds up.
        """
        return _NAMED.sub(self._meant, text)

    def _meant(self, column: re.Match[str]) -> str:
        name, number = column.groups()
        meaning = self._meanings.get(number)
        if meaning is not None:
            return f"{{{meaning}}}"
        return column[0] if self._misses_some else name


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:16]
