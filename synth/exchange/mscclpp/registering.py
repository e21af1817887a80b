"""The Python text that registers plans with MSCCL++ v0.9 and later, and chooses one for a call.

Read from microsoft/mscclpp v0.10.0 (6231b4f3): python/mscclpp/_core/algorithm.py and
ext/algorithm_collection_builder.py, python/csrc/algorithm.cpp (what a request says), src/ext/nccl/nccl.cc (which calls
ask: allreduce, allgather, reduce-scatter, broadcast; what they count), src/core/algorithm.cc (the types that plans run
on; DslAlgorithm::execute adds whatever the call's operation is). Algorithms are known by the names of their plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from synth.exchange.mscclpp.goals import COLLECTIVES
from synth.exchange.mscclpp.plan import ALIGNED
from synth.exchange.mscclpp.versions import Version

FILE = "mscclpp_plans.py"
ASKED = ("allreduce", "allgather", "reduce_scatter", "broadcast")  # of which NCCL's calls look for an algorithm
TYPES = ("int32", "uint32", "float16", "float32", "bfloat16")
_NAMES = {ours: theirs for theirs, ours in COLLECTIVES.items()}


class Plan(NamedTuple):
    """A plan's ``file``, our name of its ``collective``, whether it is for calls in place, from how many to how many
    bytes, the ``chunks`` of a part, and its ``root`` or None."""

    file: str
    collective: str
    in_place: bool
    least: int
    most: int
    chunks: int
    root: int | None


def text(plans: Sequence[Plan], ranks: int, version: Version) -> str:
    """A module with ``register`` and ``select``, which imports nothing but mscclpp. Plans of collectives that no call
    asks for are left out."""
    rows = [
        (PurePath(one.file).stem, _NAMES[one.collective], one.in_place, one.least, one.most, one.chunks * ALIGNED,
         one.root)
        for one in plans if one.collective in ASKED
    ]  # fmt: skip
    table = "".join(f"    {row!r},\n" for row in rows)
    return _TEXT.format(version=version.name, ranks=ranks, table=table, types=TYPES).lstrip()


_TEXT = '''
"""Registers plans with MSCCL++ {version} and later versions. Every process calls register() before it makes its process
group, torch.distributed.init_process_group("nccl"), and runs with LD_PRELOAD=libmscclpp_nccl.so and
MSCCLPP_NCCL_LIB_PATH=PATH/libnccl.so, the library for all calls that no plan serves.

Plans add. A request does not say its operation: calls of the same size with MAX, MIN, PROD or AVG must not be made, or
their collective be named in MSCCLPP_FORCE_NCCL_FALLBACK_OPERATION.
"""

import os
from pathlib import Path

import mscclpp

RANKS = {ranks}
PLANS = (  # name, collective, in place, least and most bytes, what the bytes of a part must divide by, root
{table})
TYPES = {types}  # that the executor runs plans on


def register(rank=None, folder=None):
    """Make the plans beside this file (or in a folder) known; rank: this process's, by default of the variable RANK."""
    rank = int(os.environ["RANK"]) if rank is None else rank
    folder = Path(__file__).parent if folder is None else Path(folder)
    builder = mscclpp.AlgorithmCollectionBuilder()
    for name, *_ in PLANS:
        plan = mscclpp.ExecutionPlan(str(folder / (name + ".json")), rank)
        builder.add_algorithm_builder(mscclpp.Algorithm(id=name, execution_plan=plan))
    builder.set_algorithm_selector(select)


def select(algorithms, request):
    """The plan for a call, or None: then the library chooses, and last NCCL."""
    kind, size = request.collective, request.message_size
    if request.world_size != RANKS or request.dtype not in [getattr(mscclpp.DataType, name) for name in TYPES]:
        return None
    given, made = request.input_buffer, request.output_buffer
    total, part = size, size  # an allgather counts a rank's part
    if kind == "allgather":
        total = size * RANKS
        given -= request.rank * size
    elif kind == "reducescatter":
        part = size // RANKS
        made -= request.rank * part
    for name, collective, in_place, least, most, divides, root in PLANS:
        if (collective, in_place) != (kind, given == made) or not least <= total <= most or part % divides:
            continue
        if root is not None and list(request.hints.get("root", [root])) != [root]:
            continue
        return algorithms[kind][name]
    return None
'''
