"""Solutions and certificates out of a file, every field in turn made absurd: nothing wrong passes, nothing crashes.

The oracle replays in plain Python, where whole numbers have no limit, straight from the stored fields."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synth
from synth.method import load
from synth.options import RunOptions
from synth_models.bine import FAMILY
from synth_models.bine.bounds import global_bytes as bound
from synth_models.bine.check.certificates import check_bound

ODD: list[Any] = [0, 1, -1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63 - 1), -(2**63), 2**63, 2**64]
ODD += [math.nan, math.inf, -math.inf, 0.5, True, None, "1", [], [[1]], {}, 10**400]
EVERYWHERE = ("broadcast", "allgather", "allreduce")
FIELDS = ("job", "round", "src", "dst", "first", "count", "adds", "layout", "starts")
CASES = [
    ("binomial_halving", {"groups": "2,3", "bytes": "7"}),
    ("bine", {"groups": "3,1", "collective": "gather"}),
    ("bine", {"groups": "1,3", "collective": "allreduce", "vector": "large", "bytes": "3"}),
    ("recursive", {"groups": "2,2", "collective": "allreduce", "problem": "butterfly"}),
    ("bruck", {"groups": "2,1", "collective": "alltoall"}),
    ("bucket", {"torus": "3x2", "collective": "allgather"}),
]


def stored(method: str, parameters: dict[str, str]) -> tuple[Any, dict[str, Any]]:
    instance = synth.make("bine", **parameters)
    packed = load(FAMILY.pack)(FAMILY.methods[method].load()(instance, RunOptions()).solution)
    return instance, {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in packed.items()}


def crossed(instance: Any, src: int, dst: int) -> int:
    """Global links of a message: 1 between groups; on a torus the hops, the shorter way round in every dimension."""
    if instance.torus is None:
        groups = instance.allocations[0]
        return int(groups[src] != groups[dst])
    hops = 0
    for side in reversed(instance.torus):
        away = abs(src % side - dst % side)
        hops += min(away, side - away)
        src, dst = src // side, dst // side
    return hops


def replayed(instance: Any, packed: dict[str, Any]) -> float | None:
    """The bytes on global links of messages of one job if it does what the collective asks, else None.

    State: for every rank and block the set of ranks whose contribution it holds (gather-like: its owner's, or none)."""
    ranks = len(instance.allocations[0])
    blocks = instance.blocks(ranks) * packed["shares"]
    rows = list(zip(*(packed[key] for key in FIELDS[:7]), strict=True))
    layout, what = packed["layout"], instance.collective
    if sorted(layout) != list(range(blocks)) or packed["starts"] != [0, blocks] or packed["shares"] < 1:
        return None
    everyone = frozenset(range(ranks))

    def begins(rank: int, block: int) -> frozenset[int]:
        if what in ("reduce", "reduce_scatter", "allreduce"):
            return frozenset([rank])
        owner = {"broadcast": instance.root, "scatter": instance.root, "alltoall": block // ranks % ranks}
        return everyone if owner.get(what, block % ranks) == rank else frozenset()

    state = {(r, b): begins(r, b) for r in range(ranks) for b in range(blocks)}
    units, last = 0, 0
    for when in sorted({row[1] for row in rows}):
        before = dict(state)
        for job, step, src, dst, first, count, adds in rows:
            if step != when:
                continue
            if job != 0 or not (0 <= src < ranks and 0 <= dst < ranks and src != dst and step >= 0 and count >= 1):
                return None
            if first < 0 or first + count > blocks:
                return None
            units += count * crossed(instance, src, dst)
            for block in layout[first : first + count]:
                moved = before[src, block]
                if (not adds and moved != everyone) or (adds and moved & state[dst, block]):
                    return None
                state[dst, block] |= moved
    for job, step, *_ in rows:
        if job != 0 or step < last:
            return None
        last = step
    for r in range(ranks):
        for b in range(blocks):
            own = r == instance.root if what in ("reduce", "gather") else b % ranks == r
            wanted = own or what in EVERYWHERE
            if wanted and state[r, b] != everyone:
                return None
    cut = ranks if what == "alltoall" else instance.blocks(ranks)
    return float(Fraction(units) * Fraction(instance.bytes) / cut / packed["shares"])


def judged(instance: Any, packed: dict[str, Any]) -> float | None:
    """The value by the check, None where it is refused; anything but ``ValueError`` in unpack is a crash."""
    try:
        messages = load(FAMILY.unpack)(instance, packed)
    except ValueError:
        return None
    verdict = load(FAMILY.check)(instance, messages)
    assert verdict.ok == (verdict.value is not None)
    return verdict.value


def agree(instance: Any, packed: dict[str, Any]) -> None:
    value = judged(instance, packed)
    if value is None:
        return  # the check may be stricter: the problem's rules are not in the oracle
    plain = {key: np.asarray(values).astype(object).tolist() for key, values in packed.items()}
    plain = {key: [int(v) for v in values] if isinstance(values, list) else values for key, values in plain.items()}
    assert value == replayed(instance, plain)
    assert value >= (bound.solve(instance, RunOptions()).bound or 0)


@pytest.mark.parametrize(("method", "parameters"), CASES)
def test_the_oracle_agrees_with_what_is_right(method: str, parameters: dict[str, str]) -> None:
    instance, packed = stored(method, parameters)
    assert judged(instance, packed) == replayed(instance, packed) is not None


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("method", "parameters"), CASES)
def test_every_field_made_absurd(method: str, parameters: dict[str, str]) -> None:
    """The field as a whole, its first and last entry, all entries, and one entry more; as lists and as arrays."""
    instance, good = stored(method, parameters)
    for key in (*FIELDS, "shares"):
        whole = dict(good)
        del whole[key]
        assert judged(instance, whole) is None
        for odd in ODD:
            changed = [odd]
            if key != "shares":
                column = good[key]
                changed += [[odd, *column[1:]], [*column[:-1], odd], [odd] * len(column), [*column, odd]]
            for values in changed:
                agree(instance, good | {key: values})
                if key != "shares" and isinstance(odd, (int, float)) and abs(odd) < 2**63 and isinstance(values, list):
                    agree(instance, good | {key: np.array(values)})


@pytest.mark.parametrize("first", [2**62, 2**63 - 1, 1])
@pytest.mark.parametrize(
    "counts", [[2**63 - 1] * 2, [2**63 - 1, 2**63 - 1, 1], [2**62] * 4, [2**63 - 2**62] * 3 + [2**62 - 1]]
)
def test_rows_beyond_the_blocks_whose_sums_wrap(first: int, counts: list[int]) -> None:
    """A broadcast of 7000 bytes over two groups, whose one crossing message gets more rows, of blocks that are not
    there: in 64 bits the rows end before they begin, and with the real one their counts add up to 0, -1 or 1."""
    instance, packed = stored("binomial_halving", {"groups": "2,2", "bytes": "7000"})
    assert judged(instance, packed) == 7000
    row = next(i for i in range(3) if crossed(instance, packed["src"][i], packed["dst"][i]))
    for count in counts:
        for key in FIELDS[:7]:
            packed[key].insert(row + 1, {"first": first, "count": count}.get(key, packed[key][row]))
    assert judged(instance, packed) is None
    assert replayed(instance, packed) is None


@pytest.mark.parametrize("copies", [1, 2, 40])
def test_rows_that_come_again_and_again(copies: int) -> None:
    """An allgather of three ranks in one round, every block from its owner to both others: 6 rows, 4 of which cross;
    more copies cost more and take no more room than the state. What arrives in a round cannot be passed on in it."""
    instance = synth.make("bine", **{"groups": "2,1", "collective": "allgather", "bytes": "3"})
    rows = [(src, dst, src) for src in range(3) for dst in range(3) if src != dst] * copies
    packed: dict[str, Any] = {"job": [0] * len(rows), "round": [0] * len(rows), "count": [1] * len(rows)}
    packed |= {key: [row[i] for row in rows] for i, key in enumerate(("src", "dst", "first"))}
    packed |= {"adds": [0] * len(rows), "layout": [0, 1, 2], "starts": [0, 3], "shares": 1}
    assert judged(instance, packed) == replayed(instance, packed) == 4 * copies
    packed["src"][-1], packed["dst"][-1], packed["first"][-1] = 1, 2, 0
    assert judged(instance, packed) is None


def absurd(data: st.DataObject) -> None:
    """Up to three entries of any columns changed at once, also by a little."""
    instance, packed = stored(*data.draw(st.sampled_from(CASES)))
    near = st.one_of(st.sampled_from([v for v in ODD if type(v) is int]), st.integers(-2, 12))
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(FIELDS))
        packed[key][data.draw(st.integers(0, len(packed[key]) - 1))] = data.draw(near)
    agree(instance, packed)


