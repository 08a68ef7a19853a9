"""Takes keys and values of properties as they are written; YAML 1.1 reads 12:30:45 as the number 45045."""

from __future__ import annotations

from typing import Any

from spark_events.api import ConfigError, needs_extra

with needs_extra("sql", "pyyaml", "reading manifests"):
    import yaml

PROPERTIES = ("sparkProperties", "flinkProperties")
"""The keys of a manifest whose values are mappings to texts."""
_TAG = "tag:yaml.org,2002:"
_MERGE, _TEXT, _BOOLEAN, _NULL = (_TAG + kind for kind in ("merge", "str", "bool", "null"))


def as_written(document: yaml.MappingNode, file: str) -> yaml.MappingNode:
    """Return a document in which keys, and values of properties, are texts that YAML has not interpreted.

    A property without a value stays one; ``true`` and ``false`` stay truth values, however they are spelt.

    Args:
        document: within the bounds of a manifest; it is not changed, as an alias may stand for a part of it.
        file: its name, for errors.

    Raises:
        ConfigError: a property is another word that YAML reads as a truth value, such as ``no``; the error
            lists all of them, each with its line.
    """
    problems: list[str] = []
    copied: yaml.MappingNode = _copied(document, (), file, problems)
    if problems:
        raise ConfigError.of_all(problems)
    return copied


def _copied(node: Any, keys: tuple[str, ...], file: str, problems: list[str]) -> Any:
    """Return a node with everything in it; what is merged into a mapping has the keys of the mapping."""
    marks = (node.start_mark, node.end_mark)
    if isinstance(node, yaml.SequenceNode):
        items = [_copied(item, keys, file, problems) for item in node.value]
        return yaml.SequenceNode(node.tag, items, *marks, node.flow_style)
    if isinstance(node, yaml.MappingNode):
        pairs = []
        for key, value in node.value:
            is_scalar = isinstance(key, yaml.ScalarNode) and key.tag != _MERGE
            inside = (*keys, key.value) if is_scalar else keys
            pairs.append((_text(key) if is_scalar else key, _copied(value, inside, file, problems)))
        return yaml.MappingNode(node.tag, pairs, *marks, node.flow_style)
    if len(keys) != 2 or keys[0] not in PROPERTIES or node.style is not None or node.tag == _NULL:
        return node
    if node.tag != _BOOLEAN:
        return _text(node)
    if node.value.lower() not in ("true", "false"):
        problems.append(
            f"{file}:{node.start_mark.line + 1}: {'.'.join(keys)}: {node.value} is a truth value in YAML, "
            f"not a text; expected true, false or a quoted text, such as '{node.value}'"
        )
    return node


def _text(node: yaml.ScalarNode) -> yaml.ScalarNode:
    return yaml.ScalarNode(_TEXT, node.value, node.start_mark, node.end_mark, node.style)
