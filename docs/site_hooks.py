"""What the site does otherwise than the files: ``mkdocs.yml`` names this module."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

_ROOT = Path(__file__).parents[1]
_FIRST_CELL = re.compile(r"(<tr>\s*<td)(>(?:<code>)?)([A-Za-z_][\w.-]*)(?=[,<])")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_FEWEST_LABELED = 3  # of two columns, the second needs no name
_QUOTE = '"'
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\.?/[^)#]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Called when the pages are collected: the changelog is one of them."""
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called with the text of each page: a link to a file of the clone becomes the name of that file."""
    folder = (Path(config["docs_dir"]) / page.file.src_uri).parent

    def name(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target == _ROOT / "CHANGELOG.md":
            return f"[{link[1]}]({os.path.relpath(_ROOT / 'docs' / 'changelog.md', folder)})"
        if target.is_relative_to(config["docs_dir"]):
            return link[0]
        place = f"`{target.relative_to(_ROOT)}`"
        return link[1] if link[1].strip("`") in place else f"{link[1]} ({place})"

    return _LINK.sub(name, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Called with the HTML of each page: the name that begins a row of a table is an anchor."""
    html = html.replace("<p>Example::</p>", "<p><strong>Example:</strong></p>")
    seen = set(re.findall(r'id="([^"]+)"', html))

    def with_id(cell: re.Match[str]) -> str:
        if cell[3] in seen:
            return cell[0]
        seen.add(cell[3])
        return f'{cell[1]} id="{cell[3]}"{cell[2]}{cell[3]}'

    return _TABLE.sub(_labeled, _FIRST_CELL.sub(with_id, html))


def _labeled(table: re.Match[str]) -> str:
    """Return a table in which each cell says which column it is of: on a phone, there are no columns."""
    names = [_TAG.sub("", name).strip() for name in re.findall(r"<th\b[^>]*>(.*?)</th>", table[0], re.DOTALL)]
    if len(names) < _FEWEST_LABELED:
        return table[0]

    def row(cells: re.Match[str]) -> str:
        column = iter(names)

        def cell(start: re.Match[str]) -> str:
            name = next(column, "")
            return (
                f'<td data-label="{name.replace(_QUOTE, "&quot;")}"' if name and name != names[0] else "<td"
            )

        return re.sub(r"<td\b", cell, cells[0])

    return re.sub(r"<tr>.*?</tr>", row, table[0], flags=re.DOTALL)
