"""Sums over the variables of a time-expanded program, and rows of them for solvers that take a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.solvers.rows import Term
from synth.time_expanded.orbits import FoldedTerm, PairOrbits
from synth.time_expanded.windows import TimedIndex

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def summed(
    terms: Iterable[FoldedTerm], variables: Mapping[TimedIndex, Any], time: int, factor: float = 1
) -> list[Term]:
    """Return ``factor`` times a folded sum at one time; pairs without a variable then count nothing."""
    return [
        (factor * images, variable)
        for images, item, place in terms
        if (variable := variables.get((item, place, time))) is not None
    ]


def arrived(
    terms: Iterable[FoldedTerm],
    variables: Mapping[TimedIndex, Any],
    time: int,
    lag: Sequence[int],
    factor: float = 1,
) -> list[Term]:
    """Return :func:`summed` over what has entered its arc the arc's ``lag`` before, shape (arcs,)."""
    return [
        (factor * images, variable)
        for images, item, place in terms
        if (variable := variables.get((item, place, time - lag[place]))) is not None
    ]


def loads(orbits: PairOrbits, variables: Mapping[TimedIndex, Any]) -> dict[tuple[int, int], list[Term]]:
    """Return the sum over all items by place and time, in the order in which the items come; ``variables`` has those
    of the pairs that are kept."""
    times: dict[tuple[int, int], list[int]] = {}
    for item, place, time in variables:
        times.setdefault((item, place), []).append(time)
    images: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    for item in range(orbits.items):
        for place in range(orbits.places):
            pair = orbits.stands_for(item, place)
            for time in times.get(pair, ()):
                row = images.setdefault((place, time), {})
                row[pair] = row.get(pair, 0) + 1
    return {
        (place, time): [(count, variables[*pair, time]) for pair, count in row.items()]
        for (place, time), row in images.items()
    }


def merged(terms: Iterable[Term]) -> list[Term]:
    """Return the terms of each variable added up, in the order in which the variables come; none of coefficient 0."""
    total: dict[int, Term] = {}
    for factor, variable in terms:
        before, _ = total.get(id(variable), (0.0, None))
        total[id(variable)] = before + factor, variable
    return [term for term in total.values() if term[0]]


def by_place_and_time(variables: Mapping[TimedIndex, Any]) -> dict[tuple[int, int], list[Any]]:
    """Return the variables of all items by place and time, in the order in which they come."""
    found: dict[tuple[int, int], list[Any]] = {}
    for (_, place, time), variable in variables.items():
        found.setdefault((place, time), []).append(variable)
    return found


def over(variables: Mapping[TimedIndex, Any], item: int, places: Iterable[int], times: range) -> list[Any]:
    """Return the variables of an item at these places and times, as far as there are any: places first, then times."""
    return [
        variable for place in places for time in times if (variable := variables.get((item, place, time))) is not None
    ]


def sparse_rows(rows: Sequence[Iterable[Term]], columns: int) -> csr_array[Any]:
    """Return rows of terms over numbered variables as a sparse matrix, shape (rows, columns), terms of one variable
    added up."""
    from scipy.sparse import csr_array

    terms = [list(row) for row in rows]
    start = np.concatenate([[0], np.cumsum([len(row) for row in terms])]).astype(np.int64)
    factor = np.fromiter((a for row in terms for a, _ in row), dtype=float, count=int(start[-1]))
    column = np.fromiter((x for row in terms for _, x in row), dtype=np.int64, count=int(start[-1]))
    matrix: csr_array[Any] = csr_array((factor, column, start), shape=(len(terms), columns))
    matrix.sum_duplicates()
    return matrix
