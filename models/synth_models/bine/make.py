"""``synth make bine``: instances from group sizes, host lists, traces, tori."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import parse
from synth.options import read_choice, read_float, read_int
from synth_models.bine.allocation import read_hosts, read_node_map, read_trace
from synth_models.bine.instance import COLLECTIVES, TREES, BineInstance

_READERS = {
    "collective": read_choice(*COLLECTIVES), "vector": read_choice("small", "large"),
    "problem": read_choice("any", "tree", "butterfly"), "bytes": read_float(0, exclusive=True),
    "root": read_int(0), "rounds": read_int(1),
}  # fmt: skip
_SOURCES = ("groups", "hosts", "jobs", "torus")
_KEYS = (*_READERS, *_SOURCES, "nodes", "order", "only", "uplinks", "links_per_pair", "name")


def make(parameters: Mapping[str, str]) -> BineInstance:
    """An instance from texts: ``groups=8,8,16 collective=broadcast bytes=1048576 root=0``.

    Instead of ``groups``: ``hosts=FILE nodes=MAP.csv`` (a host list as Slurm prints it and a ``host,group`` table;
    ranks in the list's order, or with ``order=name`` sorted by name, h2 before h10),
    ``jobs=TRACE.csv.gz`` (lines ``job,nodes,groups``; ``only=powers`` keeps jobs of 2^k ranks in several groups,
    ``only=JOB,JOB`` those), ``torus=8x8x8``. Other keys: ``vector``, ``problem``, ``rounds``, ``uplinks`` (fat-tree),
    ``links_per_pair`` (dragonfly), ``name``. Raises :class:`InputError` listing every fault.
    """
    faults = [
        Fault(key, f"unknown parameter; one of {', '.join(_KEYS)}", value, True)
        for key, value in parameters.items()
        if key not in _KEYS
    ]
    raw: dict[str, Any] = {"family": "bine", "source": "synth make bine " + _words(parameters)}
    for key, read in _READERS.items():
        if key in parameters:
            try:
                raw[key] = read(parameters[key])
            except ValueError as error:
                faults.append(Fault(key, str(error), parameters[key], True))
    given = [key for key in _SOURCES if key in parameters]
    label = ""
    if len(given) != 1:
        faults.append(Fault("", f"give one of {', '.join(_SOURCES)}"))
    else:
        try:
            label = _allocation(given[0], parameters, raw)
        except InputError as error:
            faults += (
                [
                    Fault(
                        f"{given[0]} ({error.source})" + (f", {f.path}" if f.path else ""),
                        f.message,
                        f.value,
                        f.has_value,
                    )
                    for f in error.faults
                ]
                if error.source
                else list(error.faults)
            )
    if "order" in parameters:
        try:
            read_choice("file", "name")(parameters["order"])
        except ValueError as error:
            faults.append(Fault("order", str(error), parameters["order"], True))
        if "hosts" not in parameters:
            faults.append(Fault("order", "is for hosts", parameters["order"], True))
    _fabric(parameters, raw, faults)
    if faults:
        raise InputError(faults, "synth make bine")
    raw.setdefault("collective", "broadcast")
    if "problem" not in raw:
        tree = raw["collective"] in TREES and raw.get("vector") != "large" and "torus" not in raw
        raw["problem"] = "tree" if tree else "any"
    words = [label, raw["collective"].replace("_", "")] + ([raw["vector"]] if "vector" in raw else [])
    words += ["butterfly"] if raw["problem"] == "butterfly" else []
    raw["name"] = parameters.get("name") or "-".join(words)
    instance = parse(raw, BineInstance, "synth make bine")
    assert isinstance(instance, BineInstance)
    return instance


def _words(parameters: Mapping[str, str]) -> str:
    """The parameters as typed, files by their names only."""
    files = ("hosts", "nodes", "jobs")
    return " ".join(f"{k}={Path(v).name if k in files else v}" for k, v in parameters.items())


def _allocation(source: str, parameters: Mapping[str, str], raw: dict[str, Any]) -> str:
    """Fill ``jobs`` or ``torus``; a label for the default name. Raises :class:`InputError`."""
    text = parameters[source]
    match source:
        case "groups" | "torus":
            separator, read = ("," if source == "groups" else "x"), read_int(1)
            try:
                numbers = [read(part) for part in text.split(separator)]
            except ValueError as error:
                form = "sizes like 8,8,16" if source == "groups" else "sides like 8x8x8"
                raise InputError([Fault(source, f"give {form}: {error}", text, True)]) from None
            if source == "torus":
                raw["torus"] = numbers
                return "torus-" + "x".join(map(str, numbers))
            raw["jobs"] = [{"name": "job", "allocation": " ".join(f"{g}x{n}" for g, n in enumerate(numbers))}]
            short = "-".join(map(str, numbers)) if len(numbers) <= 6 else f"{len(numbers)}-groups-{sum(numbers)}"
            return f"groups-{short}"
        case "hosts":
            if "nodes" not in parameters:
                raise InputError([Fault("nodes", "is missing: hosts need a host,group table")])
            table = read_node_map(Path(parameters["nodes"]))
            order = parameters.get("order", "file")
            raw["jobs"] = [{"name": Path(text).stem, "allocation": read_hosts(Path(text), table, order)}]
            return Path(text).stem
        case _:
            return _trace(Path(text), parameters.get("only"), raw)


def _trace(path: Path, only: str | None, raw: dict[str, Any]) -> str:
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
    raw["jobs"] = [{"name": name, "allocation": runs} for name, runs in jobs]
    return path.name.split(".")[0] + (f"-{only}" if only and len(only) < 20 else "")


def _fabric(parameters: Mapping[str, str], raw: dict[str, Any], faults: list[Fault]) -> None:
    chosen = [key for key in ("uplinks", "links_per_pair") if key in parameters]
    if len(chosen) == 2:
        faults.append(Fault("uplinks", "a fabric is a fat-tree or a dragonfly, not both"))
    for key in chosen:
        try:
            raw["fabric"] = {"kind": "fat_tree" if key == "uplinks" else "dragonfly", key: read_int(1)(parameters[key])}
        except ValueError as error:
            faults.append(Fault(key, str(error), parameters[key], True))
