"""What runs on machines that people have, against what was scheduled: the page ``tuned``.

A row a machine, form, collective and size, made by :mod:`synth.tuning`. Rows lie in ``rows.csv`` beside the page, each
with the state of the code that made it; a second run takes them over, ``--again`` makes those of other states once
more.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

import synth.exchange
import synth.tuning
import synth_models.fabric
from synth.errors import Fault, InputError
from synth.exchange.machines.completion import Supplied, completed
from synth.exchange.machines.file import as_raw
from synth.exchange.machines.formats import read
from synth.instance import Instance
from synth.making import make
from synth.records.optimality import gap
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown, times
from synth.tuning import Question, folder, references, tune
from synth.tuning.search import SLOWEST
from synth_models.fabric.family import FAMILY
from synth_papers.fabric.grid import made

KIB, MIB, GIB = 2**10, 2**20, 2**30
GOALS = {MIB: 1.15, GIB: 1.05}  # time in the form over time as scheduled, at most
FORMS = ("msccl:azure", "mscclpp")
COLLECTIVES = (
    "allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall", "reduce", "gather", "scatter",
)  # fmt: skip
SIZES = (MIB, GIB)
CAPTION = "Every collective in both forms, a row a machine; the dashed line is the goal. 1 is the best schedule's time."
LIMIT_S = 3600.0  # of one collective on one machine in one form: busy machines take long
COLUMNS = (
    "machine", "form", "collective", "bytes", "method", "how", "form_s", "scheduled_s", "scheduled_method",
    "form_over_scheduled", "bound_s", "reference", "reference_s", "limit", "code", "reference_code",
)  # fmt: skip
TOPO = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7
GPU0\t X \tNV2\tNV1\tNV1\tNV2\tSYS\tSYS\tSYS
GPU1\tNV2\t X \tNV1\tNV2\tSYS\tNV1\tSYS\tSYS
GPU2\tNV1\tNV1\t X \tNV2\tSYS\tSYS\tNV2\tSYS
GPU3\tNV1\tNV2\tNV2\t X \tSYS\tSYS\tSYS\tNV1
GPU4\tNV2\tSYS\tSYS\tSYS\t X \tNV2\tNV1\tNV1
GPU5\tSYS\tNV1\tSYS\tSYS\tNV2\t X \tNV1\tNV2
GPU6\tSYS\tSYS\tNV2\tSYS\tNV1\tNV1\t X \tNV2
GPU7\tSYS\tSYS\tSYS\tNV1\tNV1\tNV2\tNV2\t X
"""  # `nvidia-smi topo -m` on 8 V100
KEYS = ("machine", "form", "collective", "bytes")
DECIDE = (synth.tuning, synth.exchange, synth_models.fabric)  # packages whose code and machines decide what a row says


@dataclass(frozen=True)
class Machine:
    """A machine by name, in so many boxes."""

    name: str
    boxes: int = 1

    @property
    def title(self) -> str:
        """As the page says it."""
        return f"{self.name} x{self.boxes}" if self.boxes > 1 else self.name

    def instance(self, collective: str, size: int) -> Instance:
        """What is asked of it."""
        if self.name == "topo.txt":
            return make(FAMILY, {"machine": _from_topo(), "collective": collective, "bytes": str(size)})
        boxes = {"boxes": str(self.boxes)} if self.boxes > 1 else {}
        return made(machine=self.name, **boxes, collective=collective, bytes=str(size))


MACHINES = (
    Machine("dgx-a100"),
    Machine("dgx-h100"),
    Machine("topo.txt"),
    Machine("mi250"),
    Machine("amd16"),
    Machine("dgx-a100", 2),
    Machine("dgx-h100", 2),
    Machine("ndv2"),
    Machine("ndv2", 2),
    Machine("dgx2"),
    Machine("dgx2", 2),
    Machine("dgx1"),
    Machine("dgx1", 2),
    Machine("dgx-b200"),
    Machine("dgx-b200", 2),
    Machine("mi250", 2),
    Machine("amd16", 2),
)


@dataclass(frozen=True)
class Part:
    """Rows that are made at once: a machine's collective, in some forms."""

    machine: Machine
    collective: str
    forms: tuple[str, ...] = FORMS

    def words(self, form: str) -> set[str]:
        """What ``--only`` may say to have the part in a form."""
        both = f"{self.machine.title} {self.collective}"
        names = {self.machine.title, self.collective, both}
        return names | {f"{name} {form}" for name in names} | {form}


