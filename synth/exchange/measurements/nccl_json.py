"""Structured output of nccl-tests and rccl-tests: an object of a run, or an object or CSV row a measurement.

nccl-tests ``-J FILE`` (github NVIDIA/nccl-tests @a0b82b2, src/util.cu, version 3): ``results`` with ``size`` and
``out_of_place`` and ``in_place`` times in us; ``devices`` names each process's first GPU. Pull request 318 there prints
``benchmark`` with sizes as keys and ``oop_time``, ``ip_time``. rccl-tests ``-x FILE -Z json|csv`` (ROCm/rccl-tests
pull request 93) has a measurement a line, ``inPlace`` 0 or 1.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from synth.errors import InputError
from synth.exchange.measurements.lines import Line, Sample, Samples, fail, one_test, positive, samples, whole
from synth.exchange.measurements.nccl_tests import NAMES, US, ranks_meant
from synth.exchange.measurements.series import IN, OUT

TESTS = tuple(NAMES.values())
_PLAIN = {name.replace("_", ""): test for name, test in NAMES.items()}
_MARKS = ('"out_of_place"', '"oop_time"', '"inPlace"')
_COLUMNS = {"size", "inPlace", "time", "algBw"}


class _Row(NamedTuple):
    """A measurement: its line, where in it, what names its test (empty: nothing), size, time, and bandwidths."""

    line: int
    where: str
    name: str
    size: Any
    time: Any
    place: str
    bandwidths: tuple[Any, Any]


def looks_like(lines: Sequence[Line]) -> bool:
    """Whether a line has a key or the header of such output."""
    return any(
        set(line.text.split(",")) >= _COLUMNS or (line.text.lstrip()[:1] in ("{", "[", '"') and
                                                  any(mark in line.text for mark in _MARKS))
        for line in lines
    )  # fmt: skip


def read(lines: Sequence[Line], test: str | None, ranks: int | None) -> Samples:
    """All samples of the one test. Raises :class:`InputError` naming the line."""
    stated: set[int] = set()
    rows: list[_Row] = []
    for number, entry in _objects(lines):
        rows += _rows(number, entry, stated)
    names = [(row.line, name) for row in rows if (name := _test(row))]
    first = rows[0].line if rows else 1
    if not names and test is None:
        raise fail(first, "", f"the output names no test; say which with --test {'|'.join(TESTS)}")
    chosen = one_test(names, test, TESTS)
    if chosen in {name for _, name in names}:
        rows = [row for row in rows if _test(row) in ("", chosen)]
    found: list[Sample] = []
    ratios: list[float] = []
    for row in rows:
        found += _sample(row, ratios)
    return samples(chosen, ranks or _ranks(stated, chosen, ratios, first), found)


def _objects(lines: Sequence[Line]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of the file with the numbers of the lines where they begin, what stands around them left out."""
    for k, line in enumerate(lines):
        if set(line.text.split(",")) >= _COLUMNS:
            yield from _rows_of_csv(line.text.split(","), lines[k + 1 :])
            return
    ends = list(accumulate(len(line.text) + 1 for line in lines))
    text, k = "".join(f"{line.text}\n" for line in lines), 0
    while k < len(lines):
        head = lines[k].text.lstrip()
        opens = head[:1] == "{" or (head[:1] == "[" and (head[1:].lstrip() or "{")[0] == "{")
        if not opens:  # a message, or a time or host in brackets before one
            k += 1
            continue
        entry, at = _decoded(text, ends[k] - len(head) - 1, lines)
        yield from ((lines[k].number, one) for one in (entry if isinstance(entry, list) else [entry])
                    if isinstance(one, dict))  # fmt: skip
        k = max(bisect_right(ends, at), k + 1)