@pytest.mark.parametrize("examples", [75, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_absurdities(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(st.data())(absurd))()


@pytest.mark.parametrize("problem", ["any", "butterfly"])
def test_certificates_made_absurd(problem: str) -> None:
    """Only the two arguments by their names, and never more than they prove: by hand 2 (G - 1) m = 2 for the receive
    count of an allreduce on two groups; :func:`test_isoperimetric_by_hand` has the other."""
    own = {"groups": "2,2", "collective": "allreduce", "vector": "large", "bytes": "1"}
    instance = synth.make("bine", **own, problem=problem)
    for odd in (*ODD, "receive ", np.array(["receive", "x"]), ["receive"]):
        for certificate in ({"binding": odd}, {}, {"kind": odd}):
            assert check_bound(instance, 1.0, certificate) != []
    for value in (2.0, 1.0, -1.0, 0.0):
        assert check_bound(instance, value, {"binding": "receive"}) == []
    for value in (np.nextafter(2.0, 3.0), 3.0, math.inf, -math.inf, math.nan, 2.0**63):
        assert check_bound(instance, value, {"binding": "receive"}) != []
        assert check_bound(instance, value, {"binding": "isoperimetric"}) != []
    assert (check_bound(instance, 2.0, {"binding": "isoperimetric"}) == []) == (problem == "butterfly")
