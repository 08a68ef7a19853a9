"""What a reporter gets to see: filters, as in Flink, and the variables of what passes.

A filter is ``<scope>[:<name>[,<name>][:<type>[,<type>]]]``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from spark_events.api import ConfigError, MetricType
from spark_events.api.toolkit.read_only import ReadOnly

_MOST_SEEN = 4_096
"""Of how many names is known whether they pass: a program may make new ones without end."""
_TYPES = tuple(metric_type.value for metric_type in MetricType)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern of a filter; its list of names is compiled to one regular expression."""

    scope: re.Pattern[str]
    names: re.Pattern[str]
    types: frozenset[str]

    def matches(self, scope: str, name: str, metric_type: str) -> bool:
        """Return whether the scope, the name and, if there is one, the type all match."""
        return (
            self.scope.fullmatch(scope) is not None
            and self.names.fullmatch(name) is not None
            and (not metric_type or metric_type in self.types)
        )


class Filter:
    """Decides what a reporter gets to see. Excludes win over includes.

    Args:
        includes: the patterns of ``filter.includes``; without any, everything passes.
        excludes: the patterns of ``filter.excludes``.
    """

    def __init__(self, includes: Sequence[Pattern] = (), excludes: Sequence[Pattern] = ()) -> None:
        self._includes = tuple(includes)
        self._excludes = tuple(excludes)
        self._seen: dict[tuple[tuple[str, ...], str, str], bool] = {}

    def passes(self, logical_scope: tuple[str, ...], name: str, metric_type: str = "") -> bool:
        """Return whether the reporter is to see something with this name in this scope."""
        if not self._includes and not self._excludes:
            return True
        key = (logical_scope, name, metric_type)
        passes = self._seen.get(key)
        if passes is None:
            scope = ".".join(logical_scope)
            excluded = any(pattern.matches(scope, name, metric_type) for pattern in self._excludes)
            included = any(pattern.matches(scope, name, metric_type) for pattern in self._includes)
            passes = not excluded and (included or not self._includes)
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen[key] = passes
        return passes


class NamesAlone(Filter):
    """Lets only some names pass, and of these what another filter does.

    Args:
        names: the names.
        then: the other filter.
    """

    def __init__(self, names: Collection[str], then: Filter) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._then = then

    def passes(self, logical_scope: tuple[str, ...], name: str, metric_type: str = "") -> bool:
        """Return whether both let it pass."""
        return name in self._names and self._then.passes(logical_scope, name, metric_type)


@dataclass(frozen=True, slots=True)
class SeenVariables:
    """Which variables a reporter gets to see.

    Attributes:
        excluded: the names of those that it does not.
        additional: more of them, with their values.
    """

    excluded: Sequence[str] = ()
    additional: Mapping[str, str] = field(default_factory=dict)

    def seen(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables as the reporter shall see them."""
        if not self.additional and not self.excluded:
            return variables
        kept = {key: value for key, value in variables.items() if key not in self.excluded}
        return ReadOnly({**kept, **self.additional})


def parse_patterns(text: str, key: str, typed: bool) -> list[Pattern]:
    """Read the list of a ``filter.includes`` or ``filter.excludes``, separated by ``;``.

    Args:
        text: the value.
        key: its key, for the error message.
        typed: whether a type part is allowed, as it is for metrics.

    Raises:
        ConfigError: a pattern has too many parts, an empty one, or an unknown type.
    """
    return [_parse(part.strip(), key, typed) for part in text.split(";") if part.strip()]


def _parse(text: str, key: str, typed: bool) -> Pattern:
    form = "<scope>[:<name>[,<name>]" + ("[:<type>[,<type>]]]" if typed else "]")
    parts = text.split(":")
    if len(parts) > (3 if typed else 2) or not all(part.strip() for part in parts):
        raise ConfigError.of_value(key, text, f"{form}, several separated by ';'")
    scope, names, types = (*parts, *("*", "*")[len(parts) - 1 :])[:3]
    chosen = _TYPES if types == "*" else tuple(part.strip() for part in types.split(","))
    unknown = [metric_type for metric_type in chosen if metric_type not in _TYPES]
    if unknown:
        raise ConfigError.of_value(key, text, f"{form} with types out of {', '.join(_TYPES)}")
    return Pattern(glob(scope), glob(*names.split(",")), frozenset(chosen))


def glob(*texts: str) -> re.Pattern[str]:
    """Return what matches any of some texts, in which ``*`` stands for any text, in linear time."""
    literal = (re.sub(r"[?\[]", r"[\g<0>]", text.strip()) for text in texts)
    return re.compile("|".join(map(fnmatch.translate, literal)))
