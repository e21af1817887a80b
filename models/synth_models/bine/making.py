"""``synth make bine``: instances from group sizes, tori, Slurm host lists with a host-to-group table, traces of jobs.

Every reader of a file raises :class:`InputError` (``expand_hosts``: ``ValueError``) that says what is wrong and where.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.making import Bytes, Count, Keys, Listed, Sides
from synth.options import read_int
from synth.schedule.collective import CollectiveName
from synth.text.files import decode
from synth.text.input_file import InputFile, as_input_file
from synth_models.bine.instance import MAX_RANKS, TREES, BineInstance, parse_runs

_SOURCES = ("groups", "hosts", "jobs", "torus")
_OWN = ("collective", "vector", "problem", "bytes", "root", "rounds")
MOST_TEXT = 2**28  # bytes that a packed file may unpack to
_NODES = re.compile(r"[0-9]{1,12}")
_TASKS = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")


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
        "groups=4,4,8 ranks_per_node=4 rank_order=round_robin collective=allreduce vector=large",
    )
    groups: Listed | None = Field(
        None, description="ranks per group in order, such as 8,8,16 (with ranks_per_node: nodes per group)"
    )
    hosts: InputFile | None = Field(None, description="file with a host list; needs nodes")
    jobs: InputFile | None = Field(None, description="file with a trace of jobs, gzipped or not")
    torus: Sides | None = Field(None, description="sides, such as 8x8x8: every node its own group")
    nodes: InputFile | None = Field(None, description="CSV table host,group for hosts")
    order: Literal["file", "name"] | None = Field(
        None, description="ranks of hosts in the file's order (default), or by name, h2 before h10"
    )
    ranks_per_node: Count | None = Field(
        None, description="ranks on every node; groups, hosts and jobs then count nodes (default: a node a rank)"
    )
    tasks_per_node: str | None = Field(
        None,
        description="of hosts, as in SLURM_TASKS_PER_NODE: 4(x16),2; a host list may also say host[1-3]*4",
    )
    rank_order: Literal["block", "round_robin"] | None = Field(
        None, description="ranks fill one node after the other (block, default), or go round all nodes"
    )
    costs: Listed | None = Field(
        None, description="what a byte counts inside a node, a group, between groups, such as 0,1,4 (default 0,0,1)"
    )
    only: str | None = Field(
        None, description="jobs to keep: powers (2^k ranks in several groups), or names with commas"
    )
    collective: CollectiveName | None = Field(None, description="what to do (default broadcast)")
    vector: Literal["small", "large"] | None = Field(None, description="which algorithm of an allreduce or broadcast")
    problem: Literal["any", "tree", "butterfly"] | None = Field(
        None, description="which schedules count (default: tree for small rooted collectives, else any)"
    )
    bytes: Bytes | None = Field(None, description="size of the vector, bytes (default 1048576)")
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
            faults += _allocation_faults(given[0], values)
        if "order" in values and "hosts" not in values:
            faults.append(Fault("order", "is for hosts", values["order"], True))
        if "tasks_per_node" in values and "hosts" not in values:
            faults.append(Fault("tasks_per_node", "is for hosts", values["tasks_per_node"], True))
        several = [key for key in ("ranks_per_node", "tasks_per_node") if key in values]
        if len(several) > 1:
            faults.append(Fault("ranks_per_node", "stands beside tasks_per_node: give one"))
        if "torus" in values:
            own = ("ranks_per_node", "rank_order", "costs")
            faults += [Fault(key, "has no meaning on a torus", values[key], True) for key in own if key in values]
        if "uplinks" in values and "links_per_pair" in values:
            faults.append(Fault("uplinks", "a fabric is a fat-tree or a dragonfly, not both"))
        return faults


def _allocation_faults(source: str, values: Mapping[str, Any]) -> list[Fault]:
    """Why the source makes no allocation; those of a file say in which one they stand."""
    try:
        _allocation(source, values)
    except InputError as error:
        if not error.source:
            return list(error.faults)
        where = f"{source} ({error.source})"
        return [replace(fault, path=f"{where}, {fault.path}" if fault.path else where) for fault in error.faults]
    return []


def make(keys: BineKeys) -> BineInstance:
    """An instance of these keys. Raises :class:`InputError` listing every fault."""
    values = {key: getattr(keys, key) for key in keys.given}
    [source] = [key for key in _SOURCES if key in values]
    label, raw = _allocation(source, values)
    raw |= {key: values[key] for key in _OWN if key in values}
    if keys.costs is not None:
        raw["costs"] = _costs(keys.costs)
    if keys.uplinks is not None:
        raw["fabric"] = {"kind": "fat_tree", "uplinks": keys.uplinks}
    if keys.links_per_pair is not None:
        raw["fabric"] = {"kind": "dragonfly", "links_per_pair": keys.links_per_pair}
    raw.setdefault("collective", "broadcast")
    if "problem" not in raw:
        tree = raw["collective"] in TREES and raw.get("vector") != "large" and "torus" not in raw
        raw["problem"] = "tree" if tree else "any"
    return keys.instance("bine", BineInstance, _name(label, keys, raw), **raw)


def _name(label: str, keys: BineKeys, raw: Mapping[str, Any]) -> str:
    """The default name: what was asked for, word by word."""
    words = [label, raw["collective"].replace("_", "")] + ([raw["vector"]] if "vector" in raw else [])
    words += [f"g{keys.ranks_per_node}"] if keys.ranks_per_node is not None else []
    words += ["roundrobin"] if keys.rank_order == "round_robin" else []
    words += ["costs", keys.costs.replace(",", "-")] if keys.costs is not None else []
    words += ["butterfly"] if raw["problem"] == "butterfly" else []
    return "-".join(words)


def _costs(text: str) -> list[int]:
    try:
        found = [read_int(0)(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError([Fault("costs", f"give three numbers like 0,1,4: {error}", text, True)]) from None
    if len(found) != 3:
        raise InputError([Fault("costs", "give three numbers like 0,1,4", text, True)])
    return found


def _allocation(source: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A label for the default name, and ``jobs`` or ``torus``. Raises :class:`InputError`."""
    label, raw = _nodes(source, values)
    counts = raw.pop("counts", None)
    each = values.get("ranks_per_node")
    if each is None and counts is None:
        if values.get("rank_order") == "round_robin":
            raise InputError([Fault("rank_order", "round_robin needs ranks_per_node, tasks_per_node or host*count")])
        return label, raw
    if each is not None and not isinstance(each, int):
        return label, raw  # reported where it stands
    for job in raw.get("jobs", []):
        groups = _spread(job["allocation"])
        if each is not None and counts is not None:
            raise InputError([Fault("ranks_per_node", "stands beside counts in the host list: give one")])
        many = counts or [each or 1] * len(groups)
        order = ranks_on_nodes(many, values.get("rank_order") or "block")
        job["allocation"] = to_runs([groups[node] for node in order])
        job["nodes"] = to_runs([f"n{node}" for node in order])
    return label, raw


