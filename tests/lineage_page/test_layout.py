"""Where the page draws what."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spark_events.lineage_page.layout import HEIGHT, WIDTH, lay_out

COUNT = 14
EDGES = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=40)


@given(EDGES)
def test_each_has_its_own_place(edges: list[tuple[int, int]]) -> None:
    """Also with circles, with edges in both directions, and without any."""
    layout = lay_out(COUNT, edges)
    assert sorted(layout.nodes) == list(range(COUNT))
    for one, other in combinations(layout.nodes.values(), 2):
        assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT
    for place in layout.nodes.values():
        assert 0 <= place.x <= layout.width - WIDTH + 1e-6
        assert -1e-6 <= place.y <= layout.height - HEIGHT + 1e-6
    assert layout.bends.keys() == {edge for edge in edges if edge[0] != edge[1]}


@given(EDGES)
def test_data_flows_from_left_to_right(edges: list[tuple[int, int]]) -> None:
    forward = [(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]]
    layout = lay_out(COUNT, forward)
    for source, sink in forward:
        assert layout.nodes[source].x < layout.nodes[sink].x
        xs = [point.x for point in layout.bends[source, sink]]
        assert xs == sorted(xs)


def test_edges_that_need_not_cross_do_not() -> None:
    """Ten chains, whose ends are numbered the other way round."""
    layout = lay_out(22, [(20, n) for n in range(10)] + [(n, 19 - n) for n in range(10)])
    order = sorted(range(10), key=lambda n: layout.nodes[n].y)
    assert sorted(range(10, 20), key=lambda n: layout.nodes[n].y) == [19 - n for n in order]


def test_a_chain_is_a_straight_line() -> None:
    layout = lay_out(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert layout.nodes[1].y == layout.nodes[2].y
