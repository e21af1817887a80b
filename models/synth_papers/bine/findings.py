"""What our records say of the Bine paper; `synth reproduce findings` shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synth.findings.evidence import Held
from synth.findings.finding import BELOW, LEAST, NO_MORE, Case, Finding
from synth.reproduction.collect import Reproduction
from synth.text.quantities import times
from synth_models.bine.instance import BineInstance
from synth_papers.bine.page import TRACE, other_ranks
from synth_papers.bine.tables import TREES, Trace, least_trees

PAPER = "Bine Trees (De Sensi et al.)"
LARGE, QUICK = 128, 256  # ranks of the real jobs whose least trees are found again


def _case(name: str, published: str = "bine", ours: str = "") -> Case:
    return Case(name, f"bine/{name}", published=published, ours=ours)


def _ranks(held: Sequence[Held]) -> Mapping[str, Any]:
    """Ranks of the first case's largest job."""
    instance = held[0].instance
    assert isinstance(instance, BineInstance)
    return {"ranks": max(len(job.groups) for job in instance.jobs)}


def other_p(page: Reproduction) -> None:
    """The erratum on jobs whose number of ranks is no power of two; left out without the trace."""
    if (page.data / TRACE).is_file():
        other_ranks(page, Trace(page.data / TRACE))
    else:
        page.skip(f"{TRACE} is not in the data folder (--data), it is not ours to ship")


def real_jobs(page: Reproduction) -> None:
    """The least crossings of broadcasts on the largest jobs of the trace, found again; left out without it."""
    path = page.data / TRACE
    if not path.is_file():
        page.skip(f"{TRACE} is not in the data folder (--data), it is not ours to ship")
        return
    trace = Trace(path)
    chosen = trace.powers & (trace.groups >= 3) & (trace.ranks >= (QUICK if page.quick else LARGE))
    table = least_trees(trace, np.flatnonzero(chosen).tolist())
    certified = int(table.certified.sum())
    if certified < len(table):
        raise RuntimeError(f"the least crossings of {len(table) - certified} jobs are not certified")
    above = {name: table[name] / table.tree_ilp for name in TREES}
    told = ", ".join(
        f"{name} {times(ratio.mean())} on average, at most {times(ratio.max())}" for name, ratio in above.items()
    )
    page.erratum(
        "Broadcast trees on real jobs of Leonardo",
        "trees that cross groups less than binomial ones; how much less is possible is not said.",
        f"The least crossings in log2 p rounds are known on {certified} of {len(table)} jobs of {table.ranks.min()} "
        "and more ranks, certified by prices of rounds; Bine's tree crosses as seldom on "
        f"{int((above['bine'] == 1).sum())}.",
        f"crossings over the least: {told}. Every tree was replayed; the trace is not ours to ship, so there are no "
        "records of its jobs.",
        "reading",
    )  # fmt: skip


FINDINGS = (
    Finding(
        "bine-least-trees", "improves", PAPER, "Sections 2 and 4.5, trees",
        "Trees that cross groups least, in as few rounds: a broadcast on {ranks} ranks carries {ours} over global "
        "links where Bine's tree carries {printed}. On {cases} instances no tree carries less; Bine's carries up to "
        "{most_times} the least.",
        tuple(
            map(_case, (
                "groups-24-groups-2048-broadcast", "groups-13-root5-broadcast", "groups-8-8-16-broadcast",
                "groups-5-3-8-reduce", "groups-3-6-7-scatter", "groups-7-6-3-gather", "synthetic-jobs-broadcast",
                "synthetic-hosts-gather", "groups-4-4-8-broadcast-g2-roundrobin-costs-0-1-4",
            ))
        ),
        (BELOW, LEAST), _ranks, sources=("reading",),
    ),
    Finding(
        "bine-real-jobs", "improves", PAPER, "Section 2.4.2, Leonardo", errata=real_jobs,
    ),
    Finding(
        "bine-placements", "improves", PAPER, "Sections 3.1 and 4.4, butterflies",
        "Recursive halving and doubling in job order carry up to {most_times} as many bytes over global links as the "
        "best placement of the ranks on the butterfly's positions. No placement carries fewer than ours.",
        tuple(
            _case(name, "recursive") for name in (
                "groups-7-6-3-reducescatter-butterfly", "groups-3-3-2-allgather-butterfly",
                "groups-2-3-3-allreduce-large-g2-costs-0-1-3-butterfly", "groups-3-5-2-6-allreduce-small-butterfly",
            )
        ),
        (NO_MORE, LEAST), sources=("reading",),
    ),
    Finding(
        "bine-torus-allreduce", "settles", PAPER, "Section 5.4.1, torus",
        "Bine's large allreduce on the 4x4 torus carries {ours}: no algorithm carries less.",
        (Case("4x4, allreduce", "bine/torus-4x4-allreduce-large", ours="bine_torus"),),
        (LEAST,), sources=("reading",),
    ),
    Finding(
        "bine-bandwidth-algorithms", "settles", PAPER, "Section 1 (rings carry less); tables 3 to 5, traffic",
        "The traffic columns compare Bine with binomial trees and butterflies. For large vectors ring and bucket "
        "algorithms carry fewer bytes over global links, and on these {cases} nothing carries less: {ours} where Bine "
        "carries {printed} on the first.",
        (_case("groups-6-4-6-alltoall", "bine", "ring"), _case("torus-2x4x8-allgather", "bine_torus", "bucket")),
        (BELOW, LEAST), sources=("reading",),
    ),
    Finding(
        "bine-leaders", "improves", PAPER, "Section 1 (rings carry less); tables 3 to 5, traffic",
        "Where rounds are free, every group can take each byte in once, by a leader, whatever the groups. On these "
        "{cases} Bine carries up to {most_times} as many bytes over global links. Nothing carries less than ours.",
        tuple(
            _case(name, "bine", "leaders")
            for name in ("groups-5-3-8-allreduce-large", "groups-6-7-6-allgather", "synthetic-jobs-allreduce",
                         "groups-12-20-broadcast-large", "groups-5-3-5-allreduce-small")
        ),
        (BELOW, LEAST), sources=("reading",),
    ),
    Finding(
        "bine-hierarchical", "improves", PAPER, "Sections 6.1 and 6.2, several ranks a node",
        "With several ranks a node hierarchical Bine carries {printed} over global links, flat Bine {flat}; leaders of "
        "groups carry {ours}, and nothing carries less.",
        (
            _case("hierarchical-5-6-2-4-g4-allreduce", "hierarchical", "leaders"),
            _case("hierarchical-5-6-2-4-g4-allreduce", "bine", "leaders"),
        ),
        (BELOW, LEAST), lambda held: {"flat": held[1].printed_text}, sources=("reading",),
    ),
    Finding("bine-errata", "corrects", PAPER, "errata", errata=other_p),
)  # fmt: skip