def _spread(runs: str) -> list[str]:
    """The group of every node."""
    labels, counts = parse_runs(runs)
    if sum(counts) > MAX_RANKS:
        raise InputError([Fault("", f"makes {sum(counts)} nodes, at most {MAX_RANKS} are supported")])
    return [label for label, count in zip(labels, counts, strict=True) for _ in range(count)]


def ranks_on_nodes(counts: Sequence[int], order: str) -> list[int]:
    """The node of every rank: ``block`` fills one node after the other; ``round_robin`` goes round the nodes that have
    room left (Slurm's block and cyclic distribution). Raises :class:`InputError` for more than 65,536 ranks."""
    if sum(counts) > MAX_RANKS:
        raise InputError([Fault("", f"makes {sum(counts)} ranks, at most {MAX_RANKS} are supported")])
    if order == "block":
        return [node for node, count in enumerate(counts) for _ in range(count)]
    return [node for turn in range(max(counts)) for node, count in enumerate(counts) if turn < count]


def tasks(text: str, hosts: int) -> list[int]:
    """Ranks on each of so many hosts, from ``4(x16),2``. Raises ``ValueError``."""
    found: list[int] = []
    for word in text.split(","):
        match = _TASKS.fullmatch(word.strip())
        each, many = (int(number or 1) for number in match.groups()) if match is not None else (0, 0)
        if each < 1 or many < 1:
            raise ValueError(f"{word.strip()!r} is not COUNT or COUNT(xHOSTS)")
        if len(found) + many > hosts:
            raise ValueError(f"names more than the {hosts} hosts of the list")
        found += [each] * many
    if len(found) != hosts:
        raise ValueError(f"names {len(found)} hosts, the list {hosts}")
    return found


