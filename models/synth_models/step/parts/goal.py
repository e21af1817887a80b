"""GOAL, the text that LogGOPSim and ATLAHS read, as the nodes of a step: what every rank sends, receives and computes.

As ``txt2bin.re`` of LogGOPSim (76451de) reads it: ``num_ranks N``, then of every rank ``rank R {``, lines ``LABEL: send
Nb to P tag T``, ``recv Nb from P tag T`` or ``calc N`` (nanoseconds), each with ``cpu C`` and ``nic C`` where they are
not 0, and ``LABEL requires LABEL`` or ``irequires``. Sends and receives meet by tag in their order.
"""

from __future__ import annotations

import re
from typing import Any

from synth.errors import InputError
from synth.text.input_file import InputFile
from synth.text.visible import visible
from synth_models.step.instance import MOST_BYTES, MOST_SECONDS
from synth_models.step.parts.reading import MOST_READ, Assumed, Reading, finished, message

RANKS = re.compile(r"num_ranks\s+(\d{1,7})")
RANK = re.compile(r"rank\s+(\d{1,7})\s*\{")
NODE = re.compile(
    r"(?P<label>\w+):\s*(?:calc\s+(?P<calc>\d{1,20})|(?P<kind>send|recv)\s+(?P<size>\d{1,20})b\s+(?:to|from)\s+"
    r"(?P<peer>\d{1,7})(?:\s+tag\s+(?P<tag>\d{1,10}))?)(?:\s+cpu\s+(?P<cpu>\d{1,4}))?(?:\s+nic\s+\d{1,4})?"
)
AFTER = re.compile(r"(\w+)\s+(i?requires)\s+(\w+)")
SHORT = 40  # characters of a line that a fault tells


def goal_nodes(file: InputFile, link: str) -> tuple[dict[str, Any], list[str]]:
    """The nodes with the classes of ranks that are alike, and what was assumed, in words. Raises
    :class:`InputError` naming every faulty line."""
    reading = Reading({}, Assumed({}, None, None, link))
    rank, many = -1, 0
    labels: dict[str, int] = {}
    for line, text in _lines(file.text):
        here = f"line {line}"
        if match := RANKS.fullmatch(text):
            many = int(match[1])
        elif match := RANK.fullmatch(text):
            rank, labels = int(match[1]), {}
            if rank in reading.files or rank >= many:
                reading.fault(here, f"rank {rank} stands twice, or is not among the {many} that num_ranks says")
            reading.files[rank] = f"rank {rank}"
        elif text == "}":
            rank = -1
        elif len(reading.waits) > MOST_READ:
            raise InputError(f"has more than {MOST_READ} nodes", str(file))
        elif rank >= 0:
            _line(reading, rank, text, labels, here)
        else:
            reading.fault(here, f"stands in no rank: {visible(text[:SHORT])}")
    if len(reading.files) < many:
        reading.fault("num_ranks", f"says {many}, but {len(reading.files)} follow")
    if not reading.nodes and not reading.faults:
        raise InputError("has no send, recv or calc", str(file))
    if reading.other:
        many = reading.other.pop("irequires")
        reading.notes.append(f"{many} irequires (begins no earlier) are taken as requires (has ended)")
    return finished(reading, str(file))


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines that say something, with their numbers; comments are left out."""
    bare = re.sub(r"/\*.*?(?:\*/|\Z)", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    rows = ((i, re.sub(r"//.*", "", row).strip().rstrip(";").strip()) for i, row in enumerate(bare.splitlines(), 1))
    return [(i, row) for i, row in rows if row]


def _line(reading: Reading, rank: int, text: str, labels: dict[str, int], here: str) -> None:
    """Take a node, or what one comes after."""
    if match := NODE.fullmatch(text):
        _node(reading, rank, match, labels, here)
    elif match := AFTER.fullmatch(text):
        reading.other.update(["irequires"] if match[2] == "irequires" else [])
        _after(reading, rank, match, labels, here)
    else:
        reading.fault(here, f"is not understood: {visible(text[:SHORT])}")


def _node(reading: Reading, rank: int, match: re.Match[str], labels: dict[str, int], here: str) -> None:
    """Take the node of a line."""
    turn = len(reading.waits)
    label, name = match["label"], f"{rank}.{match['label']}"
    here = f"{here} (rank {rank}, {visible(label[:SHORT])})"
    if label in labels:
        reading.fault(here, "this label is taken")
        return
    labels[label] = turn
    reading.waits[rank, turn] = []
    if match["calc"] is not None:
        seconds = int(match["calc"]) / 1e9
        if seconds > MOST_SECONDS:
            reading.fault(here, f"takes {seconds:.3g} s, more than {MOST_SECONDS:g}")
        stream = f"cpu{int(match['cpu'] or 0)}"
        number = reading.add(here, {"kind": "computation", "name": name[-80:], "rank": rank, "seconds": seconds,
                                    "stream": stream})  # fmt: skip
    else:
        peer, size, sends = int(match["peer"]), int(match["size"]), match["kind"] == "send"
        if peer == rank or peer >= 1 << 20 or size > MOST_BYTES:
            reading.fault(here, f"meets no other rank, or has more than {MOST_BYTES} bytes")
            peer, size = rank + 1, 0
        ends = (rank, peer) if sends else (peer, rank)
        number = message(reading, ends, sends, int(match["tag"] or 0), size, name[-80:], here)
    reading.keep(rank, turn, turn, number)


def _after(reading: Reading, rank: int, match: re.Match[str], labels: dict[str, int], here: str) -> None:
    """Note what a node comes after."""
    lacking = [label for label in (match[1], match[3]) if label not in labels]
    if lacking:
        reading.fault(here, f"rank {rank} has no label {visible(lacking[0][:SHORT])} before this line")
    elif labels[match[3]] not in (before := reading.waits[rank, labels[match[1]]]):
        before.append(labels[match[3]])
