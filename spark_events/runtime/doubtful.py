"""Finds values that can be used, but hardly as they were meant: doubled ones, and those without effect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from spark_events.api import option_types as types
from spark_events.runtime.kinds import KINDS, Kind
from spark_events.runtime.setup import ReporterSetup, common_options

_OF_REGULAR_EXPRESSIONS = re.compile(r"[][(){}^$\\|?+]")
_FILTERS = ("includes", "excludes")


def doubtful_values(conf: Mapping[str, str], setups: Iterable[ReporterSetup]) -> list[str]:
    """Return a sentence for each: the key, the value and what to do.

    Args:
        conf: Spark's configuration.
        setups: the reporters that it configures.
    """
    of_lists = (sentence for kind in KINDS for sentence in _of_list(conf, kind))
    of_reporters = (sentence for setup in setups for sentence in _of_reporter(conf, setup))
    return [*of_lists, *of_reporters]


def _of_list(conf: Mapping[str, str], kind: Kind) -> Iterator[str]:
    key = kind.names_key if kind.names_key in conf else kind.flinks_names_key
    names = types.LIST.parse(conf.get(key, ""))
    for name in _repeated(names):
        yield f"{key}: '{conf[key]}' has {name!r} more than once, but starts it once; write it once"
    unlisted = {
        name: own
        for own in sorted(conf)
        if own.startswith(kind.prefix) and (name := own.removeprefix(kind.prefix).split(".")[0]) not in names
    }
    if names and unlisted:  # an empty list is meant: nothing is to start
        words = ", ".join(map(repr, unlisted))
        yield (
            f"{next(iter(unlisted.values()))}: no effect, because {key} is '{conf[key]}', without {words}; "
            "add what shall start, or remove its keys"
        )


def _of_reporter(conf: Mapping[str, str], setup: ReporterSetup) -> Iterator[str]:
    prefix, common = f"{setup.kind.prefix}{setup.name}.", common_options(setup.kind)
    for option in (*(setup.factory.options or ()), *common.values()):
        text = conf.get(prefix + option.name, "")
        shown = "******" if option.type.secret else text
        for name in _repeated(types.keys_of_map(option.type, text)):
            yield f"{prefix}{option.name}: '{shown}' has {name!r} more than once; only its last value counts"
    for field in _FILTERS:
        key = prefix + common[field].name if field in common else ""
        if special := _OF_REGULAR_EXPRESSIONS.search(conf.get(key, "")):
            yield (
                f"{key}: '{conf[key]}' is no regular expression: {special.group()!r} stands for itself, and "
                "only * for any text"
            )


def _repeated(words: Iterable[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]
