"""Instances of the bine family: a collective, and one or many jobs with the group that every rank sits in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from synth.arrays import Int32Array, IntArray
from synth.errors import Fault
from synth.instance import Instance, Part, Unit
from synth.schedule.collective import CollectiveName
from synth.text.visible import visible

MAX_RANKS = 65_536
_RUN = re.compile(r"([A-Za-z0-9_.:-]*?[A-Za-z0-9_.:-])x([0-9]+)")
MAX_BYTES = 1e18  # of a vector
MAX_LINKS = 10**9  # between two groups, or of one to the core
MAX_COST = 1000  # of a byte on one level
INSIDE_NODE, INSIDE_GROUP, BETWEEN_GROUPS = range(3)
TREES = ("broadcast", "reduce", "scatter", "gather")


def parse_runs(text: str) -> tuple[list[str], list[int]]:
    """Group labels and counts of ``8x2 9x7`` (two ranks in group 8, then seven in group 9)."""
    labels, counts = [], []
    for word in text.split():
        match = _RUN.fullmatch(word)
        label, count = match.groups() if match is not None else ("", "0")
        if not 1 <= int(count) <= 1_000_000:
            raise ValueError(f"{word!r} is not GROUPxCOUNT with a count >= 1")
        labels.append(label)
        counts.append(int(count))
    if not labels:
        raise ValueError("names no ranks")
    return labels, counts


class Job(Part):
    """One job: ``allocation`` is its ranks' groups in rank order, run-length coded, ``GROUPxCOUNT GROUPxCOUNT …``;
    ``nodes`` their nodes likewise, each within one group (default: every rank has a node of its own)."""

    name: Annotated[str, Field(min_length=1)]
    allocation: Annotated[str, Field(min_length=1)]
    nodes: Annotated[str, Field(min_length=1)] | None = None

    @cached_property
    def groups(self) -> Int32Array:
        """Group of every rank, shape (p,), groups numbered by first appearance."""
        return _numbered(self.allocation)

    @cached_property
    def node_of(self) -> Int32Array:
        """Node of every rank, shape (p,), nodes numbered by first appearance."""
        return np.arange(len(self.groups), dtype=np.int32) if self.nodes is None else _numbered(self.nodes)


def _numbered(runs: str) -> Int32Array:
    """The number of every rank's label, by first appearance."""
    labels, counts = parse_runs(runs)
    number: dict[str, int] = {}
    numbers = [number.setdefault(label, len(number)) for label in labels]
    return np.repeat(np.array(numbers, dtype=np.int32), counts)


class Dragonfly(Part):
    """Groups joined pairwise: ``links_per_pair`` global links between any two (traffic spreads uniformly over them), or
    ``pairs`` of (group, group, links), groups numbered from 0 in the order of first appearance in a job, with shortest
    routes where a pair has none. All groups of a job must be joined by some route."""

    kind: Literal["dragonfly"] = "dragonfly"
    links_per_pair: Annotated[int, Field(ge=1, le=MAX_LINKS)] = 1
    pairs: list[tuple[int, int, int]] | None = None

    @field_validator("pairs", mode="before")
    @classmethod
    def _rows(cls, value: Any) -> Any:
        return [tuple(row) if isinstance(row, list) else row for row in value] if isinstance(value, list) else value


class FatTree(Part):
    """Every group is a subtree with ``uplinks`` links to the core; traffic spreads uniformly over them."""

    kind: Literal["fat_tree"] = "fat_tree"
    uplinks: Annotated[int, Field(ge=1, le=MAX_LINKS)]


Fabric = Annotated[Dragonfly | FatTree, Field(discriminator="kind")]


Cost = Annotated[int, Field(ge=0, le=MAX_COST)]


