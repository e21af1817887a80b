"""Solutions and certificates out of a file, every field in turn made absurd: nothing wrong passes, nothing crashes.

The oracle is the slow replay on whole numbers without limit, straight from the stored fields."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from examples import some
from hypothesis import given, settings
from hypothesis import strategies as st
from models.mlfm.slow_replay import proves, replay, value

import synth
from synth.instance import parse
from synth.method import load
from synth_models.mlfm import FAMILY
from synth_models.mlfm.check.certificates import check_bound
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import PhaseTable

ODD: list[Any] = [0, 1, -1, 2**31, -(2**31), 2**31 - 1]
ODD += [2**62, -(2**62), 2**63 - 1, -(2**63 - 1), -(2**63), 2**63, 2**64]
ODD += [math.nan, math.inf, -math.inf, 0.5, True, None, "1", [], [[1]], {}, 10**400]
TABLE, PRODUCT = ("dest", "spine", "middle", "second"), ("pattern", "layer_shift", "slot_shift", "column", "spine")
CASES = ["cpsat", "closed_form", "greedy"]


def job(**changes: Any) -> MLFMInstance:
    raw = {"family": "mlfm", "name": "x", "source": "a test", "d": 2}
    made = parse(raw | changes, MLFMInstance, "x")
    assert isinstance(made, MLFMInstance)
    return made


DETOUR = job(subset=[[0, 0, 0], [0, 1, 0], [1, 2, 1]], routes="detour", failed={"spines": [[0, 1]]})
BLOCK = job(block={"layers": 2, "columns": 3, "servers": 1})


@cache
def stored(method: str) -> tuple[MLFMInstance, dict[str, Any]]:
    instance = BLOCK if method == "closed_form" else DETOUR
    packed = synth.solve(instance, method).packed or {}
    return instance, {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in packed.items()}


def as_stored(packed: dict[str, Any]) -> PhaseTable:
    """The phases with numbers of any size."""

    def grown(rows: Any) -> Any:
        return np.array(rows, dtype=object)

    if packed["form"] == "table":
        return PhaseTable(*(grown(packed[key]) for key in TABLE if key in packed))
    n, columns, slots = packed["layers"], len(packed["column"][0]), len(packed["column"][0][0])
    dest, spine = [], []
    for t, down, along in zip(packed["pattern"], packed["layer_shift"], packed["slot_shift"], strict=True):
        column, spines = packed["column"][t], packed["spine"][t]
        places = [(i, j, k) for i in range(n) for j in range(columns) for k in range(slots)]
        dest.append([((i + down) % n * columns + column[j][k]) * slots + (k + along) % slots for i, j, k in places])
        spine.append([-1 if down % n == 0 and column[j][k] == j else spines[j][k] for _, j, k in places])
    return PhaseTable(grown(dest), grown(spine))


def judged(instance: MLFMInstance, packed: dict[str, Any]) -> float | None:
    """The value by the check, None where it is refused; anything but ``ValueError`` in unpack is a crash."""
    try:
        phases = load(FAMILY.unpack)(instance, packed)
    except ValueError:
        return None
    verdict = load(FAMILY.check)(instance, phases)
    assert verdict.ok == (verdict.value is not None)
    return verdict.value


def agree(instance: MLFMInstance, packed: dict[str, Any]) -> None:
    found = judged(instance, packed)
    plain = {k: np.asarray(v).astype(object).tolist() for k, v in packed.items() if k != "form"} if found else {}
    assert found is None or replay(instance, as_stored(plain | {"form": str(packed["form"])}))[0]
    assert found is None or found == value(instance, as_stored(plain | {"form": str(packed["form"])}))


def replaced(values: Any, place: tuple[int, ...], new: Any) -> Any:
    """A nested list with one entry changed."""
    if not place:
        return new
    copied = list(values)
    copied[place[0]] = replaced(copied[place[0]], place[1:], new)
    return copied


def everywhere(values: Any, new: Any) -> Any:
    """A nested list with all entries changed."""
    return [everywhere(item, new) for item in values] if isinstance(values, list) else new


@pytest.mark.parametrize("method", CASES)
def test_the_oracle_agrees_with_what_is_right(method: str) -> None:
    instance, packed = stored(method)
    assert replay(instance, as_stored(packed))[0]
    assert judged(instance, packed) == value(instance, as_stored(packed))


@pytest.mark.parametrize("method", CASES)
def test_every_field_made_absurd(method: str) -> None:
    """The field as a whole, every entry, all entries, and one row more; as lists and as arrays."""
    instance, good = stored(method)
    for key in good:
        without = dict(good)
        del without[key]
        assert judged(instance, without) is None
        for odd in (*ODD, "table", "product"):
            changed = [odd]
            if isinstance(good[key], list):
                shape = np.shape(good[key])
                changed += [replaced(good[key], place, odd) for place in np.ndindex(*shape)]
                changed += [[*good[key], good[key][0]], good[key][1:], everywhere(good[key], odd)]
            for values in changed:
                agree(instance, good | {key: values})
                if isinstance(values, list) and isinstance(odd, (int, float)) and abs(odd) < 2**63:
                    agree(instance, good | {key: np.array(values)})


def absurd(data: st.DataObject) -> None:
    """Up to three entries of any fields changed at once, also by a little."""
    instance, packed = stored(data.draw(st.sampled_from(CASES)))
    near = st.one_of(st.sampled_from([v for v in ODD if type(v) is int]), st.integers(-2, 7))
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from([key for key in packed if isinstance(packed[key], list)]))
        place = tuple(data.draw(st.integers(0, size - 1)) for size in np.shape(packed[key]))
        packed = packed | {key: replaced(packed[key], place, data.draw(near))}
    agree(instance, packed)


@pytest.mark.parametrize("examples", [75, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_absurdities(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(st.data())(absurd))()


def test_every_certificate_field_made_absurd() -> None:
    """Weights on both down-links of leaf 1.2, to which two others send: what is accepted, the oracle proves too."""
    good = {"binding": "links", "links": [[5, 0, 1], [5, 1, 1]], "weights": [2, 3]}
    assert check_bound(DETOUR, 1, good) == []
    for key in good:
        assert check_bound(DETOUR, 1, {k: v for k, v in good.items() if k != key}) != []
        for odd in (*ODD, "links", "ranks", np.array(["links"])):
            changed = [odd]
            if key != "binding":
                shape = np.shape(good[key])
                changed += [replaced(good[key], place, odd) for place in np.ndindex(*shape)]
                changed += [[*good[key], odd], [*good[key], good[key][0]], everywhere(good[key], odd)]
            for values in changed:
                compared(good | {key: values})
    for bound in (math.nan, math.inf, -math.inf, 2.0**63):
        assert check_bound(DETOUR, bound, good) != []
        assert check_bound(DETOUR, bound, {"binding": "ranks"}) != []


def compared(certificate: dict[str, Any]) -> None:
    """Accepted for 1, 2 or 3 phases only where the oracle proves as many."""
    for bound in (1, 2, 3, 4):
        if check_bound(DETOUR, bound, certificate) == []:
            if certificate["binding"] == "ranks":
                assert bound <= 3
                continue
            weights: dict[Any, int] = {}
            for (leaf, column, way), weight in zip(certificate["links"], certificate["weights"], strict=True):
                link = ("down" if way else "up", divmod(leaf, 3), frozenset({leaf % 3, column}))
                assert link not in weights
                weights[link] = weight
            assert bound <= proves(DETOUR, weights)


@settings(max_examples=some(75), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 3), st.integers(0, 2), st.integers(0, 9)), max_size=8))
def test_weights_prove_what_the_statement_says(rows: list[tuple[int, int, int, int]]) -> None:
    """Random certificates of existing and other links: accepted up to the oracle's count where it has one."""
    certificate = {"binding": "links", "links": [list(row[:3]) for row in rows], "weights": [row[3] for row in rows]}
    compared(certificate)
    real = all(leaf < 6 and column in {0, 1, 2} - {leaf % 3} and way < 2 for leaf, column, way, _ in rows)
    dead = any({leaf % 3, column} == {0, 1} for leaf, column, *_ in rows)
    if real and not dead and sum(row[3] for row in rows) and len({row[:3] for row in rows}) == len(rows):
        links = [
            ("down" if way else "up", divmod(leaf, 3), frozenset({leaf % 3, column})) for leaf, column, way, _ in rows
        ]
        weights = {link: row[3] for link, row in zip(links, rows, strict=True)}
        assert check_bound(DETOUR, proves(DETOUR, weights), certificate) == []
