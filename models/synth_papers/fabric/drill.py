"""Every single failure of two machines: what it costs, and the schedules to have ready. The page ``drill``.

Cases whose published records are within the gap are taken as they are; everything else is run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pandas as pd

from synth.drill import cover as covers
from synth.drill import page as tables
from synth.drill.cover import WITHIN, Cover
from synth.drill.search import Case, Drill, Question, borrow, prepared, solve
from synth.family import get_family
from synth.making import make
from synth.options import RunOptions
from synth.records.folder import read_all
from synth.records.packed import NAME
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, times

COLLECTIVE = "allreduce"
MACHINES = {"dgx-h100": 4, "dgx-a100": 2}
SIZES = ("64MiB", "1GiB")
ALONE = ("dgx-h100", 1, "64MiB")  # one box, whose GPUs have one way to each other
HALF, SLOWED = "1/2", tuple(MACHINES)  # what is left of a link's rate where it only gets slower, and on which machines
SLOW_METHODS = ("hierarchical", "forest")  # all others that suit take minutes more
LIMIT, SLOW_LIMIT = "1m", "5m"
TRIED = "tried"  # all runs, not kept in git
KEPT = ""
COVER_S = 60.0


@dataclass(frozen=True)
class Drilled:
    """A drill of ``boxes`` boxes of a ``machine`` at one ``size``, and its smallest cover. Links fail, or keep a
    ``share`` of their rate."""

    machine: str
    boxes: int
    size: str
    drill: Drill
    cover: Cover

    @property
    def title(self) -> str:
        """For a heading."""
        slow = "" if self.share is None else ", a link at half its rate"
        return f"{self.machine} ×{self.boxes}, {COLLECTIVE} of {self.size}{slow}"

    @property
    def share(self) -> str | None:
        """What is left of a link's rate; None: nothing."""
        return self.drill.question.share

    @property
    def cases(self) -> list[Case]:
        """The worst first."""
        return self.drill.ordered()

    def gap(self, case: Case) -> float | None:
        """Of a case's least time to its bound."""
        return None if case.seconds is None or case.bound is None else 1 - case.bound / case.seconds


def reproduce(page: Reproduction) -> None:
    """Drill both machines at both sizes, and again with links at half their rate; the answer, the picture, a table a
    drill, and what covers all failures."""
    wanted = [(machine, boxes, size) for machine, boxes in MACHINES.items() for size in SIZES]
    if page.quick:
        page.skip("one drill of two boxes of two GPUs only (--quick)")
        wanted = wanted[:1]
    drilled = [_drilled(page, *one) for one in wanted]
    slowed = [_drilled(page, *one, HALF) for one in wanted if one[0] in SLOWED and not page.quick]
    of_slow = [_answer_of_slow([one for one in slowed if one.machine == machine]) for machine in MACHINES]
    page.opens(_answer(drilled) + "".join(of_slow))
    shown = min(drilled, key=lambda one: one.drill.question.whole.name)
    page.figure(tables.figure(shown.drill, shown.title), "losses", f"What each failure costs: {shown.title}.")
    for one in drilled:
        page.table(one.title, _rows(one))
    if not page.quick:
        alone = _drilled(page, *ALONE)
        page.table(f"{alone.title}: no alternatives", _rows(alone))
        for words in tables.parted(tables.frame(alone.drill)):
            page.note(f"{alone.title}: `{words}`.")
    for one in slowed:
        page.table(one.title, _rows(one))
    page.table("Schedules that cover all single failures", pd.DataFrame(map(_covered, drilled)))
    if slowed:
        machines = " and ".join(f"{machine} ×{MACHINES[machine]}" for machine in SLOWED)
        page.table(f"Schedules that cover every link at half its rate, {machines}", pd.DataFrame(map(_covered, slowed)))
    page.note(
        "A row is an orbit: failures that a symmetry of the machine maps onto each other, of which one was solved. An "
        "NIC and its two cables leave the same links between ranks, and share a schedule."
    )
    page.note(
        "Loss: time over that of the best schedule of the whole machine, less one. Every schedule was replayed, and "
        "every bound is certified. Seconds are those of the runs whose records are kept, added up, on a machine that "
        "other work shared. They leave out runs that gave nothing better, so a whole drill takes longer."
    )


@cache
def _published(folder: Path) -> tuple[Record, ...]:
    """The published records, as they were when the page began."""
    found = read_all([folder / NAME]) if (folder / NAME).is_file() else ()
    return tuple(record for record in found if isinstance(record, Record))


def _take_published(page: Reproduction, drill: Drill) -> set[Path]:
    """Put published records into the cases of a drill; their addresses."""
    known: dict[str, list[Record]] = {}
    for record in () if page.quick else _published(page.folder):
        known.setdefault(str(record["instance_sha256"]), []).append(record)
    for case in (drill.whole, *drill.cases):
        if case.instance is not None:
            case.records = list(known.get(case.instance.sha256, ()))
    return {record.path for records in known.values() for record in records if record.path is not None}


