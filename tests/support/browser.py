"""A real browser that opens pages of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.requirements import need


@contextmanager
def browser() -> Iterator[Callable[..., Any]]:
    """Give a function that opens a file in Debian's Chromium, in light or dark, with no way out; or a URL.

    What the page logs or requests is in its ``complaints``.
    """
    path = need("chromium", "chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])

        def open_page(file: Path | str, scheme: str = "light", width: int = 1320) -> Any:
            page = chromium.new_page(
                color_scheme=scheme, offline=isinstance(file, Path), viewport={"width": width, "height": 900}
            )
            page.complaints = []
            page.on("console", lambda message: page.complaints.append(message.text))
            page.on("request", lambda request: page.complaints.append(request.url))
            url = file.as_uri() if isinstance(file, Path) else file
            page.goto(url)
            page.complaints = [text for text in page.complaints if not url.endswith(text.rsplit("/", 1)[-1])]
            return page

        yield open_page
        chromium.close()
