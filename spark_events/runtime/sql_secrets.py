"""Masks secrets that statements of SQL have in plain text: in their options, and in URLs of databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_LITERAL = r"""[rR]?(?:'(?:\\.|[^'\\])*(?:'|\\?\Z)|"(?:\\.|[^"\\])*(?:"|\\?\Z))"""
"""In a text that was cut off, the last one may have no end."""
# Literals next to each other are one; here, 'it''s' is two.
_LITERALS = re.compile(rf"{_LITERAL}(?:\s*{_LITERAL})*", re.DOTALL)
_NAMED_LITERAL = re.compile(r"""(?<![\w.-])(?P<key>[\w.-]+)['"`]?\s*=>?\s*(?=[rR]?['"])""")
"""A name that equals a literal; where literals begin is not known: a comment may have an apostrophe.

Without the equals sign, it may be a parser's word: ``unexpected token 'FROM'``.
"""
_BEFORE_LITERAL = re.compile(r"""(?<![\w.-])(?P<key>[\w.-]+)['"`]?(?:\s*=>?\s*|\s+)(?=[rR]?['"])""")
"""The same with a blank alone, as options have it."""
_BLOCK = r"\b(?:OPTIONS|\w*PROPERTIES)\s*\("
_HAS_BLOCK = re.compile(_BLOCK, re.IGNORECASE)
_OPTIONS = re.compile(rf"{_BLOCK}(?:[^()'\"]|{_LITERAL})*", re.IGNORECASE | re.DOTALL)
_OPTION = re.compile(
    rf"(?P<before>(?P<key>(?<![\w.-])[\w.-]+|{_LITERAL}|`[^`]*`)\s*(?:=\s*)?){_LITERALS.pattern}"
    rf"|(?P<before_number>(?P<key_of_number>(?<![\w.-])[\w.-]+|{_LITERAL}|`[^`]*`)(?:\s*=\s*|\s+))[-+]?\d[\w.]*"
    rf"|{_LITERAL}",
    re.DOTALL,
)
_SET = re.compile(r"\s*SET\s+(?P<key>[\w.`-]+)\s*=\s*(?=\S)", re.IGNORECASE)
MARKS = re.compile(r"""['"=(:]""")
"""One of these has each text in which something is masked: a literal, an assignment, a block, or a URL."""
_JDBC = "jdbc:"
_JDBC_URL = re.compile(
    r"""\bjdbc:(?:[^\s'"`]|(?<=\w)['"`](?=\w)|(?<=/)"[^"\s]*"(?=@)"""
    r"""|(?<=;)[ \t](?=[\w.-]+=))+""",
    re.IGNORECASE,
)
"""Its passwords may have quotes, or, in Oracle's, be within some; SQL Server takes blanks before keys."""
_OF_FILE = re.compile(r"jdbc:(?:sqlite|duckdb|(?:h2|hsqldb):(?:file:|[~./])|derby:)", re.IGNORECASE)
"""How a URL begins that has a path, in which an ``@`` follows no user."""
_BEFORE_USER = re.compile(r"jdbc:(?:\w+:)*(?://)?", re.IGNORECASE)
_URL_OPTION = re.compile(r"[;?&:,(][ \t]?(?P<key>[\w.-]+)=")
_URL_VALUE = re.compile(r"\{(?:[^}]|\}\})*(?:\}|\Z)|[^;&]*")
_OF_DRIVERS = re.compile(
    r"(?i:pwd|passwd|passcode|passphrase|api_?key|^pass|[_.-]pass)$|[a-z]Pass$", re.ASCII
)
"""How keys of secrets in JDBC URLs end, besides the configured ones: those of Redshift, say."""


_WORDS = re.compile(r"\(\?i\)\w+(?:\[\.\]\?\w+)?(?:\|\w+(?:\[\.\]\?\w+)?)*", re.ASCII)
"""A pattern of words in upper or lower case, one of which may have a point, as Spark's defaults are."""


class SqlSecrets:
    """Finds secrets by the names of their options, as Spark does where it shows a plan.

    Args:
        keys: matches names whose values are secret wherever they are.
        options: matches further names, of options alone: a column may have such a name.
        mask: takes the place of a secret.

    Attributes:
        signs: texts in lower case, one of which each text has that has a secret; none if that is not known.
    """

    def __init__(self, keys: re.Pattern[str], options: re.Pattern[str], mask: str) -> None:
        self._keys = keys
        self._options = options
        self._mask = mask
        self._beginnings = _beginnings(keys), _beginnings(options)
        known = all(self._beginnings)
        self.signs = (*self._beginnings[0], *self._beginnings[1], _JDBC) if known else ()

    def masked(self, text: str) -> str:
        """Return a text without the secrets of its statements; any other text stays as it is."""
        # These tests take a fraction of the searches' time, and most texts have no such name.
        lower = text.lower()
        has_key, has_option = (
            any(each in lower for each in of) if of else pattern.search(text) is not None
            for of, pattern in zip(self._beginnings, (self._keys, self._options), strict=True)
        )
        has_block = (has_key or has_option) and "(" in text and _HAS_BLOCK.search(text)
        if has_block:
            text = _OPTIONS.sub(lambda block: _OPTION.sub(self._of_option, block[0]), text)
        if has_key and ("'" in text or '"' in text):
            names = _BEFORE_LITERAL if has_block else _NAMED_LITERAL
            text = "".join(self._masked(text, names, _LITERALS, f"'{self._mask}'", self._keys.search))
        setting = _SET.match(text) if has_key else None
        if setting is not None and self._keys.search(setting["key"]):
            return setting[0] + self._mask
        return _JDBC_URL.sub(lambda url: self._of_url(url[0]), text) if _JDBC in lower else text

    def _of_option(self, option: re.Match[str]) -> str:
        key = option["key"] or option["key_of_number"] or ""
        if not self._keys.search(key) and not self._options.search(key):
            return option[0]
        return f"{option['before'] or option['before_number']}'{self._mask}'"

    @staticmethod
    def _masked(
        text: str,
        names: re.Pattern[str],
        values: re.Pattern[str],
        mask: str,
        is_of_secret: Callable[[str], object],
    ) -> Iterator[str]:
        """Yield the parts of a text, with a mask for each value that follows a secret's name."""
        done = 0
        for name in names.finditer(text):
            is_secret = name.start() >= done and is_of_secret(name["key"])
            value = values.match(text, name.end()) if is_secret else None
            if value is not None:
                yield text[done : name.end()]
                yield mask
                done = value.end()
        yield text[done:]

    def _of_url(self, url: str) -> str:
        before = _BEFORE_USER.match(url)
        begin = before.end() if before is not None else 0
        options = next((place for place, character in enumerate(url) if character in ";?"), len(url))
        user, _, host = ("", "", "") if _OF_FILE.match(url) else url[begin:options].rpartition("@")
        shown = f"{url[:begin]}{self._mask}@{host}" if user else url[:options]
        whole = shown + url[options:]
        return "".join(self._masked(whole, _URL_OPTION, _URL_VALUE, self._mask, self._is_secret_in_url))

    def _is_secret_in_url(self, key: str) -> bool:
        return bool(self._keys.search(key) or _OF_DRIVERS.search(key))


def _beginnings(pattern: re.Pattern[str]) -> list[str]:
    """Return how the words begin, in lower case, that a pattern matches; none if it matches others, too."""
    if not _WORDS.fullmatch(pattern.pattern):
        return []
    return [word.partition("[")[0].lower() for word in pattern.pattern.removeprefix("(?i)").split("|")]
