"""Published schedules of all families end bit-correct on real processes: sixty by default, all others that are small
enough with ``-m slow``. The data are compared with the collective's definition; neither check nor replay is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from published import PUBLISHED, published, whole

from synth.errors import InputError
from synth.exchange.transfers import Transfers
from synth.family import get_family
from synth.method import load
from synth.ranks.crew import Crew
from synth.ranks.data import Data
from synth.ranks.from_transfers import program_of
from synth.ranks.launcher import Job
from synth.ranks.words import TransferNames, faults
from synth.records import record as records
from synth.records.record import Record

FEW = {
    "xtree": """equimesh-2x3-c1: ilp-highs mesh2d_rings multitree pull tacos tidalmesh tto xtree
        ring-8-c1: symmetric
        mesh-2x3-c1-allreduce: forest ilp-highs mesh2d_rings mirror_xtree""",
    "bine": """groups-13-root5-broadcast: bine binomial_doubling binomial_halving tree_ilp-highs
        groups-5-3-8-reduce: bine binomial_doubling tree_ilp-highs
        synthetic-hosts-gather: binomial_doubling bine tree_ilp-highs""",
    "optree": """ring-4-w1: optree relay time_expanded-cpsat
        torus-3x3-w1: optree-sharing=off
        ring-5-w2: optree relay
        mesh-2x3-w1: optree""",
    "fabric": """star-6-scatter-6KiB: flow-highs pull
        dragonfly-2x3x2-gather-12MiB: flow-highs pull
        full-4-allgather-4KiB: forest-highs pull
        dgx1-broadcast-16KiB: forest-highs pull
        dgx-h100-x2-allreduce-1MiB-r4: forest-highs
        dgx-a100-alltoall-1MiB: flow-highs pull
        ring-5-allreduce-5MiB: forest-highs pull
        dgx-a100-allgather-1GiB: forest-highs
        dgx1-alltoall-1GB: flow-highs
        dgx1-allreduce-64KiB: forest-highs
        kautz-12x3-alltoall-12MiB: flow-highs
        dgx-a100-x2-demand: pull""",
    "harvest": """alltoall-direct-16-p2: candidates-highs
        binomial-broadcast-8-p1: misocp-highs
        bruck-allgather-8-p2: misocp-highs
        moe-8-p2: candidates-highs
        demand-6-p2: misocp-highs
        recursive-doubling-4-p1: misocp-highs""",
    "mlfm": """d3-n2l3m2: closed_form shift greedy columns-cpsat
        d3-n2l4m3-leaf: greedy repair
        d2-five-pairs: greedy cpsat-cpsat""",
}
WORDS = 2**12  # of a part at most
MOST_TRANSFERS, MOST_RANKS = 1500, 32


def few() -> Iterator[Record]:
    for family, rows in FEW.items():
        for row in rows.splitlines():
            instance, _, methods = row.partition(":")
            for method in methods.split():
                yield records.read(PUBLISHED / family / instance.strip() / f"{method}.json")


def transfers_in(record: Record) -> Transfers | None:
    """What a record's schedule moves, without a look at whether that is right; None where it moves nothing."""
    family = get_family(record["family"])
    for target in map(family.capabilities.get, ("export", "demands")):
        try:
            if target is not None:
                found: Transfers = load(target)(record.find_instance(), record.solution())
                return found
        except InputError:
            continue
    return None


def run_all(schedules: Iterable[tuple[str, Transfers]]) -> Counter[str]:
    """Run each; counts of what has run, by family."""
    seen = Counter[str]()
    with Crew() as crew:
        for seed, (family, t) in enumerate(schedules):
            program = program_of(t, min(1.0, 8 * WORDS / t.part_bytes))
            done = crew.run(Job(program, seed, real=seed % 4 == 3))
            assert faults(program, done, TransferNames(t), Data(seed, t.ranks, seed % 4 == 3)) == [], t.name
            assert done.seconds
            seen[family] += 1
    return seen


@pytest.mark.long
def test_sixty_shipped_schedules_of_all_families() -> None:
    found = [(record["family"], transfers_in(record)) for record in few()]
    seen = run_all((family, t) for family, t in found if t is not None)
    assert set(seen) == {"xtree", "bine", "optree", "fabric", "harvest", "mlfm"}
    assert seen.total() >= 60


@pytest.mark.slow
def test_five_hundred_shipped_schedules() -> None:
    def small() -> Iterator[tuple[str, Transfers]]:
        for record in map(whole, published()):
            if record["kind"] != "bound" and record.packed:
                t = transfers_in(record)
                if t is not None and len(t.piece) <= MOST_TRANSFERS and t.ranks <= MOST_RANKS:
                    yield record["family"], t

    seen = run_all(small())
    assert min(seen[family] for family in FEW) >= 20
    assert seen.total() >= 500
