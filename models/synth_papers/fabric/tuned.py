"""What ``synth tune`` writes for boxes that people have, under the cost model of the executor: the page ``tuned``.

A row a machine, collective and size, made by :mod:`synth.tuning`, beside the best of the algorithms in use under the
same model, what NCCL expects of itself by its own model, and the bound. Rows lie in ``rows.csv`` beside the page, each
with the state of the code that made it; a second run takes them over, ``--again`` makes those of other states once
more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from synth.errors import Fault, InputError
from synth.exchange.block_costs import costs_for
from synth.exchange.executors import EXECUTORS
from synth.exchange.file_check import MULTIPROCESSORS
from synth.exchange.forms import executor_of
from synth.reproduction.collect import Reproduction
from synth.text.quantities import shown, times
from synth.tuning.search import QUICKEST, SLOWEST
from synth_papers.fabric import measured_busbw, tuned_rows
from synth_papers.fabric.grid import made
from synth_papers.fabric.tuned_rows import (
    COLLECTIVES,
    COLUMNS,
    FORM,
    GIB,
    IN_SWITCHES,
    KEYS,
    LIMIT_S,
    MACHINES,
    METHODS,
    MIB,
    PARTS,
    SIZES,
    Machine,
    Part,
)

SHOWN = (MIB, 64 * MIB, GIB)
MEASURED = ("source", "machine", "method", "bytes", "measured", "predicted", "code")
SAME, AHEAD = 1e-9, 0.99
ADDING = tuple(machine.title for machine in MACHINES if machine.collectives == IN_SWITCHES)
CAPTION = "Time in the form over the bound: what thread blocks, steps and the launch cost."


def reproduce(page: Reproduction) -> None:
    """Tune what is missing, then the answer, the tables and every row."""
    file, state = page.folder / "rows.csv", tuned_rows.state_of_the_code()
    for part in _chosen(page):
        mine, _ = _apart(_stored(file), part)
        if mine.empty or (page.again and (mine["code"] != state).any()):
            now = pd.DataFrame(list(tuned_rows.tuned(page, part, state)), columns=list(COLUMNS))
            _, others = _apart(_stored(file), part)  # with what another call has made meanwhile
            rows = in_page_order(pd.concat([others, now], ignore_index=True) if len(others) else now)
            page.table("", rows, file="rows", show=False)  # so that it can be interrupted
    rows = _stored(file)
    page.table("", rows, file="rows", show=False)
    _tables(page, rows)
    if not page.quick:
        page.table("The model beside what nccl-tests printed on these machines", _beside_logs(_measured(page, state)))
    _notes(page)


def _tables(page: Reproduction, rows: pd.DataFrame) -> None:
    """The answer, the figure and all tables."""
    _answer(page, rows)
    page.table("Time in the form over the bound: the median of the collectives, and the most", _over_bound(rows))
    page.table("Time in the form over the best in use: the least of the sizes", _over_use(rows))
    page.table("Where NCCL's own is quicker than a file, so that none is written", _left(rows))
    page.table("Most thread blocks and channels of a GPU, and steps of a thread block", _sizes(rows))
    page.table("What the executor's run costs (bytes/s, seconds, shares of the links' rates)", _costs())
    page.table("Every row", _in_words(rows), "in-words", linked=True)
    page.figure(_drawn(rows), "over-bound", CAPTION)
    absent = _absent(rows)
    if len(absent):
        page.table("Not tuned yet, so that nothing is said of them", absent)
    page.table(
        "Which state of the code made the rows (of a SHA-256 of its files), and what of ours it tried", _states(rows)
    )


def _costs() -> pd.DataFrame:
    """What the executor's run costs on the machines."""
    found = []
    for name in dict.fromkeys(machine.name for machine in MACHINES):
        model = costs_for(made(machine=name, collective="allreduce", bytes=str(MIB)), FORM)
        assert model is not None
        for protocol in model.protocols:
            one = model.of(protocol)
            rate, *seconds = (shown(one.block, "bytes/s"), *(shown(each, "s") for each in (one.step, one.net_step)))
            shares = [f"{each:.3g}" for each in (one.link, one.net)]
            found.append([name, model.gpu, protocol, rate, *seconds, shown(one.launch, "s"), *shares])
    heads = ("machine", "GPU", "protocol", "thread block", "step", "between boxes", "launch", "of a box", "of a NIC")
    return pd.DataFrame(found, columns=list(heads))


