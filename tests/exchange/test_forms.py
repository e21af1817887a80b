"""The time of a schedule in a form, against a replay of the file that is written, by rules stated here alone.

A thread block runs its steps in order, pass after pass of the executor's loop, each pass on its slice of every chunk. A
receive ends when its message has arrived; a send is over once it is handed to its connection; a step begins after the
one before it and after the one it depends on. Where every pair of ranks has one link and one connection, that link
carries the connection's messages in order, chunk by chunk, and nothing is left open: the time must be the same. Where
several connections share a link, no order can beat the longest chain of waits or the busiest link.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from examples import some
from exchange.plan_runner import in_numbers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import synth
from synth.errors import InputError
from synth.exchange import forms
from synth.exchange.forms import Lowered, in_form
from synth.exchange.program_files import write
from synth.exchange.record_export import transfers_of

BANDWIDTH, LATENCY, SLICE = 25e9, 0.7e-6, 2**21
SENDS, RECEIVES = ("s", "rcs", "rrs", "rrcs"), ("r", "rrc", "rcs", "rrs", "rrcs")


def replayed(path: Path, size: int) -> tuple[float, float]:
    """Seconds of a file on ranks that are joined by one link a pair, for buffers of ``size`` bytes: when each link
    carries what it has in the order of passes and steps, and what no order can beat."""
    algo = ET.parse(path).getroot()
    chunk = size // int(algo.get("nchunksperloop", "1"))  # both count all parts
    passes = -(-chunk // SLICE)
    assert chunk % passes == 0
    each = chunk // passes / BANDWIDTH
    blocks = {(int(gpu.get("id")), int(tb.get("id"))): tb for gpu in algo for tb in gpu}  # type: ignore[arg-type]
    free: dict[tuple[int, int], float] = defaultdict(float)
    loads: dict[tuple[int, int], float] = defaultdict(float)
    longest = last = 0.0
    arrived: dict[object, tuple[float, float]] = {}  # a message: in this order, and at best
    ended: dict[object, tuple[float, float]] = {}
    at = dict.fromkeys(blocks, 0)
    counts: dict[object, int] = defaultdict(int)
    moving = True
    while moving:
        moving = False
        for (rank, number), tb in blocks.items():
            steps = list(tb)
            while at[rank, number] < passes * len(steps):
                turn, k = divmod(at[rank, number], len(steps))
                step = steps[k]
                before = [ended[rank, number, at[rank, number] - 1]] if at[rank, number] else []
                if step.get("depid") != "-1":
                    other = int(step.get("depid", "0"))
                    key = rank, other, turn * len(blocks[rank, other]) + int(step.get("deps", "0"))
                    if key not in ended:
                        break
                    before.append(ended[key])
                chan, kind = tb.get("chan"), step.get("type")
                if kind in RECEIVES:
                    lane = int(tb.get("recv", "0")), rank, chan
                    if (lane, counts["r", lane]) not in arrived:
                        break
                    before.append(arrived[lane, counts["r", lane]])
                    counts["r", lane] += 1
                ready, soonest = (max(times, default=0.0) for times in zip(*before, strict=True)) if before else (0, 0)
                ended[rank, number, at[rank, number]] = ready, soonest
                at[rank, number] += 1
                moving = True
                if kind in SENDS:
                    link = rank, int(tb.get("send", "0"))
                    took = each * int(step.get("cnt", "1"))
                    free[link] = max(free[link], ready) + took
                    loads[link] += took
                    message = (free[link] + LATENCY, soonest + took + LATENCY)
                    arrived[(*link, chan), counts["s", (*link, chan)]] = message
                    counts["s", (*link, chan)] += 1
                    last, longest = max(last, message[0]), max(longest, message[1])
    assert all(at[key] == passes * len(list(tb)) for key, tb in blocks.items())
    return last, max(longest, max(loads.values()) + LATENCY)


def planned(plan: Any, each: float) -> float:
    """Seconds that no order of the links can beat: a thread block's operations in order, a put over in ``each`` seconds
    a chunk and handed on at once, a wait until all that was put before its signal has arrived, a barrier until all are
    there; or the busiest link."""
    blocks = {(gpu["id"], tb["id"]): tb for gpu in plan["gpus"] for tb in gpu["threadblocks"]}
    loads: dict[tuple[int, int], float] = defaultdict(float)
    signals: dict[object, list[float]] = defaultdict(list)  # of each end of a channel: when what is before has arrived
    taken: dict[object, int] = defaultdict(int)
    now, at = dict.fromkeys(blocks, 0.0), dict.fromkeys(blocks, 0)
    put: dict[object, float] = defaultdict(float)
    there: dict[object, set[tuple[int, int]]] = defaultdict(set)  # at a barrier
    peers = {gpu["id"]: gpu["channels"][0]["connected_to"] if gpu["channels"] else [] for gpu in plan["gpus"]}
    ends = {(r, c): (p, [k for k, q in enumerate(peers[p]) if q == r][peers[r][:c].count(p)])
            for r in peers for c, p in enumerate(peers[r])}  # fmt: skip
    moving = True
    while moving:
        moving = False
        for key, tb in blocks.items():
            rank, _ = key
            channels = tb["channels"][0]["channel_ids"] if tb["channels"] else []
            while at[key] < len(tb["ops"]):
                op = tb["ops"][at[key]]
                mine = [(rank, channels[c]) for c in op.get("channel_ids", ())]
                if op["name"] == "put":
                    for source, to in zip(op["src_buff"], op["dst_buff"], strict=True):
                        number = tb["remote_buffer_refs"][0]["remote_buffer_ids"][to["buffer_id"]]
                        peer = plan["gpus"][rank]["remote_buffers"][number]["rank"]
                        took = source["size"] * each
                        loads[rank, peer] += took
                        put[key, peer] = max(put[key, peer], now[key] + took + LATENCY)
                elif op["name"] in ("signal", "rlxsignal"):
                    for end in mine:
                        signals[end].append(put[key, ends[end][0]] if op["name"] == "signal" else 0.0)
                elif op["name"] in ("wait", "rlxwait"):
                    if any(taken[end] >= len(signals[ends[end]]) for end in mine):
                        break
                    for end in mine:
                        now[key] = max(now[key], signals[ends[end]][taken[end]])
                        taken[end] += 1
                elif op["name"] == "barrier":
                    met = there[rank, op["barrier_id"]]
                    met.add(key)
                    if len(met) < op["num_threadblocks"]:
                        break
                    now |= dict.fromkeys(met, max(now[one] for one in met))
                    for one in met - {key}:
                        at[one] += 1
                    met.clear()
                at[key] += 1
                moving = True
    assert all(at[key] == len(tb["ops"]) for key, tb in blocks.items())
    return max(*now.values(), max(loads.values()) + LATENCY)


@settings(max_examples=some(15), deadline=None)
@given(
    ranks=st.integers(2, 5),
    network=st.sampled_from(["ring", "full"]),
    collective=st.sampled_from(["allgather", "reduce_scatter", "allreduce", "broadcast", "alltoall"]),
    method=st.sampled_from(["ring", "direct", "double_tree", "bruck"]),
    power=st.integers(10, 24),
)
def test_no_plan_claims_less_than_its_operations_take(
    ranks: int, network: str, collective: str, method: str, power: int
) -> None:
    asked = instance(network, ranks, collective, ranks * 2**power)
    record = synth.solve(asked, method, options={"transfers": 100})
    assume(record.value is not None)
    for program in Lowered(transfers_of(record), "mscclpp").programs((8,)):
        chunks = max(program.plan["gpus"][0][f"{side}put_chunks"] for side in ("in", "out"))
        size = ranks * 2**power // chunks  # rounded down: no more than it takes
        passes = turns(program.plan, size)
        assert program.seconds(asked) >= planned(in_numbers(program.plan, passes, 1), size / passes / BANDWIDTH) * (
            1 - 1e-9
        )


def turns(plan: Any, chunk_bytes: int) -> int:
    """Passes of a plan's loops over chunks of so many bytes, 1 without."""
    ops = [op for gpu in plan["gpus"] for tb in gpu["threadblocks"] for op in tb["ops"] if "iter_context" in op]
    of = {op["iter_context"]["unit_size"] // op["iter_context"]["num_chunks"] for op in ops}
    return max((-(-chunk_bytes // pace) for pace in of), default=1)


def instance(network: str, ranks: int, collective: str, size: int) -> synth.Instance:
    return synth.make(
        "fabric", network=network, nodes=ranks, bandwidth=BANDWIDTH, latency=LATENCY, collective=collective, bytes=size
    )


@pytest.mark.long
@settings(max_examples=some(25), deadline=None)
@given(
    ranks=st.integers(2, 5),
    network=st.sampled_from(["ring", "full"]),
    collective=st.sampled_from(["allgather", "reduce_scatter", "allreduce", "broadcast"]),
    method=st.sampled_from(["ring", "direct", "double_tree"]),
    power=st.integers(10, 26),
)
def test_the_time_in_a_form_is_that_of_the_file(
    ranks: int, network: str, collective: str, method: str, power: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asked = instance(network, ranks, collective, ranks * 2**power)
    record = synth.solve(asked, method, options={"transfers": 300})
    assume(record.value is not None)
    for program in Lowered(transfers_of(record), "msccl:azure").programs((1, 4)):
        path = tmp_path_factory.mktemp("form") / "algo.xml"
        write(program, path, 0, 0)
        chunks = int(ET.parse(path).getroot().get("nchunksperloop", "1"))
        chunk = ranks * 2**power // chunks
        if chunk * chunks != ranks * 2**power or chunk % -(-chunk // SLICE):
            continue
        in_order, at_best = replayed(path, ranks * 2**power)
        found = program.seconds(asked)
        assert found >= at_best * (1 - 1e-9)
        if program.spread == 1:
            assert found == pytest.approx(in_order, rel=1e-6)


def test_the_loop_lets_chunks_follow_each_other() -> None:
    """One chunk of 64 MiB over a line of 5 links: 32 slices, the last of which leaves after 31 others and passes four
    more links; in one message it would pass five links whole."""
    asked = synth.make("fabric", network="line", nodes=6, bandwidth=BANDWIDTH, latency=LATENCY, collective="broadcast",
                       bytes=2**26)  # fmt: skip
    record = synth.solve(asked, "ring", options={"transfers": 5})
    (program,) = Lowered(transfers_of(record), "msccl").programs((1,))
    assert program.seconds(asked) == pytest.approx((32 + 4) * 2**21 / BANDWIDTH + 5 * LATENCY, rel=1e-9)


def test_forms_of_one_record() -> None:
    record = synth.solve(instance("ring", 4, "allgather", 2**20), "ring")
    assert in_form(record, "scheduled").seconds == record.value
    for form in ("msccl:azure", "msccl", "mscclpp"):
        found = in_form(record, form)
        assert found.program is not None
        assert found.program.form == form
        assert record.value is not None
        assert found.seconds >= record.value * (1 - 1e-9)  # a ring waits for nothing else


@pytest.mark.parametrize("form", ["", "nccl", "msccl:", "MSCCLPP", "scheduled "])
def test_unknown_forms(form: str) -> None:
    record = synth.solve(instance("ring", 3, "allgather", 3072), "ring")
    with pytest.raises(InputError, match=r"--form.*must be one of scheduled, msccl:azure"):
        in_form(record, form)


def test_what_holds_no_schedule_has_no_time() -> None:
    record = synth.solve(instance("ring", 3, "allgather", 3072), "bound")
    for form in forms.FORMS:
        with pytest.raises(InputError, match="holds no schedule"):
            in_form(record, form)
