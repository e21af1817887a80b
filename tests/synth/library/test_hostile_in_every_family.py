"""Hostile tables and certificates in every family but xtree, whose are in test_submission.py: one clear message each.

Certificates are also put before the second checker, which must say the same."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from handed_in import JANE, in_a_file, published, tables
from two_checkers import opinions

from synth.errors import InputError
from synth.library import submission
from synth.library.submission import RefusedError
from synth.text.input_file import InputFile

Rows = list[list[str]]
HandIn = Callable[[str], str]

SCHEDULES = {  # a schedule of each family; of columns that are read: a cell that names no rank, link, round or place
    "fabric/star-6-scatter-6KiB/flow-highs": {"src": "7", "dst": "-7", "links": "99", "block": "5", "start_tick": "-1"},
    "harvest/demand-6-bulk-p2/misocp-highs": {"step": "77", "src": "6", "dst": "-1", "links": "0"},
    "mlfm/d3-n2l3m2/greedy": {"phase": "-1", "src": "9.9.9", "dst": "0.0", "via": "7.7 7-8 7.7"},
    "optree/ring-7-w2/time_expanded-cpsat": {"step": "0", "src": "7", "wavelength": "2", "direction": "5"},
    "bine/groups-3-6-7-scatter/tree_ilp-highs": {"round": "-1", "src": "16", "copied": "3-1", "parts": "0"},
}
NO_NUMBERS = ("nan", "inf", "1e400", "1" + 400 * "0", "zero", "1;2", "\x00")
BOUNDS = {  # published bounds: the kind of their certificate
    "fabric/ours/fabric/dgx-a100-reduce-1KiB/bound": "deliveries",
    "fabric/ours/fabric/dgx-a100-allreduce-1KiB/bound": "sums",
    "fabric/star-6-scatter-6KiB/bound": "cut",
    "fabric/dgx1-alltoall-1GB/bound": "prices",
    "fabric/ring-5-allreduce-5MiB/bound": "partition",
    "harvest/ring-16-p1/bound": "intervals",
    "mlfm/d4-n2l2m4/bound": "links",
    "optree/mesh-2x3-w1/bound": "cut",
    "optree/torus-4x4-w2/bound": "reach",
    "bine/groups-3-6-7-scatter/bound": "receive",
    "bine/groups-3-3-2-allgather-butterfly/bound": "positions",
}
ODD = (math.inf, 10**400, -(10**400), -(2**63), 2**63, 0.5, "7", True, None, [], {}, [[0]])


@pytest.fixture(params=SCHEDULES, ids=lambda case: str(case.partition("/")[0]))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Rows, HandIn]:
    """A case, the rows of its table, and what hands in another table and returns why it is refused."""
    made = published(request.param)
    instance, (first, *others) = in_a_file(made, tmp_path), tables(made, tmp_path)
    path = tmp_path / "false.csv"

    def hand_in(text: str) -> str:
        path.write_text(text)
        with pytest.raises((InputError, RefusedError)) as refused:
            submission.schedule(instance, [InputFile(path), *others], JANE)
        assert "false.csv" in str(refused.value)
        return str(refused.value)

    return request.param, list(csv.reader(io.StringIO(first.text))), hand_in


def as_text(rows: Rows) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def test_cells_that_are_no_numbers_and_no_places(case: tuple[str, Rows, HandIn]) -> None:
    """The message names line and column."""
    name, rows, hand_in = case
    middle = len(rows) // 2
    for column, nowhere in SCHEDULES[name].items():
        for cell in (nowhere, *NO_NUMBERS):
            changed = deepcopy(rows)
            changed[middle][rows[0].index(column)] = cell
            said = hand_in(as_text(changed))
            assert f"line {middle + 1}" in said, (column, cell, said)
            assert column in said, (column, cell, said)


def test_tables_that_are_cut_short_or_something_else(case: tuple[str, Rows, HandIn]) -> None:
    name, rows, hand_in = case
    whole = as_text(rows)
    for text in ("", "[1, 2", "\x00\x01", as_text(rows[:1]), as_text(rows[1:])):
        assert "needs a header line" in hand_in(text)
    hand_in(whole[: len(whole) // 2])
    doubled = as_text([[*row, row[0]] for row in rows])
    assert f"a column stands twice in the header line: {rows[0][0]}" in hand_in(doubled)
    longer = hand_in(as_text([rows[0], [*rows[1], "7"], *rows[2:]]))
    assert f"line 2: has more than the header's {len(rows[0])} columns" in longer
    if not name.startswith("bine"):  # there it is a message more, which costs what it costs
        hand_in(as_text([*rows, rows[-1]]))


@pytest.mark.parametrize("case", [next(iter(SCHEDULES))], indirect=True)
def test_ends_that_are_not_the_route(case: tuple[str, Rows, HandIn]) -> None:
    """A transfer whose ``src`` or ``dst`` was edited, and its links were not, is no other transfer."""
    _, rows, hand_in = case
    for key in ("src", "dst"):
        changed = deepcopy(rows)
        changed[1][rows[0].index(key)] = "5" if rows[1][rows[0].index(key)] != "5" else "4"
        assert f"line 2, {key} = " in hand_in(as_text(changed))


def odd_certificates(certificate: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a certificate with an odd value, or none, in place of each of its keys and of the first row of each list.

    Beside NaN each place has five of the odd values, the next place the next five."""

    def places(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        first = list(enumerate(part))[:1] if isinstance(part, list) else []
        for key, value in part.items() if isinstance(part, dict) else first:
            yield (*path, key)
            yield from places(value, (*path, key))

    for number, path in enumerate(places(certificate, ())):
        for odd in ("left out", math.nan, *(ODD[(5 * number + i) % len(ODD)] for i in range(5))):
            changed = deepcopy(certificate)
            part: Any = changed
            for key in path[:-1]:
                part = part[key]
            if odd == "left out":
                del part[path[-1]]
            else:
                part[path[-1]] = odd
            yield f"{path} {odd!r:.20}", changed


@pytest.mark.long(after=5)
@pytest.mark.parametrize("name", [name for name, kind in BOUNDS.items() if kind != "positions"])
def test_both_checkers_refuse_odd_certificates(name: str, tmp_path: Path) -> None:
    """What one accepts (a key without meaning, an entry of which nothing hangs) the other accepts too.

    Certificates of butterflies are not covered by the second checker."""
    made = published(name)
    record = json.loads(json.dumps({**made.data, "solution": made.certificate}, default=lambda array: array.tolist()))
    assert record["solution"].get("argument", record["solution"].get("binding", "intervals")) == BOUNDS[name]
    record |= {"solution_file": None, "instance_text": made.find_instance().to_json()}
    refused = 0
    assert opinions(json.dumps(record), tmp_path)[:2] == ("accept", "accept")
    for what, certificate in odd_certificates(record["solution"]):
        ours, theirs, reason, why = opinions(json.dumps(record | {"solution": certificate}), tmp_path)
        assert ours == theirs or (ours == "not covered" and theirs == "refuse"), f"{what}: {reason} | {why}"
        refused += theirs == "refuse"
    assert refused >= 7
    text = json.dumps(record)
    for cut in (1, len(text) // 3, len(text) - 1):
        assert opinions(text[:cut], tmp_path)[:2] == ("refuse", "refuse")


@pytest.mark.parametrize("name", BOUNDS)
def test_odd_certificates_are_not_handed_in(name: str, tmp_path: Path) -> None:
    """NaN and infinity wherever they stand, bounds of 400 digits, what is cut short: one message with the file."""
    made = published(name)
    instance, path = in_a_file(made, tmp_path), tmp_path / "false.json"
    held = json.loads(json.dumps(dict(made.certificate or {}), default=lambda array: array.tolist()))
    whole = json.dumps({"bound": made.bound, "certificate": held})
    path.write_text(whole)
    assert submission.bound(instance, path, JANE).bound == made.bound
    odd = [c for what, c in odd_certificates(held) if what.rpartition(" ")[2] in ("nan", "inf", "left out")]
    texts = [whole[: len(whole) // 2], *(json.dumps({"bound": made.bound, "certificate": c}) for c in odd)]
    texts += [json.dumps({"bound": bound, "certificate": held}) for bound in (math.nan, math.inf, 10**400, -(10**400))]
    for text in texts:
        path.write_text(text)
        with pytest.raises((InputError, RefusedError)) as refused:
            submission.bound(instance, path, JANE)
        assert "false.json" in str(refused.value)
