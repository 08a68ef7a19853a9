"""What the site makes of a page's HTML."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mkdocs")

from docs.site_hooks import on_page_content, on_page_markdown
from tests.support.paths import REPO

ROWS = "<table><thead><tr><th>key</th><th>in <code>a</code></th><th></th></tr></thead><tbody><tr><td>x</td><td>1</td><td>2</td></tr></tbody></table>"


def content(html: str) -> str:
    nothing: Any = None
    return on_page_content(html, nothing, nothing, nothing)


def test_a_cell_names_its_column() -> None:
    """A phone shows a row as lines, without the head of the table."""
    assert '<td id="x">x</td><td data-label="in a">1</td><td>2</td>' in content(ROWS)


@pytest.mark.parametrize(
    ("page", "link"), [("compatibility.md", "changelog.md"), ("reporters/otlp.md", "../changelog.md")]
)
def test_the_changelog_is_a_page_of_the_site(page: str, link: str) -> None:
    """In a clone, pages link to the file; other files of the clone become their names."""
    to_root = "../" * page.count("/") + "../"
    of: Any = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    text = f"[changes]({to_root}CHANGELOG.md), [bench]({to_root}bench)"

    shown = on_page_markdown(text, of, {"docs_dir": str(REPO / "docs")}, None)

    assert shown == f"[changes]({link}), bench"


def test_a_table_of_two_columns_has_no_labels() -> None:
    html = "<table><thead><tr><th>key</th><th>meaning</th></tr></thead><tbody><tr><td>é</td><td>1</td></tr></tbody></table>"

    assert content(html) == html


def test_a_name_with_a_quotation_mark() -> None:
    assert 'data-label="a &quot;b&quot;"' in content(ROWS.replace("in <code>a</code>", 'a "b"'))