def reproduce(page: Reproduction) -> None:
    """Tune what is missing, then the answer, the table of ratios, the rows that miss and every row."""
    file, state = page.folder / "rows.csv", state_of_the_code()
    for part in _chosen(page):
        if page.references:
            part = _beaten(page, part, file, state)
        mine, _ = _apart(_stored(file), part)
        if part.forms and (mine.empty or page.references or (page.again and (mine["code"] != state).any())):
            now = pd.DataFrame(list(_tuned(page, part, state)), columns=list(COLUMNS))
            _, others = _apart(_stored(file), part)  # with what another call has made meanwhile
            rows = in_page_order(pd.concat([others, now], ignore_index=True) if len(others) else now)
            page.table("", rows, file="rows", show=False)  # so that it can be interrupted
    rows = _stored(file)
    page.table("", rows, file="rows", show=False)
    _answer(page, rows)
    page.table("Time in the form over time as scheduled: the most of all collectives", _ratios(rows))
    page.table("What is above 1.05 at 1 GiB or 1.15 at 1 MiB, and the limit that costs it", _missed(rows))
    page.table(
        "By collective: the quickest in the form, and the best reference", _in_words(rows), "in-words", linked=True
    )
    page.figure(_drawn(rows), "ratios", CAPTION)
    absent = _absent(rows)
    if len(absent):
        page.table("Not tuned yet, so that nothing is said of them", absent)
    page.table("Which state of the code made the rows: first digits of a SHA-256 of its files", _states(rows))
    page.note(
        "`synth reproduce tuned --again` makes the rows of other states of the code once more. With `--references` it "
        f"exports their references again, and makes again the rows that these beat. {_exported(rows)}"
    )
    page.note(
        "The limit is found by lowering again, with one limit of the executor lifted after the other: the schedule of "
        "the fewest transfers within the goal. The limit is named whose lifting brings its time within the goal; "
        "several, where none alone does. Where all lifted together do not, the order of thread blocks costs it. "
        "Where schedules have too many moves for that, what refuses them is quoted."
    )
    page.note(
        "`tune` runs every reference too and lowers it the same way. References are left out of plans whose schedule "
        f"takes more than {times(SLOWEST)} the best plan and has too many moves for a loop. The check of the executor "
        "replayed every XML and plan, before it was timed and when it was written."
    )
    page.note(
        f"Methods of ours begin within {LIMIT_S:g} s of a collective and form: the best schedule is the best of those."
    )
    page.note(
        "`topo.txt` is what `nvidia-smi topo -m` prints on 8 V100; 25 GB/s an NVLink and 0.7 us are supplied. "
        "A time in a form is a replay of the exported file, with its thread blocks, channels, steps and loop."
    )


def _stored(file: Path) -> pd.DataFrame:
    """The rows that are there."""
    if not file.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(file, keep_default_na=False, na_values=[""]).reindex(columns=list(COLUMNS))


def _apart(rows: pd.DataFrame, part: Part) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a part, and all others."""
    mine = (rows["machine"] == part.machine.title) & (rows["collective"] == part.collective)
    mine &= rows["form"].isin(part.forms)
    return rows[mine], rows[~mine]


def state_of_the_code(packages: Sequence[ModuleType] = DECIDE) -> str:
    """The state of the code and machines that decide what a row says: twelve hexadecimal digits."""
    digest = hashlib.sha256()
    for package in packages:
        folder = Path(package.__path__[0])
        for path in sorted(one for suffix in ("py", "json") for one in folder.rglob(f"*.{suffix}")):
            digest.update(f"{package.__name__} {path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _chosen(page: Reproduction) -> list[Part]:
    """What to tune: a machine's most wanted collectives first. Raises :class:`InputError` for a part that is neither a
    machine, nor a collective, nor both, nor these in a form."""
    if page.quick:
        return [Part(MACHINES[0], COLLECTIVES[0])]
    parts = [Part(machine, collective) for collective in COLLECTIVES for machine in MACHINES]
    known = {word for part in parts for form in FORMS for word in part.words(form)}
    if faults := [Fault("--only", "is no machine, collective or both of this page", word, True)
                  for word in page.only if word not in known]:  # fmt: skip
        raise InputError(faults)
    wanted = set(page.only)
    chosen = [
        replace(part, forms=tuple(form for form in FORMS if not wanted or wanted & part.words(form))) for part in parts
    ]
    return [part for part in chosen if part.forms]


def in_page_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by machine, collective, form and size, whenever they were made."""
    places: tuple[list[Any], ...] = ([one.title for one in MACHINES], list(COLLECTIVES), list(FORMS), list(SIZES))
    columns = ("machine", "collective", "form", "bytes")
    place = {name: {word: k for k, word in enumerate(words)} for name, words in zip(columns, places, strict=True)}
    return rows.sort_values(list(columns), key=lambda one: one.map(place[str(one.name)]), ignore_index=True)


