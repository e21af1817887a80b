"""From MSCCL XML to :class:`synth.exchange.algorithm.Algorithm`: a stream, all faults at once, each with its line."""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler, ErrorHandler

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.expatreader import create_parser

from synth.arrays import IntArray
from synth.errors import Fault, FaultsByKind, InputError, abridged
from synth.exchange import executors
from synth.exchange.algorithm import BUFFERS, KINDS, Algorithm
from synth.exchange.msccl_xml.given_parts import given_parts, whole
from synth.schedule.collective import NAMES as COLLECTIVE_NAMES

MOST_BYTES = 2**29
MOST_STEPS = 4_000_000
MOST_RANKS = 2**16
MOST_KINDS = 500  # of faults
MOST_FAULTS = 200_000  # that are counted: not every line of a large file of another kind is worth the time
MOST_TAG = 2**18  # bytes of one tag
MOST_NUMBER = 2**31 - 1
MOST_SIZE = 2**62
ENDLESS = 2**40  # bytes
PIECE = 2**16  # bytes fed to the parser at a time

PROTOCOLS = ("LL", "LL128", "Simple")
# as executors write them: reducescatter
NAMES: dict[str, str] = {name: name.replace("_", "") for name in COLLECTIVE_NAMES}
SPELLINGS = {spelling: name for name in COLLECTIVE_NAMES for spelling in (name, NAMES[name])}
MULTIPLIED = ("allgather", "reduce_scatter", "alltoall")  # nchunksperloop counts the chunks of all ranks
PARENT = {"algo": None, "gpu": "algo", "tb": "gpu", "step": "tb", "copy": "gpu"}
PATH = {
    "algo": ["algo"],
    "gpu": ["algo", "gpu"],
    "tb": ["algo", "gpu", "tb"],
    "step": ["algo", "gpu", "tb", "step"],
    "copy": ["algo", "gpu", "copy"],
}
UNREAD = {  # XML that is right, and that NCCL's reader, which all executors use, does not read: what to look for first
    "a byte-order mark": ((b"\xef\xbb\xbf",), rb"\A\xef\xbb\xbf"),
    "an XML declaration": ((b"<?xml",), rb"\A(?:\xef\xbb\xbf)?<\?xml"),
    "a tab between elements": ((b"\t",), rb">[ \r\n]*\t"),
    "a value in single quotes": ((b"='",), rb"[a-z]='"),
    "attributes on several lines, or parted by tabs": (
        (b'"\n', b'"\r', b'"\t', b" \n", b" \r", b" \t"),
        rb'[a-zA-Z]="[^"<>]*"[ ]*[\r\n\t]\s*[a-zA-Z]+=',
    ),
    "a space before an equals sign": ((b" =", b"\n=", b"\r=", b"\t="), rb'<[^<>]*[a-zA-Z]\s+="'),
}
NEEDED = ("ngpus", "nchunksperloop", "proto")  # and coll, if nobody says what it is: else nothing is understood
STEP = ("srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")


@dataclass(frozen=True)
class MscclFile:
    """What a file says.

    ``algorithm``: for the first of ``modes``, the values of ``in_place`` that the file is meant for (an executor may
    run it with one buffer for input and output, with two, or both). ``written``: the attributes of ``algo`` as they
    stand there. ``unread``: what executors stop at although it is right XML (:data:`UNREAD`).
    """

    algorithm: Algorithm
    modes: tuple[bool, ...]
    written: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def algorithms(self) -> Iterator[Algorithm]:
        """The algorithm in every mode that the file is meant for."""
        for mode in self.modes:
            yield replace(self.algorithm, in_place=mode)


def read(path: Path, collective: str | None = None, root: int | None = None) -> MscclFile:
    """Read a file. ``collective`` and ``root`` overrule what it says. Raises :class:`InputError` with everything that
    cannot be understood, the first of every kind, and every attribute that is missing; whether the algorithm is right
    is for :mod:`synth.exchange.validity`."""
    try:
        with path.open("rb") as stream:
            return read_stream(stream, str(path), collective, root)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None


