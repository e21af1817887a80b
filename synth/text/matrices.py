"""A stream of square matrices of whole numbers: a JSON line or a block of CSV lines each, read as they come.

A JSON line holds a list of rows. Further lines of numbers separated by commas are the rows of one matrix, up to an
empty line, a JSON line or the end. What is wrong with one matrix is said with its line and costs no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from synth.errors import abridged
from synth.text.csv import whole_cell

MOST_LINE = 2**28  # bytes of a line
MOST_ROWS = 2**16  # of a CSV block
_whole = whole_cell(2**63 - 1, -(2**63))


@dataclass
class Block:
    """A matrix as it stands in the stream: the number of its first line, and its ``rows``, or the ``fault`` found in
    ``fault_line``."""

    line: int
    rows: list[list[Any]] = field(default_factory=list)
    fault: str | None = None
    fault_line: int = 0

    def refuse(self, words: str, line: int) -> None:
        """Remember the first fault."""
        if self.fault is None:
            self.fault, self.fault_line, self.rows = words, line, []


def matrices(stream: BinaryIO) -> Iterator[Block]:
    """The matrices of a stream, each as soon as its end has been read."""
    block: Block | None = None
    for number, line, fault in _lines(stream):
        is_json = line.startswith(("[", "{"))
        if block is not None and (not line or is_json) and fault is None:
            yield block
            block = None
        if is_json:
            yield _json_block(number, line)
        elif line or fault is not None:
            block = block or Block(number)
            if fault is not None:
                block.refuse(fault, number)
            else:
                _add_row(block, line, number)
    if block is not None:
        yield block


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str, str | None]]:
    """Number, text without surrounding space, and fault of every line."""
    number = 0
    while data := stream.readline(MOST_LINE):
        number += 1
        if len(data) == MOST_LINE and not data.endswith(b"\n"):
            while len(data) == MOST_LINE and not data.endswith(b"\n"):
                data = stream.readline(MOST_LINE)
            yield number, "", f"the line is longer than {MOST_LINE} bytes"
            continue
        try:
            yield number, data.decode("utf-8-sig" if number == 1 else "utf-8").strip(), None
        except UnicodeDecodeError as error:
            yield number, "", f"is no text: {error.reason} at byte {error.start} of the line"


def _add_row(block: Block, line: str, number: int) -> None:
    row = []
    for column, cell in enumerate(line.split(",")):
        try:
            row.append(_whole(cell))
        except ValueError as error:
            block.refuse(f"column {column} = {abridged(repr(cell.strip()))}: {error}", number)
            return
    if block.fault is None:
        block.rows.append(row)
        if len(block.rows) > MOST_ROWS:
            block.refuse(f"more than {MOST_ROWS} rows", number)


def _json_block(number: int, line: str) -> Block:
    block = Block(number)
    try:
        rows = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        words = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        block.refuse(f"is no JSON: {words}", number)
        return block
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        block.refuse("must be a list of rows, each a list of numbers", number)
        return block
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**63:
                row[j] = int(cell)
            elif isinstance(cell, bool) or not isinstance(cell, int) or not -(2**63) <= cell < 2**63:
                block.refuse(f"row {i}, column {j} = {abridged(repr(cell))}: must be a whole number of bytes", number)
                return block
    block.rows = rows
    return block


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of bytes")
