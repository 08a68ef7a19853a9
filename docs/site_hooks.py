"""What the site does otherwise than the files: ``mkdocs.yml`` names this module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

_ROOT = Path(__file__).parents[1]
_FIRST_CELL = re.compile(r"(<tr>\s*<td)(>(?:<code>)?)([A-Za-z_][\w.-]*)(?=[,<])")
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

    return _FIRST_CELL.sub(with_id, html)