def _notes(page: Reproduction) -> None:
    """How the rows were made."""
    page.note(
        "In use are what libraries run: NCCL's rings, double trees, PAT, NVLS and CollNet's exchanges, direct sends, "
        "and MPI's and RCCL's. NVLS and CollNet exchange by ranks here, for XML knows no sums of switches. All are "
        "lowered as ours are, with the rings, copies, channels and protocols that help, and timed by the same replay."
    )
    page.note(
        f"They are lowered at four of the sizes. At a size between two of these the {QUICKEST} quickest of each are "
        "lowered again, and the programs of the others timed there. Left out are schedules of many moves that take "
        f"over {times(SLOWEST)} the best file."
    )
    page.note(
        "NCCL's own is what its cost model (tuning.cc) expects of its quickest algorithm and protocol, NVLS and "
        "NVLSTree among them where switches add. A row is left to NCCL where that is less than a file would take."
    )
    limits = ", ".join(f"{seconds:g} s on {boxes}" for boxes, seconds in LIMIT_S.items())
    page.note(
        f"Of ours {', '.join(METHODS)} run at four sizes, after all that is in use. A collective has at most {limits} "
        "boxes for them, by the clock. The two processors had much else to do. `synth reproduce tuned --again` makes "
        "the rows of other states of the code once more."
    )
    page.note(
        "Every XML passed the check of the executor; its thread blocks, channels and steps are counted in the file by "
        "another parser. `python -m synth_papers.fabric.measured_busbw` prints the model beside public logs of "
        "nccl-tests on more machines."
    )


def _stored(file: Path) -> pd.DataFrame:
    """The rows that are there."""
    if not file.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(file, keep_default_na=False, na_values=[""]).reindex(columns=list(COLUMNS))


def _apart(rows: pd.DataFrame, part: Part) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a part, and all others."""
    mine = (rows["machine"] == part.machine.title) & (rows["collective"] == part.collective)
    return rows[mine], rows[~mine]


def _chosen(page: Reproduction) -> list[Part]:
    """What to tune. Raises :class:`InputError` for a part that is neither a machine, nor a collective, nor both."""
    if page.quick:
        return [PARTS[0]]
    known = {word for part in PARTS for word in part.words}
    if faults := [Fault("--only", "is no machine, collective or both of this page", word, True)
                  for word in page.only if word not in known]:  # fmt: skip
        raise InputError(faults)
    wanted = set(page.only)
    return [part for part in PARTS if not wanted or wanted & part.words]


def in_page_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by machine, collective and size, whenever they were made."""
    places: tuple[list[Any], ...] = ([one.title for one in MACHINES], list(COLLECTIVES), list(SIZES))
    place = {name: {word: k for k, word in enumerate(words)} for name, words in zip(KEYS, places, strict=True)}
    return rows.sort_values(list(KEYS), key=lambda one: one.map(place[str(one.name)]), ignore_index=True)


def _states(rows: pd.DataFrame) -> pd.DataFrame:
    """By which states of the code the rows were made, the one of the most rows first."""
    found = rows.fillna({"ours": "none"}).groupby(["code", "ours", "machine"], sort=False)["collective"]
    each = found.agg(lambda some: ", ".join(dict.fromkeys(some))).reset_index()
    place = {code: k for k, code in enumerate(rows["code"].value_counts().index)}
    each = each.sort_values("code", key=lambda column: column.map(place), kind="stable", ignore_index=True)
    return each.rename(columns={"code": "state", "collective": "collectives"})


