"""MSCCL++ plans in: plans by hand that hold, what breaks them, and the kernel's own surprises."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
from exchange.by_hand import EVERY
from exchange.damaged_plans import DAMAGE, find, swap
from exchange.damaged_switch_plans import SWITCH_DAMAGE
from exchange.plan_runner import outcome
from exchange.plans_by_hand import VALID, Plan, data, local

from synth.errors import InputError, UnsupportedError
from synth.exchange import mscclpp
from synth.exchange.mscclpp.file_report import judge


def _said(plan: Plan) -> list[str]:
    try:
        return [str(fault) for fault in mscclpp.faults(mscclpp.parse(json.dumps(plan)))]
    except InputError as error:
        return [str(fault) for fault in error.faults]


@pytest.mark.parametrize("name", VALID)
def test_plans_by_hand_hold(name: str) -> None:
    assert _said(VALID[name]()) == []


RUNS = ["allgather", "allreduce", "barrier", "summed in switch", "summed in switch elsewhere", "copied by switch"]


@pytest.mark.parametrize("name", RUNS)
def test_the_miniature_executor_runs_them(name: str) -> None:
    plan = VALID[name]()
    assert all(outcome(plan, plan["collective"], seed) for seed in range(5))


def test_what_a_plan_moves() -> None:
    """Both halves of the allreduce are added at the other; in the reduce-scatter by reading, the reader gets them."""
    moved = mscclpp.transfers(mscclpp.parse(json.dumps(VALID["allreduce"]())))
    assert moved.collective == "allreduce"
    assert sorted(zip(moved.src, moved.dst, moved.adds, strict=True)) == [(0, 1, True), (1, 0, True)]
    read = mscclpp.transfers(mscclpp.parse(json.dumps(VALID["reading"]())))
    assert sorted(zip(read.piece_part[read.piece], read.src, read.dst, read.adds, strict=True)) == [
        (0, 1, 0, True),
        (1, 0, 1, True),
    ]


@pytest.mark.parametrize("name", [*DAMAGE, *SWITCH_DAMAGE])
def test_damaged_plans_are_refused_with_the_place(name: str) -> None:
    which, edit, message = (DAMAGE | SWITCH_DAMAGE)[name]
    plan = copy.deepcopy(VALID[which]())
    edit(plan)
    said = _said(plan)
    assert any(message in fault for fault in said), said


def test_all_faults_at_once() -> None:
    plan = copy.deepcopy(VALID["allgather"]())
    del plan["name"]
    find(plan, "copy")["dst_buff"][0]["index"] = 9
    find(plan, "put", 1)["channel_type"] = "wire"
    said = _said(plan)
    for part in ("name is missing", "o[9:10]", "gpu 1, tb 0, op 4 (put): channel_type"):
        assert part in " ".join(said)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("[1]", "the outermost value is no object"),
        ("{", "is no JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('{"name": NaN}', "NaN is no number of JSON"),
        ('{"buffer_alignment": ' + "9" * 5000 + "}", "is no JSON"),
        ('{"gpus": 3}', "gpus is not a list"),
        ('{"gpus": [3]}', "gpu 0: id is not a whole number"),
        ('{"gpus": [{"threadblocks": [{"ops": [7]}]}]}', "name is not a text"),
        ('{"gpus": [{"input_chunks": 1e300, "id": true}]}', "input_chunks is not a whole number"),
        ('{"gpus": [{"threadblocks": [{"ops": [{"tbg_info": {"tbg_size": 1e9}}]}]}]}', "name is missing"),
    ],
)
def test_files_that_are_no_plans(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        mscclpp.parse(text)


def test_what_cannot_be_replayed_is_said_to_be_that(tmp_path: Path) -> None:
    plan = VALID["semaphore"]()
    loop = {"name": "pipeline", "iter_context": {"unit_size": 16, "num_chunks": 1}}
    for block in plan["gpus"][0]["threadblocks"]:
        block["ops"] = [
            {**loop, "ops": [op]} if op["name"] in ("sem_acquire", "sem_release") else op for op in block["ops"]
        ]
    with pytest.raises(UnsupportedError, match=r"semaphores.* in a loop \(gpu 0\)"):
        mscclpp.faults(mscclpp.parse(json.dumps(plan)))
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match="keeps the format's rules, but cannot be judged"):
        judge(tmp_path / "plan.json")


def test_a_collective_of_no_name_must_be_said() -> None:
    plan = VALID["allgather"]()
    plan["collective"] = "custom"
    read = mscclpp.parse(json.dumps(plan))
    with pytest.raises(UnsupportedError, match="'custom' is none of allgather"):
        mscclpp.faults(read)
    assert mscclpp.faults(read, "allgather") == []


def test_a_judged_file(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(VALID["ports"]()))
    summary, faults, notes = judge(tmp_path / "plan.json")
    assert summary.startswith("allgather out of place, 2 gpus, 2 thread blocks, 20 operations, at most 10 in one")
    assert (faults, notes) == ((), ())


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["allgather", "allreduce", "alltoall", "broadcast in pieces", "reduce_scatter"])
def test_what_goes_wrong_in_some_run_is_refused(name: str) -> None:
    """Random damage to what we write: where the miniature executor, in a dozen random orders, ever hangs or ends wrong,
    the check must have found something. (It also refuses what goes wrong in none of these runs.)"""
    t = EVERY[name]
    whole = mscclpp.plan(t, thread_blocks=2)
    chance = random.Random(name)
    wrong = 0
    for _ in range(25):
        plan = copy.deepcopy(whole)
        mine = chance.choice([b["ops"] for g in plan["gpus"] for b in g["threadblocks"] if len(b["ops"]) > 1])
        k = chance.randrange(len(mine) - 1)
        if chance.random() < 0.5:
            del mine[k]
        else:
            swap(mine, k, k + 1)
        if not all(outcome(plan, t.collective, seed, t.root or 0) for seed in range(12)):
            wrong += 1
            assert mscclpp.faults(mscclpp.parse(json.dumps(plan)), t.collective, t.root)
    assert wrong > 3


COLLECTIVES = ("allgather", "alltoall", "reduce_scatter", "allreduce", "broadcast", "reduce", "gather", "scatter")


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_copies_of_a_chunk_onto_itself_in_place(name: str) -> None:
    """Put in anywhere, under any two names of the chunk: where nobody writes it they change nothing, and where somebody
    does they are refused as soon as one of many random runs ends wrong."""
    t = EVERY[name]
    whole = mscclpp.plan(t, in_place=True, thread_blocks=2)
    chance = random.Random(f"copies {name}")
    harmless = 0
    for _ in range(30):
        plan = copy.deepcopy(whole)
        rank = chance.randrange(t.ranks)
        gpu = plan["gpus"][rank]
        i, o = gpu["input_chunks"], gpu["output_chunks"]
        k = chance.randrange(max(i, o))
        names = [("i" if i > o else "o", k)]
        if 0 <= k - (first := rank * min(i, o) if i != o else 0) < min(i, o):
            names.append(("i" if i <= o else "o", k - first))
        (src, a), (dst, b) = chance.choice(names), chance.choice(names)
        one = data("copy", [local(src, a)], [local(dst, b)])
        blocks = gpu["threadblocks"]
        mine = chance.choice(blocks)["ops"]
        mine.insert(chance.randint(0, len(mine)), one)
        said = mscclpp.faults(mscclpp.parse(json.dumps(plan)), name, t.root)
        if not {(rank, *name) for name in names} & _written(whole):
            assert said == [], (names, said)
        harmless += not said
        if not said:
            assert all(outcome(plan, name, seed, t.root or 0) for seed in range(12))
    assert harmless


def _written(plan: Plan) -> set[tuple[int, str, int]]:
    """What some operation writes: GPU, buffer, chunk."""
    found = set()
    for gpu in plan["gpus"]:
        for block in gpu["threadblocks"]:
            refs = [i for b in block["remote_buffer_refs"] for i in b["remote_buffer_ids"]]
            for x in (x for op in block["ops"] for x in op.get("dst_buff", [])):
                at = (gpu["id"], x.get("type")) if "type" in x else None
                there = gpu["remote_buffers"][refs[x["buffer_id"]]] if at is None else {}
                owner, buffer = at or (there["rank"], there["type"])
                found |= {(owner, buffer, x["index"] + n) for n in range(x["size"])}
    return found