def read_stream(stream: IO[bytes], source: str, collective: str | None = None, root: int | None = None) -> MscclFile:
    """The same from an open binary stream; ``source`` is what messages call it."""
    reader, whole = _Reader(), False
    with suppress(_EnoughError):
        whole = _feed(stream, reader)
    making = _Making(reader, collective, root)
    found = making.file(whole) if reader.algo_line else None
    if found is None:
        raise InputError(reader.faults.kept(), source)
    return found


class _EnoughError(Exception):
    """What follows is not worth reading."""


def _feed(stream: IO[bytes], reader: _Reader) -> bool:
    """Parse the stream piece by piece; whether it was read to its end. What is no XML is one fault more."""
    parser: Any = create_parser(forbid_dtd=True, forbid_entities=True, forbid_external=True)
    parser.setContentHandler(reader)
    parser.setErrorHandler(ErrorHandler())  # raises
    reader.setDocumentLocator(parser)
    text = codecs.getincrementaldecoder("utf-8")()
    total = quiet = 0
    before_it = b""
    try:
        while piece := stream.read(PIECE):
            total += len(piece)
            if total > MOST_BYTES:
                reader.fault("", f"is larger than {MOST_BYTES // 2**20} MiB")
                return False
            text.decode(piece)
            seen = before_it + piece
            for what, (marks, pattern) in UNREAD.items():
                if what not in reader.unread and any(mark in seen for mark in marks) and re.search(pattern, seen):
                    reader.unread.append(what)
            before_it = b"\n" + piece[-200:]
            before = reader.events
            parser.feed(piece)
            quiet = 0 if reader.events > before else quiet + len(piece)
            if quiet > MOST_TAG:
                reader.fault(f"line {parser.getLineNumber()}", f"a tag or comment of more than {MOST_TAG} bytes")
                return False
        text.decode(b"", True)
        parser.close()
        if not total:
            reader.fault("", "is no XML: it is empty")
        return bool(reader.algo_line)
    except UnicodeDecodeError as error:
        reader.fault("", f"is not UTF-8 ({error.reason})")
    except DefusedXmlException as error:
        what = type(error).__name__.removesuffix("Forbidden").removesuffix("Reference")
        reader.fault(f"line {parser.getLineNumber()}", f"has a DTD or entities ({what}), which are not read")
    except SAXParseException as error:
        reader.fault(f"line {error.getLineNumber()}", f"is no XML: {error.getMessage()}")
    except SAXException as error:
        reader.fault("", f"is no XML: {abridged(str(error))}")
    return False


@dataclass
class _Gpu:
    line: int
    number: int | None
    chunks: tuple[int, int, int]
    wanted: str | None = None
    blocks: list[_Block] = field(default_factory=list)


@dataclass
class _Block:
    line: int
    number: int | None
    send: int
    recv: int
    channel: int
    first: int  # its steps are rows first:last of the columns
    last: int = 0


