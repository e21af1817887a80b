"""Groups of renumberings that lead from every GPU to every other in exactly one way, found by chance.

Each has Cayley graphs of its own. On a torus whose patterns keep their reflections and exchanges of axes there are many
groups beside that of the shifts. Most of them do not commute, so that routes which take the same links in another order
lead elsewhere: more GPUs are near. Products of random renumberings are closed; the same seed gives the same groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from synth.arrays import IntArray
from synth_models.harvest.programs.column_generation.lifts import Lift

TRIALS = 3000
WORD = 6  # renumberings in a product, each to a random power
LARGEST_POWER = 64


def regular_lifts(
    generators: Sequence[IntArray],
    patterns: Sequence[IntArray],
    random: np.random.Generator,
    most: int,
    stop: Callable[[], bool],
) -> list[Lift]:
    """At most so many of them, no two alike: in two that are, as many elements are repeated equally often before they
    do nothing, also of those that lead from GPU 0 to its partners in a pattern (pairs, 3)."""
    found: dict[bytes, Lift] = {}
    if not len(generators):
        return []
    for trial in range(TRIALS):
        if len(found) == most or stop():
            break
        picked = [_product(generators, random) for _ in range(2 + trial % 2)]
        if any(_holds_some(moved) for moved in picked):
            continue
        elements = _closed(picked)
        if elements is not None:
            found.setdefault(_signature(elements, patterns), Lift(elements, tuple(picked)))
    return list(found.values())


def _product(generators: Sequence[IntArray], random: np.random.Generator) -> IntArray:
    """A product of a few random renumberings."""
    moved = np.arange(len(generators[0]), dtype=np.int64)
    for _ in range(WORD):
        factor = np.asarray(generators[int(random.integers(len(generators)))])
        for bit in bin(int(random.integers(LARGEST_POWER)))[:1:-1]:
            moved = factor[moved] if bit == "1" else moved
            factor = factor[factor]
    return moved


def _holds_some(moved: IntArray) -> bool:
    """Whether a GPU keeps its number."""
    return bool((moved == np.arange(len(moved))).any())


def _closed(generators: Sequence[IntArray]) -> IntArray | None:
    """All products, shape (gpus, gpus), in the order in which they are met, the identity first; None where they are
    not one for every GPU that GPU 0 may be led to."""
    gpus = len(generators[0])
    elements = [np.arange(gpus, dtype=np.int64)]
    leads = {0: elements[0]}  # GPU 0 to this one
    for element in elements:  # which grows
        for generator in generators:
            product = generator[element]
            known = leads.get(int(product[0]))
            if known is None:
                leads[int(product[0])] = product
                elements.append(product)
            elif not np.array_equal(known, product):
                return None
    return np.array(elements) if len(elements) == gpus else None


def _signature(elements: IntArray, patterns: Sequence[IntArray]) -> bytes:
    """The same for groups that a renumbering, which keeps GPU 0 and all patterns, turns into each other."""
    following = elements[np.argsort(elements[:, 0])]
    every = np.arange(len(following))
    order, at, left = np.zeros(len(following), dtype=np.int64), following[every, 0], every
    for times in range(1, len(following) + 1):
        back = at == 0
        order[left[back]] = times
        left, at = left[~back], at[~back]
        if not len(left):
            break
        at = following[left, at]
    words = [np.sort(order), *(np.sort(order[pairs[pairs[:, 0] == 0, 1]]) for pairs in patterns)]
    return b"".join(one.tobytes() + b"|" for one in words)