def _states(rows: pd.DataFrame) -> pd.DataFrame:
    """By which states of the code the rows were made, the one of the most rows first."""
    found = rows.assign(code=rows["code"].fillna("unknown")).groupby(["code", "machine"], sort=False)["collective"]
    made = found.agg(lambda some: ", ".join(dict.fromkeys(some))).reset_index()
    often = rows["code"].fillna("unknown").value_counts()
    place = {code: k for k, code in enumerate(often.index)}
    made = made.sort_values("code", key=lambda column: column.map(place), kind="stable", ignore_index=True)
    return made.rename(columns={"code": "state", "collective": "collectives"})


def _exported(rows: pd.DataFrame) -> str:
    """Of how many rows another state of the code exported the references than made the row."""
    count = int((rows["reference_code"].fillna(rows["code"]).fillna("") != rows["code"].fillna("")).sum())
    return f"Of {count or 'no'} rows another state than their own exported the references."


def _from_topo() -> Any:
    """The machine of :data:`TOPO` with NVLinks alone, as ``synth tune topo.txt --only NV`` reads it."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "topo.txt"
        path.write_text(TOPO)
        return as_raw(completed(read(path), Supplied({"NV": 25e9}, {"": 7e-7}), kinds=["NV"]))


def _tuned(page: Reproduction, part: Part, state: str) -> Iterator[dict[str, Any]]:
    """The rows of a part; all its forms lower the same runs."""
    machine, collective, codes = part.machine, part.collective, {"code": state, "reference_code": state}
    with tempfile.TemporaryDirectory() as scratch:
        for form in part.forms:
            out = Path(scratch) / form.replace(":", "-")
            out.mkdir()
            asked = Question(machine.instance, (collective,), SIZES, form, Path(scratch), LIMIT_S, resume=True)
            named = {"machine": machine.title, "form": form, "collective": collective}
            try:
                table, *_ = folder.write(tune(asked), form, out, machine.title, style=None)
            except InputError as error:
                why = str(error).splitlines()[0]
                page.say(f"{' '.join(named.values())}: {why}")
                yield from (named | codes | {"bytes": size, "limit": why} for size in SIZES)
                continue
            for row in table.to_dict("records"):
                page.say(f"{' '.join(named.values())} {row['bytes']}: {row['form_over_scheduled']:.4g}")
                yield named | codes | {str(key): value for key, value in row.items() if key in COLUMNS}


def _beaten(page: Reproduction, part: Part, file: Path, state: str) -> Part:
    """Export the references of the part's rows again where another state of the code did it; the part in those forms
    that have a row slower than its reference."""
    beaten = []
    for form in part.forms:
        one = replace(part, forms=(form,))
        mine, others = _apart(_stored(file), one)
        if not mine.empty and (mine["reference_code"].fillna(mine["code"]) != state).any():
            mine = _with_references(page, one, mine, state)
            page.table("", in_page_order(pd.concat([others, mine], ignore_index=True)), file="rows", show=False)
        if _slower(mine).any():
            beaten.append(form)
    return replace(part, forms=tuple(beaten))


def _with_references(page: Reproduction, part: Part, mine: pd.DataFrame, state: str) -> pd.DataFrame:
    """The rows of a part in one form with the quickest of what references are exported as by this code."""
    with tempfile.TemporaryDirectory() as scratch:
        asked = Question(part.machine.instance, (part.collective,), SIZES, part.forms[0], Path(scratch), resume=True)
        found = {row.instance_bytes: row.references for row in references(asked)}
    quickest = [min(found[size], key=lambda name: found[size][name]) for size in mine["bytes"]]
    seconds = [found[size][name] for size, name in zip(mine["bytes"], quickest, strict=True)]
    mine = mine.assign(reference=quickest, reference_s=seconds, reference_code=state)
    words = " ".join([part.machine.title, part.collective, part.forms[0]])
    page.say(f"{words}: references {', '.join(quickest)}{'; quicker than a row' if _slower(mine).any() else ''}")
    return mine


def _slower(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether each row is slower than its reference."""
    return (rows["form_s"] > rows["reference_s"] * (1 + 1e-9)).astype(bool)


