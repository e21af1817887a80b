"""Output of the Intel MPI benchmarks, IMB-MPI1 (github intel/mpi-benchmarks): sizes, repetitions, and times in us.

Of a collective ``t_avg`` counts, the mean over processes as other benchmarks print it. PingPong's time is half a round
trip; of Sendrecv and PingPing every process sends and receives at once. A size of Allgather and Alltoall is what goes
to one rank: times the ranks. A file can hold several benchmarks, and each among several numbers of processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from synth.exchange.measurements.lines import Line, Sample, Samples, fail, positive, samples, whole
from synth.exchange.measurements.series import LATENCY, SENDRECV

NAMES = {
    "pingpong": LATENCY, "pingping": SENDRECV, "sendrecv": SENDRECV, "allreduce": "allreduce", "allgather": "allgather",
    "allgatherv": "allgather", "alltoall": "alltoall", "alltoallv": "alltoall", "reduce_scatter": "reduce_scatter",
    "bcast": "broadcast", "reduce": "reduce",
}  # fmt: skip
_SPOKEN = "PingPong, PingPing, Sendrecv, Allreduce, Allgather(v), Alltoall(v), Reduce_scatter, Bcast, Reduce"
_TITLE = re.compile(r"^#\s*Benchmarking:?\s+(?:Multi-)?(\w+)")
_PROCESSES = re.compile(r"^#\s*#processes\s*[=:]\s*(\d{1,7})")
_GROUPS = re.compile(r"^#\s*\(\s*\d{1,7} groups of (\d{1,7}) processes")
_HEADER = re.compile(r"^\s*#bytes\s+#repetitions\s+(.*t(?:_avg|_max)?\[usec\].*)$")
US = 1e-6


class _Table(NamedTuple):
    """A benchmark among some processes: the line that names it, its name in small letters, and its samples."""

    line: int
    name: str
    ranks: int
    rows: list[Sample]


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether the table's header is there, or a benchmark's title of this form."""
    return any(_HEADER.match(line.text) or _TITLE.match(line.text) for line in lines)


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All samples of one test among one number of processes. A file of one benchmark is what it says; of several
    ``test`` chooses. Raises :class:`InputError` naming the line."""
    chosen, known = _of_one_test(_known(list(_tables(lines))), test)
    if chosen in (LATENCY, SENDRECV):
        count = min(table.ranks for table in known)
        known = [table for table in known if table.ranks == count]
        return samples(chosen, 2, [row for table in known for row in table.rows])
    known = _among(known, ranks)
    count = known[0].ranks
    factor = count if chosen in ("allgather", "alltoall") else 1
    return samples(chosen, count, [row._replace(size=row.size * factor) for table in known for row in table.rows])


def _known(tables: Sequence[_Table]) -> list[_Table]:
    """Those of benchmarks that are read. Raises :class:`InputError` where there is none."""
    full = [table for table in tables if table.rows] or list(tables[1:2])
    found = [table for table in full if table.name in NAMES]
    if full and not found:
        raise fail(full[0].line, "", f"this benchmark is not read; known: {_SPOKEN}", full[0].name)
    if not any(table.rows for table in found):
        raise fail(1, "", "the table has no row of a size above 0")
    return found


def _of_one_test(tables: Sequence[_Table], test: str | None) -> tuple[str, list[_Table]]:
    """The test, and its tables. Raises :class:`InputError` where there are several and none is chosen."""
    tests = {NAMES[table.name] for table in tables}
    if len(tests) > 1 and test not in tests:
        words = f"the file holds several tests; say which with --test {'|'.join(sorted(tests))}"
        raise fail(tables[0].line, "", words)
    chosen = NAMES[tables[0].name] if len(tests) == 1 or test is None else test
    return chosen, [table for table in tables if NAMES[table.name] == chosen]


def _among(tables: list[_Table], ranks: int | None) -> list[_Table]:
    """The tables among one number of processes. Raises :class:`InputError` where there are several."""
    counts = sorted({table.ranks for table in tables})
    if len(counts) > 1 and ranks not in counts:
        words = f"among {', '.join(map(str, counts))} processes each; say which with --ranks"
        raise fail(tables[0].line, "", f"the file holds {tables[0].name} {words}")
    return [table for table in tables if len(counts) == 1 or table.ranks == ranks]


def _tables(lines: Sequence[Line]) -> Iterator[_Table]:
    """The tables of the file, each with its rows."""
    table = _Table(1, "", 2, [])  # without a title
    column = 0
    for line in lines:
        if match := _TITLE.match(line.text):
            yield table
            table, column = _Table(line.number, match.group(1).lower(), 0, []), 0
        elif match := _PROCESSES.match(line.text) or _GROUPS.match(line.text):
            table = table._replace(ranks=int(match.group(1)))
        elif match := _HEADER.match(line.text):
            column = _column(line, match.group(1).split())
            if not table.name:
                table = table._replace(name="pingpong" if "t_avg[usec]" not in line.text else "without a name")
        elif column and (cells := line.text.split()) and cells[0].isdigit():
            table.rows.extend(_row(line, cells, column) if cells[1:2] and cells[1].isdigit() else ())
        elif line.text.strip() and not line.text.startswith("#"):
            column = 0
    yield table


def _column(line: Line, names: Sequence[str]) -> int:
    """Where the time stands: the average's column, or the only one. Raises :class:`InputError`."""
    for wanted in ("t_avg[usec]", "t[usec]", "t_max[usec]"):
        if wanted in names:
            return names.index(wanted) + 2
    raise fail(line.number, "", "has no column t_avg[usec] or t[usec]")


def _row(line: Line, cells: Sequence[str], column: int) -> list[Sample]:
    if len(cells) <= column:
        raise fail(line.number, "", f"has {len(cells)} columns; the time is the {column + 1}th")
    size = whole(line.number, "#bytes", cells[0])
    return [Sample(size, positive(line.number, "time", cells[column], US), line.number)] if size else []