def left(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether the machine's switches add, and NCCL's own is quicker than a file would be, so that none is written."""
    return rows["machine"].isin(ADDING) & expected(rows)


def expected(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether NCCL's own model expects less than the file's time."""
    return rows["nccl_s"].astype(float) < rows["form_s"]


def _answer(page: Reproduction, rows: pd.DataFrame) -> None:
    """What the page begins with."""
    files = rows[~left(rows)]
    ratio = files["form_s"] / files["reference_s"]
    slower, ahead = int((ratio > 1 + SAME).sum()), int((ratio <= AHEAD).sum())
    by = f". That is {100 * (float(ratio.max()) - 1):.2f} %, as it serves more sizes" if slower else ""
    parts = [
        f"Under the cost model of the executor {slower or 'none'} of the {len(files)} files that `synth tune` writes "
        f"is slower than the best of the algorithms in use under the same model{by}. {ahead} are quicker by "
        f"{100 * (1 - AHEAD):.0f} % or more, at "
        f"most {times(float(1 / ratio.min()))}."
    ]
    count = len(rows) - len(files)
    parts.append(f"{count or 'No'} row{'s' if count != 1 else ''} of {len(rows)} {'are' if count != 1 else 'is'} left "
                 "to NCCL, whose own is quicker there.")  # fmt: skip
    doubted = int(expected(files).sum())
    parts.append(f"NCCL's own cost model expects less than the file's time in {doubted or 'none'} of the others.")
    for size in SHOWN:
        some = _bounded(rows[rows["bytes"] == size])
        parts.append(f"At {shown(float(size), 'bytes')} the median time is {times(float(some.median()))} the bound.")
    if len(_absent(rows)):
        done = len(rows[["machine", "collective"]].drop_duplicates())
        parts.append(f"{done} of {len(PARTS)} pairs of machine and collective are tuned; a table below names the rest.")
    page.opens(" ".join(parts))


def _bounded(rows: pd.DataFrame) -> pd.Series[float]:
    """Times in the form over the bounds, where these are known."""
    return (rows["form_s"] / rows["bound_s"].astype(float)).dropna()


def _by_machine(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of every machine that has some, in the page's order."""
    for machine in MACHINES:
        some = rows[rows["machine"] == machine.title]
        if len(some):
            yield machine.title, some


def _over_bound(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a machine, a column a size that is shown: the median of the collectives, and the most."""
    found = []
    for title, some in _by_machine(rows):
        cells = {"machine": title}
        for size in SHOWN:
            ratios = _bounded(some[some["bytes"] == size])
            words = f"{times(float(ratios.median()))}, {times(float(ratios.max()))}" if len(ratios) else "–"
            cells[shown(float(size), "bytes")] = words
        found.append(cells)
    return pd.DataFrame(found)


def _over_use(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a machine and collective: the least and the most of time over the best in use, and where and by whom the
    least is."""
    files = rows[~left(rows)]
    found = []
    for title, some in _by_machine(files.assign(ratio=files["form_s"] / files["reference_s"])):
        for collective in dict.fromkeys(some["collective"]):
            mine = some[some["collective"] == collective]
            least = mine.loc[mine["ratio"].idxmin()]
            tied = least["ratio"] > AHEAD
            by = "" if tied else f"{least['method']}, {shown(float(least['bytes']), 'bytes')}, {least['reference']}"
            ends = [f"{mine['ratio'].min():.3f}", f"{mine['ratio'].max():.3f}"]
            found.append([title, collective, len(mine), *ends, by])
    return pd.DataFrame(found, columns=["machine", "collective", "files", "least", "most", "least: by, at, beside"])


def _left(rows: pd.DataFrame) -> pd.DataFrame:
    """What is left to NCCL."""
    some = rows[left(rows)]
    return pd.DataFrame(
        {
            "machine": some["machine"],
            "collective": some["collective"],
            "size": [shown(float(size), "bytes") for size in some["bytes"]],
            "NCCL's own": some["nccl"],
            "takes": [shown(float(one), "s") for one in some["nccl_s"]],
            "a file would take": [shown(float(one), "s") for one in some["form_s"]],
        }
    )


def _sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a machine: the most of what an executor limits."""
    limits = executor_limits()
    found = [[title, *(int(some[name].max()) for name in limits)] for title, some in _by_machine(rows)]
    found.append(["limit of the executor", *limits.values()])
    return pd.DataFrame(found, columns=["machine", *limits])


def executor_limits() -> dict[str, int]:
    """What the executor takes of thread blocks and channels of a GPU and of steps of a thread block."""
    one = EXECUTORS[executor_of(FORM)]
    return {"blocks": MULTIPROCESSORS, "channels": int(one.channels or 0), "steps": int(one.steps or 0)}


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """Every row for a person."""
    time, bound, how = rows["form_s"], rows["bound_s"].astype(float), rows["how"].fillna("")
    return pd.DataFrame(
        {
            **{key: rows[key] for key in KEYS[:2]},
            "size": _words(rows["bytes"], "bytes"),
            "by": (rows["method"] + " (" + how + ")").str.replace(" ()", "", regex=False),
            "time": _words(time, "s"),
            "best in use": rows["reference"] + " " + _words(rows["reference_s"], "s"),
            "ratio": (time / rows["reference_s"]).map("{:.3f}".format),
            "NCCL expects": (rows["nccl"].fillna("") + " " + _words(rows["nccl_s"], "s")).str.strip(),
            "file": left(rows).map({True: "no", False: "yes"}),
            "bound": _words(bound, "s"),
            "over bound": (time / bound).map(times, na_action="ignore").fillna("–"),
            **{name: rows[name] for name in executor_limits()},
        }
    )


def _words(values: pd.Series[Any], unit: str) -> pd.Series[str]:
    """Numbers with units, a dash where there is none."""
    return values.astype(float).map(lambda one: "–" if pd.isna(one) else shown(one, unit))


def _drawn(rows: pd.DataFrame) -> Any:
    """A panel a collective, a line a machine without sums in its switches: time in the form over the bound by size."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from synth.views.figure_style import looks, size_axis

    figure = Figure(figsize=(12, 6), layout="constrained")
    titles = [machine.title for machine in MACHINES if machine.collectives == COLLECTIVES]
    styles = looks(titles)
    for axes, collective in zip(figure.subplots(2, 4, sharey=True, sharex=True).ravel(), COLLECTIVES, strict=True):
        for title, some in _by_machine(rows[rows["collective"] == collective]):
            if title in styles:
                axes.plot(some["bytes"], some["form_s"] / some["bound_s"].astype(float), **styles[title])
        size_axis(axes, list(SIZES), 4)
        axes.set(yscale="log", title=collective, xlabel="size", ylabel="time over the bound")
        axes.label_outer()
    drawn = [title for title in titles if (rows["machine"] == title).any()]
    handles = [Line2D([], [], label=title, **styles[title]) for title in drawn]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _absent(rows: pd.DataFrame) -> pd.DataFrame:
    """Machines with collectives that have no rows, in words."""
    there = set(zip(rows["machine"], rows["collective"], strict=True))
    missing = {one.title: [name for name in one.collectives if (one.title, name) not in there] for one in MACHINES}
    number = {one.title: len(one.collectives) for one in MACHINES}
    words = {title: "all" if len(names) == number[title] else ", ".join(names) for title, names in missing.items()}
    return pd.DataFrame([pair for pair in words.items() if pair[1]], columns=["machine", "collectives"])


def _measured(page: Reproduction, state: str) -> pd.DataFrame:
    """What the model says of public logs on machines of the page, taken over where it is there."""
    file = page.folder / "measured.csv"
    if file.is_file() and not (page.again and (pd.read_csv(file)["code"] != state).any()):
        return pd.read_csv(file)
    names = {(machine.name, str(machine.boxes)) for machine in MACHINES}
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for log in measured_busbw.logs():
            machine = {"boxes": "1", **log["machine"]}
            if len(machine) == 2 and (machine["machine"], machine["boxes"]) in names:
                title = Machine(machine["machine"], int(machine["boxes"])).title
                said = measured_busbw.predicted(log, Path(scratch))
                found.append([log["source"], title, log["method"], log["bytes"], log["busbw"], said, state])
                page.say(f"{log['source']}: {said / log['busbw']:.3f}")
    rows = pd.DataFrame(found, columns=list(MEASURED))
    page.table("", rows, file="measured", show=False)
    return rows


def _beside_logs(rows: pd.DataFrame) -> pd.DataFrame:
    """The same for a person."""
    return pd.DataFrame(
        {
            **{name: rows[name] for name in ("source", "machine", "method")},
            "size": [shown(float(size), "bytes") for size in rows["bytes"]],
            **{f"busbw {name}": [shown(float(one), "bytes/s") for one in rows[name]]
               for name in ("measured", "predicted")},
            "predicted / measured": [f"{one:.2f}" for one in rows["predicted"] / rows["measured"]],
        }
    )  # fmt: skip
