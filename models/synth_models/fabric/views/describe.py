"""A schedule in words: what moves, and its transfers by time."""

from __future__ import annotations

from collections import Counter

import numpy as np

from synth.text.quantities import BYTES, SECONDS, count, counted, percent, shown
from synth.text.visible import visible
from synth_models.fabric.check.route_hops import Hops, hops_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.failures import in_words
from synth_models.fabric.problem.ready import moments
from synth_models.fabric.problem.several import WEIGHTED_ENDS, OneCollective, called
from synth_models.fabric.solution import MOST_EXPANDED, Quotient, Schedule, expanded

MAX_LINES = 40
MAX_SIZES = 4
LEGEND = "a transfer reads start–arrival  from -> to (through switches): piece, its size and whose it is"


def describe(instance: FabricInstance, schedule: Schedule | Quotient) -> str:
    """Pieces and their sizes, the busiest links, and the transfers in order of time (``+``: a partial sum that is
    added to what is there)."""
    if isinstance(schedule, Quotient):
        return _quotient(instance, schedule)
    if not schedule.transfers:
        return "nothing has to move"
    hops = hops_of(instance, schedule)
    lines = [
        _pieces(instance, schedule),
        *in_words(instance.failed.model_dump(), [*map(visible, instance.machine.names)]),
    ]
    if hops.wrong_count:  # a schedule that the check refuses
        return "\n".join(lines) + "\nsome routes are none: synth check says which"
    lines += [*_late(instance), *_ends(instance, schedule, hops)]
    lines += _busiest(instance, schedule, hops.ticks[hops.span], int(hops.arrive.max()))
    lines.append(LEGEND + ("; + is added to what is there" if schedule.adds.any() else ""))
    first = np.argsort(schedule.start, kind="stable")[:MAX_LINES]
    end = np.maximum.reduceat(hops.arrive, schedule.route_start[:-1])
    lines += [_transfer(instance, schedule, int(i), int(end[i])) for i in first]
    if schedule.transfers > MAX_LINES:
        lines.append(f"… {count(schedule.transfers - MAX_LINES)} more transfers (--csv prints all)")
    return "\n".join(lines)


def _quotient(instance: FabricInstance, schedule: Quotient) -> str:
    """The group, and all transfers where they can be listed, else those of the first rank's block."""
    members, orders = len(instance.members), schedule.orders.tolist()
    transfers = schedule.transfers_over(members)
    name = _name(instance, instance.members[0])
    how = f"one rank's block ({name}'s) in {count(schedule.part.transfers)} transfers, {count(transfers)} in all"
    group = f"repeated for every rank by a group of {' x '.join(map(str, orders))} symmetries"
    if transfers > MOST_EXPANDED:
        return f"{instance.collective} of {shown(instance.bytes, BYTES)} over {members} ranks: {how}, {group}"
    return f"{how}, {group}\n{describe(instance, expanded(instance, schedule))}"


def _pieces(instance: FabricInstance, schedule: Schedule) -> str:
    sizes = Counter[str]()  # as they are shown: pieces often differ by a byte
    for size, n in Counter(schedule.piece_bytes.tolist()).items():
        sizes[shown(size, BYTES)] += n
    told = ", ".join(f"{count(n)} of {size}" for size, n in sizes.most_common(MAX_SIZES))
    left = len(sizes) - MAX_SIZES
    more = f", … {left} more size{'s' if left > 1 else ''}" if left > 0 else ""
    number = len(instance.all_blocks[0])
    blocks = f"{count(number)} block{'s' if number > 1 else ''}"
    what = instance.collective if instance.collectives is None else f"{len(instance.parts)} collectives"
    return (
        f"{what} of {shown(instance.bytes, BYTES)} over {len(instance.members)} ranks: {blocks} in "
        f"{count(len(schedule.piece_bytes))} pieces ({told}{more}), {count(schedule.transfers)} transfers"
    )


