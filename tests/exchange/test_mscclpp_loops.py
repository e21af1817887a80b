"""Loops of MSCCL++ plans: what is written runs in any number of passes, and what the check lets through does too."""

from __future__ import annotations

import copy
import json
import random
from collections import defaultdict
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import some, some_of
from exchange.by_hand import EVERY, schedule
from exchange.damaged_plans import swap
from exchange.plan_runner import outcome
from exchange.random_transfers import random_transfers

import synth
from synth.errors import InputError, UnsupportedError
from synth.exchange import mscclpp
from synth.exchange.forms import Lowered
from synth.exchange.mscclpp.loops import unrolled
from synth.exchange.mscclpp.plan import EXECUTOR
from synth.exchange.mscclpp.replay import Replay
from synth.exchange.mscclpp.schedule import _once
from synth.exchange.transfers import Raised, Transfers

MODES = [(in_place, node) for in_place in (False, True) for node in (None, 2)]
SLICES = ((1, 1), (2, 1), (3, 2), (5, 1), (7, 3))  # numbers of a chunk, and of them those of a pass
Plan = dict[str, Any]


def looped(t: Transfers, passes: int = 4, **options: Any) -> mscclpp.Planned:
    return mscclpp.planned(t, dealt=mscclpp.Dealing(loop=mscclpp.Loop(passes, t.part_bytes)), **options)


def loops(plan: Plan) -> list[Any]:
    return [op for g in plan["gpus"] for b in g["threadblocks"] for op in b["ops"] if op["name"] == "pipeline"]


@pytest.mark.parametrize("name", some_of(EVERY))
@pytest.mark.parametrize(("in_place", "node"), MODES)
def test_what_is_written_runs_in_any_number_of_passes(name: str, in_place: bool, node: int | None) -> None:
    t = EVERY[name]
    plan = looped(t, in_place=in_place, ranks_per_node=node).plan
    assert loops(plan)
    assert mscclpp.faults(mscclpp.parse(json.dumps(plan)), root=t.root) == []
    for seed, (chunk, pace) in enumerate(SLICES):
        assert outcome(plan, t.collective, seed, t.root or 0, chunk, pace)


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_random_schedules_run_in_loops(seed: int) -> None:
    t = random_transfers(seed)
    plan, refused = None, ""
    try:
        plan = looped(t).plan
    except InputError as error:
        refused = str(error)
    assert (plan is not None) != any(words in refused for words in ("different sizes", "MAX_")), refused
    if plan is None:
        return
    assert all(outcome(plan, t.collective, k, t.root or 0, *SLICES[k]) for k in range(len(SLICES)))


