"""A step with something changed: what other links, quicker kernels or full overlap would buy."""

from __future__ import annotations

import copy
import re
from typing import Any

from synth.errors import Fault, InputError


def changed(raw: dict[str, Any], changes: str, source: str) -> dict[str, Any]:
    """The raw instance after ``LINK=2x`` (bandwidth of a class of links times 2), ``compute=0.9x`` (seconds of all
    computations times 0.9) and ``overlap=full`` (no node waits for a collective, no collective for a node). Raises
    :class:`InputError` with every change that cannot be read."""
    found, faults = copy.deepcopy(raw), []
    rows = [row for row in found.get("nodes", ()) if isinstance(row, dict)]
    links = {row.get("name"): row for row in found.get("links", ()) if isinstance(row, dict)}
    operations = {row.get("name") for row in rows if row.get("kind") == "operation"}
    for change in changes.split(","):
        match = re.fullmatch(r"([^=]+)=([0-9.]+)x", change)
        times = float(match[2]) if match and match[2].count(".") <= 1 and match[2] != "." else 0.0
        if change == "overlap=full":
            for row in rows:
                known = row.get("after", ()) if row.get("kind") == "computation" else ()
                row["after"] = [name for name in known if name not in operations]
        elif match is None or times <= 0:
            faults.append(Fault("what_if", "must be LINK=2x, compute=0.9x or overlap=full", change, True))
        elif match[1] == "compute":
            for row in rows:
                if row.get("kind") == "computation":
                    row["seconds"] = row["seconds"] * times
        elif match[1] in links:
            links[match[1]]["bandwidth"] *= times
            for row in rows:
                if row.get("link") == match[1] and row.get("seconds") is not None:
                    row["seconds"] /= times
        else:
            faults.append(
                Fault("what_if", f"no such class of links; there are {', '.join(map(str, links))}", change, True)
            )
    if faults:
        raise InputError(faults, source)
    return found
