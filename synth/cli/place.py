"""``synth place``: which ranks have which experts, and how many copies, from a trace of routings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from synth.cli.common import EXIT_FAILED, bad_option, checked
from synth.cli.machine_import import MachineFile
from synth.cli.options import grouped
from synth.cli.plan_tokens import DRAWN, machine_meant, numbers

if TYPE_CHECKING:
    from synth.arrays import IntArray
    from synth.placement.program import Placed
    from synth.placement.question import Question
    from synth.planning import TokenPlanning

TRACE = "The trace: CSV of source,experts[,tokens], or drawn:tokens=4096,experts=256,top=8,boxes=4,zipf=0.4,seed=0."
COPIES = "Copies of experts in all, a multiple of the ranks; by default the least that hold every expert."
GROUPS = "Groups of as many experts in their order, each in one box; 1: copies may be anywhere."
HELD_OUT = "Another trace, as --tokens: what the placements of the first make of it."
OUT = "A CSV file expert,rank,copies for `synth plan --placement`."


@dataclass(frozen=True)
class Trace:
    """What is placed, and by which trace."""

    tokens: Annotated[str, Option("--tokens", metavar="FILE|drawn:…", help=TRACE)]
    experts: Annotated[int | None, Option(min=1, max=1 << 20, help="How many there are; else the trace says.")] = None
    copies: Annotated[int | None, Option(min=1, help=COPIES)] = None
    groups: Annotated[int, Option(min=1, help=GROUPS)] = 1
    held_out: Annotated[str | None, Option(metavar="FILE|drawn:…", help=HELD_OUT)] = None
    time_limit: Annotated[str, Option(help="Of the integer program: 90, 60s, 5m.")] = "20s"
    seed: Annotated[int, Option(min=0, help="Of the search.")] = 0
    out: Annotated[Path | None, Option("--out", "-o", help=OUT)] = None
    as_json: Annotated[bool, Option("--json", help="One JSON object a line, exact numbers.")] = False


@grouped
def place(
    trace: Trace,
    machine: str = typer.Argument(..., help="A machine by name, a machine file, or one that `synth import` reads."),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=8."),
    file: MachineFile = MachineFile(),
) -> None:
    """Place experts and their copies on ranks so that the largest load is small: EPLB's rule, then a search and an
    integer program from there, with a lower bound. A load is tokens, shared evenly by an expert's copies."""
    from synth.options import RunOptions, read_limit
    from synth.placement.program import placed
    from synth.placement.question import asked, faults, loads
    from synth.placement.rule import rule
    from synth.planning import TokenPlanner

    limit = checked("--time-limit", read_limit, trace.time_limit)
    planner = TokenPlanner(machine_meant("synth place", machine, parameters or [], file))
    load = _load("--tokens", planner, trace.tokens, trace.experts)
    ranks = len(planner.ranks)
    question = asked(load, len(planner.boxes), ranks, trace.copies or -(-len(load) // ranks) * ranks, trace.groups)
    other = None if trace.held_out is None else _load("--held-out", planner, trace.held_out, len(load))
    found, by_rule = placed(question, RunOptions(limit, relative_gap=0.0, seed=trace.seed))
    if wrong := faults(question, found.placement):
        typer.echo(f"synth: {wrong[0]}", err=True)
        raise typer.Exit(EXIT_FAILED)
    rows = [("eplb", by_rule, rule(question)), ("synth", found.value, found.placement)]
    held_out = {name: None if other is None else max(loads(other, where)) for name, _, where in rows}
    _print(question, found, [(name, value, held_out[name]) for name, value, _ in rows], trace.as_json)
    if trace.out is not None:
        _write(trace.out, [name for box in planner.boxes for name in box], found.placement)


def _load(option: str, planner: TokenPlanning, text: str, experts: int | None) -> IntArray:
    """Tokens of every expert, shape (experts,)."""
    import numpy as np

    if text.startswith(DRAWN):
        given = numbers(text.removeprefix(DRAWN), option)
        _, goals = planner.drawn_experts(**given)
        experts = experts or int(given.get("experts", 256))
    else:
        _, goals = planner.experts(text)
    named = goals[goals >= 0]
    experts = experts or int(named.max()) + 1
    if named.max() >= experts:
        raise bad_option(option, f"names expert {named.max()}: there are 0 to {experts - 1}", text)
    load: IntArray = np.bincount(named, minlength=experts)
    return load


def _print(question: Question, found: Placed, rows: list[tuple[str, Fraction, Fraction | None]], as_json: bool) -> None:
    """A row for the rule and one for what was found."""
    if not as_json:
        typer.echo(f"{'by':>6} {'largest':>12} {'bound':>12} {'gap':>8} {'held out':>12}  mean {_mean(question):.6g}, "
                   f"bound by {found.proof}")  # fmt: skip
    for name, value, other in rows:
        gap = float((value - found.bound) / value) if value else 0.0
        if as_json:
            row = {"by": name, "largest": float(value), "bound": float(found.bound), "gap": gap, "proof": found.proof,
                   "mean": _mean(question), "held_out": None if other is None else float(other)}  # fmt: skip
            typer.echo(json.dumps(row))
        else:
            beside = "" if other is None else f"{float(other):.8g}"
            typer.echo(f"{name:>6} {float(value):>12.8g} {float(found.bound):>12.8g} {gap:>8.2%} {beside:>12}")


def _mean(question: Question) -> float:
    return int(question.load.sum()) / question.ranks


def _write(path: Path, names: list[str], placement: IntArray) -> None:
    """The table of a placement."""
    import numpy as np

    from synth.text.files import write_atomically

    lines = ["expert,rank,copies"]
    for name, row in zip(names, placement, strict=True):
        lines += [f"{e},{name},{k}" for e, k in zip(*np.unique(row, return_counts=True), strict=True)]
    write_atomically(path, ("\n".join(lines) + "\n").encode())
