"""Times of programs under the costs of thread blocks, steps and launches, against a second simulator and by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, permutations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from exchange.by_hand import schedule
from exchange.random_transfers import random_transfers
from exchange.slow_executor import slow_seconds
from exchange.small_algorithms import SMALL, xml
from models.fabric.small_machines import machine

import synth
from synth.errors import InputError
from synth.exchange import msccl_xml
from synth.exchange.algorithm import Algorithm
from synth.exchange.block_costs import FREE as FREE_KINDS
from synth.exchange.block_costs import GENERATIONS, CostModel, Costs, cost_model, data, gpu_of, read_given
from synth.exchange.copies import Tried
from synth.exchange.executors import EXECUTORS
from synth.exchange.forms import Lowered, in_form, in_seconds
from synth.exchange.lowering import Wish, limits_of, lower
from synth.exchange.lowering.ways import ways
from synth.exchange.moves_from_algorithm import raised
from synth.exchange.record_export import transfers_of
from synth.family import get_family
from synth.making import make
from synth.tuning.reach import gpus
from synth_models.fabric.instance import FabricInstance

RATE, LATENCY = 100e9, 1e-6
FREE = Costs()


def ring(ranks: int, channels: int = 1) -> str:
    """Allreduce around a ring in place, a thread block a rank and channel, every receive and send in one step."""
    lines = []
    for r in range(ranks):
        lines.append(f"gpu {r} {ranks * channels} {ranks * channels} 0")
        for c in range(channels):
            at = [f"i{(r - t) % ranks * channels + c}" for t in range(2 * ranks - 1)]
            steps = [f"s {at[0]}", *(f"rrs {at[t]}" for t in range(1, ranks - 1)), f"rrcs {at[ranks - 1]}"]
            steps += [*(f"rcs >{at[t]}" for t in range(ranks, 2 * ranks - 2)), f"r >{at[2 * ranks - 2]}"]
            lines.append(f"tb {(r + 1) % ranks} {(r - 1) % ranks} {c}: " + "; ".join(steps))
    return xml("allreduce", ranks, ranks * channels, True, "\n".join(lines), nchannels=str(channels))


def chain(ranks: int) -> str:
    """Broadcast from rank 0 along all ranks, one chunk."""
    lines = []
    for r in range(ranks):
        step = "s i0" if r == 0 else "r >o0" if r == ranks - 1 else "rcs >o0"
        lines += [f"gpu {r} 1 1 0", f"tb {r + 1 if r < ranks - 1 else -1} {r - 1} 0: {step}"]
    return xml("broadcast", ranks, 1, True, "\n".join(lines))


def algorithm(text: str, tmp_path: Path) -> Algorithm:
    path = tmp_path / "a.xml"
    path.write_text(text)
    return msccl_xml.read(path).algorithm


def instance(ranks: int, collective: str, size: int, boxes: int = 1, rate: float = RATE) -> FabricInstance:
    """All pairs joined; ranks dealt to ``boxes`` boxes."""
    links = [(u, v, rate, LATENCY) for u, v in permutations(range(ranks), 2)]
    made = machine(ranks, links, collective=collective, bytes=size)
    if boxes == 1:
        return made
    raw = made.model_dump(mode="json", exclude_none=True)
    raw["network"]["boxes"] = [list(range(b * ranks // boxes, (b + 1) * ranks // boxes)) for b in range(boxes)]
    return FabricInstance.model_validate(raw)


def model(costs: Costs) -> CostModel:
    return CostModel("msccl", "", {"Simple": costs}, "test", {})


def both(made: FabricInstance, a: Algorithm, part: int, costs: Costs) -> tuple[float, float]:
    """Seconds by the replay and by the second simulator."""
    links = dict.fromkeys(permutations(range(len(made.members)), 2), (RATE, LATENCY))
    box = {rank: number for number, ranks in enumerate(made.boxes) for rank in ranks}
    box = box if made.hosts > 1 else dict.fromkeys(box, 0)
    return in_seconds(made, a, costs=model(costs)), slow_seconds(a, part, links, box, costs)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_ring_takes_its_steps_one_after_the_other(ranks: int, channels: int, tmp_path: Path) -> None:
    """Every rank sends at once, so that a block does 2 n - 1 steps; what a block cannot carry the others do."""
    size = 2**20 * ranks * channels
    costs = Costs(block=20e9, sum=20e9, step=3e-6, launch=9e-6)
    found, slow = both(instance(ranks, "allreduce", size), algorithm(ring(ranks, channels), tmp_path), size, costs)
    each = size / (ranks * channels) / 20e9
    assert found == pytest.approx(9e-6 + (2 * ranks - 1) * (each + 3e-6), rel=1e-9)
    assert found == pytest.approx(slow, rel=1e-12)


def test_channels_add_up_until_the_link_is_full(tmp_path: Path) -> None:
    """Two blocks of 40 GB/s bring a link of 100 GB/s twice what one does; eight fill it."""
    size, rates = 2**30, []
    for channels in (1, 2, 8):
        seconds = in_seconds(
            instance(4, "allreduce", size),
            algorithm(ring(4, channels), tmp_path),
            costs=model(Costs(block=40e9, sum=40e9)),
        )
        rates.append(2 * 3 / 4 * size / seconds)
    assert rates[1] == pytest.approx(2 * rates[0], rel=1e-3)  # but for latency
    assert 80e9 < rates[2] <= RATE


@pytest.mark.parametrize("ranks", [2, 3, 9])
def test_a_chain_pays_for_every_hop(ranks: int, tmp_path: Path) -> None:
    size, costs = 2**10, Costs(block=RATE / 2, step=2e-6, launch=5e-6)
    made, a = instance(ranks, "broadcast", size), algorithm(chain(ranks), tmp_path)
    took = size / (RATE / 2)
    assert in_seconds(made, a, costs=model(costs)) == pytest.approx(5e-6 + ranks * (took + 2e-6), rel=1e-9)


def test_a_slice_lets_the_receiver_begin(tmp_path: Path) -> None:
    """A chain of three passes a quarter of the message on: the second hop ends a quarter after the first."""
    size = 2**20
    whole, sliced = (
        in_seconds(instance(3, "broadcast", size), algorithm(chain(3), tmp_path), costs=model(Costs(slice_bytes=s)))
        for s in (size, size // 4)
    )
    assert whole == pytest.approx(2 * size / RATE + 2 * LATENCY, rel=1e-9)
    assert sliced == pytest.approx(1.25 * size / RATE + 2 * LATENCY, rel=1e-9)


@pytest.mark.parametrize("slices", [1, 2, 8])
def test_slices_of_a_piece_overlap_on_their_way(slices: int) -> None:
    """A broadcast along three ranks, two steps a slice and rank: the second hop ends one slice behind the first."""
    size, made = 2**20, instance(3, "broadcast", 2**20)
    t = schedule("broadcast", 3, [(0, 0, 0, 1, False), (1, 0, 1, 2, False)], [0], part_bytes=size, root=0)
    a, _ = lower(t, limits_of(EXECUTORS["azure"]), Wish(in_place=True, slices=slices))
    hop = size / RATE * (1 + 1 / slices) + 2 * LATENCY
    assert in_seconds(made, a, costs=model(FREE)) == pytest.approx(hop, rel=1e-9)


def test_slices_are_tried_with_fewer_copies() -> None:
    """Copies alone are best eight at a time; with slices two of them are, which is found over four."""
    took = {(2, 1): 9.0, (4, 1): 8.0, (8, 1): 7.0, (4, 2): 6.0, (2, 2): 6.5, (2, 4): 5.0}

    def seconds(wish: Wish) -> float:
        return took.get((wish.instances, wish.slices), 10.0)

    tried = Tried(lambda wish: [wish], seconds, Wish())
    assert min(map(seconds, tried.run())) == 5.0


def test_costs_of_a_kind_may_be_nothing() -> None:
    costs = cost_model("msccl:azure", "ampere")
    assert costs is not None
    for kind, free in FREE_KINDS.items():
        one, left = costs.of("LL128"), costs.without(kind).of("LL128")
        assert left == replace(one, **free)  # type: ignore[arg-type]
        assert left != one
    assert costs.inner_percent == 83  # 0.8 of 0.96


def test_steps_between_boxes_take_longer(tmp_path: Path) -> None:
    costs = Costs(step=2e-6, net_step=9e-6)
    a = algorithm(chain(4), tmp_path)
    found = [in_seconds(instance(4, "broadcast", 4, boxes), a, costs=model(costs)) for boxes in (1, 2)]
    assert found[1] - found[0] == pytest.approx(7e-6, rel=1e-6)


@pytest.mark.parametrize(("channels", "most", "copying"), [(1, None, 1), (4, None, 4), (4, 11, 4), (4, 10, 1)])
def test_own_copies_are_spread_as_what_moves_is(channels: int, most: int | None, copying: int) -> None:
    """The root of a broadcast copies its data in as many blocks as send it to a rank, where there is room for them."""
    moves = transfers_of(synth.solve(instance(4, "broadcast", 2**20), "ring", options={"transfers": "24"}))
    a, _ = lower(moves, limits_of(EXECUTORS["azure"]), Wish(channels=channels, blocks=most))
    assert int(((a.tb_rank == 0) & (a.tb_send < 0) & (a.tb_recv < 0)).sum()) == copying


def drawn(random: Random) -> Costs:
    """Costs of any size, some of nothing."""
    one = random.choice
    return Costs(
        block=one([10e9, 70e9, math.inf]), sum=one([5e9, math.inf]), step=one([0, 3e-7, 4e-6]), net_step=one([0, 8e-6]),
        launch=random.random() * 1e-5, link=one([0.8, 1.0]), net=one([0.5, 1.0]), slice_bytes=one([0, 8, 20_000]),
        pass_bytes=one([0, 32_000]),
    )  # fmt: skip


def asked(collective: str, ranks: int, root: int | None, part: int, boxes: int) -> FabricInstance:
    """The instance whose parts have so many bytes."""
    shared = collective in ("allgather", "reduce_scatter", "alltoall", "gather", "scatter")
    made = instance(ranks, collective, part * (ranks if shared else 1), boxes)
    return made.model_copy(update={"root": root}) if root else made


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_as_the_second_simulator_has_them(seed: int) -> None:
    drawn_moves = (random_transfers(number).scaled(20_000) for number in count(seed, 24))
    random, moves = Random(seed), next(one for one in drawn_moves if one.ranks > 1 and len(one.piece))
    wish = Wish(fuse=seed % 2 > 0, channels=random.randint(1, 3), instances=random.randint(1, 2))
    a, _ = lower(moves, limits_of(EXECUTORS["msccl"]), wish)
    made, costs = (
        asked(moves.collective, moves.ranks, moves.root, moves.part_bytes, random.randint(1, 2)),
        drawn(random),
    )
    found, slow = both(made, a, moves.part_bytes, costs)
    assert found == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("name", list(SMALL))
def test_small_algorithms_as_the_second_simulator_has_them(name: str, tmp_path: Path) -> None:
    a, random = algorithm(SMALL[name], tmp_path), Random(name)
    for boxes in (1, 2):
        part, costs = 96 * a.chunks * 1000, drawn(random)
        made = asked(a.collective, a.ranks, a.root, part, boxes)
        found, slow = both(made, a, part, costs)
        assert found == pytest.approx(slow, rel=1e-9)


def test_many_passes_go_on_as_the_first_ones_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only a part of the passes is run, the time is that of all of them."""
    from synth_models.fabric.scheduling import executed

    made, a = instance(4, "allreduce", 2**26), algorithm(ring(4, 2), tmp_path)
    costs = model(Costs(block=30e9, sum=30e9, step=2e-6, slice_bytes=2**14, pass_bytes=2**16))
    whole = in_seconds(made, a, costs=costs)
    monkeypatch.setattr(executed, "MOST_EVENTS", 600)
    assert in_seconds(made, a, costs=costs) == pytest.approx(whole, rel=1e-3)


