"""Orbits of pairs against the closure of their group, and folded sums against sums over all pairs."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.graph.symmetry import generated
from synth.time_expanded.orbits import (
    PairOrbits,
    generated_orbits,
    group_orbits,
    item_images,
    unfolded,
)
from synth.time_expanded.rows import arrived, by_place_and_time, loads, merged, over, sparse_rows, summed

TIMES = range(4)


class Symmetries(NamedTuple):
    """What each symmetry does to the items and to the places."""

    items: list[np.ndarray]
    places: list[np.ndarray]

    def orbit(self, item: int, place: int) -> set[tuple[int, int]]:
        """All images of a pair."""
        found, waiting = set(), [(item, place)]
        while waiting:
            pair = waiting.pop()
            if pair not in found:
                found.add(pair)
                waiting += [(int(i[pair[0]]), int(p[pair[1]])) for i, p in zip(self.items, self.places, strict=True)]
        return found

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.items[0]), len(self.places[0])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(i, p) for i in range(self.shape[0]) for p in range(self.shape[1])]


@st.composite
def symmetries(draw: st.DrawFn) -> Symmetries:
    items, places = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    both = st.tuples(st.permutations(range(items)), st.permutations(range(places)))
    found = draw(st.lists(both, min_size=1, max_size=3))
    return Symmetries([np.array(i) for i, _ in found], [np.array(p) for _, p in found])


def folded(found: Symmetries) -> PairOrbits:
    return generated_orbits(found.items, found.places)


@given(found=symmetries())
def test_every_pair_stands_for_its_least_image(found: Symmetries) -> None:
    orbits = folded(found)
    for pair in found.pairs:
        least = min(found.orbit(*pair))
        assert orbits.stands_for(*pair) == least
        assert bool(orbits.kept[pair]) == (least == pair)
    assert orbits.kept_pairs() == sorted({min(found.orbit(*pair)) for pair in found.pairs})


@given(found=symmetries())
def test_a_group_and_its_generators_have_the_same_orbits(found: Symmetries) -> None:
    """All elements at once, items and places as one permutation of both."""
    items = found.shape[0]
    both = [np.concatenate([i, items + p]) for i, p in zip(found.items, found.places, strict=True)]
    elements = generated(both, sum(found.shape), 10**5)
    assert elements is not None
    assert np.array_equal(group_orbits(elements[:, :items], elements[:, items:] - items).least, folded(found).least)


def test_without_symmetries_every_pair_is_kept() -> None:
    orbits = unfolded(2, 3)
    assert orbits.kept.all()
    assert (orbits.items, orbits.places) == (2, 3)
    with pytest.raises(ValueError, match="unfolded"):
        generated_orbits([], [])


@given(found=symmetries(), data=st.data())
def test_images_of_points(found: Symmetries, data: st.DataObject) -> None:
    """Every pair is the image of the points, in their order, at the pair that stands for it."""
    orbits = folded(found)
    points = data.draw(st.lists(st.sampled_from(orbits.kept_pairs()), max_size=6))
    table = np.array(points, dtype=np.int64).reshape(-1, 2)
    item, place, which = orbits.images(table[:, 0], table[:, 1])
    expected = [
        (*pair, number)
        for pair in found.pairs
        for number, point in enumerate(points)
        if point == min(found.orbit(*pair))
    ]
    assert list(zip(item.tolist(), place.tolist(), which.tolist(), strict=True)) == expected


@given(found=symmetries())
def test_spread_divides_a_value_among_the_images(found: Symmetries) -> None:
    """By symmetry all images get the same, and no value is lost."""
    orbits = folded(found)
    values = np.zeros((*found.shape, 2))
    for number, pair in enumerate(orbits.kept_pairs()):
        values[pair] = number + 1, 10.0 * number
    spread = orbits.spread(values)
    for pair in found.pairs:
        orbit = found.orbit(*pair)
        assert spread[pair] == pytest.approx(values[min(orbit)] / len(orbit))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.permutations(range(4)))
def test_images_of_items(origin: list[int], image: list[int]) -> None:
    """The j-th item of a node goes to the j-th of its image; nowhere if the image has more or fewer."""
    items_of: dict[int, list[int]] = defaultdict(list)
    for item, node in enumerate(origin):
        items_of[node].append(item)
    found = item_images(np.array(origin), np.array(image))
    if any(len(items_of[node]) != len(items_of[image[node]]) for node in range(4)):
        assert found is None
    else:
        assert found is not None
        for node in range(4):
            assert found[items_of[node]].tolist() == items_of[image[node]]


@st.composite
def variables(draw: st.DrawFn) -> tuple[Symmetries, dict[tuple[int, int, int], int]]:
    """Numbered variables at some kept pairs and times; what is numbered from 1 is told apart from nothing."""
    found = draw(symmetries())
    indices = [(*pair, time) for pair in folded(found).kept_pairs() for time in TIMES]
    chosen = draw(st.lists(st.sampled_from(indices), unique=True))
    return found, {index: number for number, index in enumerate(chosen, 1)}


def total(terms: list[tuple[float, int]]) -> dict[int, float]:
    """The coefficient of every variable."""
    found: dict[int, float] = defaultdict(float)
    for factor, variable in terms:
        found[variable] += factor
    return dict(found)


def apart(found: Symmetries, x: dict[tuple[int, int, int], int], pairs: list[tuple[int, int]], time: int) -> list[int]:
    """The variable of each pair at a time, one by one, pairs without one left out."""
    each = (x.get((*min(found.orbit(*pair)), time)) for pair in pairs)
    return [number for number in each if number is not None]


@given(drawn=variables(), data=st.data())
def test_folded_sums_are_sums_over_all_pairs(
    drawn: tuple[Symmetries, dict[tuple[int, int, int], int]], data: st.DataObject
) -> None:
    """Of all items at a place, and of one item at some places, each variable once; with lags the same earlier."""
    found, x = drawn
    orbits = folded(found)
    items, places = found.shape
    lag = data.draw(st.lists(st.integers(0, 2), min_size=places, max_size=places))
    lag = [min(lag[p] for _, p in found.orbit(0, place)) for place in range(places)]  # one for all images
    carried = loads(orbits, x)
    for time in TIMES:
        for place in range(places):
            pairs = [(item, place) for item in range(items)]
            terms = summed(orbits.of_place(place), x, time, 3.0)
            assert total(terms) == total([(3.0, variable) for variable in apart(found, x, pairs, time)])
            assert len(terms) == len(total(terms))
            assert list(total(terms)) == list(dict.fromkeys(apart(found, x, pairs, time)))
            assert [(3.0 * images, y) for images, y in carried.get((place, time), [])] == terms
        some = data.draw(st.lists(st.integers(0, places - 1), max_size=4))
        entering = orbits.of_item(0, some)
        expected = [(1, variable) for variable in apart(found, x, [(0, place) for place in some], time)]
        assert total(summed(entering, x, time)) == total(expected)
        at = {(item, place): x.get((item, place, time - lag[place])) for item, place in orbits.kept_pairs()}
        late = [(-1.0, y) for place in some if (y := at[min(found.orbit(0, place))]) is not None]
        assert total(arrived(entering, x, time, lag, -1.0)) == total(late)
    assert list(carried) == list(
        dict.fromkeys(
            (place, time)
            for item, place in found.pairs
            for (*pair, time) in x
            if tuple(pair) == min(found.orbit(item, place))
        )
    )


@given(st.dictionaries(st.tuples(*[st.integers(0, 2)] * 3), st.integers()), st.data())
def test_variables_over_places_and_times(x: dict[tuple[int, int, int], int], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, 3)))
    times = range(*sorted(data.draw(st.tuples(st.integers(-1, 4), st.integers(-1, 4)))))
    assert over(x, 1, places, times) == [x[1, p, t] for p in places for t in times if (1, p, t) in x]
    expected: dict[tuple[int, int], list[int]] = {}
    for (_, place, time), variable in x.items():
        expected[place, time] = [*expected.get((place, time), []), variable]
    assert by_place_and_time(x) == expected
    assert list(by_place_and_time(x)) == list(expected)


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from("abc"))))
def test_terms_of_one_variable_are_merged(terms: list[tuple[float, str]]) -> None:
    sums = {name: sum(factor for factor, other in terms if other == name) for _, name in terms}
    assert merged(terms) == [(factor, name) for name, factor in sums.items() if factor]


@given(st.lists(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)))))
def test_rows_as_a_matrix(rows: list[list[tuple[float, int]]]) -> None:
    expected = np.zeros((len(rows), 5))
    for row, terms in enumerate(rows):
        for factor, column in terms:
            expected[row, column] += factor
    found = sparse_rows(rows, 5)
    assert found.shape == expected.shape
    assert np.array_equal(found.toarray(), expected)
