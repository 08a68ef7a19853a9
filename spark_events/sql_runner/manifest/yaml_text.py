"""Reads YAML within limits, and remembers the line of each key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_events.api import ConfigError, needs_extra
from spark_events.sql_runner.manifest.as_written import as_written

with needs_extra("sql", "pyyaml", "reading manifests"):
    import yaml

MOST_BYTES = 1 << 20
"""Of a manifest or a template."""
_DEEPEST = 50
_MOST_NODES = 50_000
_MOST_CHARACTERS = 4 * MOST_BYTES
_LARGEST = 2**63
_LONGEST_NUMBER = 100
"""In characters: PyYAML takes time that grows with the square of the length of a number."""
_NO_VALUE = (ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""Raised by PyYAML on a text that is not a value of its type, beside errors of its own."""
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MERGE = "tag:yaml.org,2002:merge"
Keys = tuple["str | int", ...]


@dataclass(frozen=True)
class YamlText:
    """One YAML document that is a mapping.

    Attributes:
        file: the file that it was read from.
        values: its keys and values.
        lines: the file and the line, from 1, of each key and each item of a list.
        blocks: the keys whose text is a block, which begins on the line after the key.
    """

    file: str
    values: dict[str, Any]
    lines: Mapping[Keys, tuple[str, int]] = field(repr=False)
    blocks: frozenset[Keys] = field(default=frozenset(), repr=False)

    def place(self, keys: Keys) -> str:
        """Return ``file:line`` of a key, or, if it is absent, of its nearest existing parent."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        file, line = self.lines.get(keys, (self.file, 1))
        return f"{file}:{line}"

    def place_of_text(self, keys: Keys) -> str:
        """Return ``file:line`` of the first line of a key's text."""
        file, _, line = self.place(keys).rpartition(":")
        return f"{file}:{int(line) + (keys in self.blocks)}"

    def over(self, defaults: YamlText) -> YamlText:
        """Return this document merged, key by key, over its defaults."""
        kept = {keys: line for keys, line in defaults.lines.items() if not _is_replaced(self.values, keys)}
        values = _merged(defaults.values, self.values)
        return YamlText(self.file, values, kept | dict(self.lines), self.blocks)


def read_yaml(text: str, file: str) -> YamlText:
    """Read one document of a file, whose name is for errors; see ``as_written`` for keys and properties.

    Raises:
        ConfigError: it is not YAML, not a mapping, too large or too deep, has a key twice, or a property that
            is ``yes`` or ``no``; the message names the file and the line.
    """
    loader = None
    try:
        _demand_bounds(text, file)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            kind = "nothing" if node is None else f"a {type(node).__name__.removesuffix('Node').lower()}"
            raise ConfigError(
                f"{file}:1: {kind}; expected a mapping of keys such as name, target-table and sql"
            )
        lines = {keys: (file, line) for keys, line in _lines(node, (), file)}
        node = as_written(node, file)
        _demand_values(node, loader, file)
        values = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        reason = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise ConfigError(f"{file}:{line}: not YAML: {reason}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}:1: not YAML: {' '.join(str(error).split())}") from error
    finally:
        if loader is not None:
            loader.dispose()
    blocks = (key.value for key, value in node.value if getattr(value, "style", None) in ("|", ">"))
    return YamlText(file, values, lines, frozenset((str(key),) for key in blocks))


def write_yaml(values: Mapping[str, Any]) -> str:
    """Return values as YAML, with multi-line texts as blocks, and keys in their order."""
    text: str = yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes SQL as a person would."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block)


class _Size(NamedTuple):
    """How much is in a node, with each alias counted as what it refers to."""

    values: int = 0
    characters: int = 0

    def plus(self, other: _Size) -> _Size:
        return _Size(self.values + other.values, self.characters + other.characters)


