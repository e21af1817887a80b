"""A step with something changed: what other links, quicker kernels or full overlap would buy."""

from __future__ import annotations

import copy
import re
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import parse
from synth_models.step.instance import StepInstance


def what_if(instance: StepInstance, changes: str) -> dict[str, StepInstance]:
    """The step with each of the changes alone, and, of several, with all. Raises :class:`InputError` naming every
    change that cannot be read."""
    raw = instance.model_dump(mode="json")
    changed(raw, changes, "--what-if")
    each = list(dict.fromkeys(changes.split(",")))
    every = each if len(each) == 1 else [*each, ",".join(each)]
    return {change: parse(changed(raw, change, "--what-if"), StepInstance, f"--what-if {change}") for change in every}


def changed(raw: dict[str, Any], changes: str, source: str) -> dict[str, Any]:
    """The raw instance after ``LINK=2x`` (bandwidth of a class of links times 2), ``compute=0.9x`` (seconds of all
    computations times 0.9) and ``overlap=full`` (no computation waits for a collective). Raises
    :class:`InputError` with every change that cannot be read."""
    found = copy.deepcopy(raw)
    rows = [row for row in found.get("nodes", ()) if isinstance(row, dict)]
    links = {row.get("name"): row for row in found.get("links", ()) if isinstance(row, dict)}
    faults = [fault for change in changes.split(",") if (fault := _apply(change, rows, links)) is not None]
    if faults:
        raise InputError(faults, source)
    return found


def _apply(change: str, rows: list[dict[str, Any]], links: dict[Any, dict[str, Any]]) -> Fault | None:
    """Make one change in place, or say why it cannot be."""
    computations = [row for row in rows if "rank" in row]
    match = re.fullmatch(r"([^=]+)=([0-9]+(?:[.][0-9]+)?)x", change)
    times = float(match[2]) if match else 0.0
    if change == "overlap=full":
        own = {row.get("name") for row in computations}
        for row in computations:
            row["after"] = [name for name in row.get("after", ()) if name in own]
    elif match is None or times <= 0:
        return Fault("what_if", "must be LINK=2x, compute=0.9x or overlap=full", change, True)
    elif match[1] == "compute":
        for row in computations:
            row["seconds"] *= times
    elif match[1] in links:
        links[match[1]]["bandwidth"] *= times
        for row in _measured(rows, match[1]):
            row["seconds"] /= times
    else:
        return Fault("what_if", f"no such class of links; there are {', '.join(map(str, links))}", change, True)
    return None


def _measured(rows: list[dict[str, Any]], link: str) -> list[dict[str, Any]]:
    """Operations over the class of links whose duration is given."""
    return [row for row in rows if row.get("link") == link and row.get("seconds") is not None]
