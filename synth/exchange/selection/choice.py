"""What a library should run for which size, and what it costs that only its own algorithms are there.

A library's algorithm is timed as the schedule of the method that is the same algorithm (:data:`COUNTERPARTS`), replayed
by the family's check on the machine; an algorithm that no method has is not considered. A counterpart is at least as
quick as the library: its number of chunks is the best for the size, and its ring takes the best cycles through the
machine, while a library's goes by its own numbers of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from synth import api
from synth.errors import InputError
from synth.exchange.selection.formats import selection_format
from synth.exchange.selection.rules import Rule
from synth.family import get_family
from synth.instance import Instance
from synth.records.record import Record

RUN_S = 20.0
WHOLE_BUFFERS = "doubling with whole buffers"  # what recursive_doubling says of an allreduce
_NCCL = {"ring": "ring", "pat": "pat"}
# by library and collective: the library's word, and the method that is the same algorithm. An allreduce of
# ``recursive_doubling`` is one of two, as its record's message says: see :func:`_word`.
COUNTERPARTS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "nccl": {
        "allreduce": {"ring": "ring", "tree": "double_tree"},
        "allgather": _NCCL,
        "reduce_scatter": _NCCL,
        "broadcast": {"ring": "ring"},
        "reduce": {"ring": "ring"},
    },
    "ompi": {
        "allreduce": {"ring": "ring", "rabenseifner": "recursive_doubling"},
        "allgather": {"linear": "direct", "bruck": "bruck", "recursive_doubling": "recursive_doubling", "ring": "ring"},
        "reduce_scatter": {"recursive_halving": "recursive_doubling", "ring": "ring"},
        "alltoall": {"linear": "direct", "modified_bruck": "bruck"},
        "broadcast": {"basic_linear": "direct", "pipeline": "ring"},
        "reduce": {"linear": "direct", "pipeline": "ring"},
        "gather": {"basic_linear": "direct"},
        "scatter": {"basic_linear": "direct"},
    },
    "ucc": {
        "allreduce": {"ring": "ring", "dbt": "double_tree", "sra_knomial": "recursive_doubling"},
        "allgather": {"linear": "direct", "bruck": "bruck", "knomial": "recursive_doubling", "ring": "ring"},
        "reduce_scatter": {"knomial": "recursive_doubling", "ring": "ring"},
        "alltoall": {"pairwise": "direct", "bruck": "bruck"},
        "broadcast": {"dbt": "double_tree"},
        "reduce": {"dbt": "double_tree"},
    },
}
_WHOLE = {("ompi", "rabenseifner"): "recursive_doubling", ("ucc", "sra_knomial"): "knomial"}
Run = Callable[[Instance, str], Record | None]


@dataclass(frozen=True)
class SizeChoice:
    """One size: ``seconds`` by the library's word, and by which method; ``bound`` in seconds, None where none is
    proven."""

    collective: str
    bytes: int
    ranks: int
    nodes: int
    seconds: Mapping[str, float]
    methods: Mapping[str, str]
    bound: float | None

    @property
    def algorithm(self) -> str:
        """The library's quickest."""
        return min(self.seconds, key=lambda name: self.seconds[name])

    @property
    def restriction(self) -> float | None:
        """What it costs at most that only the library's algorithms are there: its time over the bound."""
        return None if not self.bound else self.seconds[self.algorithm] / self.bound


def solved(instance: Instance, method: str) -> Record:
    """The record of a method's run, 20 s at most."""
    return api.solve(instance, method, time_limit=RUN_S)


def choices(
    library: str, make: Callable[[str, int], Instance], collective: str, sizes: Iterable[int], run: Run = solved
) -> list[SizeChoice]:
    """The times of a library's algorithms at every size. ``make``: the instance of a collective and a size in bytes.
    Raises :class:`InputError` for what the library takes no rules for, and where none of its algorithms runs on the
    machine."""
    known = COUNTERPARTS[selection_format(library).name].get(collective)
    if known is None:
        words = ", ".join(COUNTERPARTS[library])
        raise InputError(f"{library}: none of its algorithms for {collective} is a method here; only for {words}")
    return [_choice(library, known, make(collective, size), run) for size in sizes]


def rules(library: str, found: Sequence[SizeChoice]) -> list[Rule]:
    """The rules for the choices of one machine, neighbours that say the same joined. The first holds from 0 bytes on,
    the last without end; two meet at the geometric mean of their sizes."""
    vocabulary = selection_format(library).vocabulary
    made: list[Rule] = []
    for collective in dict.fromkeys(one.collective for one in found):
        mine = sorted((one for one in found if one.collective == collective), key=lambda one: one.bytes)
        groups: list[list[SizeChoice]] = []
        for one in mine:
            if groups and groups[-1][-1].algorithm == one.algorithm:
                groups[-1].append(one)
            else:
                groups.append([one])
        ends = [math.isqrt(a[-1].bytes * b[0].bytes) for a, b in pairwise(groups)]
        for group, first, last in zip(groups, [0, *(end + 1 for end in ends)], [*ends, None], strict=True):
            nodes = group[0].nodes if vocabulary.nodes else None
            made.append(Rule(collective, group[0].ranks, nodes, first, last, group[0].algorithm))
    return made


def _choice(library: str, known: Mapping[str, str], instance: Instance, run: Run) -> SizeChoice:
    seconds: dict[str, float] = {}
    methods: dict[str, str] = {}
    refused: list[str] = []
    available = get_family(instance.family).methods
    for word, method in known.items():
        record = run(instance, method) if method in available else None
        if record is None or record.value is None:
            refused.append(f"{word}: {'did not run' if record is None else record['message'] or 'no schedule'}")
            continue
        name = _word(library, word, record)
        if record.value < seconds.get(name, math.inf):
            seconds[name], methods[name] = record.value, method
    if not seconds:
        raise InputError(f"none of {library}'s algorithms runs here: {'; '.join(refused)}", instance.name)
    proven = run(instance, "bound") if "bound" in available else None
    bound = None if proven is None else proven.bound
    members = getattr(instance, "members", ())
    nodes = int(getattr(instance, "hosts", 1))
    size = int(getattr(instance, "bytes", 0))
    return SizeChoice(str(getattr(instance, "collective", "")), size, len(members), nodes, seconds, methods, bound)


def _word(library: str, word: str, record: Record) -> str:
    """The library's word for what the run of a counterpart made."""
    whole = str(record["message"] or "").startswith(WHOLE_BUFFERS)
    return _WHOLE.get((library, word), word) if whole else word
