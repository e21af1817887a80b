"""Windows against a search over all moves in time, on random graphs with random lags."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import Graph, graphs

from synth.graph.shortest_paths import UNREACHABLE, all_pairs
from synth.time_expanded.windows import Windows, at_nodes, on_arcs

FAR = 1000
HORIZON = st.integers(0, 6)


def can_hold(graph: Graph, origin: int, horizon: int) -> set[tuple[int, int]]:
    """Every node and time at which an item that begins at ``origin`` can be there, by making every move that there is:
    waiting, or entering an arc and leaving it after its lag (``size``)."""
    found: set[tuple[int, int]] = set()
    waiting = [(origin, 0)]
    while waiting:
        node, time = waiting.pop()
        if time > horizon or (node, time) in found:
            continue
        found.add((node, time))
        waiting.append((node, time + 1))
        out = np.flatnonzero(graph.tail == node).tolist()
        waiting += [(int(graph.head[e]), time + int(graph.size[e])) for e in out]
    return found


def distances(graph: Graph) -> np.ndarray:
    direct = np.full((graph.nodes, graph.nodes), UNREACHABLE, dtype=np.int64)
    np.minimum.at(direct, (graph.tail, graph.head), graph.size)
    np.fill_diagonal(direct, 0)
    return np.minimum(all_pairs(direct), FAR)


@given(graph=graphs(most_nodes=5), horizon=HORIZON, data=st.data())
def test_an_arc_has_a_window_where_a_use_of_it_is_part_of_a_way_in_time(
    graph: Graph, horizon: int, data: st.DataObject
) -> None:
    """In the window and nowhere else can the item have come to the arc's start, and go on from its end to one of its
    goals by the horizon."""
    node = st.integers(0, graph.nodes - 1)
    items = data.draw(st.lists(st.tuples(node, st.lists(node, min_size=1)), min_size=1, max_size=3))
    away = distances(graph)
    ready = np.array([away[origin] for origin, _ in items])
    due = np.array([horizon - away[:, goals].min(axis=1) for _, goals in items])
    windows = on_arcs(ready, due, graph.tail, graph.head, graph.size)
    arcs = list(zip(graph.tail.tolist(), graph.head.tolist(), graph.size.tolist(), strict=True))
    expected = set()
    for item, (origin, goals) in enumerate(items):
        there = can_hold(graph, origin, horizon)
        for e, (u, v, lag) in enumerate(arcs):
            for time in range(horizon + 1):
                left = horizon - time - lag
                if (u, time) in there and any((goal, left) in can_hold(graph, v, left) for goal in goals):
                    expected.add((item, e, time))
    assert set(windows.indices()) == expected


@given(graph=graphs(most_nodes=5), horizon=HORIZON, data=st.data())
def test_a_node_has_a_window_from_when_the_item_can_be_there(graph: Graph, horizon: int, data: st.DataObject) -> None:
    origins = data.draw(st.lists(st.integers(0, graph.nodes - 1), min_size=1, max_size=3))
    windows = at_nodes(distances(graph)[origins], horizon)
    expected = {(item, *at) for item, origin in enumerate(origins) for at in can_hold(graph, origin, horizon)}
    assert set(windows.indices()) == expected


@st.composite
def tables(draw: st.DrawFn) -> Windows:
    """Any windows, empty and far ones among them."""
    shape = draw(st.tuples(st.integers(0, 3), st.integers(1, 4)))
    number = st.lists(st.integers(-3, 5) | st.just(2**40), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    first = np.array(draw(number), dtype=np.int64).reshape(shape)
    last = np.minimum(np.array(draw(number), dtype=np.int64).reshape(shape), 6)
    return Windows(first, last)


@given(windows=tables(), data=st.data())
def test_all_forms_of_windows_say_the_same(windows: Windows, data: st.DataObject) -> None:
    """Indices in order, how many, by item, by pair, and those that are left where some are kept only."""
    items, places = windows.first.shape
    expected = [
        (item, place, time)
        for item in range(items)
        for place in range(places)
        for time in range(-3, 7)
        if windows.first[item, place] <= time <= windows.last[item, place]
    ]
    assert windows.indices() == expected
    assert windows.count == len(expected)
    assert [(i, p, t) for i, p, times in windows.pairs() for t in times] == expected
    assert all(len(times) for _, _, times in windows.pairs())
    assert [(i, p, t) for i in range(items) for p, times in windows.of_item(i) for t in times] == expected
    flags = data.draw(st.lists(st.booleans(), min_size=items * places, max_size=items * places))
    kept = np.array(flags, dtype=bool).reshape(items, places)
    assert windows.only(kept).indices() == [index for index in expected if kept[index[:2]]]