def test_an_ideal_executor_is_as_quick_as_the_links(tmp_path: Path) -> None:
    made, a = instance(4, "allreduce", 2**26), algorithm(ring(4, 2), tmp_path)
    assert in_seconds(made, a, costs=model(FREE)) == pytest.approx(in_seconds(made, a), rel=0.02)
    assert in_seconds(made, a, costs=None) == in_seconds(made, a)


@pytest.mark.parametrize("gpu", list(data()["gpu"]))
def test_every_generation_costs_something(gpu: str) -> None:
    for form in ("msccl", "msccl:azure", "mscclpp"):
        found = cost_model(form, gpu)
        assert found is not None
        for protocol in found.protocols:
            one = found.of(protocol)
            assert 1e9 < one.block < 100e9
            assert 0 < one.step <= one.net_step
            assert 0 < one.launch < 1e-4
            assert 0 < one.link <= 1
        assert found.source in found.words


def test_machines_are_known_by_name() -> None:
    family = get_family("fabric")
    names = [("dgx-h100", "hopper"), ("mi300x", "mi300x")]
    for name, gpu in names:
        assert gpu_of(make(family, {"machine": name, "collective": "allreduce", "bytes": "1MiB"})) == gpu
    assert gpu_of(instance(2, "allreduce", 4)) is None
    assert cost_model("msccl", None) is None
    assert cost_model("msccl", "ideal") is None


