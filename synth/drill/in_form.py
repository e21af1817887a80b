"""A drill's schedules as an executor runs them: which is the quickest in a form, and the runs that are tried for it.

Of schedules of about one time the form decides: one of few transfers fits the executor as it is, and its loop repeats
it, where one of many has to be rounded to larger chunks. So every method also makes schedules of fewer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from synth.errors import InputError
from synth.exchange.block_costs import CostModel
from synth.exchange.forms import LOOPED, Lowered, Program, in_seconds, most_moves, refusal
from synth.exchange.record_export import transfers_of
from synth.exchange.transfers import Transfers
from synth.instance import Instance
from synth.method import Method
from synth.records.record import Record
from synth.tuning.costs import costing, tolerated
from synth.tuning.explained import COSTLY, EXPLAIN_S, MOST_EXPLAINED, dearest
from synth.tuning.search import (
    FEW,
    FEW_A_RANK,
    HOPELESS,
    INNER,
    PLANNED_A_RANK,
    TRANSFERS_A_RANK,
    VARIANTS,
)

CHUNKS = "chunks"


class Exported(NamedTuple):
    """A schedule in a form: its ``seconds`` there, the ``program`` that takes them, and its ``record``."""

    seconds: float
    program: Program
    record: Record


def variants(form: str, method: Method, ranks: int, costs: CostModel | None = None) -> list[Mapping[str, str]]:
    """The parameters with which a method runs for a form, as texts, the most promising first: for XML as many transfers
    as its executor takes, the method as it is, chunks, fewer transfers; for a plan, whose loop cuts what moves as fine
    as one likes, few chunks, few transfers, the method as it is, more. Where steps cost something (``costs``), few
    transfers are tried beside the method as it is, and few planned with what is left of links within boxes."""
    known = {parameter.name for parameter in method.parameters}
    chunked = [{CHUNKS: str(one[CHUNKS])} for one in VARIANTS.get(method.name, ()) if one and CHUNKS in known]
    large = PLANNED_A_RANK[::-1] if form == "mscclpp" else TRANSFERS_A_RANK
    each = large if costs is None else FEW_A_RANK
    first, *others = [{FEW: str(count * ranks)} for count in each if FEW in known] or [{}]
    if costs is not None and costs.inner_percent < 100 and first and INNER in known:
        others.insert(0, {**first, INNER: str(costs.inner_percent)})
    if form == "mscclpp":
        return [*chunked, *([first] if first else []), {}, *others]
    return [*([first] if first else []), {}, *chunked[::-1], *others]


def is_hopeless(seconds: float | None, best: float | None) -> bool:
    """Whether a schedule of so many seconds cannot win: a program may beat its own schedule, but not by much."""
    return seconds is None or (best is not None and seconds > best * HOPELESS)


def exported(record: Record, form: str, best: float | None = None, costs: CostModel | None = None) -> Exported | None:
    """The quickest program of a record's schedule under the form's ``costs``, on its own machine; None where none fits
    the executor, or where none can be as quick as ``best`` seconds."""
    count, instance = transfers_in(record), record.find_instance()
    ranks = len(getattr(instance, "members", ()))
    slow = is_hopeless(record.value, best) and count > LOOPED * ranks
    if slow or count > most_moves(form, ranks):
        return None
    with suppress(InputError):  # cannot be lowered
        return lowered(transfers_of(record), form, instance, record, best, costs=costs)
    return None


def lowered(
    moves: Transfers, form: str, instance: Instance, record: Record, best: float | None = None,
    spreads: Sequence[int] | None = None, costs: CostModel | None = None,
) -> Exported | None:  # fmt: skip
    """The quickest program of moves on an instance, of these ``spreads`` (None: of all); None where none fits. Raises
    :class:`InputError` where the moves are not for it."""
    most = math.inf if best is None else best * HOPELESS

    def worth(rounded: Transfers) -> bool:
        with suppress(InputError):  # no bytes are left of some
            return in_seconds(instance, lambda _: rounded) <= most
        return True

    found: Exported | None = None
    tried = Lowered(moves, form, worth=worth, costs=costs, instance=instance)
    for program in tried.programs(spreads):
        seconds = tried.seconds(program, instance)
        if found is None or seconds < found.seconds:
            found = Exported(seconds, program, record)
    return found


def limit(
    records: Sequence[Record], form: str, seconds: float, size: int, costs: CostModel | None = None,
    quickest: Exported | None = None,
) -> str:  # fmt: skip
    """The limit of the executor that costs a program of so many seconds more than is tolerated at ``size`` bytes, in
    words; empty where none does. Of all schedules that are quick enough the one of the fewest transfers says it.
    Where thread blocks, steps and launches cost something (``costs``) it is that, of the ``quickest`` by kind."""
    held = [(transfers_in(one), one.value, one) for one in records if one.value is not None and one.ok]
    most = min((value for _, value, _ in held), default=math.inf) * tolerated(size)
    near = [(count, one) for count, value, one in held if value <= most]
    if seconds <= most or not near:
        return ""
    if costs is not None:
        return COSTLY if quickest is None else dearest(quickest.program, quickest.record.find_instance())
    count, one = min(near, key=lambda row: row[0])
    if count > MOST_EXPLAINED:
        return f"{one.whose}: {refusal(form, count, len(getattr(one.find_instance(), 'members', ())))}"
    end = time.process_time() + EXPLAIN_S  # however busy the machine is
    words = costing(transfers_of(one), form, one.find_instance(), most, lambda: time.process_time() < end)
    return f"{one.whose}: {words}" if words else ""


def transfers_in(record: Record) -> int:
    """The number of a schedule's transfers, as the check counts them; 0 where it does not."""
    return int((record["verified"]["facts"] or {}).get("transfers") or 0)
