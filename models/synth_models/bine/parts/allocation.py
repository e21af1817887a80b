"""Reading allocations: run-length codes, Slurm host lists, host-to-group tables and whole traces of jobs.

Every reader raises :class:`InputError` (``parse_runs`` and ``expand_hosts``: ``ValueError``) that says what is wrong
and on which line.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from synth.errors import Fault, InputError
from synth.textfile import decode

_RUN = re.compile(r"([A-Za-z0-9_.:-]*?[A-Za-z0-9_.:-])x([0-9]+)")


def parse_runs(text: str) -> tuple[list[str], list[int]]:
    """Group labels and counts of ``8x2 9x7`` (two ranks in group 8, then seven in group 9)."""
    labels, counts = [], []
    for word in text.split():
        match = _RUN.fullmatch(word)
        if match is None or not 1 <= int(match[2]) <= 1_000_000:
            raise ValueError(f"{word!r} is not GROUPxCOUNT with a count >= 1")
        labels.append(match[1])
        counts.append(int(match[2]))
    if not labels:
        raise ValueError("names no ranks")
    return labels, counts


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
        if match[2] is None:
            hosts.append(word)
            continue
        for part in match[2].split(","):
            bounds = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
            if bounds is None:
                raise ValueError(f"{part!r} in {word!r} is not a number or a range")
            low, high = int(bounds[1]), int(bounds[2] or bounds[1])
            if high < low or high - low > 1_000_000:
                raise ValueError(f"the range {part!r} in {word!r} is empty or too long")
            hosts += [f"{match[1]}{i:0{len(bounds[1])}d}{match[3]}" for i in range(low, high + 1)]
    return hosts


def _split_outside_brackets(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+(?![^\[]*\])", text.strip()) if word]


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, unpacked if it is gzipped, without comments (#) and empty lines."""
    try:
        data = path.read_bytes()
        text = decode(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file", str(path)) from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def read_node_map(path: Path) -> dict[str, str]:
    """Host -> group from lines ``host,group`` (a header line ``host,group`` is skipped)."""
    table: dict[str, str] = {}
    faults = []
    for number, line in lines_of(path):
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
        raise InputError(faults, str(path))
    return table


def by_name(host: str) -> list[tuple[int, str]]:
    """The key that sorts hosts as people do: runs of digits by their number, so that h2 comes before h10."""
    runs = re.split(r"([0-9]+)", host)
    return [(int(run), run) if run.isdigit() and run.isascii() else (-1, run) for run in runs]


def read_hosts(path: Path, table: dict[str, str], order: str = "file") -> str:
    """The run-length code of a host list file; ranks in the order of the ``file``, or sorted by ``name``.

    Faults: lines that are no host list, hosts named twice, hosts that the table does not know.
    """
    hosts: list[str] = []
    seen: dict[str, int] = {}
    faults = []
    for number, line in lines_of(path):
        try:
            named = expand_hosts(line)
        except ValueError as error:
            faults.append(Fault(f"line {number}", str(error)))
            continue
        for host in named:
            if host in seen:
                faults.append(Fault(f"line {number}", f"host {host} stands twice (first on line {seen[host]})"))
            elif host not in table:
                faults.append(Fault(f"line {number}", f"host {host} has no group in the table"))
            seen.setdefault(host, number)
            hosts.append(host)
    if not hosts and not faults:
        faults.append(Fault("", "names no hosts"))
    if faults:
        raise InputError(faults, str(path))
    return to_runs([table[host] for host in (sorted(hosts, key=by_name) if order == "name" else hosts)])


def read_trace(path: Path) -> list[tuple[str, str]]:
    """(job, run-length code) of every line ``job,nodes,groups`` of a trace, gzipped or not."""
    jobs = []
    faults = []
    for number, line in lines_of(path):
        fields = [field.strip() for field in line.split(",")]
        if fields[:3] == ["job", "nodes", "groups"]:
            continue
        where = f"line {number}"
        if len(fields) != 3 or not fields[0] or not fields[1].isdigit():
            faults.append(Fault(where, "is not job,nodes,groups", line, True))
            continue
        try:
            ranks = sum(parse_runs(fields[2])[1])
        except ValueError as error:
            faults.append(Fault(where, str(error)))
            continue
        if ranks != int(fields[1]):
            faults.append(Fault(where, f"says {fields[1]} nodes, its groups hold {ranks}"))
        elif ranks < 2:
            faults.append(Fault(where, "a collective needs at least 2 ranks"))
        jobs.append((fields[0], fields[2]))
    if not jobs and not faults:
        faults.append(Fault("", "holds no jobs"))
    if faults:
        raise InputError(faults, str(path))
    return jobs