class BineInstance(Instance):
    """One traffic-minimisation problem.

    ``bytes`` is m, the vector every rank holds (broadcast, reductions, alltoall) or ends or begins with (gather-like).
    ``problem`` says which schedules count as solutions:

    * ``any``: every schedule that does what the collective asks;
    * ``tree`` (default of broadcast, reduce, scatter, gather): every rank is reached once, sends (receives) one
      message a round, and there are at most ``rounds`` rounds, ``ceil(log2 p)`` unless given;
    * ``butterfly``: pairwise exchanges along the dimensions of a hypercube with prescribed volumes (p a power of two),
      so only the position of each rank is chosen. Bine's pairings are no hypercube for p >= 8
      (``check/rules.py``).

    ``vector = "small"`` moves whole vectors in broadcast, reduce and allreduce; ``"large"`` cuts them into p blocks.
    Jobs of a torus have no groups: every link of the torus counts as global.

    ``costs``: what a byte of a message counts inside a node, between two nodes of a group, between two groups. Only the
    last counts unless they are given; the objective is then the weighted sum.
    """

    family: Literal["bine"] = "bine"
    jobs: list[Job] = Field(default_factory=list)
    torus: list[Annotated[int, Field(ge=1)]] | None = None
    collective: CollectiveName = "broadcast"
    vector: Literal["small", "large"] = "small"
    problem: Literal["any", "tree", "butterfly"] = "any"
    bytes: Annotated[float, Field(gt=0, le=MAX_BYTES), Unit("bytes")] = 1_048_576.0
    root: Annotated[int, Field(ge=0)] = 0
    rounds: Annotated[int, Field(ge=1)] | None = None
    fabric: Fabric | None = None
    costs: tuple[Cost, Cost, Cost] | None = None

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        jobs, torus = raw.get("jobs") or [], raw.get("torus")
        faults: list[Fault] = []
        if bool(jobs) == bool(torus):
            return [Fault("jobs", "give jobs with their groups or the sides of a torus, one of the two")]
        sizes: list[int] = []
        if torus:
            if not isinstance(torus, list) or not all(isinstance(side, int) and side >= 1 for side in torus):
                return []
            sizes = [prod(torus)]
            faults += _size_faults("torus", sizes[0], torus)
        for i, job in enumerate(jobs if isinstance(jobs, list) else []):
            text = job.get("allocation") if isinstance(job, dict) else None
            if not isinstance(text, str):
                continue
            try:
                size = sum(parse_runs(text)[1])
            except ValueError as error:
                faults.append(Fault(f"jobs[{i}].allocation", str(error), text, True))
                continue
            faults += _size_faults(f"jobs[{i}].allocation", size, text)
            faults += _node_faults(f"jobs[{i}].nodes", text, job.get("nodes"))
            sizes.append(size)
        faults += _pair_faults(raw) + _cost_faults(raw)
        return faults + _choice_faults(raw, [size for size in sizes if size >= 2])

    @cached_property
    def allocations(self) -> list[Int32Array]:
        """Group of every rank of every job; on a torus every rank is a group of its own."""
        if self.torus is not None:
            return [np.arange(prod(self.torus), dtype=np.int32)]
        return [job.groups for job in self.jobs]

    @cached_property
    def nodes(self) -> list[Int32Array]:
        """Node of every rank of every job; where none are given every rank has its own."""
        if self.torus is not None:
            return self.allocations
        return [job.node_of for job in self.jobs]

    @property
    def level_costs(self) -> tuple[int, int, int]:
        """``costs``, or that only bytes between groups count."""
        return self.costs or (0, 0, 1)

    def partitions(self, job: int) -> list[tuple[int, Int32Array]]:
        """Partitions of a job's ranks, coarsest first, with weights > 0: a byte of a message between two ranks counts
        the weights of those in which they lie apart."""
        if self.torus is not None:
            return [(1, self.allocations[0])]
        inside, near, far = self.level_costs
        ranks = np.arange(len(self.allocations[job]), dtype=np.int32)
        found = [(far - near, self.allocations[job]), (near - inside, self.nodes[job]), (inside, ranks)]
        return [(weight, part) for weight, part in found if weight]

    def level(self, job: int, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> IntArray:
        """0 for messages inside a node, 1 between nodes of a group, 2 between groups."""
        nodes, groups = self.nodes[job], self.allocations[job]
        apart: IntArray = (nodes[src] != nodes[dst]).astype(np.int64) + (groups[src] != groups[dst])
        return apart

    @property
    def job_names(self) -> list[str]:
        """Names in the order of ``allocations``, as they are shown."""
        return ["torus"] if self.torus is not None else [visible(job.name) for job in self.jobs]

    def round_limit(self, ranks: int) -> int:
        """Rounds a tree on ``ranks`` ranks may take."""
        return self.rounds if self.rounds is not None else (ranks - 1).bit_length()

    def blocks(self, ranks: int) -> int:
        """Equal blocks that the vectors of a job are cut into (alltoall: one for every pair of ranks)."""
        if self.collective == "alltoall":
            return ranks * ranks
        whole = self.vector == "small" and self.collective in ("broadcast", "reduce", "allreduce")
        return 1 if whole else ranks

    def block_bytes(self, ranks: int) -> float:
        """Bytes of one block."""
        return self.bytes_of([(ranks, 1)])

    def bytes_of(self, blocks: Iterable[tuple[int, int]], shares: int = 1) -> float:
        """Bytes of rows ``(ranks, blocks)``, so many blocks of a job on so many ranks, each cut into ``shares``: the
        exact sum, rounded to a float once."""
        total = Fraction(0)
        for ranks, count in blocks:
            total += Fraction(int(count), ranks if self.collective == "alltoall" else self.blocks(ranks))
        return float(total * Fraction(self.bytes) / shares)

    def crossings(self, job: int, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> IntArray:
        """What a byte from ``src`` to ``dst`` counts: by default 1 between groups, else 0; hops on a torus."""
        if self.torus is None:
            cost: IntArray = np.array(self.level_costs, dtype=np.int64)[self.level(job, src, dst)]
            return cost
        hops = np.zeros(len(src), dtype=np.int64)
        for side, a, b in zip(
            self.torus, np.unravel_index(src, self.torus), np.unravel_index(dst, self.torus), strict=True
        ):
            away = (b - a) % side
            hops += np.minimum(away, side - away)
        return hops


def _size_faults(path: str, size: int, value: Any) -> list[Fault]:
    if size < 2:
        return [Fault(path, "a collective needs at least 2 ranks", value, True)]
    if size > MAX_RANKS:
        return [Fault(path, f"makes {size} ranks, at most {MAX_RANKS} are supported", value, True)]
    return []


def _node_faults(path: str, allocation: str, nodes: Any) -> list[Fault]:
    """Faults of a job's nodes against its groups."""
    if not isinstance(nodes, str):
        return []
    try:
        labels, counts = parse_runs(nodes)
    except ValueError as error:
        return [Fault(path, str(error), nodes, True)]
    groups, ranks = parse_runs(allocation), sum(parse_runs(allocation)[1])
    if sum(counts) != ranks:
        return [Fault(path, f"name {sum(counts)} ranks, the allocation {ranks}")]
    group_of: dict[str, str] = {}
    ends = iter(accumulate(groups[1]))
    group, end = iter(groups[0]), 0
    here, at, torn = "", 0, []
    for label, count in zip(labels, counts, strict=True):
        first, last = at, at + count
        while at < last:
            if at >= end:
                here, end = next(group), next(ends)
            if group_of.setdefault(label, here) != here:
                torn.append(label)
            at = min(last, end)
        assert at - first == count
    if not torn:
        return []
    more = f" and {len(set(torn)) - 1} more" if len(set(torn)) > 1 else ""
    return [Fault(path, f"node {torn[0]}{more} lies in several groups")]


def _cost_faults(raw: dict[str, Any]) -> list[Fault]:
    costs = raw.get("costs")
    if not isinstance(costs, (list, tuple)) or len(costs) != 3 or not all(type(value) is int for value in costs):
        return []  # pydantic's to report
    if raw.get("torus"):
        return [Fault("costs", "are of nodes and groups, a torus has none", list(costs), True)]
    if list(costs) != sorted(costs) or costs[-1] < 1:
        return [Fault("costs", "must not fall from node to group to global, the last >= 1", list(costs), True)]
    return []


def _pair_faults(raw: dict[str, Any]) -> list[Fault]:
    """Faults of ``fabric.pairs`` against the groups of the jobs; what is of a wrong type is pydantic's to report."""
    fabric, jobs = raw.get("fabric"), raw.get("jobs")
    pairs = fabric.get("pairs") if isinstance(fabric, dict) else None
    if not isinstance(pairs, list) or not isinstance(jobs, list):
        return []
    try:
        groups = max((len(set(parse_runs(job["allocation"])[0])) for job in jobs), default=0)
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # reported where they stand
    faults, proper = [], []
    for i, row in enumerate(pairs):
        if not isinstance(row, (list, tuple)) or len(row) != 3 or not all(type(value) is int for value in row):
            return []
        a, b, links = row
        wrong = _pair_words(a, b, links, groups)
        if wrong is None:
            proper.append({a, b})
        else:
            faults.append(Fault(f"fabric.pairs[{i}]", wrong, list(row), True))
    cut = sorted(set(range(groups)) - _reached(proper))
    if cut and not faults:
        words = f"give no route from group 0 to group {cut[0]}" + (f" and {len(cut) - 1} more" if cut[1:] else "")
        faults.append(Fault("fabric.pairs", f"{words}; all groups of a job must be joined"))
    return faults


def _pair_words(a: int, b: int, links: int, groups: int) -> str | None:
    """What is wrong with the links between two groups."""
    if min(a, b) < 0 or max(a, b) >= groups:
        return f"names a group that no job has: they are 0..{groups - 1}"
    if a == b:
        return "joins a group to itself"
    return None if 1 <= links <= MAX_LINKS else f"must have 1 to {MAX_LINKS} links"


def _reached(pairs: list[set[int]]) -> set[int]:
    """The groups that group 0 reaches over pairs of groups."""
    reached, before = {0}, 0
    while len(reached) > before:  # one pair further each time
        before = len(reached)
        reached = reached.union(*(pair for pair in pairs if pair & reached))
    return reached


def _choice_faults(raw: dict[str, Any], sizes: list[int]) -> list[Fault]:
    """Faults of root, problem, vector and rounds against the job sizes."""
    faults = []
    root, rounds, problem = raw.get("root", 0), raw.get("rounds"), raw.get("problem", "any")
    collective = raw.get("collective", "broadcast")
    if isinstance(root, int) and sizes and root >= min(sizes):
        faults.append(Fault("root", f"the smallest job has ranks 0..{min(sizes) - 1}", root, True))
    if problem == "tree":
        if collective not in TREES:
            faults.append(Fault("problem", f"{collective} is no tree collective ({', '.join(TREES)})", problem, True))
        if raw.get("vector", "small") == "large":
            faults.append(Fault("vector", "a tree moves whole vectors or blocks at once: use small", "large", True))
        least = (max(sizes, default=2) - 1).bit_length()
        if isinstance(rounds, int) and rounds < least:
            faults.append(Fault("rounds", f"reaching {max(sizes)} ranks takes at least {least} rounds", rounds, True))
    elif isinstance(rounds, int):
        faults.append(Fault("rounds", "only the problem tree limits rounds", rounds, True))
    if problem == "butterfly":
        if collective in TREES:
            faults.append(Fault("problem", f"{collective} is no butterfly collective", problem, True))
        faults += [
            Fault("problem", f"a butterfly needs a power of two of ranks, not {size}", problem, True)
            for size in sorted(set(sizes))
            if size & (size - 1)
        ]
        if raw.get("torus"):
            faults.append(Fault("problem", "butterfly positions are studied on groups, not on a torus", problem, True))
    return faults


def _halves(instance: BineInstance) -> bool:
    """Whether the vector is halved from round to round."""
    large = instance.collective == "allreduce" and instance.vector == "large"
    return large or instance.collective in ("allgather", "reduce_scatter")


def suited(instance: BineInstance, method: str) -> bool:
    """Whether a default method has a form of the instance's collective."""
    tree = instance.problem == "tree"
    rooted, halves = instance.collective in TREES, _halves(instance)
    free = instance.problem == "any"
    alltoall, torus, butterfly = instance.collective == "alltoall", instance.torus, instance.problem == "butterfly"
    usable = {
        "bound": True,
        "bine": not butterfly,
        "tree_ilp": tree,
        "binomial_halving": rooted,
        "binomial_doubling": rooted,
        "recursive": not rooted,
        "ring": free and (halves or alltoall),
        "bruck": free and (instance.collective == "allgather" or alltoall),
        "sparbit": free and instance.collective == "allgather",
        "bucket": torus is not None and halves,
        "hierarchical": free and halves and any(job.nodes is not None for job in instance.jobs),
        "leaders": free and torus is None and not alltoall,
        "bine_torus": torus is not None and halves and all(s & (s - 1) == 0 for s in torus),
        "placement_greedy": butterfly,
        "placement": butterfly,
    }
    return usable[method]


def size(instance: BineInstance) -> int:
    """Return the ranks of the largest job."""
    return max(len(groups) for groups in instance.allocations)