def _rows_of_csv(header: Sequence[str], lines: Sequence[Line]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of rccl-tests' CSV, which quotes nothing. Raises :class:`InputError` for one with cells missing."""
    for line in lines:
        cells = line.text.split(",")
        if line.text and len(cells) < len(header):
            raise fail(line.number, "", f"has {len(cells)} cells, the header {len(header)}")
        if line.text:
            yield line.number, dict(zip(header, cells, strict=False))


def _decoded(text: str, at: int, lines: Sequence[Line]) -> tuple[Any, int]:
    """The JSON value that begins at a place of the text, and where it ends. Raises :class:`InputError`."""
    try:
        return json.JSONDecoder(parse_constant=str).raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        there = error.pos if isinstance(error, json.JSONDecodeError) else at
        line = lines[min(text.count("\n", 0, there), len(lines) - 1)].number
        raise fail(
            line, "", "no JSON: output of nccl-tests or rccl-tests that is cut short or changed; give it whole"
        ) from None


def _rows(number: int, entry: Mapping[str, Any], stated: set[int]) -> list[_Row]:
    """The measurements of an object; ``stated`` gets the numbers of ranks that it can mean."""
    results, groups = entry.get("results"), entry.get("benchmark")
    if isinstance(results, list):
        stated.update(_devices(entry.get("config")))
        args = entry.get("args")
        name = str(args[0]).replace("\\", "/").rsplit("/", 1)[-1] if isinstance(args, list) and args else ""
        return [row for k, one in enumerate(results) for row in _of_result(number, f"results[{k}]", name, one)]
    if isinstance(groups, list):
        sizes = [pair for group in groups if isinstance(group, dict) for pair in group.items()]
        return [row for size, one in sizes for row in _of_size(number, f"benchmark.{size}", size, one)]
    return [_of_line(number, entry, stated)] if entry.keys() >= _COLUMNS else []


def _of_line(number: int, entry: Mapping[str, Any], stated: set[int]) -> _Row:
    """A measurement of rccl-tests."""
    per_rank = _count(entry.get("gpusPerRank")) or 1
    for count in (_count(entry.get("gpus")), _count(entry.get("ranks"))):
        stated.update((count, count * per_rank) if count else ())
    place = {"0": OUT, "1": IN}.get(str(entry["inPlace"]).strip())
    if place is None:
        raise fail(number, "inPlace", "must be 0 or 1", str(entry["inPlace"]))
    both = (entry["algBw"], entry.get("busBw"))
    return _Row(number, "", str(entry.get("name", "")), entry["size"], entry["time"], place, both)


def _of_result(number: int, where: str, name: str, one: Any) -> Iterator[_Row]:
    if not isinstance(one, dict):
        raise fail(number, where, "must be an object")
    for key, place in (("out_of_place", OUT), ("in_place", IN)):
        part = one.get(key)
        if isinstance(part, dict):
            if "time" not in part and "cpu_time" in part:
                raise fail(
                    number, f"{where}.{key}.cpu_time", "is the processor's, not the operation's; run without -C 1"
                )
            both = (part.get("alg_bw"), part.get("bus_bw"))
            yield _Row(number, f"{where}.{key}.", name, one.get("size"), part.get("time"), place, both)


def _of_size(number: int, where: str, size: str, one: Any) -> Iterator[_Row]:
    if not isinstance(one, dict):
        raise fail(number, where, "must be an object")
    for key, place in (("oop", OUT), ("ip", IN)):
        if one.get(f"{key}_time") not in (None, "N/A"):
            both = (one.get(f"{key}_algbw"), one.get(f"{key}_busbw"))
            yield _Row(number, f"{where}.{key}_", "", size, one[f"{key}_time"], place, both)


def _test(row: _Row) -> str:
    """The test that a row's name means, empty for none."""
    plain = row.name.lower().replace("_", "").removesuffix("mpi").removesuffix("perf")
    if plain and plain not in _PLAIN and row.name and not row.where:
        raise fail(row.line, "name", f"must be one of {', '.join(_PLAIN)}", row.name)
    return _PLAIN.get(plain, "")


def _sample(row: _Row, ratios: list[float]) -> list[Sample]:
    """The sample of a row; ``ratios`` grows by bus over algorithm bandwidth where both are numbers."""
    size = whole(row.line, f"{row.where}size", str(row.size))
    if size == 0:
        return []
    seconds = positive(row.line, f"{row.where}time", str(row.time), US)
    try:
        slow, fast = (positive(row.line, "", str(value), 1e9, True) for value in row.bandwidths)
    except InputError:  # a bandwidth that rounds to 0, or none
        slow = 0.0
    if slow >= 1e7:  # two digits of it are there
        ratios.append(fast / slow)
    return [Sample(size, seconds, row.line, row.place)]


def _devices(config: Any) -> set[int]:
    """How many ranks a run's configuration can mean: it names one GPU a process, or all of them."""
    if not isinstance(config, dict) or not isinstance(config.get("devices"), list) or not config["devices"]:
        return set()
    per_process = (_count(config.get("nthreads")) or 1) * (_count(config.get("ngpus")) or 1)
    listed = len(config["devices"])
    return {listed * per_process} if listed == 1 or per_process == 1 else {listed, listed * per_process}


def _count(value: Any) -> int:
    """A whole number of ranks, 0 for what is none."""
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0


def _ranks(stated: set[int], test: str, ratios: Sequence[float], line: int) -> int:
    """The number of ranks: what is stated, of two that can be meant the one that the bandwidths mean."""
    if len(stated) == 1:
        return next(iter(stated))
    try:
        meant = ranks_meant(test, ratios, line)
    except InputError:
        if not stated:
            raise
        return max(stated)
    return min(stated, key=lambda count: (abs(count - meant), count)) if stated else meant
