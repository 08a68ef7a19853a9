"""Shows URLs without what may be secret in them: a user, a password, a query such as ``?token=…``."""

from __future__ import annotations

import re

_HIDDEN = "******"


def url_without_secrets(url: str) -> str:
    """Return a URL, or what should have been one, as it may be shown."""
    url = re.sub(r"//.*@", f"//{_HIDDEN}@", url, flags=re.DOTALL)  # a password may have slashes
    return re.sub(r"([?#]).+", rf"\1{_HIDDEN}", url, flags=re.DOTALL)


def text_without_queries(text: str) -> str:
    """Return what a library says of a request, without the queries of URLs and paths in it."""
    return re.sub(r"([?#])[^\s'\"]+", rf"\1{_HIDDEN}", re.sub(r"//[^\s'\"]*@", f"//{_HIDDEN}@", text))
