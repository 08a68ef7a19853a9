"""Keeps secrets out of events, logs and messages, by replacing the values known to be secret."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from spark_events.api import AttributeValue, ConfigError, Event, Span, printable
from spark_events.runtime.log_once import logger, never_raising

REDACTED = "******"
KEY_REGEX = "spark.redaction.regex"
TEXT_REGEX = "spark.redaction.string.regex"
DEFAULT_REGEX = "(?i)secret|password|token|access[.]?key"
"""Spark's own default of ``spark.redaction.regex``."""
_SHORTEST = 6
_COMMON = re.compile(r"(?i)true|false|none|null|[\d.]+|(env|file):.*")
_QUOTED = re.compile(r'"([^"]+)"')
_FLAGS = frozenset(("required", "requisite", "sufficient", "optional"))
"""Of JAAS; hidden in all texts, they would be missed."""
T = TypeVar("T", Event, Span)


def _parts(secret: str) -> tuple[str, ...]:
    return (secret, *secret.split(), *_QUOTED.findall(secret))


class Redactor:
    """Replaces secrets in texts.

    Args:
        secrets: secret values; if one contains blanks, like ``Bearer abc``, its parts are secret, too, and
            so is what has quotes around it, as in JAAS: ``Module required password="abc";``.
        pattern: matches what else must be hidden; None if there is nothing else.
    """

    def __init__(self, secrets: Iterable[str] = (), pattern: re.Pattern[str] | None = None) -> None:
        parts = {part for secret in secrets for part in _parts(secret) if len(part) >= _SHORTEST} - _FLAGS
        # The longest first: replacing a part first would leave the rest of the whole value visible.
        known = "|".join(re.escape(part) for part in sorted(parts, key=lambda part: (-len(part), part)))
        self._patterns = [re.compile(known)] if known else []
        if pattern is not None:
            self._patterns.append(pattern)

    def text(self, text: str) -> str:
        """Return a text with the secrets replaced."""
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text

    def item(self, item: T) -> T:
        """Return an event or a span with the secrets replaced."""
        if not self._patterns:
            return item
        attributes = self._attributes(item.attributes)
        if attributes is not item.attributes:
            item = replace(item, attributes=attributes)
        if isinstance(item, Event):
            body = self.text(item.body)
            return item if body == item.body else replace(item, body=body)
        if item.error is None and not item.events:
            return item
        events = [replace(event, attributes=self._attributes(event.attributes)) for event in item.events]
        return replace(item, error=item.error and self.text(item.error), events=tuple(events))

    def _attributes(self, attributes: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
        changed = {key: clean for key, value in attributes.items() if (clean := self._value(value)) != value}
        return {**attributes, **changed} if changed else attributes

    def _value(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._value(part) for part in value)
        return self.text(value) if isinstance(value, str) else value


def read_patterns(
    conf: Mapping[str, str],
) -> tuple[re.Pattern[str], re.Pattern[str] | None, list[ConfigError]]:
    """Read Spark's own redaction settings.

    Returns:
        The pattern of secret keys, the pattern of secret texts, and one error for each invalid pattern.
    """
    errors: list[ConfigError] = []

    def read(key: str, default: str | None) -> re.Pattern[str] | None:
        given = conf.get(key, default)
        try:
            return re.compile(given) if given else None
        except re.error as error:
            allowed = f"a regular expression that is also valid in Python ({error})"
            errors.append(ConfigError.of_value(key, str(given), allowed))
            return re.compile(default) if default else None

    keys = read(KEY_REGEX, DEFAULT_REGEX) or re.compile(DEFAULT_REGEX)
    return keys, read(TEXT_REGEX, None), errors


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
        clean = printable(self.redactor.text(message))
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
