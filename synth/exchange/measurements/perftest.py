"""Output of perftest (github linux-rdma/perftest): ``ib_write_bw``, ``ib_send_lat``, ``ib_read_lat`` and their like.

Bandwidths count MB and MiB as 2**20 bytes, Gb as 10**9 bits; a stream of messages, it gives no latency. A write's and
a send's latency is half a round trip. A read's is the whole: the request goes one way, the data the other. The median
``t_typical`` counts where it is printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from synth.exchange.measurements.lines import Line, Sample, Samples, fail, positive, samples, whole
from synth.exchange.measurements.series import BANDWIDTH, LATENCY, READ

_TITLE = re.compile(r"^\s*(RDMA_Read|RDMA_Write|Send|Atomic\w*|Write|Read)\s+(.*?)(?:BW|Latency)\s+Test", re.I)
_HEADER = re.compile(r"^\s*#bytes\s+#iterations\s+(?:BW peak|t_)")
_COLUMN = re.compile(r"#\w+|BW \w+\[[^\]]*\]|[\w.%]+(?: percentile)?\[[^\]]*\]|tps average")
_UNITS = {"MB/sec": 2.0**20, "MiB/sec": 2.0**20, "Gb/sec": 1e9 / 8}
_TIMES = ("t_typical[usec]", "t_avg[usec]")
US = 1e-6


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether the table's header is there."""
    return any(_HEADER.match(line.text) for line in lines)


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All samples of the log's one test. Raises :class:`InputError` naming the line."""
    verb, ways, tests = "", 1, dict[str, int]()
    header: list[str] = []
    found: list[Sample] = []
    for line in lines:
        if match := _TITLE.match(line.text):
            verb = match.group(1).lower()
            ways = 2 if "bidirectional" in match.group(2).lower() else 1
            header = []
        elif _HEADER.match(line.text):
            header = _COLUMN.findall(line.text)
        elif header and (cells := line.text.split()) and cells[0].isdigit():
            name, rows = _row(line, header, cells, verb, ways)
            tests.setdefault(name, line.number)
            found += rows
    if len(tests) > 1:
        raise fail(list(tests.values())[1], "", f"the file holds {' and '.join(tests)}; give a file of each")
    return samples(next(iter(tests), LATENCY), 2, found)


def _row(line: Line, header: Sequence[str], cells: Sequence[str], verb: str, ways: int) -> tuple[str, list[Sample]]:
    """The test of a row, and its sample. Raises :class:`InputError`."""
    if verb.startswith("atomic"):
        raise fail(
            line.number, "", "is of an atomic operation, which moves 8 bytes; ib_write_lat or ib_write_bw are read"
        )
    size = whole(line.number, "#bytes", cells[0])
    rates = [k for k, name in enumerate(header) if name.startswith("BW average")]
    column = rates[0] if rates else next((header.index(name) for name in _TIMES if name in header), None)
    if column is None or len(cells) <= column:
        raise fail(line.number, "", f"has {len(cells)} columns, the header {len(header)}")
    if not rates:
        test = READ if "read" in verb else LATENCY
        return test, [
            Sample(size, positive(line.number, header[column], cells[column], US), line.number)
        ] if size else []
    unit = header[column].partition("[")[2].rstrip("]")
    if unit not in _UNITS:
        raise fail(line.number, "BW average", f"must be in {', '.join(_UNITS)}", unit)
    rate = positive(line.number, header[column], cells[column], _UNITS[unit], True)
    return BANDWIDTH, [Sample(size, ways * size / rate, line.number)] if size else []
