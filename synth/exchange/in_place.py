"""Calls with one buffer for input and output (in place) beside calls with two, of one algorithm or plan.

Executors choose by the pointers of a call (:mod:`synth.exchange.places`). MSCCL's XML says which calls it is for:
``inplace`` and ``outofplace`` of Azure/msccl-executor-nccl @c6f6b36 (src/misc/msccl/msccl_lifecycle.cc,
mscclInternalSchedulerSelectAlgo), so that one file may serve both; ``inplace`` alone of microsoft/msccl @b23e9cd
(src/graph/tuning.cc, ncclTopoGetMSCCLAlgo), and of a plan of MSCCL++ (``inplace``), which serve one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from synth.errors import InputError
from synth.exchange import executors, places, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.file_kinds import beside


class Written(NamedTuple):
    """The files of one algorithm or plan: ``path`` for calls with two buffers; ``one`` for calls with one, ``path`` too
    or another, or None where these have no file, because of what is ``missing``, in words (of one file for all: the
    name of an earlier file that is there)."""

    path: Path
    one: Path | None
    missing: str = ""

    @property
    def told(self) -> str:
        """Which file is for calls in place."""
        if self.one is None:
            return f"no file for calls in place: {self.missing}"
        if self.one == self.path:
            old = f"; an earlier {self.missing} lies beside it: remove it" if self.missing else ""
            return f"for calls in place and out of place{old}"
        return f"for calls out of place; in place: {self.one.name}"


def written(
    two: Any, executor: str, again: Callable[[], Any] | None, path: Path, put: Callable[[Any, Path], None]
) -> Written:
    """Write an algorithm or plan for calls with two buffers with ``put``, and what serves calls with one: the same file
    where the executor takes that and the steps are right so and none of them copies data onto themselves; else another
    beside it, with the same steps where they are right or with what ``again`` makes. Raises what ``put`` does; what
    ``again`` raises is said."""
    if again is None:
        put(two, path)
        return Written(path, None, "nobody has made one")
    if not isinstance(two, Algorithm):
        put(two, path)
        return _beside(path, put, lambda: {**again(), "name": f"{two['name']}, in place"})
    limits = executors.executor(executor)
    if two.collective in limits.never_in_place:
        put(two, path)
        return Written(path, None, f"{executor} runs no {two.collective} in place")
    one = replace(two, in_place=True)
    idle = places.changes_nothing(one, places.steps(one), places.cells(one)).any()
    right = not idle and validity.check(one).ok
    put(replace(two, both=True) if right and limits.both else two, path)
    if right and limits.both:
        return Written(path, path, beside(path).name if beside(path).exists() else "")
    return _beside(path, put, (lambda: one) if right else again)


def _beside(path: Path, put: Callable[[Any, Path], None], make: Callable[[], Any]) -> Written:
    """A file of its own for calls in place."""
    try:
        made = make()
    except InputError as error:
        return Written(path, None, str(error).splitlines()[0])
    put(made, beside(path))
    return Written(path, beside(path))
