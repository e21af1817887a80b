"""``synth make bine``: instances from group sizes, host lists, traces, tori."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.making import Count, Keys, Listed, Positive, Sides
from synth.options import read_int
from synth_models.bine.instance import TREES, BineInstance, Collective
from synth_models.bine.parts.allocation import read_hosts, read_node_map, read_trace

_SOURCES = ("groups", "hosts", "jobs", "torus")
_OWN = ("collective", "vector", "problem", "bytes", "root", "rounds")


class BineKeys(Keys):
    """The allocation (one of groups, hosts, jobs, torus), the collective, the problem and the fabric.

    ``jobs`` names a trace of lines ``job,nodes,groups``; ``hosts`` a host list as Slurm prints it, with a ``nodes``
    table ``host,group``.
    """

    examples = (
        "groups=8,8,16 collective=broadcast bytes=1048576 root=0",
        "hosts=HOSTLIST nodes=MAP.csv collective=gather",
        "jobs=TRACE.csv.gz only=powers collective=broadcast bytes=1",
        "torus=8x8x8 collective=allreduce vector=large",
    )
    groups: Listed | None = Field(None, description="ranks per group in order, such as 8,8,16")
    hosts: Path | None = Field(None, description="file with a host list; needs nodes")
    jobs: Path | None = Field(None, description="file with a trace of jobs, gzipped or not")
    torus: Sides | None = Field(None, description="sides, such as 8x8x8: every node its own group")
    nodes: Path | None = Field(None, description="CSV table host,group for hosts")
    order: Literal["file", "name"] | None = Field(
        None, description="ranks of hosts in the file's order (default), or by name, h2 before h10"
    )
    only: str | None = Field(
        None, description="jobs to keep: powers (2^k ranks in several groups), or names with commas"
    )
    collective: Collective | None = Field(None, description="what to do (default broadcast)")
    vector: Literal["small", "large"] | None = Field(None, description="which algorithm of an allreduce or broadcast")
    problem: Literal["any", "tree", "butterfly"] | None = Field(
        None, description="which schedules count (default: tree for small rooted collectives, else any)"
    )
    bytes: Positive | None = Field(None, description="size of the vector, bytes (default 1048576)")
    root: Annotated[int, Field(ge=0)] | None = Field(None, description="root of a rooted collective (default 0)")
    rounds: Count | None = Field(None, description="most rounds of a tree (default: the fewest)")
    uplinks: Count | None = Field(None, description="fat-tree: uplinks of a group")
    links_per_pair: Count | None = Field(None, description="dragonfly: links between two groups")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        faults = []
        given = [key for key in _SOURCES if key in values]
        if len(given) != 1:
            faults.append(Fault("", f"give one of {', '.join(_SOURCES)}"))
        else:
            try:
                _allocation(given[0], values)
            except InputError as error:
                where = f"{given[0]} ({error.source})"
                faults += [
                    replace(f, path=f"{where}, {f.path}" if f.path else where) if error.source else f
                    for f in error.faults
                ]
        if "order" in values and "hosts" not in values:
            faults.append(Fault("order", "is for hosts", values["order"], True))
        if "uplinks" in values and "links_per_pair" in values:
            faults.append(Fault("uplinks", "a fabric is a fat-tree or a dragonfly, not both"))
        return faults


def make(keys: BineKeys) -> BineInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    values = {key: getattr(keys, key) for key in keys.given}
    [source] = [key for key in _SOURCES if key in values]
    label, raw = _allocation(source, values)
    raw |= {key: values[key] for key in _OWN if key in values}
    if keys.uplinks is not None:
        raw["fabric"] = {"kind": "fat_tree", "uplinks": keys.uplinks}
    if keys.links_per_pair is not None:
        raw["fabric"] = {"kind": "dragonfly", "links_per_pair": keys.links_per_pair}
    raw.setdefault("collective", "broadcast")
    if "problem" not in raw:
        tree = raw["collective"] in TREES and raw.get("vector") != "large" and "torus" not in raw
        raw["problem"] = "tree" if tree else "any"
    words = [label, raw["collective"].replace("_", "")] + ([raw["vector"]] if "vector" in raw else [])
    words += ["butterfly"] if raw["problem"] == "butterfly" else []
    return keys.instance("bine", BineInstance, "-".join(words), **raw)


def _allocation(source: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A label for the default name, and ``jobs`` or ``torus``. Raises :class:`InputError`."""
    match source:
        case "groups" | "torus":
            text, separator, read = values[source], ("," if source == "groups" else "x"), read_int(1)
            try:
                numbers = [read(part) for part in text.split(separator)]
            except ValueError as error:
                form = "sizes like 8,8,16" if source == "groups" else "sides like 8x8x8"
                raise InputError([Fault(source, f"give {form}: {error}", text, True)]) from None
            if source == "torus":
                return "torus-" + "x".join(map(str, numbers)), {"torus": numbers}
            runs = " ".join(f"{g}x{n}" for g, n in enumerate(numbers))
            short = "-".join(map(str, numbers)) if len(numbers) <= 6 else f"{len(numbers)}-groups-{sum(numbers)}"
            return f"groups-{short}", {"jobs": [{"name": "job", "allocation": runs}]}
        case "hosts":
            if "nodes" not in values:
                raise InputError([Fault("nodes", "is missing: hosts need a host,group table")])
            hosts = read_hosts(values["hosts"], read_node_map(values["nodes"]), values.get("order", "file"))
            return values["hosts"].stem, {"jobs": [{"name": values["hosts"].stem, "allocation": hosts}]}
        case _:
            return _trace(values["jobs"], values.get("only"))


def _trace(path: Path, only: str | None) -> tuple[str, dict[str, Any]]:
    jobs = read_trace(path)
    if only == "powers":
        sizes = {name: [int(word.rpartition("x")[2]) for word in runs.split()] for name, runs in jobs}
        jobs = [
            (name, runs) for name, runs in jobs
            if sum(sizes[name]) & (sum(sizes[name]) - 1) == 0 and len({w.rpartition("x")[0] for w in runs.split()}) > 1
        ]  # fmt: skip
    elif only is not None:
        wanted = only.split(",")
        unknown = sorted(set(wanted) - {name for name, _ in jobs})
        if unknown:
            raise InputError([Fault("only", f"the trace has no job {', '.join(unknown)}", only, True)])
        jobs = [(name, runs) for name, runs in jobs if name in wanted]
    label = path.name.split(".")[0] + (f"-{only}" if only and len(only) < 20 else "")
    return label, {"jobs": [{"name": name, "allocation": runs} for name, runs in jobs]}