def _demand_bounds(text: str, file: str) -> None:
    """Raise if a text exceeds the size, depth or number of nodes that a manifest may have.

    This is checked before anything is constructed, because anybody may write manifests. An alias counts as
    everything it stands for.
    """
    if len(text) > MOST_BYTES:
        raise ConfigError(f"{file}:1: {len(text):,} characters; a manifest may have at most {MOST_BYTES:,}")
    sizes: dict[str, _Size] = {}
    open_anchors: list[str | None] = []
    inside: list[_Size] = []
    whole = _Size()
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        place = f"{file}:{event.start_mark.line + 1 if event.start_mark else 1}"
        size = _Size()
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in open_anchors:
                raise ConfigError(f"{place}: alias *{event.anchor} is inside the node that it refers to")
            size = sizes.get(str(event.anchor), _Size(1))
        elif isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append(event.anchor)
            inside.append(_Size())
            size = _Size(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, of_node = open_anchors.pop(), inside.pop()
            if anchor is not None:
                sizes[anchor] = of_node
            inside = [*inside[:-1], inside[-1].plus(of_node)] if inside else inside
        elif isinstance(event, yaml.ScalarEvent):
            size = _Size(1, len(event.value))
            if not event.value.isascii() and _HALF_CHARACTER.search(event.value):
                raise ConfigError(
                    f"{place}: half a character (\\uD800 to \\uDFFF); write the character itself"
                )
            if event.anchor is not None:
                sizes[event.anchor] = size
        whole = whole.plus(size)
        if inside:
            inside[-1] = inside[-1].plus(size)
        _demand_bounds_of(whole, len(open_anchors), place)


def _demand_bounds_of(whole: _Size, depth: int, place: str) -> None:
    if depth > _DEEPEST:
        raise ConfigError(f"{place}: more than {_DEEPEST} nested levels; expected fewer")
    counted = "with each alias (*name) counted as what it refers to; expected fewer"
    if whole.values > _MOST_NODES:
        raise ConfigError(f"{place}: more than {_MOST_NODES:,} values, {counted}")
    if whole.characters > _MOST_CHARACTERS:
        raise ConfigError(f"{place}: more than {_MOST_CHARACTERS:,} characters, {counted}")


def _lines(node: yaml.Node, above: Keys, file: str) -> Iterator[tuple[Keys, int]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in seen:
                raise ConfigError(f"{file}:{line}: {name}: is given twice; remove one of the two")
            seen.add(name)
            yield (*above, name), line
            yield from _lines(value, (*above, name), file)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*above, index), item.start_mark.line + 1
            yield from _lines(item, (*above, index), file)


def _demand_values(node: yaml.Node, loader: yaml.SafeLoader, file: str) -> None:
    """Raise if a value cannot be constructed: YAML takes ``2026-13-01`` for a date, which does not exist."""
    if isinstance(node, yaml.ScalarNode):
        place, kind = f"{file}:{node.start_mark.line + 1}", node.tag.rpartition(":")[2]
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise ConfigError(
                f"{place}: {node.value[:40]!r}… has {len(node.value):,} characters; "
                f"expected a YAML {kind} of at most {_LONGEST_NUMBER}, or a quoted string"
            )
        try:
            value = None if node.tag == _MERGE else loader.construct_object(node)
            if isinstance(value, int) and abs(value) >= _LARGEST:  # Python does not even print some of these
                raise ValueError
        except _NO_VALUE as error:
            raise ConfigError(
                f"{place}: {node.value[:40]!r} is not valid; expected a YAML {kind}, or a quoted string"
            ) from error
    elif isinstance(node, yaml.CollectionNode):
        for item in node.value:
            for part in item if isinstance(item, tuple) else (item,):
                _demand_values(part, loader, file)


def _merged(defaults: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(defaults)
    for key, value in own.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            value = _merged(before, value)
        merged[key] = value
    return merged


def _is_replaced(own: Mapping[str, Any], keys: Keys) -> bool:
    """Return whether a document overrides the default under these keys."""
    value: Any = own
    for key in keys:
        if not isinstance(value, dict):
            return True
        if key not in value:
            return False
        value = value[key]
    return True