@pytest.mark.parametrize("name", some_of(EVERY))
@pytest.mark.parametrize("passes", [2, 5])
def test_passes_put_behind_each_other_are_those_of_the_loop_written_out(name: str, passes: int) -> None:
    """The same moves of the same bytes, and each after the same others, however that is said."""
    found = looped(EVERY[name], thread_blocks=108)
    plan, replay = found.replay
    pace = next(op for block in plan.gpus[0].blocks for op in block if op.body)
    chunk = pace.unit_bytes * plan.units // pace.size * passes
    short = mscclpp.raised_of(found.replay, replay.goal.each // plan.units * chunk)
    whole = Replay(unrolled(plan, passes), replay.goal.collective, replay.goal.root)
    assert whole.run() == []
    long, _ = _once(whole, replay.goal.each // plan.units * chunk)
    assert _ancestors(short, chunk) == _ancestors(long, chunk)


@pytest.mark.parametrize("name", some_of(EVERY))
def test_a_plan_at_another_pace_is_the_one_made_for_it(name: str) -> None:
    t = EVERY[name]
    other = mscclpp.Loop(16, t.part_bytes * 1000)
    anew = mscclpp.planned(t, dealt=mscclpp.Dealing(loop=other))
    found = mscclpp.at_pace(looped(t), other, EXECUTOR)
    assert found.plan == anew.plan
    assert found.replay.plan == anew.replay.plan
    assert found.replay.replay.moves == anew.replay.replay.moves


def _ancestors(found: Raised, chunk: int) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """Of every move (its bytes, sender, receiver) all that its thread block has waited for, directly or not; a channel
    keeps its order, and every chunk has channels of its own."""
    t = found.transfers
    names = [
        (int(t.piece_part[p]), int(t.piece_offset[p]), int(t.piece_bytes[p]), int(a), int(b), int(adds))
        for p, a, b, adds in zip(t.piece, t.src, t.dst, t.adds, strict=True)
    ]
    assert len(set(names)) == len(names)
    rows = [found.wait[a:b].tolist() for a, b in zip(found.wait_start, found.wait_start[1:], strict=False)]
    channels: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for k, (part, offset, _, a, b, _) in sorted(enumerate(names), key=lambda one: one[1][1]):
        rows[k] += channels[part, offset // chunk, a, b][-1:]
        channels[part, offset // chunk, a, b].append(k)
    known: dict[int, set[int]] = {}

    def before(k: int) -> set[int]:
        if k not in known:
            known[k] = set()
            known[k] = set(rows[k]).union(*(before(j) for j in rows[k]))
        return known[k]

    return {names[k]: {names[j] for j in before(k)} for k in range(len(names))}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["allgather", "allreduce", "alltoall", "broadcast in pieces", "reduce_scatter"])
def test_what_goes_wrong_in_some_run_of_a_loop_is_refused(name: str) -> None:
    """Random damage inside and outside loops: where the miniature executor ever hangs or ends wrong, in whatever number
    of passes, the check must have found something, or have said that it cannot judge."""
    t = EVERY[name]
    whole = looped(t, thread_blocks=2).plan
    chance = random.Random(name)
    wrong = refused = 0
    for _ in range(some(32)):
        plan = copy.deepcopy(whole)
        blocks = [b["ops"] for g in plan["gpus"] for b in g["threadblocks"]]
        mine = chance.choice([ops for ops in [*blocks, *(op["ops"] for op in loops(plan))] if len(ops) > 1])
        k = chance.randrange(len(mine) - 1)
        match chance.randrange(4):
            case 0:
                del mine[k]
            case 1:
                swap(mine, k, k + 1)
            case 2:
                mine.insert(chance.randrange(len(mine)), copy.deepcopy(mine[k]))
            case _:  # out of a loop, or into one
                other = chance.choice(loops(plan))["ops"] if chance.random() < 0.5 else chance.choice(blocks)
                if mine[k]["name"] != "pipeline":
                    other.insert(chance.randint(0, len(other)), mine.pop(k))
        good = all(_ends(plan, t, seed, *SLICES[seed % len(SLICES)]) for seed in range(6))
        try:
            said = mscclpp.faults(mscclpp.parse(json.dumps(plan)), t.collective, t.root)
        except InputError:
            refused += 1
            continue
        wrong += not good
        assert good or said
    assert wrong + refused > 1


def _ends(plan: Plan, t: Transfers, seed: int, chunk: int, pace: int) -> bool:
    try:
        return outcome(plan, t.collective, seed, t.root or 0, chunk, pace)
    except (IndexError, ValueError):  # out of a buffer
        return False


@pytest.mark.parametrize(("collective", "hops"), [("broadcast", 3), ("reduce", 3), ("allreduce", 6)])
def test_a_chain_takes_as_many_turns_as_it_has_passes_and_further_hops(collective: str, hops: int) -> None:
    """Over three links of 1 MB/s each way: in n passes n - 1 turns of 1/n of the data, and one a hop. In an allreduce
    sums go up while finished ones come down, each by a thread block of its own."""
    line = nx.path_graph(4)
    nx.set_edge_attributes(line, "1MB/s", "bandwidth")
    nx.set_edge_attributes(line, "0s", "latency")
    root = {} if collective == "allreduce" else {"root": 0}
    instance = synth.make("fabric", links=line, collective=collective, bytes=2**20, **root)
    up = [(k, 0, 3 - k, 2 - k, True) for k in range(3)] if collective != "broadcast" else []
    down = [(k + len(up), 0, k, k + 1, False) for k in range(3)] if collective != "reduce" else []
    t = schedule(collective, 4, [*up, *down], [0], root=root.get("root"))
    t = Transfers(**{**t.__dict__, "part_bytes": 2**20, "piece_bytes": np.array([2**20]), "ticks": None})
    found = {program.how: program.seconds(instance) for program in Lowered(t, "mscclpp").programs()}
    whole = 2**20 / 1e6
    assert found.pop("") == pytest.approx(hops * whole)
    assert found
    for how, seconds in found.items():
        passes = int(how.split()[3])
        assert seconds == pytest.approx((passes + hops - 1) / passes * whole)


def sends(plan: Plan) -> Any:
    """A loop that sends."""
    return next(op for op in loops(plan) if any(inner["name"] == "put" for inner in op["ops"]))


def edited(name: str, edit: Any) -> Plan:
    plan = copy.deepcopy(looped(EVERY[name]).plan)
    edit(plan)
    return plan


RULES: dict[str, tuple[Any, str]] = {
    "a loop in a loop": (
        lambda p: sends(p)["ops"].append(copy.deepcopy(sends(p))),
        "a loop in a loop: the kernel has no place",
    ),
    "slices of 8 bytes": (
        lambda p: sends(p)["iter_context"].update(unit_size=8),
        "unit_size = 8: the kernel adds and sends in units of 16 bytes",
    ),
    "no slices": (lambda p: sends(p)["iter_context"].pop("unit_size"), "unit_size is missing"),
    "no context": (lambda p: sends(p).pop("iter_context"), "iter_context is missing"),
    "no operations": (lambda p: sends(p).pop("ops"), "ops is missing"),
    "chunks that it does not move": (
        lambda p: sends(p)["iter_context"].update(num_chunks=2),
        "is of another size: the loop counts its passes by 2 chunks",
    ),
    "2^70 bytes": (lambda p: sends(p)["iter_context"].update(unit_size=2**70), "is outside 1.."),
    "half a chunk": (lambda p: sends(p)["iter_context"].update(num_chunks=0.5), "num_chunks is not a whole number"),
    "packets": (
        lambda p: sends(p)["ops"].append(
            {
                "name": "cpkt",
                "src_buff": [{"type": "i", "index": 0, "size": 1}],
                "dst_buff": [{"type": "s", "index": 0, "size": 1}],
            }
        ),
        "cpkt in a loop: the kernel does all of it in every pass",
    ),
    "65 operations": (lambda p: sends(p)["ops"].extend([{"name": "nop"}] * 60), "more than MAX_OPERATION = 64"),
}


@pytest.mark.parametrize("name", RULES)
def test_loops_that_the_kernel_does_not_run_are_refused_with_the_place(name: str) -> None:
    edit, message = RULES[name]
    with pytest.raises(InputError) as refused:
        mscclpp.parse(json.dumps(edited("broadcast", edit)))
    assert message in str(refused.value)


def _with_credits(plan: Plan) -> None:
    """Receivers give one more signal back than passes, and senders wait for one before every pass and at the end."""
    for gpu in plan["gpus"]:
        for ops in (block["ops"] for block in gpu["threadblocks"]):
            for at in [k for k, op in enumerate(ops) if op["name"] == "pipeline"]:
                body = ops[at]["ops"]
                taken = [{**op, "name": "signal"} for op in body if op["name"] == "wait"]
                given = [{**op, "name": "wait"} for op in body if op["name"] == "signal"]
                ops[at]["ops"] = [*given, {"name": "nop"}, *body, {"name": "nop"}, *taken]
                ops[at:] = [*taken, *ops[at:], *given]


UNJUDGED: dict[str, tuple[Any, str]] = {
    "another pace": (
        lambda p: sends(p)["iter_context"].update(unit_size=2 * sends(p)["iter_context"]["unit_size"]),
        "different shares of a chunk",
    ),
    "signals ahead": (
        _with_credits,
        "signals of other passes",
    ),
}


@pytest.mark.parametrize("name", UNJUDGED)
def test_loops_that_cannot_be_judged_are_said_to_be_that(name: str) -> None:
    edit, message = UNJUDGED[name]
    plan = edited("broadcast", edit)
    with pytest.raises(UnsupportedError, match=message):
        mscclpp.faults(mscclpp.parse(json.dumps(plan)), root=EVERY["broadcast"].root)


def test_how_often_a_loop_goes_round_follows_the_size() -> None:
    """Eight passes at the size it was made for; twice as many at twice the size, and one where a slice holds all."""
    found = looped(EVERY["broadcast"], 8)
    size = EVERY["broadcast"].part_bytes * 8
    plan = mscclpp.planned(EVERY["broadcast"], dealt=mscclpp.Dealing(loop=mscclpp.Loop(8, size))).replay
    moves = defaultdict(int)
    for factor in (1, 2, 8):
        moves[factor] = len(mscclpp.raised_of(plan, size * factor // 8).transfers.piece)
    assert found.replay.plan.gpus
    assert moves == {1: len(EVERY["broadcast"].piece), 2: 2 * moves[1], 8: 8 * moves[1]}


def test_a_loop_goes_round_as_often_as_its_counter_of_16_bits_lets_it() -> None:
    found = mscclpp.planned(EVERY["broadcast"], dealt=mscclpp.Dealing(loop=mscclpp.Loop(8, 128)))
    pace = sends(found.plan)["iter_context"]["unit_size"]
    chunks = found.plan["gpus"][0]["input_chunks"]
    most = pace * chunks * 65535
    assert found.plan["max_message_size"] == most
    assert len(mscclpp.raised_of(found.replay, most).transfers.piece) == 512 * len(EVERY["broadcast"].piece)
    with pytest.raises(InputError, match="goes round 65,536 times"):
        mscclpp.raised_of(found.replay, most + chunks)
    wider = {**found.plan, "max_message_size": most + chunks}
    assert "goes round 65,536 times" in str(
        mscclpp.faults(mscclpp.parse(json.dumps(wider)), root=found.plan["root"])[0]
    )


def test_a_program_is_not_carried_to_sizes_at_which_its_slices_are_small() -> None:
    """Made for 1 MiB in 8 passes, at 1 GiB it would go round 8,192 times."""
    t = schedule("broadcast", 2, [(0, 0, 0, 1, False)], [0], root=0)
    t = Transfers(**{**t.__dict__, "part_bytes": 2**20, "piece_bytes": np.array([2**20]), "ticks": None})
    line = nx.path_graph(2)
    nx.set_edge_attributes(line, "1MB/s", "bandwidth")
    nx.set_edge_attributes(line, "0s", "latency")
    large, small = (synth.make("fabric", links=line, collective="broadcast", bytes=n, root=0) for n in (2**30, 2**20))
    program = next(one for one in Lowered(t, "mscclpp").programs() if one.how == "a loop of 8 passes")
    assert program.seconds(small) == pytest.approx(2**20 / 1e6)
    with pytest.raises(InputError, match="go round 8,192 times"):
        program.seconds(large)