def test_gpu_and_reach_name_the_same_gpus() -> None:
    assert sorted(GENERATIONS) == sorted(gpus())


def test_what_is_given_counts() -> None:
    given = read_given("block=40GB/s, step=1us,launch=5us")
    assert given == {"block": 40e9, "step": 1e-6, "launch": 5e-6}
    for gpu in (None, "hopper"):
        found = cost_model("msccl:azure", gpu, given)
        assert found is not None
        one = found.of("Simple")
        assert (one.block, one.sum, one.step, one.launch) == (40e9, 40e9, 1e-6, 5e-6)
        assert one.net == (1.0 if gpu is None else 0.96)


@pytest.mark.parametrize(
    ("text", "words"),
    [("blocks=4", "must be KEY=VALUE"), ("block", "must be KEY=VALUE"), ("step=3GB/s", "must be a time"),
     ("block=0", "must"), ("link=2", "must be a share"), ("launch=-1us", "must"),
     ("step=1us,step=2us", "step is given twice")],
)  # fmt: skip
def test_what_is_given_wrongly_is_said(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_given(text)


def test_an_unknown_generation_is_said() -> None:
    with pytest.raises(InputError, match="must be one of volta, ampere"):
        cost_model("msccl", "pascal")


def test_instances_share_the_work(tmp_path: Path) -> None:
    """Copies of a program side by side carry more than one where a thread block is slower than its link."""
    size = 2**26
    made, a = instance(4, "allreduce", size), algorithm(ring(4), tmp_path)
    moves = raised(a, size).transfers
    rates = []
    for copies in (1, 4):
        again, _ = lower(moves, limits_of(EXECUTORS["azure"]), Wish(in_place=True, instances=copies))
        rates.append(size / in_seconds(made, again, costs=model(Costs(block=10e9, sum=10e9))))
    assert rates[1] > 3 * rates[0]


def test_rings_are_told_apart(tmp_path: Path) -> None:
    """Two rings the other way round are two ways, whatever their pieces' numbers; copies of one ring are one."""
    size = 2**22
    one = raised(algorithm(ring(4, 2), tmp_path), size).transfers
    assert set(ways(one).tolist()) == {0}
    back = replace(one, src=np.where(one.piece % 2, one.dst, one.src), dst=np.where(one.piece % 2, one.src, one.dst))
    assert np.array_equal(ways(back), np.where(np.arange(len(one.piece_part)) % 2, ways(back)[1], ways(back)[0]))
    assert len(set(ways(back).tolist())) == 2


@pytest.mark.parametrize(("block", "least", "most"), [(math.inf, 1, 4), (10e9, 10, 108)])
def test_copies_are_taken_where_blocks_are_slow(block: float, least: int, most: int, tmp_path: Path) -> None:
    """What is quickest has as many thread blocks as the link needs, and what is tried runs."""
    size = 2**26
    made = instance(4, "allreduce", size)
    moves = raised(algorithm(ring(4), tmp_path), size).transfers
    costs = model(Costs(block=block, sum=block, step=1e-6, pass_bytes=2**21, slice_bytes=2**20))
    found = list(Lowered(moves, "msccl:azure", costs=costs, instance=made).programs())
    best = min(found, key=lambda one: one.seconds(made))
    assert least <= best.thread_blocks <= most
    assert best.again is not None
    assert best.again().in_place
    assert all(one.thread_blocks <= 108 for one in found)


def test_protocols_are_named_in_the_file(tmp_path: Path) -> None:
    size = 2**12
    made, costs = instance(4, "allreduce", size), cost_model("msccl:azure", "hopper")
    moves = raised(algorithm(ring(4), tmp_path), size).transfers
    found = list(Lowered(moves, "msccl:azure", costs=costs, instance=made).programs())
    best = min(found, key=lambda one: one.seconds(made))
    assert best.algorithm is not None
    assert best.again is not None
    assert best.algorithm.protocol == best.again().protocol == "LL"
    assert "protocol LL" in best.how


def test_what_a_rank_copies_itself_takes_no_longer_than_what_moves() -> None:
    """A quarter of an allgather stays where it is: 16 MiB by one Ampere block would take 0.7 ms."""
    instance = make(
        get_family("fabric"), {"network": "ring", "nodes": "4", "collective": "allgather", "bytes": "64MiB"}
    )
    record = synth.solve(instance, "ring")
    costs = cost_model("msccl:azure", "ampere")
    found = in_form(record, "msccl:azure", costs)
    assert record.value is not None
    assert found.seconds < 1.15 * record.value / data()["gpu"]["ampere"]["link"]
