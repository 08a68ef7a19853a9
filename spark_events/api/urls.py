"""Shows URLs without what may be secret in them: a user, a password, a query such as ``?token=…``."""

from __future__ import annotations

import re

_HIDDEN = "******"
_WORD = re.compile(r"[^\s'\"]+")
_SHORTEST = 3
"""Shorter ones would be hidden in all words."""


def url_without_secrets(url: str) -> str:
    """Return a URL, or what should have been one, as it may be shown."""
    url = re.sub(r"//.*@", f"//{_HIDDEN}@", url, flags=re.DOTALL)  # a password may have slashes
    return re.sub(r"([?#]).+", rf"\1{_HIDDEN}", url, flags=re.DOTALL)


def path_without_secrets(path: str) -> str:
    """Return a path, or a URL in its place, as it may be shown; a local path may have any character."""
    return url_without_secrets(path) if "://" in path else path


def text_without_url_secrets(text: str) -> str:
    """Return a message in which URLs, wherever they are, are shown without what may be secret in them."""
    return _WORD.sub(_shown_word, text)


def text_without_secrets_of(url: str, text: str) -> str:
    """Return what a library says of a URL, without the user, the password and the query of that URL.

    Libraries show parts of a URL, which cannot be told from other words.
    """
    _, _, rest = url.partition("://")
    user, _, _ = rest.rpartition("@")
    parts = (f"{user}@" if user else "", user.partition(":")[2], rest.partition("?")[2])
    for part in parts:
        if len(part.rstrip("@")) >= _SHORTEST:
            text = text.replace(part, f"{_HIDDEN}@" if part.endswith("@") else _HIDDEN)
    return text_without_url_secrets(text)


def _shown_word(match: re.Match[str]) -> str:
    scheme, colon, rest = match.group().partition(":/")
    user, at, place = rest.lstrip("/").rpartition("@")
    if not colon:
        return match.group()
    slashes = "/" * (len(rest) - len(rest.lstrip("/")))
    path, mark, query = place.partition("?")
    return f"{scheme}{colon}{slashes}{_HIDDEN if user else ''}{at}{path}{mark}{_HIDDEN if query else ''}"


def text_without_queries(text: str) -> str:
    """Return what a library says of a request, without the queries of URLs and paths in it."""
    return re.sub(r"([?#])[^\s'\"]+", rf"\1{_HIDDEN}", re.sub(r"//[^\s'\"]*@", f"//{_HIDDEN}@", text))
