"""Writes lineage as Markdown, for the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spark_events.api import printable
from spark_events.api.toolkit.formatting import cut
from spark_events.lineage.diagrams import mermaid
from spark_events.lineage.drawing import Drawing

MOST_CHARACTERS = 65_536
"""Of a comment on GitHub."""
_MOST_OF_DIAGRAM, _MOST_ARROWS = 28_000, 400
"""What GitHub still draws: Mermaid refuses more than 50,000 characters, or more than 500 arrows."""
_MOST_OF_SECTION = 12_000
_LONGEST_CELL = 300
_LEFT_OUT = "\n… and {:,} more; `--format json` has all."


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with a table, or with a list if there is one column only.

    Attributes:
        none: what is said in place of an empty table; without it, the section is left out.
        is_folded: whether it is shown only when it is opened.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    none: str = ""
    is_folded: bool = False


def lineage_markdown(sections: Iterable[Section], drawing: Drawing) -> str:
    """Return sections and a diagram of what is near, within what a comment on GitHub may have.

    Args:
        sections: in their order; the diagram stands before the folded ones.
        drawing: of the graph.
    """
    shown = [section for section in sections if section.rows or section.none]
    parts = [_section(section) for section in shown if not section.is_folded]
    parts.append(_diagram(drawing.near()))
    parts += [_section(section) for section in shown if section.is_folded]
    text = "\n\n".join(parts)
    while len(text) > MOST_CHARACTERS:  # the last ones matter least
        parts.pop()
        text = "\n\n".join([*parts, "… and more; `--format json` has all."])
    return text


def _diagram(drawing: Drawing) -> str:
    if not drawing.nodes:
        return "Nothing to draw."
    text = mermaid(drawing)
    if len(text) > _MOST_OF_DIAGRAM or len(drawing.arrows) > _MOST_ARROWS:
        return (
            f"A graph of {len(drawing.nodes):,} tables and {len(drawing.arrows):,} jobs is too large for a "
            "diagram here; `--html` draws it."
        )
    return f"```mermaid\n{text}\n```"


def _section(section: Section) -> str:
    body = "\n".join(_rows(section)) if section.rows else section.none
    if section.is_folded:
        return f"<details><summary>{section.heading}</summary>\n\n{body}\n\n</details>"
    return f"### {section.heading}\n\n{body}"


def _rows(section: Section) -> Iterator[str]:
    """Yield the lines of a table, or of a list, as long as there is room."""
    is_list = len(section.columns) < 2
    if not is_list:
        yield f"| {' | '.join(section.columns)} |"
        yield f"| {' | '.join(['---'] * len(section.columns))} |"
    length = 0
    for number, row in enumerate(section.rows):
        cells = [code(text) for text in row]
        line = f"- {cells[0]}" if is_list else f"| {' | '.join(cells)} |"
        length += len(line) + 1
        if length > _MOST_OF_SECTION:
            yield _LEFT_OUT.format(len(section.rows) - number)
            return
        yield line


def code(text: str) -> str:
    """Return a text as code, which Markdown takes as it is."""
    if not text:
        return ""
    words = cut(printable(text), _LONGEST_CELL)
    return f"`{words.replace('`', chr(39)).replace('|', chr(92) + '|')}`"