def _drilled(page: Reproduction, machine: str, boxes: int, size: str, share: str | None = None) -> Drilled:
    """All runs of one drill; what the page quotes is kept."""
    parameters = {"machine": machine, "boxes": str(boxes), "collective": COLLECTIVE, "bytes": size}
    if page.quick:
        parameters |= {"machine": "dgx-a100", "boxes": "2", "gpus": "2"}
    name = f"{parameters['machine']}-x{parameters['boxes']}"
    folder = page.folder / TRIED / f"{name}-{size}{'' if share is None else '-slow'}"
    page.parts.add(TRIED)
    whole = make(get_family("fabric"), parameters)
    asked = Question(whole, folder, limit=LIMIT)
    if share is not None:
        asked = replace(asked, share=share, methods=SLOW_METHODS, limit=SLOW_LIMIT)
    drill = prepared(asked)
    before = _take_published(page, drill)
    borrow(drill)
    solve(drill, page.jobs, resume=True)
    for case in (drill.whole, *drill.cases):
        for record in case.records:
            if record is case.best or (record.bound is not None and record.bound == case.bound):
                assert record.path is not None
                if record.path not in before:
                    page.publish(record, KEPT)
                if record.stated_bound is not None:
                    page.proofs[record.path] = record.proof
    page.say(f"drill {name} {size}")
    found = covers.cover(drill, RunOptions(COVER_S, solver="highs"))
    return Drilled(parameters["machine"], int(parameters["boxes"]), size, drill, found)


def _answer(drilled: list[Drilled]) -> str:
    """Three sentences."""
    known = [(one, case, one.drill.loss(case)) for one in drilled for case in one.cases]
    losses = [(loss, one, case) for one, case, loss in known if loss is not None and case.cut is None]
    gaps = [gap for one, case, _ in known if (gap := one.gap(case)) is not None]
    loss, dearest, worst = max(losses, key=lambda row: row[0])
    nics = [loss for loss, one, case in losses if "nic" in case.name]
    count = {f"{one.machine} ×{one.boxes}": len(one.cover.singles) for one in drilled}
    machines = ", ".join(f"{total} of {machine}" for machine, total in count.items())
    files = [_files(one) for one in drilled]
    few = str(min(files)) if len(set(files)) == 1 else f"{min(files)} to {max(files)}"
    return (
        f"For every single failure of a link, NIC or switch ({machines}) there is a schedule within "
        f"{percent(max(gaps))} of a certified bound. The dearest is `{worst.name}` ({dearest.title}), which takes "
        f"{times(1 + loss)} as long as the whole machine; an NIC costs {percent(min(nics))} to {percent(max(nics))}. "
        f"{few} schedules a machine and size, their ranks renumbered, cover all failures within {WITHIN:.0%} of the "
        f"best known."
    )


def _answer_of_slow(slowed: list[Drilled]) -> str:
    """What a slower link costs, in two sentences; nothing where that was not asked."""
    known = [(one, case, one.drill.loss(case), one.gap(case)) for one in slowed for case in one.cases]
    ports = [(loss, gap) for _, case, loss, gap in known if "nvswitch" in case.name and None not in (loss, gap)]
    cables = [(loss, gap) for _, case, loss, gap in known if "nvswitch" not in case.name and None not in (loss, gap)]
    if not ports or not cables:
        return ""
    loss, gap = (percent(max(numbers)) for numbers in zip(*cables, strict=True))
    port_loss, port_gap = (percent(max(numbers)) for numbers in zip(*ports, strict=True))
    machine = f"{slowed[0].machine} ×{slowed[0].boxes}"
    return (
        f" On {machine} with a cable of an NIC at half its rate the loss is at most {loss}, and gaps at most {gap}. "
        f"With a GPU's port to its NVSwitch at half its rate it is at most {port_loss}; gaps there reach {port_gap}."
    )


def _rows(one: Drilled) -> pd.DataFrame:
    """A drill's table for a person, the worst failure first."""
    return pd.DataFrame(tables.cells(tables.frame(one.drill)), columns=list(tables.HEAD))


def _files(one: Drilled) -> int:
    """Schedules that the cover renumbers."""
    return len({id(candidate.case) for candidate in one.cover.chosen})


def _covered(one: Drilled) -> dict[str, object]:
    """What covers all failures of a drill, and what it took to find."""
    records = [record for case in (one.drill.whole, *one.drill.cases) for record in case.records]
    return {
        "machine": f"{one.machine} ×{one.boxes}",
        "size": one.size,
        "failures": len(one.cover.singles),
        "kinds": len(one.drill.cases),
        "covered": sum(by is not None for by in one.cover.by),
        "schedules": _files(one),
        "renumbered": len(one.cover.chosen),
        "proven least": "yes" if one.cover.proven else "no",
        "records": len(records),
        "seconds of these": round(sum(sum(record["seconds"].values()) for record in records)),
    }