def _nodes(source: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same for nodes: the groups of nodes in order; ``counts`` where a host list says how many ranks each has."""
    match source:
        case "groups":
            sizes = _numbers(source, values[source], ",", "sizes like 8,8,16")
            runs = " ".join(f"{g}x{n}" for g, n in enumerate(sizes))
            short = "-".join(map(str, sizes)) if len(sizes) <= 6 else f"{len(sizes)}-groups-{sum(sizes)}"
            return f"groups-{short}", {"jobs": [{"name": "job", "allocation": runs}]}
        case "torus":
            sides = _numbers(source, values[source], "x", "sides like 8x8x8")
            return "torus-" + "x".join(map(str, sides)), {"torus": sides}
        case "hosts":
            return _hosts(values)
        case _:
            return _trace(values["jobs"], values.get("only"))


def _numbers(key: str, text: str, separator: str, form: str) -> list[int]:
    """Numbers of at least 1. Raises :class:`InputError`."""
    read = read_int(1)
    try:
        return [read(part) for part in text.split(separator)]
    except ValueError as error:
        raise InputError([Fault(key, f"give {form}: {error}", text, True)]) from None


def _hosts(values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The groups of the hosts of a list, and their counts where it has any."""
    if "nodes" not in values:
        raise InputError([Fault("nodes", "is missing: hosts need a host,group table")])
    table = read_node_map(values["nodes"])
    hosts = hosts_of(values["hosts"], table)
    if "tasks_per_node" in values:
        hosts = _with_tasks(hosts, values["tasks_per_node"])
    if values.get("order") == "name":
        hosts.sort(key=lambda host: by_name(host[0]))
    allocation = to_runs([table[host] for host, _ in hosts])
    raw: dict[str, Any] = {"jobs": [{"name": values["hosts"].stem, "allocation": allocation}]}
    if any(count is not None for _, count in hosts):
        raw["counts"] = [count or 1 for _, count in hosts]
    return values["hosts"].stem, raw


def _is_power(labels: list[str], counts: list[int]) -> bool:
    """Whether a job has 2^k ranks in several groups."""
    return sum(counts).bit_count() == 1 and len(set(labels)) > 1


def _trace(file: InputFile, only: str | None) -> tuple[str, dict[str, Any]]:
    jobs = read_trace(file)
    if only == "powers":
        jobs = [(name, runs) for name, runs in jobs if _is_power(*parse_runs(runs))]
    elif only is not None:
        wanted = only.split(",")
        unknown = sorted(set(wanted) - {name for name, _ in jobs})
        if unknown:
            raise InputError([Fault("only", f"the trace has no job {', '.join(unknown)}", only, True)])
        jobs = [(name, runs) for name, runs in jobs if name in wanted]
    label = file.name.split(".")[0] + (f"-{only}" if only and len(only) < 20 else "")
    return label, {"jobs": [{"name": name, "allocation": runs} for name, runs in jobs]}


def to_runs(groups: list[str]) -> str:
    """The run-length code of the groups of all ranks in rank order."""
    return " ".join(f"{label}x{len(list(run))}" for label, run in groupby(groups))


def expand_hosts(text: str) -> list[str]:
    """Hosts of a Slurm host list such as ``a7,lrdn[0059,0074-0080]``, in its order. Raises ``ValueError``."""
    hosts: list[str] = []
    for word in _split_outside_brackets(text):
        match = re.fullmatch(r"([^\[\]]*)(?:\[([0-9,-]+)\])?([^\[\]]*)", word)
        if match is None or not word:
            raise ValueError(f"{word!r} is not a host or a list like node[01,03-05]")
        before, ranges, behind = match.groups()
        if ranges is None:
            hosts.append(word)
            continue
        for part in ranges.split(","):
            bounds = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
            if bounds is None:
                raise ValueError(f"{part!r} in {word!r} is not a number or a range")
            least, most = bounds.groups()
            low, high = int(least), int(most or least)
            if high < low or high - low > 1_000_000:
                raise ValueError(f"the range {part!r} in {word!r} is empty or too long")
            hosts += [f"{before}{i:0{len(least)}d}{behind}" for i in range(low, high + 1)]
    return hosts


def _split_outside_brackets(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+(?![^\[]*\])", text.strip()) if word]


def lines_of(file: InputFile | Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, unpacked if it is gzipped, without comments (#) and empty lines."""
    data = as_input_file(file).data
    try:
        if data[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(data)) as packed:
                data = packed.read(MOST_TEXT + 1)
            if len(data) > MOST_TEXT:
                raise InputError(f"unpacks to more than {MOST_TEXT >> 20} MiB", str(file))
        text = decode(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(file)) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file", str(file)) from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def read_node_map(file: InputFile | Path) -> dict[str, str]:
    """Host -> group from lines ``host,group`` (a header line ``host,group`` is skipped)."""
    table: dict[str, str] = {}
    faults = []
    for number, line in lines_of(file):
        fields = [field.strip() for field in line.split(",")]
        if fields[:2] == ["host", "group"]:
            continue
        if len(fields) != 2 or not all(fields):
            faults.append(Fault(f"line {number}", "is not host,group", line, True))
        elif fields[0] in table:
            faults.append(Fault(f"line {number}", f"host {fields[0]} stands twice"))
        elif not re.fullmatch(r"[A-Za-z0-9_.:-]+", fields[1]):
            faults.append(Fault(f"line {number}", "a group is named by letters, digits and _.:-", fields[1], True))
        else:
            table[fields[0]] = fields[1]
    if faults:
        raise InputError(faults, str(file))
    return table


def by_name(host: str) -> list[tuple[int, str]]:
    """The key that sorts hosts as people do: runs of digits by their number, so that h2 comes before h10."""
    runs = re.split(r"([0-9]+)", host)
    return [(int(run), run) if run.isdigit() and run.isascii() else (-1, run) for run in runs]


def hosts_of(file: InputFile | Path, table: dict[str, str]) -> list[tuple[str, int | None]]:
    """Hosts of a host list file in its order, with the ranks that ``host[1-3]*4`` gives each, else None.

    Faults: lines that are no host list, hosts named twice, hosts that the table does not know.
    """
    hosts: list[tuple[str, int | None]] = []
    seen: dict[str, int] = {}
    faults = []
    for number, line in lines_of(file):
        try:
            named = counted_hosts(line)
        except ValueError as error:
            faults.append(Fault(f"line {number}", str(error)))
            continue
        for host, count in named:
            if host in seen:
                faults.append(Fault(f"line {number}", f"host {host} stands twice (first on line {seen[host]})"))
            elif host not in table:
                faults.append(Fault(f"line {number}", f"host {host} has no group in the table"))
            seen.setdefault(host, number)
            hosts.append((host, count))
    if not hosts and not faults:
        faults.append(Fault("", "names no hosts"))
    if faults:
        raise InputError(faults, str(file))
    return hosts


def counted_hosts(text: str) -> list[tuple[str, int | None]]:
    """Hosts of a list such as ``a7,node[01-16]*4`` with the ranks named for each. Raises ``ValueError``."""
    found: list[tuple[str, int | None]] = []
    for word in _split_outside_brackets(text):
        name, star, count = word.partition("*")
        if star and not (count.isascii() and count.isdecimal() and 1 <= int(count) <= MAX_RANKS):
            raise ValueError(f"{word!r}: the ranks of a host must be a number in 1..{MAX_RANKS}")
        found += [(host, int(count) if star else None) for host in expand_hosts(name)]
    return found


def _with_tasks(hosts: list[tuple[str, int | None]], text: str) -> list[tuple[str, int | None]]:
    if any(count is not None for _, count in hosts):
        raise InputError([Fault("tasks_per_node", "stands beside counts in the host list: give one")])
    try:
        return [(host, count) for (host, _), count in zip(hosts, tasks(text, len(hosts)), strict=True)]
    except ValueError as error:
        raise InputError([Fault("tasks_per_node", str(error), text, True)]) from None


def read_trace(file: InputFile | Path) -> list[tuple[str, str]]:
    """(job, run-length code) of every line ``job,nodes,groups`` of a trace, gzipped or not."""
    jobs = []
    faults = []
    for number, line in lines_of(file):
        fields = [field.strip() for field in line.split(",")]
        if fields[:3] == ["job", "nodes", "groups"]:
            continue
        where = f"line {number}"
        name, nodes, runs = fields if len(fields) == 3 else ("", "", "")
        if not name or not _NODES.fullmatch(nodes):
            faults.append(Fault(where, "is not job,nodes,groups", line, True))
            continue
        try:
            ranks = sum(parse_runs(runs)[1])
        except ValueError as error:
            faults.append(Fault(where, str(error)))
            continue
        if ranks != int(nodes):
            faults.append(Fault(where, f"says {nodes} nodes, its groups hold {ranks}"))
        elif ranks < 2:
            faults.append(Fault(where, "a collective needs at least 2 ranks"))
        jobs.append((name, runs))
    if not jobs and not faults:
        faults.append(Fault("", "holds no jobs"))
    if faults:
        raise InputError(faults, str(file))
    return jobs