def _ends(instance: FabricInstance, schedule: Schedule, hops: Hops) -> list[str]:
    """What every one of several collectives is and when it ends, and what is minimised."""
    if instance.collectives is None:
        return []
    of, last = instance.all_blocks[1][schedule.piece_block][schedule.piece], np.zeros(len(instance.parts), np.int64)
    np.maximum.at(last, of[hops.owner], hops.arrive)
    lines = [
        f"{visible(called(number, one))}: {part.collective} of {shown(one.bytes, BYTES)} "
        f"over {len(part.members)} ranks, {_behind(one)}"
        f"released at {shown(one.release, SECONDS)}, priority {one.priority}, "
        f"ends at {_time(schedule, int(last[number]))}"
        for number, (one, part) in enumerate(zip(instance.collectives, instance.parts, strict=True))
    ]
    more = [f"… {count(len(lines) - MAX_LINES)} more collectives"] if len(lines) > MAX_LINES else []
    told = "the mean of their ends, weighted by priority" if instance.objective == WEIGHTED_ENDS else "the last end"
    return [*lines[:MAX_LINES], *more, f"minimised: {told}"]


def _behind(one: OneCollective) -> str:
    """What it comes after, and how many of its ranks are late."""
    after = f"after {', '.join(map(str, one.after))}, " if one.after else ""
    return after + (f"{len(one.ready)} ranks ready later, " if one.ready else "")


def _late(instance: FabricInstance) -> list[str]:
    """How many ranks are not ready at once, and when the last is."""
    if instance.scenarios is not None:
        return [f"one plan for {counted(len(instance.scenarios), 'scenario')}, shown with all ranks on time"]
    late = moments(instance.ready)
    if not late:
        return []
    return [f"{counted(len(late), 'rank')} not ready at once, the last at {shown(float(max(late.values())), SECONDS)}"]


def _busiest(instance: FabricInstance, schedule: Schedule, took: np.ndarray, ticks: int) -> list[str]:
    machine = instance.machine
    busy = np.zeros(machine.links, dtype=np.int64)
    np.add.at(busy, schedule.link, took)
    used = busy / ticks
    e = int(busy.argmax())
    ends = f"{_name(instance, int(machine.network.src[e]))} -> {_name(instance, int(machine.network.dst[e]))}"
    idle = int(np.sum(busy == 0))
    rest = f"; {count(idle)} of {count(machine.links)} links carry nothing" if idle else ""
    return [f"busiest link {ends}: {percent(float(used[e]))} of the time; mean {percent(float(used.mean()))}{rest}"]


def _transfer(instance: FabricInstance, schedule: Schedule, i: int, end: int) -> str:
    net, machine = instance.machine.network, instance.machine
    route = schedule.link[schedule.route_start[i] : schedule.route_start[i + 1]].tolist()
    heads = [int(net.dst[e]) for e in route]
    stores = instance.switching.mode == "store_and_forward"
    through = list(dict.fromkeys(v for v in heads if machine.is_switch[v] and not stores))
    to = ", ".join(_name(instance, v) for v in heads if v not in through)
    via = f" (through {', '.join(_name(instance, v) for v in through)})" if through else ""
    p = int(schedule.piece[i])
    whose = _whose(instance, int(schedule.piece_block[p]))
    plus = "+" if schedule.adds[i] else ""
    when = f"{_time(schedule, int(schedule.start[i]))}–{_time(schedule, end)}"
    tails = dict.fromkeys(int(net.src[e]) for e in route)
    sources = [v for v in tails if not machine.is_switch[v]] or list(tails)[:1]
    source = " + ".join(_name(instance, v) for v in sources)
    return f"{when:<20} {source} -> {to}{via}: {plus}{p}, {shown(int(schedule.piece_bytes[p]), BYTES)} {whose}"


def _whose(instance: FabricInstance, block: int) -> str:
    blocks = instance.all_blocks[0]
    ranks = () if blocks.sums[block] else blocks.ranks(int(blocks.origin[block]), ())
    whose = f"of {' or '.join(_name(instance, rank) for rank in ranks)}" if ranks else "a sum"
    if instance.collectives is None:
        return whose
    number = int(instance.all_blocks[1][block])
    return f"{whose}, {_collective(instance.collectives[number].name, number)}"


def _collective(name: str | None, number: int) -> str:
    return visible(name) if name else f"collective {number}"


def _time(schedule: Schedule, tick: int) -> str:
    return shown(tick / schedule.ticks_per_s, SECONDS)


def _name(instance: FabricInstance, node: int) -> str:
    name = visible(instance.machine.names[node])
    return f"{'switch' if instance.machine.is_switch[node] else 'rank'} {node}" if name == str(node) else name
