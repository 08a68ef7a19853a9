"""Bounds on a YAML text, looked at before anything is made of it: it comes from whoever writes manifests."""

from __future__ import annotations

from spark_events.api import ConfigError, needs_extra

with needs_extra("sql", "pyyaml", "reading manifests"):
    import yaml

MOST_BYTES = 1 << 20
"""Of a manifest or a template."""
_DEEPEST = 50
_MOST_NODES = 50_000


def demand_bounds(text: str, file: str) -> None:
    """Demand that a text is of a size, a depth and a number of nodes that a manifest may have.

    An alias counts as all that it stands for.

    Args:
        text: YAML.
        file: its name, for errors.

    Raises:
        ConfigError: it is larger, or an anchor is within itself; names the file and the line.
        yaml.YAMLError: it is no YAML.
    """
    if len(text) > MOST_BYTES:
        raise ConfigError(f"{file}:1: {len(text):,} characters; a manifest has at most {MOST_BYTES:,}")
    sizes: dict[str, int] = {}
    open_anchors: list[str | None] = []
    nodes = [0]
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        place = f"{file}:{event.start_mark.line + 1 if event.start_mark else 1}"
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in open_anchors:
                raise ConfigError(f"{place}: *{event.anchor} is within what it stands for; expected values")
            nodes[-1] += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append(event.anchor)
            nodes.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_anchors.pop(), nodes.pop()
            nodes[-1] += size
            if anchor is not None:
                sizes[anchor] = size
        elif isinstance(event, yaml.ScalarEvent):
            nodes[-1] += 1
        if len(open_anchors) > _DEEPEST:
            raise ConfigError(f"{place}: more than {_DEEPEST} levels, one within the other; expected fewer")
        if sum(nodes) > _MOST_NODES:
            raise ConfigError(
                f"{place}: more than {_MOST_NODES:,} values, with each alias (*name) counted as what it "
                "stands for; expected fewer"
            )
