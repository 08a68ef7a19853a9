"""Lays a graph out from left to right: data in layers, few crossings, and each piece near what it is made of.

Sugiyama's method: circles are cut, each node comes a layer after the last one that feeds it, long edges get a
bend in each layer that they pass, sweeps order each layer by the mean places of its neighbors, and at last
heights are as near to those of the neighbors as the distances allow.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT = 230.0, 44.0
"""Of a node."""
_GAP_X, _GAP_Y, _BEND = 76.0, 14.0, 10.0
_BETWEEN_PARTS = 26.0
_SWEEPS, _STRAIGHTENINGS = 16, 12
_STIFFNESS = 4.0
"""How much straighter than other arrows long ones are to be."""

Edge = tuple[int, int]


class Spot(NamedTuple):
    """A place, from the upper left corner."""

    x: float
    y: float


@dataclass(slots=True)
class Layout:
    """Where everything is.

    Attributes:
        nodes: the upper left corner of each node, by its number.
        bends: by edge, the places that it passes through, from its source to its sink.
        width, height: of all.
    """

    nodes: dict[int, Spot] = field(default_factory=dict)
    bends: dict[Edge, list[Spot]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def lay_out(count: int, edges: Iterable[Edge]) -> Layout:
    """Return a layout of some numbered nodes: parts that nothing connects are one below the other.

    Args:
        count: how many nodes there are.
        edges: between different nodes.
    """
    distinct = list(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
    layout = Layout()
    parts = _parts(count, distinct)
    lonely = [part[0] for part in parts if len(part) == 1]
    edges_by_part = {part[0]: list[Edge]() for part in parts}
    part_of = {node: part[0] for part in parts for node in part}
    for edge in distinct:
        edges_by_part[part_of[edge[0]]].append(edge)
    for part in sorted((part for part in parts if len(part) > 1), key=len, reverse=True):
        _Part(part, edges_by_part[part[0]]).place(layout)
    _place_grid(layout, lonely)
    return layout


def _parts(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Return the connected parts of a graph, each by its nodes in order."""
    neighbors: dict[int, list[int]] = {node: [] for node in range(count)}
    for source, sink in edges:
        neighbors[source].append(sink)
        neighbors[sink].append(source)
    parts, seen = [], set[int]()
    for first in range(count):
        if first in seen:
            continue
        part, waiting = [], [first]
        seen.add(first)
        while waiting:
            node = waiting.pop()
            part.append(node)
            fresh = [neighbor for neighbor in neighbors[node] if neighbor not in seen]
            seen.update(fresh)
            waiting += dict.fromkeys(fresh)
        parts.append(sorted(part))
    return parts


def _place_grid(layout: Layout, nodes: Sequence[int]) -> None:
    """Spot nodes without edges below all others, as many in a row as fit."""
    step = WIDTH + _GAP_X / 3
    per_row = max(4, int((layout.width + _GAP_X) / step))
    top = layout.height + (_BETWEEN_PARTS if layout.height else 0.0)
    for number, node in enumerate(nodes):
        row, column = divmod(number, per_row)
        layout.nodes[node] = Spot(column * step, top + row * (HEIGHT + _GAP_Y))
        layout.width = max(layout.width, column * step + WIDTH)
        layout.height = max(layout.height, layout.nodes[node].y + HEIGHT)


