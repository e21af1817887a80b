"""``synth plan --tokens``: the tokens of a mixture of experts, out to the experts and back."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from synth.cli.common import EXIT_FAILED, bad_option
from synth.text.visible import visible

if TYPE_CHECKING:
    from synth.cli.machine_import import MachineFile
    from synth.instance import Instance
    from synth.planning import PlannedTokens, TokenPlanning

TOKENS = (
    "Tokens of a mixture of experts: CSV of source,goals[,tokens] (ranks) or source,experts[,tokens] with --placement, "
    "or JSON likewise; or drawn:tokens=4096,experts=256,top=8,boxes=4,zipf=0.4,seed=0. "
    "Dispatch and combine are planned."
)
PLACEMENT = "With --tokens that name experts: CSV of expert,rank[,copies], as `synth place` writes it."
OUT, BACK = 7392, 14336  # bytes of a token of DeepSeek-V3: FP8 with a scale for 128 of 7,168, and BF16
OUT_HELP = f"Bytes of a token on its way out; {OUT} where none are given."
BACK_HELP = f"Bytes of what comes back of it; {BACK} where none are given."
DRAWN = "drawn:"
NUMBERS = ("tokens", "experts", "top", "boxes", "zipf", "seed")
HEAD = ("way", "seconds", "bound", "gap", "transfers", "nic_bytes", "plan_ms")


@dataclass(frozen=True)
class Tokens:
    """What tokens there are."""

    tokens: Annotated[str | None, Option("--tokens", metavar="FILE|drawn:…", help=TOKENS)] = None
    placement: Annotated[str | None, Option(metavar="FILE", help=PLACEMENT)] = None
    dispatch_bytes: Annotated[
        int | None, Option(min=1, max=2**30, help=f"Bytes of a token on its way out [{OUT}].")
    ] = None
    combine_bytes: Annotated[int | None, Option(min=1, max=2**30, help=f"Bytes of what comes back of it [{BACK}].")] = (
        None
    )

    def demand_either(self, demands: str | None) -> None:
        """Raises :class:`synth.errors.InputError` where there are both demands and tokens, or neither, or an option is
        given that means nothing without tokens."""
        if (demands is None) == (self.tokens is None):
            raise bad_option("--demands", "give either --demands or --tokens", demands or "")
        given = {"--placement": self.placement, "--dispatch-bytes": self.dispatch_bytes,
                 "--combine-bytes": self.combine_bytes}  # fmt: skip
        for name, value in given.items():
            if value is not None and self.tokens is None:
                raise bad_option(name, "needs --tokens", str(value))


def machine_meant(command: str, machine: str, parameters: list[str], file: MachineFile) -> Instance:
    """The machine, or an instance whose machine is meant. Raises :class:`synth.errors.InputError`."""
    from synth.cli.tune import maker
    from synth.instance import FORMAT, read

    path = Path(machine)
    if path.is_file() and FORMAT in path.read_bytes()[:4096].decode(errors="replace"):
        return read(path)
    return maker(command, machine, parameters, file)("broadcast", "1")


def numbers(text: str, option: str = "--tokens") -> dict[str, float]:
    """``tokens=4096,zipf=0.4`` as numbers. Raises :class:`synth.errors.InputError`."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key not in NUMBERS or key in found:
            raise bad_option(option, f"drawn: takes each of {', '.join(NUMBERS)} once", part)
        try:
            found[key] = float(value) if key == "zipf" else int(value)
        except ValueError:
            raise bad_option(option, f"{key} must be a number", part) from None
    return found


def plan_tokens(planner: TokenPlanning, wanted: Tokens, check: bool, as_json: bool) -> list[PlannedTokens]:
    """Print a row for each way, checked unless that is not wanted."""
    text = wanted.tokens or ""
    if text.startswith(DRAWN):
        if wanted.placement is not None:
            raise bad_option("--placement", "drawn tokens have their experts in order over the ranks", wanted.placement)
        source, goals = planner.drawn(**numbers(text.removeprefix(DRAWN)))
    else:
        source, goals = planner.read(text, wanted.placement)
    began = time.process_time()
    ways = planner.plan(source, goals, wanted.dispatch_bytes or OUT, wanted.combine_bytes or BACK)
    spent_ms = (time.process_time() - began) * 1e3
    if not as_json:
        typer.echo("{:>8} {:>14} {:>14} {:>8} {:>9} {:>14} {:>8}".format(*HEAD))
    faults = []
    for way in ways:
        count = len(way.schedule.start)
        values = (way.name, way.seconds, way.bound, way.gap, count, way.nic_bytes, spent_ms)
        if as_json:
            row = dict(zip(HEAD, values, strict=True))
            typer.echo(json.dumps(row | {"proof": str(way.proven), "certificate": way.proven.certificate()}))
        else:
            typer.echo("{:>8} {:>14.9g} {:>14.9g} {:>8.2%} {:>9} {:>14} {:>8.1f}".format(*values))
        faults += [f"{way.name}: {words}" for words in (way.check().faults if check else [])]
    for words in faults:
        print(visible(f"synth: {words}"), file=sys.stderr, flush=True)
    if faults:
        raise typer.Exit(EXIT_FAILED)
    return list(ways)


def name_of(way: PlannedTokens, text: str) -> str:
    """What a way's instance is called in a folder."""
    stem = "drawn" if text.startswith(DRAWN) else Path(text).stem
    return f"{stem[:40]}-{way.name}"
