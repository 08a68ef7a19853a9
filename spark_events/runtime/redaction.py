"""Keeps secrets out of events, logs and messages, by replacing the values known to be secret."""

from __future__ import annotations

import base64
import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html.entities import codepoint2name
from typing import Any, TypeVar

from spark_events.api import AttributeValue, ConfigError, Event, Span, printable
from spark_events.api.toolkit.read_only import ReadOnly
from spark_events.runtime.log_once import logger, never_raising
from spark_events.runtime.regex_cost import may_never_end, repeats
from spark_events.runtime.sql_secrets import MARKS, SqlSecrets

REDACTED = "******"
KEY_REGEX = "spark.redaction.regex"
TEXT_REGEX = "spark.redaction.string.regex"
OPTIONS_REGEX = "spark.sql.redaction.options.regex"
DEFAULT_REGEX = "(?i)secret|password|token|access[.]?key"
"""Spark's own default of ``spark.redaction.regex``."""
DEFAULT_OPTIONS_REGEX = "(?i)url"
"""Spark's own default of ``spark.sql.redaction.options.regex``."""
HIDES_ALL = re.compile("(?s:.+)")
"""Matches every text; it takes the place of a pattern that cannot be used, so that no secret gets out."""
LONGEST_TEXT = 32_768
"""How many characters of a text a pattern of the user sees; what follows them is hidden."""
_WINDOWS = (32, 128, 512, 2_048, 8_192)
_SLOW_S, _SLOW_WINDOWS_S = 0.5, 0.05
_MOST_SLOW = 3
SHORTEST = 6
_MOST_RENEWED = 50
_CHARACTERS = re.compile(r"\\+|.", re.DOTALL)
_OF_XML = {"'": "apos"}
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_COMMON = re.compile(r"(?i)true|false|none|null|[\d.]+|(env|file):.*")
_QUOTED = re.compile(r'"([^"]+)"')
_FLAGS = frozenset(("required", "requisite", "sufficient", "optional"))
"""Of JAAS; hidden in all texts, they would be missed."""
T = TypeVar("T", Event, Span)


def _parts(secret: str) -> tuple[str, ...]:
    return (secret, *secret.split(), *_QUOTED.findall(secret))


def _in_any_form(secret: str) -> str:
    """Return a pattern for a secret as it is, and as URLs, JSON, HTML, XML, Java, Go or Python escape it."""
    return "".join(map(_of_character, _CHARACTERS.findall(secret)))


def _of_character(char: str) -> str:
    """Return a pattern for a character, or for several backslashes, in any form; repetitions have a bound."""
    if char.isascii() and (char.isalnum() or char in "-._"):
        return re.escape(char)
    if char[0] == "\\":
        return r"(?:\\|%(?:25){0,3}5[cC]|&#92;){1,64}"
    code, in_utf8 = ord(char), char.encode("utf-8", "surrogatepass")
    in_utf16 = char.encode("utf-16-be", "surrogatepass")
    pairs = zip(in_utf16[::2], in_utf16[1::2], strict=True)
    forms = [
        r"\\{0,8}" + re.escape(char),
        "".join(rf"%(?:25){{0,3}}{_hex(byte)}" for byte in in_utf8),
        "".join(rf"\\{{1,8}}u{_hex(high)}{_hex(low)}" for high, low in pairs),
        "".join(rf"\\{{1,8}}x{_hex(byte)}" for byte in in_utf8),
        rf"&#0{{0,8}}{code};",
        rf"&#[xX]0{{0,8}}{''.join(map(_either_case, f'{code:x}'))};",
    ]
    forms += [rf"\\{{1,8}}x{_hex(code)}"] if code < 256 else []
    forms += [rf"&{name};" for name in (codepoint2name.get(code), _OF_XML.get(char)) if name]
    forms += [rf"\\{{1,8}}{_LETTERS[char]}"] if char in _LETTERS else []
    forms += [r"\+"] if char == " " else []
    return f"(?:{'|'.join(forms)})"


def _hex(byte: int) -> str:
    return "".join(map(_either_case, f"{byte:02x}"))


