"""What a library should run for which size, and what it costs that only its own algorithms are there.

Open MPI's and UCC's algorithms are replayed as they are (:mod:`synth.exchange.selection.library_times`), NCCL's are
timed by NCCL's own cost model (:mod:`synth.exchange.selection.nccl_choice`). An algorithm that is in neither is not
considered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from synth import api
from synth.errors import InputError
from synth.exchange.selection.formats import selection_format
from synth.exchange.selection.library_times import ALGORITHMS, ALIKE, Replay, Told, members_of, preferred
from synth.exchange.selection.nccl_choice import Nccl
from synth.exchange.selection.nccl_tuner import NAMES
from synth.exchange.selection.rules import Rule
from synth.family import get_family
from synth.instance import Instance
from synth.records.record import Record

RUN_S = 20.0
GROUND = 2**10  # bytes from rank to rank of the alltoall on whose machine messages are replayed
KNOWN: Mapping[str, tuple[str, ...]] = {"nccl": tuple(NAMES)} | {
    library: tuple(one for one in known if one not in ALIKE) for library, known in ALGORITHMS.items()
}  # collectives by library
Make = Callable[[str, int], Instance]
Run = Callable[[Instance, str], Record | None]


@dataclass(frozen=True)
class SizeChoice:
    """One size: ``seconds`` by the library's word, and what it is ``told`` with it; ``bound`` in seconds, None where
    none is proven. ``nodes``: as NCCL counts them, None where the machine states no boxes."""

    collective: str
    bytes: int
    ranks: int
    nodes: int | None
    seconds: Mapping[str, float]
    told: Mapping[str, Told]
    bound: float | None

    @property
    def algorithm(self) -> str:
        """The library's quickest."""
        return min(self.seconds, key=lambda name: self.seconds[name])

    @property
    def parameters(self) -> Told:
        """What the library is told with it."""
        return self.told.get(self.algorithm, {})

    @property
    def restriction(self) -> float | None:
        """What it costs at most that only the library's algorithms are there: its time over the bound."""
        return None if not self.bound else self.seconds[self.algorithm] / self.bound


def solved(instance: Instance, method: str) -> Record:
    """The record of a method's run, 20 s at most."""
    return api.solve(instance, method, time_limit=RUN_S)


def demand_known(library: str, collective: str) -> None:
    """Raises :class:`InputError` for a collective that the library takes no rules for."""
    known = KNOWN[selection_format(library).name]
    if collective not in known:
        raise InputError(f"{library}: it takes no rules for {collective}; only for {', '.join(known)}")


def choices(
    library: str, make: Make, collective: str, sizes: Iterable[int], run: Run = solved, model: Nccl | None = None
) -> list[SizeChoice]:
    """The times of a library's algorithms at every size; Open MPI has two collectives for a reduce-scatter. ``make``:
    the instance of a collective and a size in bytes; ``model``: NCCL on the machine, made here if None. Raises
    :class:`InputError` for what the library takes no rules for, and where none of its algorithms runs on the machine.
    """
    demand_known(library, collective)
    if library == "nccl":
        nccl = model or Nccl.of(make, run)
        return [_timed_by_nccl(nccl, make(collective, size), run) for size in sizes]
    ranks = len(members_of(make(collective, 2**20)))
    if ranks < 2:
        raise InputError(f"{library} has no choice for one rank")
    replay = Replay(make("alltoall", GROUND * ranks))
    names = [one for one in ALGORITHMS[library] if ALIKE.get(one, one) == collective]
    return [_replayed(library, name, replay, make(collective, size), run) for name in names for size in sizes]


def rules(library: str, found: Sequence[SizeChoice]) -> list[Rule]:
    """The rules for the choices of one machine, neighbours that say the same joined. The first holds from 0 bytes on,
    the last without end; two meet at the geometric mean of their sizes."""
    vocabulary = selection_format(library).vocabulary
    made: list[Rule] = []
    for collective in dict.fromkeys(one.collective for one in found):
        mine = sorted((one for one in found if one.collective == collective), key=lambda one: one.bytes)
        groups: list[list[SizeChoice]] = []
        for one in mine:
            last = groups[-1][-1] if groups else None
            if last is not None and (last.algorithm, last.parameters) == (one.algorithm, one.parameters):
                groups[-1].append(one)
            else:
                groups.append([one])
        ends = [math.isqrt(a[-1].bytes * b[0].bytes) for a, b in pairwise(groups)]
        for group, first, last_byte in zip(groups, [0, *(end + 1 for end in ends)], [*ends, None], strict=True):
            one = group[0]
            nodes = one.nodes if vocabulary.nodes else None
            made.append(Rule(collective, one.ranks, nodes, first, last_byte, one.algorithm, one.parameters))
    return made


def _replayed(library: str, name: str, replay: Replay, instance: Instance, run: Run) -> SizeChoice:
    """A size by replaying the library's algorithms."""
    quickest: dict[str, float] = {}
    told: dict[str, Told] = {}
    refused: list[str] = []
    size, collective = int(getattr(instance, "bytes", 0)), ALIKE.get(name, name)
    root = getattr(instance, "the_root", None)
    place = 0 if root is None else members_of(instance).index(root)
    for word, variants in ALGORITHMS[library][name].items():
        try:
            known = [one for variant in variants for one in replay.seconds(collective, size, variant, place)]
        except InputError as error:
            refused.append(f"{word}: {str(error).splitlines()[0]}")
            continue
        if known:
            quickest[word], told[word] = preferred(known)
    if not quickest:
        raise InputError(f"none of {library}'s algorithms runs here: {'; '.join(refused)}", instance.name)
    nodes = int(getattr(instance, "hosts", 1))
    return SizeChoice(name, size, replay.ranks, nodes, quickest, told, _bound(instance, run))


def _timed_by_nccl(model: Nccl, instance: Instance, run: Run) -> SizeChoice:
    """A size by NCCL's cost model, and by no less than the machine's own time of the same algorithm."""
    collective, size = str(getattr(instance, "collective", "")), int(getattr(instance, "bytes", 0))

    def machine_s(method: str) -> float | None:
        record = run(instance, method)
        return None if record is None else record.value

    found = model.choice(collective, size, machine_s)
    return SizeChoice(collective, size, model.group.ranks, model.nodes, *found, _bound(instance, run))


def _bound(instance: Instance, run: Run) -> float | None:
    proven = run(instance, "bound") if "bound" in get_family(instance.family).methods else None
    return None if proven is None else proven.bound