def _answer(page: Reproduction, rows: pd.DataFrame) -> None:
    """What the page begins with."""
    ran = rows.dropna(subset=["form_s"])
    parts = ["What `synth tune` exports stands beside the best schedule: the ratio is its time over that one's."]
    for size, goal in sorted(GOALS.items(), reverse=True):
        some = ran[ran["bytes"] == size]["form_over_scheduled"].astype(float)
        held = int((some <= goal).sum())
        parts.append(
            f"At {shown(float(size), 'bytes')} it is in {held} of {len(some)} rows at most {times(goal)}; "
            f"the median is {times(float(some.median()))}, the largest {times(float(some.max()))}."
        )
    done, asked = len(rows[["machine", "collective"]].drop_duplicates()), len(MACHINES) * len(COLLECTIVES)
    behind = ran[ran["reference_s"].notna()]
    slower = int(_slower(behind).sum())
    when = "as the row's code or later code exports it"
    parts.append(f"{slower or 'No'} row of {len(behind)} is slower than the best reference, {when}.")
    if done < asked:
        parts.append(f"{done} of {asked} pairs of machine and collective are tuned; a table below names the others.")
    page.opens(" ".join(parts))


def _drawn(rows: pd.DataFrame) -> Any:
    """A panel a size, a row a machine, a mark a collective and form: its ratio, and the goal as a line."""
    from matplotlib.figure import Figure

    ran = rows.dropna(subset=["form_s"])
    names = [one.title for one in MACHINES if one.title in set(ran["machine"])]
    figure = Figure(figsize=(9, 1.2 + 0.32 * len(names)), layout="constrained")
    for axes, (size, goal) in zip(figure.subplots(1, len(GOALS), sharey=True), GOALS.items(), strict=True):
        for k, form in enumerate(FORMS):
            some = ran[(ran["bytes"] == size) & (ran["form"] == form)]
            heights = [names.index(name) + 0.3 * (k - 0.5) for name in some["machine"]]
            axes.plot(some["form_over_scheduled"].astype(float), heights, "os"[k], alpha=0.6, label=form)
        axes.axvline(goal, color="0.3", linestyle="--", linewidth=1)
        axes.set(title=shown(float(size), "bytes"), xlabel="time as exported over time as scheduled")
        axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=len(FORMS))
    return figure


def _absent(rows: pd.DataFrame) -> pd.DataFrame:
    """Machines with collectives that have no rows, in words."""
    there = set(zip(rows["machine"], rows["collective"], strict=True))
    missing = {one.title: [name for name in COLLECTIVES if (one.title, name) not in there] for one in MACHINES}
    words = {title: "all" if len(names) == len(COLLECTIVES) else ", ".join(names) for title, names in missing.items()}
    return pd.DataFrame([pair for pair in words.items() if pair[1]], columns=["machine", "collectives"])


def _ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a machine, a column a form and size."""
    ran = rows.dropna(subset=["form_s"])
    heads = [f"{form}, {shown(float(size), 'bytes')}" for form, size in zip(ran["form"], ran["bytes"], strict=True)]
    shape = ran.assign(head=heads).pivot_table(
        index="machine", columns="head", values="form_over_scheduled", aggfunc="max", sort=False
    )
    return shape.map(lambda value: "–" if pd.isna(value) else times(value)).reset_index()


def _missed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows above the goal of their size, the worst first, and those that no program of the form answers."""
    over = rows["form_over_scheduled"].astype(float)
    found = rows[(over > rows["bytes"].map(GOALS)) | rows["form_s"].isna()].sort_values(
        "form_over_scheduled", ascending=False
    )
    return pd.DataFrame(
        {
            **{key: found[key] for key in KEYS[:3]},
            "size": [shown(float(size), "bytes") for size in found["bytes"]],
            "ratio": ["–" if pd.isna(value) else times(value) for value in found["form_over_scheduled"]],
            "limit": found["limit"].fillna(""),
        }
    )


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    ran = rows.dropna(subset=["form_s"])
    return pd.DataFrame(
        {
            **{key: ran[key] for key in KEYS[:3]},
            "size": [shown(float(size), "bytes") for size in ran["bytes"]],
            "by": ran["method"],
            "time": [shown(value, "s") for value in ran["form_s"]],
            "as scheduled": [shown(value, "s") for value in ran["scheduled_s"]],
            "by whom": ran["scheduled_method"],
            "gap": [percent(gap(one, bound)) for one, bound in zip(ran["form_s"], ran["bound_s"], strict=True)],
            "best reference": [
                "–" if pd.isna(value) else f"{name} {shown(value, 's')}"
                for name, value in zip(ran["reference"], ran["reference_s"], strict=True)
            ],
        }
    )