class _Part:
    """One connected part: its nodes and, with numbers below zero, the bends of its edges."""

    def __init__(self, nodes: Sequence[int], edges: Sequence[Edge]) -> None:
        self._edges = edges
        forward = _without_circles(nodes, edges)
        layer_of = _layers(nodes, forward)
        self._layers: list[list[int]] = [[] for _ in range(max(layer_of.values()) + 1)]
        for node in nodes:
            self._layers[layer_of[node]].append(node)
        self._before: dict[int, list[int]] = {node: [] for node in nodes}
        self._after: dict[int, list[int]] = {node: [] for node in nodes}
        self._chains: dict[Edge, list[int]] = {}
        for source, sink in dict.fromkeys(forward):
            self._add_chain(source, sink, layer_of)

    def _add_chain(self, source: int, sink: int, layer_of: dict[int, int]) -> None:
        chain = [source]
        for layer in range(layer_of[source] + 1, layer_of[sink]):
            bend = -1 - len(self._before)
            self._before[bend], self._after[bend] = [], []
            self._layers[layer].append(bend)
            chain.append(bend)
        chain.append(sink)
        for left, right in pairwise(chain):
            self._after[left].append(right)
            self._before[right].append(left)
        self._chains[source, sink] = chain

    def place(self, layout: Layout) -> None:
        """Add the part to a layout, below what is there."""
        self._order()
        heights = self._heights()
        top = layout.height + (_BETWEEN_PARTS if layout.height else 0.0) - min(heights.values())
        middles = {
            node: Spot(number * (WIDTH + _GAP_X) + WIDTH / 2, top + heights[node] + _size(node) / 2)
            for number, layer in enumerate(self._layers)
            for node in layer
        }
        for node, middle in middles.items():
            if node >= 0:
                layout.nodes[node] = Spot(middle.x - WIDTH / 2, middle.y - HEIGHT / 2)
                layout.width = max(layout.width, middle.x + WIDTH / 2)
            layout.height = max(layout.height, middle.y + _size(node) / 2)
        for edge in self._edges:
            chain = self._chains.get(edge) or self._chains[edge[1], edge[0]][::-1]
            layout.bends[edge] = [middles[node] for node in chain]

    def _order(self) -> None:
        """Order the nodes of each layer, so that few edges cross."""
        best, fewest = [list(layer) for layer in self._layers], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            neighbors = self._before if sweep % 2 == 0 else self._after
            numbers = range(len(self._layers))
            for number in numbers if sweep % 2 == 0 else reversed(numbers):
                self._sort_layer(number, neighbors)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self._layers], crossings
        self._layers = best

    def _sort_layer(self, number: int, neighbors: dict[int, list[int]]) -> None:
        beside = number - 1 if neighbors is self._before else number + 1
        if not 0 <= beside < len(self._layers):
            return
        place = {node: index for index, node in enumerate(self._layers[beside])}
        own = {node: index for index, node in enumerate(self._layers[number])}

        def mean(node: int) -> float:
            places = [place[neighbor] for neighbor in neighbors[node]]
            return sum(places) / len(places) if places else own[node]

        self._layers[number].sort(key=mean)

    def _crossings(self) -> int:
        crossings = 0
        for left, right in pairwise(self._layers):
            place = {node: index for index, node in enumerate(right)}
            ends: list[int] = []
            for node in left:
                places = sorted(place[neighbor] for neighbor in self._after[node])
                crossings += sum(len(ends) - bisect(ends, end) for end in places)
                for end in places:
                    insort(ends, end)
        return crossings

    def _heights(self) -> dict[int, float]:
        """Return the upper edge of each node, near the mean of its neighbors."""
        heights: dict[int, float] = {}
        for layer in self._layers:
            y = 0.0
            for node in layer:
                heights[node] = y
                y += _size(node) + _GAP_Y
        for turn in range(_STRAIGHTENINGS):
            neighbors = self._before if turn % 2 == 0 else self._after
            for layer in self._layers if turn % 2 == 0 else reversed(self._layers):
                self._straighten(layer, neighbors, heights)
        return heights

    def _straighten(
        self, layer: Sequence[int], neighbors: dict[int, list[int]], heights: dict[int, float]
    ) -> None:
        wanted, offsets, offset = list[float](), list[float](), 0.0
        for node in layer:
            middles = [heights[neighbor] + _size(neighbor) / 2 for neighbor in neighbors[node]]
            middle = sum(middles) / len(middles) if middles else heights[node] + _size(node) / 2
            wanted.append(middle - _size(node) / 2 - offset)
            offsets.append(offset)
            offset += _size(node) + _GAP_Y
        weights = [1.0 if node >= 0 else _STIFFNESS for node in layer]
        for node, height, own_offset in zip(layer, _ascending(wanted, weights), offsets, strict=True):
            heights[node] = height + own_offset


def _size(node: int) -> float:
    return HEIGHT if node >= 0 else _BEND


def _without_circles(nodes: Sequence[int], edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges, some of them turned around, so that none lead back to where they began."""
    after: dict[int, list[int]] = {node: [] for node in nodes}
    entered = dict.fromkeys(nodes, 0)
    for source, sink in edges:
        after[source].append(sink)
        entered[sink] += 1
    turned: set[Edge] = set()
    done: set[int] = set()
    for first in sorted(nodes, key=lambda node: entered[node]):
        if first not in done:
            _find_circles(first, after, done, turned)
    return [(sink, source) if (source, sink) in turned else (source, sink) for source, sink in edges]


def _find_circles(first: int, after: dict[int, list[int]], done: set[int], turned: set[Edge]) -> None:
    path: list[tuple[int, Iterator[int]]] = [(first, iter(after[first]))]
    on_path = {first}
    while path:
        node, rest = path[-1]
        sink = next((sink for sink in rest if sink not in done), None)
        if sink is None:
            path.pop()
            on_path.discard(node)
            done.add(node)
        elif sink in on_path:
            turned.add((node, sink))
        else:
            path.append((sink, iter(after[sink])))
            on_path.add(sink)


def _layers(nodes: Sequence[int], edges: Sequence[Edge]) -> dict[int, int]:
    """Return the layer of each node: after all that feed it, and sources right before what they feed."""
    after: dict[int, list[int]] = {node: [] for node in nodes}
    missing = dict.fromkeys(nodes, 0)
    for source, sink in edges:
        after[source].append(sink)
        missing[sink] += 1
    layer_of = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not missing[node]]
    sources = list(ready)
    while ready:
        node = ready.pop()
        for sink in after[node]:
            layer_of[sink] = max(layer_of[sink], layer_of[node] + 1)
            missing[sink] -= 1
            if not missing[sink]:
                ready.append(sink)
    for node in sources:
        layer_of[node] = min(layer_of[sink] for sink in after[node]) - 1
    return layer_of


def _ascending(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the ascending numbers nearest to some others; neighbors out of order share a mean."""
    blocks: list[tuple[float, float, int]] = []
    for value, own_weight in zip(wanted, weights, strict=True):
        total, weight, size = value * own_weight, own_weight, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / weight:
            its_total, its_weight, its_size = blocks.pop()
            total, weight, size = total + its_total, weight + its_weight, size + its_size
        blocks.append((total, weight, size))
    return [total / weight for total, weight, size in blocks for _ in range(size)]