def _either_case(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def _in_base64(secret: str) -> Iterator[str]:
    """Yield what is the same in all texts of base64 that have a secret in them, such as ``user:password``.

    It differs by how many bytes come before, of each three. Some bits of the first and last letter remain.
    """
    content = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        letters = base64.b64encode(bytes(before) + content).decode()
        yield letters[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]


class Redactor:
    """Replaces secrets in texts.

    Args:
        secrets: secret values; if one contains blanks, like ``Bearer abc``, its parts are secret, too, and
            so is what has quotes around it, as in JAAS: ``Module required password="abc";``. Also in base64,
            as in the header of basic authentication, and as URLs, JSON, HTML, XML, Java, Go and Python escape
            them. What has fewer than six characters is not replaced: it may be a part of any word.
        pattern: matches what else must be hidden; None if there is nothing else.
        sql: finds the secrets in statements; by default, those whose names Spark masks by default.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        pattern: re.Pattern[str] | None = None,
        sql: SqlSecrets | None = None,
    ) -> None:
        self._secrets = list(secrets)
        self._renewed: deque[str] = deque(maxlen=_MOST_RENEWED)
        self._known = _pattern_of(self._secrets)
        self._given = _Bounded(pattern) if pattern is not None else None
        self._sql = sql or _BY_DEFAULT

    def learn(self, secret: str) -> None:
        """Replace one more secret, as a file has it that was written anew; of these, the last fifty."""
        if secret not in self._secrets and secret not in self._renewed:
            self._renewed.append(secret)
            self._known = _pattern_of((*self._secrets, *self._renewed))

    def text(self, text: str) -> str:
        """Return a text with the secrets replaced."""
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        if self._has_sign(text):
            text = self._sql.masked(text)
        return text if self._given is None else self._given.cleaned(text)

    def name(self, name: str) -> str:
        """Return a name or a label with the secret values replaced; patterns are for texts."""
        return name if self._known is None else self._known.sub(REDACTED, name)

    def item(self, item: T) -> T:
        """Return an event or a span with the secrets replaced."""
        if self._is_clean(item):
            return item
        attributes, name = self._attributes(item.attributes), self.name(item.name)
        if attributes is not item.attributes or name != item.name:
            item = replace(item, attributes=attributes, name=name)
        if isinstance(item, Event):
            body = self.text(item.body)
            return item if body == item.body else replace(item, body=body)
        if item.error is None and not item.events:
            return item
        events = [
            replace(event, name=self.name(event.name), attributes=self._attributes(event.attributes))
            for event in item.events
        ]
        return replace(item, error=item.error and self.text(item.error), events=tuple(events))

    def _is_clean(self, item: Event | Span) -> bool:
        """Return whether there is certainly no secret: most items have none, as all texts at once show."""
        if self._known is not None or self._given is not None:
            return False
        if isinstance(item, Event):
            texts = [item.body]
            of_all = [item.attributes]
        else:
            texts = [item.error or ""]
            of_all = [item.attributes, *(event.attributes for event in item.events)]
        for attributes in of_all:
            for value in attributes.values():
                if type(value) is str:
                    texts.append(value)
                elif isinstance(value, str | tuple):
                    return False
        return not self._has_sign("\n".join(texts))

    def _has_sign(self, text: str) -> bool:
        """Return whether a text may have a secret of SQL; most have none, which is seen in no time."""
        if MARKS.search(text) is None:
            return False
        lower = text.lower()
        for sign in self._sql.signs:  # twice as fast as any()
            if sign in lower:
                return True
        return not self._sql.signs

    def _attributes(self, attributes: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
        changed = {key: clean for key, value in attributes.items() if (clean := self._value(value)) != value}
        if self._known is not None and self._known.search("\n".join(attributes)):
            named = {self.name(key): changed.get(key, value) for key, value in attributes.items()}
            return ReadOnly(named)
        return ReadOnly({**attributes, **changed}) if changed else attributes

    def _value(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._value(part) for part in value)
        return self.text(value) if isinstance(value, str) else value


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return what matches secrets and their parts in each form; None without any."""
    parts = {part for secret in secrets for part in _parts(secret) if len(part) >= SHORTEST} - _FLAGS
    in_base64 = {letters for part in parts for letters in _in_base64(part)}
    # The longest first: replacing a part first would leave the rest of the whole value visible.
    first = sorted(parts | in_base64, key=lambda part: (-len(part), part))
    known = "|".join(re.escape(part) if part in in_base64 else _in_any_form(part) for part in first)
    return re.compile(known) if known else None


_BY_DEFAULT = SqlSecrets(re.compile(DEFAULT_REGEX), re.compile(DEFAULT_OPTIONS_REGEX), REDACTED)


class _Bounded:
    """A pattern of the user, which takes no more time for a text than a reporter can wait.

    Patterns that take practically forever are refused before. What remains may take the square or the cube of
    a text's length, so short windows of a long text are tried first.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._may_be_slow = repeats(pattern) > 1
        self._slow = 0

    def cleaned(self, text: str) -> str:
        """Return a text with all matches replaced; nothing of it if that takes too long."""
        if self._slow >= _MOST_SLOW:
            return REDACTED if text else text
        head = text[:LONGEST_TEXT]
        if self._may_be_slow and self._is_slow_on_windows(head):
            return self._hidden()
        begun = time.thread_time()
        cleaned = self._pattern.sub(REDACTED, head)
        if time.thread_time() - begun > _SLOW_S:
            self._count_slow()
        return cleaned if len(head) == len(text) else cleaned + REDACTED

    def _is_slow_on_windows(self, text: str) -> bool:
        """Return whether parts of a text take long; each size is tried before a larger one takes longer.

        They overlap: what takes long may begin in one and go on in the next.
        """
        for size in _WINDOWS:
            begun = time.thread_time()
            for start in range(0, len(text), size // 2) if len(text) > size else ():
                self._pattern.sub(REDACTED, text[start : start + size])
                if time.thread_time() - begun > _SLOW_WINDOWS_S:
                    return True
        return False

    def _hidden(self) -> str:
        self._count_slow()
        return REDACTED

    def _count_slow(self) -> None:
        self._slow += 1
        if self._slow == _MOST_SLOW:
            logger.warning(
                "%s: %r takes too long for texts of this application, so each whole text is replaced by %s "
                "from now on; write a pattern with fewer repetitions",
                TEXT_REGEX,
                self._pattern.pattern,
                REDACTED,
                extra=CLEAN,
            )


CLEAN = {"has_no_secrets": True}
"""Passed as ``extra``, it says of a log line that it need not be redacted."""


def read_patterns(
    conf: Mapping[str, str],
) -> tuple[re.Pattern[str], re.Pattern[str] | None, list[ConfigError]]:
    """Read Spark's own redaction settings.

    Returns:
        The pattern of secret keys, the pattern of secret texts, and one error for each pattern that cannot be
        used. For keys, Spark's default takes its place: if all were secret, events could not even name their
        application. For texts, it is a pattern that matches everything.
    """
    errors: list[ConfigError] = []
    default = re.compile(DEFAULT_REGEX)
    keys = _read(conf, KEY_REGEX, default, errors) or default
    return keys, _read(conf, TEXT_REGEX, HIDES_ALL, errors), errors


def read_sql_secrets(conf: Mapping[str, str], keys: re.Pattern[str]) -> tuple[SqlSecrets, list[ConfigError]]:
    """Return what finds secrets in statements, and an error if the pattern of options cannot be used.

    Args:
        conf: Spark's configuration.
        keys: the pattern of secret keys.
    """
    errors: list[ConfigError] = []
    default = re.compile(DEFAULT_OPTIONS_REGEX)
    return SqlSecrets(keys, _read(conf, OPTIONS_REGEX, default, errors) or default, REDACTED), errors


def _read(
    conf: Mapping[str, str], key: str, instead: re.Pattern[str], errors: list[ConfigError]
) -> re.Pattern[str] | None:
    """Return the pattern of a key; None without one, and another if it cannot be used, which is an error."""
    given = conf.get(key)
    try:
        return _usable(given) if given else None
    except ValueError as error:
        errors.append(ConfigError.of_value(key, str(given), f"a regular expression that {error}"))
        return instead


def _usable(text: str) -> re.Pattern[str]:
    """Return a pattern.

    Raises:
        ValueError: it cannot be used; the message continues "a regular expression that".
    """
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is also valid in Python ({error})") from error
    if reason := may_never_end(pattern):
        raise ValueError(f"ends on every text ({reason}, which may take forever)")
    return pattern


def secret_values(conf: Mapping[str, str], keys: re.Pattern[str]) -> list[str]:
    """Return the values of all keys that Spark would redact, except for values like ``true``."""
    return [value for key, value in conf.items() if keys.search(key) and not _COMMON.fullmatch(value.strip())]


class _LogFilter(logging.Filter):
    """Removes secrets and terminal control characters from log records, including their tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self.redactor = Redactor()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        has_secrets = not getattr(record, "has_no_secrets", False)
        clean = printable(self.redactor.text(message) if has_secrets else message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            # If this text is set, handlers write it.
            shown = self.redactor.text(logging.Formatter().formatException(record.exc_info))
            # What an error says may be another process's answer, and look like a line of the driver's log:
            # none of its lines begins where those do.
            record.exc_text = _INDENT + printable(shown, but="\n\t").replace("\n", f"\n{_INDENT}")
        return True


_INDENT = "    "
_LOG_FILTER = _LogFilter()
# From the beginning, whatever is configured. A filter of a logger does not hold for those below it.
logger.addFilter(_LOG_FILTER)
for _name in ("file_log", "otlp", "prometheus", "openlineage", "spark.class_archive"):
    never_raising(logging.getLogger(f"spark_events.{_name}")).addFilter(_LOG_FILTER)


def redact_logs(redactor: Redactor) -> None:
    """Redact everything that the framework and its built-in reporters log."""
    _LOG_FILTER.redactor = redactor
