"""Writes lineage as Markdown, for the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_events.api import printable
from spark_events.lineage.data_flow import DataFlow
from spark_events.lineage.diagrams import mermaid


def lineage_markdown(
    flow: DataFlow, affected: tuple[str, Sequence[Sequence[str]]] | None, problems: Iterable[str]
) -> str:
    """Return a table of flows, their diagram, and what a change of one column affects.

    Args:
        flow: the graph.
        affected: a column, and what it contributes to: data, column, how, job; None if that is not asked.
        problems: what cannot be analyzed.
    """
    rows = [
        (each.job, flow.title(source), flow.title(sink))
        for (source, sink), jobs in flow.flows.items()
        for each in jobs.values()
    ]
    parts = ["### Lineage", _table(("job", "reads", "writes"), rows), f"```mermaid\n{mermaid(flow)}\n```"]
    if affected is not None:
        column, reached = affected
        parts.append(f"### What {_cell(column)} contributes to")
        parts.append(_table(("data", "column", "how", "job"), reached) if reached else "Nothing.")
    if listed := [f"- {_cell(problem)}" for problem in problems]:
        parts += ["### Cannot be analyzed", "\n".join(listed)]
    return "\n\n".join(parts)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Return a text as code, which Markdown takes as it is."""
    return f"`{printable(text).replace('`', chr(39)).replace('|', chr(92) + '|')}`" if text else ""