class _Reader(ContentHandler):
    """Turns tags into rows of numbers; keeps what is wrong with single tags."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = FaultsByKind()
        self.events = 0
        self.unread: list[str] = []
        self.algo: dict[str, str] = {}
        self.algo_line = 0
        self.gpus: list[_Gpu] = []
        self.column = {name: array("q") for name in ("kind", "srcbuf", "dstbuf", *STEP, "line")}
        self._open: list[str] = []

    def fault(self, path: str, message: str, value: Any = None) -> None:
        self.faults.add(Fault(path, message, value, value is not None))
        if len(self.faults) > MOST_KINDS or self.faults.total > MOST_FAULTS:
            self.faults.add(Fault("", f"{self.faults.total:,} faults up to here; the rest of the file was not read"))
            raise _EnoughError

    @property
    def _line(self) -> int:
        locator: Any = self._locator  # type: ignore[attr-defined]
        return int(locator.getLineNumber() or 0)

    def startElement(self, name: str, attrs: Any) -> None:
        self.events += 1
        parent = self._open[-1] if self._open else None
        self._open.append(name)
        if len(self._open) > 16:
            self.fault(f"line {self._line}", "elements lie in each other more than 16 deep")
            raise _EnoughError
        if name not in PARENT:
            self.fault(f"line {self._line}", f"<{abridged(name)}> is no element of MSCCL XML")
            if parent is None:
                raise _EnoughError
        elif PARENT[name] != parent:
            where = f"in <{PARENT[name]}>" if PARENT[name] else "outermost"
            self.fault(f"line {self._line}", f"<{name}> must stand {where}")
        elif self._open != PATH[name]:
            pass  # what is around it is misplaced, and reported
        elif name == "step":
            self._step(attrs)
        elif name == "tb":
            self._block(attrs)
        elif name == "gpu":
            self._gpu(attrs)
        elif name == "algo":
            self.algo, self.algo_line = dict(attrs.items()), self._line

    def endElement(self, name: str) -> None:
        self.events += 1
        self._open.pop()

    def characters(self, content: str) -> None:
        self.events += 1
        if not content.isspace():
            self.fault(f"line {self._line}", "text between the elements", abridged(content.strip()))

    def processingInstruction(self, target: str, data: str) -> None:
        self.fault(f"line {self._line}", f"a processing instruction, <?{abridged(target)}")

    def _gpu(self, attrs: Any) -> None:
        place = f"line {self._line}, gpu {_seen(attrs, 'id')}"
        number = self._number(attrs, "id", place, 0)
        chunks = [self._number(attrs, f"{key}_chunks", place, 0) for key in "ios"]
        inputs, outputs, scratch = (0 if value is None else value for value in chunks)
        self.gpus.append(_Gpu(self._line, number, (inputs, outputs, scratch), attrs.get("wanted")))

    def _block(self, attrs: Any) -> None:
        gpu = self.gpus[-1]
        place = f"line {self._line}, gpu {gpu.number}, tb {_seen(attrs, 'id')}"
        number = self._number(attrs, "id", place, 0)
        send, recv = (self._number(attrs, key, place, -1) for key in ("send", "recv"))
        channel = self._number(attrs, "chan", place, -1)
        rows = len(self.column["line"])
        send, recv, channel = (-1 if value is None else value for value in (send, recv, channel))
        gpu.blocks.append(_Block(self._line, number, send, recv, channel, rows, rows))

    def _step(self, attrs: Any) -> None:
        gpu, column, line = self.gpus[-1], self.column, self._line
        block = gpu.blocks[-1]
        position = block.last - block.first
        place = f"line {line}, gpu {gpu.number}, tb {block.number}, step {_seen(attrs, 's')}"
        number = self._number(attrs, "s", place, 0)
        if number is not None and number != position:
            self.fault(place, f"steps count 0, 1, … without gaps: this one is {position}")
        kind = self._word(attrs, "type", place, KINDS)
        column["kind"].append(kind)
        column["srcbuf"].append(self._word(attrs, "srcbuf", place, BUFFERS))
        column["dstbuf"].append(self._word(attrs, "dstbuf", place, BUFFERS))
        for key in STEP:
            least, most = (0, 1) if key == "hasdep" else (0 if key == "cnt" else -1, MOST_NUMBER)
            value = self._number(attrs, key, place, least, most)
            column[key].append(-1 if value is None else value)
        if (column["depid"][-1] < 0) != (column["deps"][-1] < 0):
            self.fault(place, f"depid = {column['depid'][-1]} and deps = {column['deps'][-1]}: both are -1, or none")
        column["line"].append(line)
        block.last += 1
        if len(column["line"]) > MOST_STEPS:
            self.fault(place, f"more than {MOST_STEPS} steps")
            raise _EnoughError

    def _number(self, attrs: Any, key: str, place: str, least: int, most: int = MOST_NUMBER) -> int | None:
        text = attrs.get(key)
        if text is None:
            self.fault(place, f"{key} is missing")
            return None
        value = whole(text)
        if value is None:
            self.fault(place, f"{key} is no whole number", text)
        elif not least <= value <= most:
            self.fault(place, f"{key} must be in {least}..{most}", text)
            return None
        return value

    def _word(self, attrs: Any, key: str, place: str, words: tuple[str, ...]) -> int:
        text = attrs.get(key)
        if text is None:
            self.fault(place, f"{key} is missing")
        elif text not in words:
            self.fault(place, f"{key} must be one of {', '.join(words)}", text)
        else:
            return words.index(text)
        return 0


def _seen(attrs: Any, key: str) -> str:
    return abridged(str(attrs.get(key, "?")), 12)


class _Making:
    """From what was read to the algorithm: the head's words, then gpus and thread blocks in order."""

    def __init__(self, reader: _Reader, collective: str | None, root: int | None) -> None:
        self.reader, self.faults = reader, reader.faults
        self.collective, self.root = collective, root
        self.head = f"line {reader.algo_line}, algo"

    def file(self, whole: bool) -> MscclFile | None:
        """None, and faults, where there is none; ``whole``: whether the file was read to its end."""
        collective, ranks, per_loop = (
            self._collective(),
            self._head("ngpus", 1, MOST_RANKS),
            self._head("nchunksperloop"),
        )
        protocol = self.reader.algo.get("proto")
        if protocol not in PROTOCOLS:
            self._fault(f"proto must be one of {', '.join(PROTOCOLS)}", protocol)
        modes = self._modes()
        least, most = (self._head(key, 0, MOST_SIZE, 0) for key in ("minBytes", "maxBytes"))
        if "nchannels" in self.reader.algo:
            self._head("nchannels")
        root = self._root(collective, ranks)
        gpus = self._in_order(self.reader.gpus, ranks, "gpu") if ranks and whole else []
        blocks = [self._in_order(gpu.blocks, None, f"gpu {gpu.number}: tb") for gpu in gpus]
        chunks = per_loop
        if per_loop and ranks and collective in MULTIPLIED:
            chunks = per_loop // ranks
            if per_loop % ranks:
                self._fault(f"nchunksperloop does not divide among {ranks} ranks ({collective})", per_loop)
        wants = self._wants(gpus, collective, chunks)
        if len(self.faults) or not whole:
            self._say_what_is_missing()
            return None
        assert collective is not None
        assert ranks is not None
        algorithm = self._algorithm(gpus, blocks, {
            "name": self.reader.algo.get("name", ""), "collective": collective, "ranks": ranks, "root": root,
            "in_place": modes[0], "protocol": protocol, "chunks": chunks, "least_bytes": least, "most_bytes": most,
            "wants": wants,
        })  # fmt: skip
        return MscclFile(algorithm, modes, self.reader.algo, tuple(self.reader.unread))

    def _wants(self, gpus: list[_Gpu], collective: str | None, chunks: int | None) -> IntArray | None:
        said = [(gpu.line, gpu.number, gpu.wanted) for gpu in gpus]
        found, wrong = given_parts(said, collective or "", chunks or 0)
        for fault in wrong if collective and chunks else ():
            self.faults.add(fault)
        return found

    def _say_what_is_missing(self) -> None:
        """Attributes that the file can be understood without, where it cannot for other reasons."""
        for key, names in executors.missing(self.reader.algo).items():
            if key not in NEEDED and not (key == "coll" and self.collective is None):
                self._fault(f"{key} is missing, and {' and '.join(names)} refuses the file without it")

    def _fault(self, message: str, value: Any = None) -> None:
        self.faults.add(Fault(self.head, message, value, value is not None))

    def _head(self, key: str, least: int = 1, most: int = MOST_NUMBER, default: int | None = None) -> int | None:
        """A number of the head; without a default it must be there."""
        text = self.reader.algo.get(key)
        if text is None:
            if default is None:
                self._fault(f"{key} is missing")
            return default
        value = whole(text)
        if value is None or not least <= value <= most:
            self._fault(f"{key} must be a whole number in {least}..{most}", text)
            return None
        return value

    def _collective(self) -> str | None:
        written = self.reader.algo.get("coll")
        name = SPELLINGS.get(self.collective or written or "")
        if name is None:
            self._fault(f"coll must be one of {', '.join(NAMES.values())}", self.collective or written)
        return name

    def _modes(self) -> tuple[bool, ...]:
        """What is not said is not meant, but for a file that says nothing or only ``inplace="0"``: out of place."""
        said = {key: self._head(key, 0, 1, -1) for key in ("inplace", "outofplace")}
        if said["inplace"] == 0 and said["outofplace"] == 0:
            self._fault("inplace and outofplace are both 0: nobody would ever run it")
        modes = (True,) * (said["inplace"] == 1) + (False,) * (said["outofplace"] == 1)
        return modes or (said["outofplace"] == 0,)

    def _root(self, collective: str | None, ranks: int | None) -> int | None:
        if collective not in ("broadcast", "reduce", "gather", "scatter"):
            return None
        if self.root is None:
            return self._head("root", 0, (ranks or MOST_RANKS) - 1, 0)
        if ranks and not 0 <= self.root < ranks:
            self._fault(f"the root must be in 0..{ranks - 1}", self.root)
        return self.root

    def _in_order(self, found: list[Any], count: int | None, what: str) -> list[Any]:
        """By number, every number from 0 on there once."""
        seen: dict[int, Any] = {}
        for one in found:
            if one.number is None:  # reported when it was read
                return []
            if one.number in seen:
                self.faults.add(
                    Fault(f"line {one.line}, {what} {one.number}", f"stands in line {seen[one.number].line} already")
                )
            seen[one.number] = one
        wanted = len(seen) if count is None else count
        missing = [k for k in range(min(wanted, len(seen) + 8)) if k not in seen]
        strange = [k for k in seen if k >= wanted] if count is not None else []
        if missing:
            more = f" (and more: {len(seen)} of {wanted} are there)" if wanted - len(seen) > len(missing) else ""
            listed = ", ".join(map(str, missing[:8]))
            self.faults.add(Fault(f"{what} {listed}", f"is missing: numbers count 0, 1, … without gaps{more}"))
        for k in strange:
            self.faults.add(Fault(f"line {seen[k].line}, {what} {k}", f"there are {count} only (ngpus)"))
        return [seen[k] for k in sorted(seen)]

    def _algorithm(self, gpus: list[_Gpu], blocks: list[list[_Block]], head: dict[str, Any]) -> Algorithm:
        flat = [block for row in blocks for block in row]
        column = {key: np.frombuffer(values, dtype=np.int64) for key, values in self.reader.column.items() if values}
        lengths = np.array([block.last - block.first for block in flat], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        first = np.array([block.first for block in flat], dtype=np.int64)
        rows = np.repeat(first - start[:-1], lengths) + np.arange(start[-1])

        def steps(key: str) -> IntArray:
            return column[key][rows] if column else np.zeros(0, dtype=np.int64)

        return Algorithm(
            **head,
            buffer_chunks=np.array([gpu.chunks for gpu in gpus], dtype=np.int64).reshape(-1, 3),
            tb_rank=np.repeat(np.arange(len(blocks)), [len(row) for row in blocks]).astype(np.int64),
            tb_send=np.array([block.send for block in flat], dtype=np.int64),
            tb_recv=np.array([block.recv for block in flat], dtype=np.int64),
            tb_channel=np.array([block.channel for block in flat], dtype=np.int64),
            step_start=start,
            kind=steps("kind"),
            src_buffer=steps("srcbuf"),
            src_offset=steps("srcoff"),
            dst_buffer=steps("dstbuf"),
            dst_offset=steps("dstoff"),
            count=steps("cnt"),
            dep_tb=steps("depid"),
            dep_step=steps("deps"),
            has_dependents=steps("hasdep").astype(bool),
            line=steps("line"),
        )
