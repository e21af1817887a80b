"""MSCCL++ plans whose switches add and copy: what is written runs in every order, and what is damaged is refused."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import some_of
from exchange.damaged_plans import swap
from exchange.plan_runner import outcome
from exchange.plans_by_hand import VALID
from exchange.random_streams import random_streams

import synth
from synth import api
from synth.errors import InputError, UnsupportedError
from synth.exchange import imported_algorithm, mscclpp
from synth.exchange.formats import FORMATS
from synth.exchange.forms import Lowered, in_form
from synth.exchange.lowering import in_chunks
from synth.exchange.mscclpp import operations
from synth.exchange.mscclpp.writer import planned
from synth.exchange.record_export import transfers_of, write_schedule
from synth.exchange.transfers import Transfers
from synth.records.record import Record


def names(plan: dict[str, Any]) -> Counter[str]:
    return Counter(op["name"] for g in plan["gpus"] for b in g["threadblocks"] for op in b["ops"])


def solved(tmp_path: Path, method: str, collective: str = "allreduce", **parameters: Any) -> Record:
    given = {"machine": "dgx-h100-nvls", "bytes": 2**20, **parameters}
    instance = synth.make("fabric", collective=collective, **given)
    path = tmp_path / f"{instance.name}.json"
    path.write_text(instance.to_json())
    return api.solve(synth.read(str(path)), method, results=tmp_path / "results")


def streams(t: Transfers) -> set[tuple[int, int, int, bool, bool]]:
    """Moves and whether a switch makes them with others."""
    assert t.together is not None
    return set(zip(t.piece, t.src, t.dst, t.adds, t.together >= 0, strict=True))


@pytest.mark.parametrize("seed", some_of(range(60)))
def test_random_streams_run_in_every_order(seed: int) -> None:
    t = random_streams(seed)
    for in_place in (False, True):
        plan = mscclpp.plan(t, in_place=in_place, thread_blocks=1 + seed % 4, instances=1 + seed % 2)
        assert all(outcome(plan, t.collective, run, t.root or 0) for run in range(6))


def test_every_kind_of_stream_is_among_them() -> None:
    said = Counter[str]()
    for seed in range(60):
        plan, notes, _ = planned(random_streams(seed))
        said.update({word: 1 for word in ("glres", "gstore", "re", "put") if names(plan)[word]})
        said.update(why.partition("here: ")[2][:20] for why in notes if "here: " in why)
    assert len(said) >= 6, said
    assert min(said.values()) >= 3, said


@pytest.mark.parametrize("seed", some_of(range(0, 60, 2)))
def test_what_goes_wrong_in_some_run_is_refused(seed: int) -> None:
    """Operations left out, swapped, of another chunk, another group: where the miniature executor ever hangs or ends
    wrong in a dozen random orders, the check must have found something."""
    t = random_streams(seed)
    whole = mscclpp.plan(t, in_place=bool(seed % 4), thread_blocks=2)
    chance = random.Random(seed)
    for _ in range(12):
        plan = copy.deepcopy(whole)
        damage(plan, chance)
        try:
            said = mscclpp.faults(mscclpp.parse(json.dumps(plan)), t.collective, t.root)
        except InputError:
            continue
        if not said:
            assert all(outcome(plan, t.collective, run, t.root or 0) for run in range(12))


def damage(plan: dict[str, Any], chance: random.Random) -> None:
    """One change, most of them to what switches do or what stands around it."""
    blocks = [b for g in plan["gpus"] for b in g["threadblocks"] if len(b["ops"]) > 1]
    mine = chance.choice(blocks)["ops"]
    over = [op for b in blocks for op in b["ops"] if op["name"] in ("glres", "gstore")]
    groups = [g for gpu in plan["gpus"] for c in gpu["channels"] for g in c.get("rank_groups", ())]
    k = chance.randrange(len(mine) - 1)
    match chance.randrange(6):
        case 0:
            del mine[k]
        case 1:
            swap(mine, k, k + 1)
        case 2 if over:
            ends = chance.choice(over)
            chance.choice([*ends["src_buff"], *ends["dst_buff"]])["index"] += chance.choice([-1, 1])
        case 3 if groups:
            ranks = chance.choice(groups)["ranks"]
            ranks[chance.randrange(len(ranks))] = chance.randrange(len(plan["gpus"]))
        case 4 if over:
            mine.insert(k, chance.choice(over))
        case _:
            op = chance.choice([op for op in mine if "signal" in op["name"]] or mine)
            op["name"] = op["name"].replace("rlx", "") if chance.random() < 0.5 else "nop"


@pytest.mark.long(after=1)
@pytest.mark.parametrize("method", ["nvls", "in_network", "steiner"])
def test_sums_of_a_box_are_made_by_its_switch(method: str, tmp_path: Path) -> None:
    """Every sum is handed on at once, and nothing is put: the plan's moves are the schedule's, as streams."""
    t = transfers_of(solved(tmp_path, method))
    whole, _ = in_chunks(t, None)
    plan, notes, _ = planned(whole)
    assert names(plan)["glres"] == len(t.piece_part)
    assert not names(plan).keys() & {"put", "re", "gstore"}
    assert notes == [f"over switches: {len(t.piece_part)} sums (glres), 0 copies alone (gstore)"]
    read = mscclpp.transfers(mscclpp.parse(json.dumps(plan)), part_bytes=t.part_bytes)
    order = np.argsort(t.piece_offset)
    number = np.argsort(order)
    assert {(number[p], *rest) for p, *rest in streams(t)} == streams(read)
    assert outcome(plan, "allreduce", 0)


@pytest.mark.parametrize(
    ("collective", "method", "word"),
    [("broadcast", "steiner", "gstore"), ("allgather", "steiner", "gstore"), ("reduce", "steiner", "re"),
     ("reduce_scatter", "steiner", "re")],
)  # fmt: skip
def test_what_a_box_does_for_other_collectives(collective: str, method: str, word: str, tmp_path: Path) -> None:
    """Copies are ``gstore``; sums that stay have no operation, so that their rank adds, and that is said."""
    record = solved(tmp_path, method, collective)
    t = transfers_of(record)
    notes = write_schedule(t, FORMATS["mscclpp"], tmp_path / "plan.json")
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert names(plan)[word]
    assert (word == "gstore") != any("puts here: " in note for note in notes), notes
    assert outcome(plan, collective, 0, t.root or 0)


@pytest.mark.long
def test_between_boxes_ranks_add(tmp_path: Path) -> None:
    t = transfers_of(solved(tmp_path, "nvls", boxes=2))
    whole, _ = in_chunks(t, 128)
    plan, notes, _ = planned(whole, ranks_per_node=8)
    assert names(plan)["re"]
    assert any("its sum is not handed on" in note or "more is added" in note for note in notes), notes
    assert outcome(plan, "allreduce", 0)


@pytest.mark.parametrize("name", ["chakra", "goal", "csv"])
def test_formats_that_cannot_say_it_refuse(name: str, tmp_path: Path) -> None:
    t = transfers_of(solved(tmp_path, "nvls"))
    with pytest.raises(InputError, match=rf"transfers \(first 0\) added up in switches: {name} cannot say it"):
        write_schedule(t, FORMATS[name], tmp_path / "x")


def test_msccl_is_told_nothing_and_says_so(tmp_path: Path) -> None:
    t = transfers_of(solved(tmp_path, "nvls"))
    notes = write_schedule(t, FORMATS["msccl-xml"], tmp_path / "x.xml")
    assert any("added up in switches: ranks add instead" in note for note in notes), notes
    assert Lowered(t, "msccl").without
    assert not Lowered(t, "mscclpp").without


@pytest.mark.long
def test_in_form_mscclpp_sums_in_the_switch_are_worth_it(tmp_path: Path) -> None:
    """An allreduce of 1 GiB over half a box: at most 3 % over the schedule, less than any of plain switches can be."""
    record = solved(tmp_path, "nvls", bytes=2**30, gpus=4)
    assert record.value is not None
    found = in_form(record, "mscclpp")
    assert found.program is not None
    assert found.program.how.startswith("over switches")
    plain = 2 * 3 / 4 * 2**30 / 450e9
    assert record.value <= found.seconds <= 1.03 * record.value < plain
    assert in_form(record, "msccl").seconds > plain


def test_machines_without_such_switches_refuse_such_plans(tmp_path: Path) -> None:
    plan = mscclpp.plan(transfers_of(solved(tmp_path, "in_network")))
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    instance = synth.make("fabric", collective="allreduce", machine="dgx-h100", bytes=2**20)
    record = imported_algorithm.run(tmp_path / "plan.json", instance)
    assert record.value is None
    assert "no switch that adds joins rank" in str(record["message"])


HOSTILE = (
    None,
    True,
    -1,
    0,
    7,
    2**31,
    2**63,
    10**400,
    0.5,
    1e300,
    "",
    "i",
    "switch",
    [],
    [[]],
    {},
    [-1],
    [2**40],
    [0, 0],
)


@pytest.mark.parametrize("name", ["summed in switch", "copied by switch", "packets by switch"])
def test_hostile_values_are_faults_and_nothing_else(name: str) -> None:
    """Any value of the file in the place of any other, and any left out: an error of ours, or a verdict."""
    places = list(_places(VALID[name]()))
    chance = random.Random(name)
    for path in chance.sample(places, min(len(places), 60)):
        for value in (*chance.sample(HOSTILE, 5), "left out"):
            plan: Any = VALID[name]()
            inside = plan
            for key in path[:-1]:
                inside = inside[key]
            if value == "left out":
                del inside[path[-1]]
            else:
                inside[path[-1]] = value
            with suppress(InputError, UnsupportedError):
                mscclpp.faults(mscclpp.parse(json.dumps(plan)))


@pytest.mark.parametrize("name", sorted(name for name in VALID if VALID[name]()["protocol"] == "LL"))
def test_packets_under_protocol_simple_are_not_replayed(name: str) -> None:
    plan = VALID[name]() | {"protocol": "Simple"}
    with pytest.raises(UnsupportedError, match="packets under protocol Simple"):
        mscclpp.faults(mscclpp.parse(json.dumps(plan)))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a file."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from _places(value[key], (*path, key))


def test_files_that_reach_too_much_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MOST_REACHED", 7)
    with pytest.raises(UnsupportedError, match="more than 7 buffers over switches"):
        mscclpp.faults(mscclpp.parse(json.dumps(VALID["summed in switch"]())))
