"""A reader of GOAL's text, written from its grammar, and what a schedule in it must keep; nothing of ours imported.

The grammar, as LogGOPSim's ``txt2bin.re`` scans it (76451de; spaces between words are free, an item ends its line)::

    file  = "num_ranks" INT { "rank" INT "{" { item } "}" }            ranks 0, 1, … in this order
    item  = [label ":"] ( "send" INT "b" "to" INT | "recv" INT "b" "from" INT ) ["tag" INT] ["cpu" INT] ["nic" INT]
          | [label ":"] "calc" INT ["cpu" INT]
          | label ("requires" | "irequires") label                      labels of this rank, of items above
    label = [a-zA-Z][a-zA-Z0-9_]*                                       unlike the words above

``a requires b``: a begins after b has ended; ``a irequires b``: after b has begun. Sizes are taken minus one byte, so
they are 1 or more; a tag has 32 bits, of which all ones mean any tag.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field

WORDS = {"rank", "num_ranks", "send", "recv", "calc", "requires", "irequires", "nic", "cpu", "tag", "to", "from", "b"}
LABEL = r"[a-zA-Z][a-zA-Z0-9_]*"
OPERATION = re.compile(
    rf"(?:(?P<label>{LABEL})\s*:\s*)?(?:(?P<kind>send|recv)\s+(?P<size>\d+)\s*b\s+(?P<way>to|from)\s+(?P<peer>\d+)"
    r"(?:\s+tag\s+(?P<tag>\d+))?(?:\s+cpu\s+(?P<cpu>\d+))?(?:\s+nic\s+(?P<nic>\d+))?|calc\s+(?P<time>\d+)"
    r"(?:\s+cpu\s+(?P<calc_cpu>\d+))?)"
)
WAIT = re.compile(rf"(?P<after>{LABEL})\s+(?P<kind>i?requires)\s+(?P<before>{LABEL})")


@dataclass
class Operation:
    """One item of a rank; ``requires`` and ``irequires`` are places of others in the rank's list."""

    kind: str
    size: int
    peer: int = -1
    tag: int = 0
    requires: list[int] = field(default_factory=list)
    irequires: list[int] = field(default_factory=list)


def read(text: str) -> list[list[Operation]]:
    """The operations of every rank. Whatever the grammar does not allow ends in an ``AssertionError``."""
    lines = deque(line.strip() for line in text.split("\n") if line.strip())
    first = re.fullmatch(r"num_ranks\s+(\d+)", lines.popleft())
    assert first
    ranks: list[list[Operation]] = []
    while lines:
        opened = re.fullmatch(r"rank\s+(\d+)\s*\{", lines.popleft())
        assert opened
        assert int(opened[1]) == len(ranks)
        operations, labels = list[Operation](), dict[str, int]()
        while (line := lines.popleft()) != "}":
            _item(line, operations, labels)
        ranks.append(operations)
    assert len(ranks) == int(first[1])
    return ranks


def _item(line: str, operations: list[Operation], labels: dict[str, int]) -> None:
    if found := WAIT.fullmatch(line):
        after = operations[labels[found["after"]]]
        (after.requires if found["kind"] == "requires" else after.irequires).append(labels[found["before"]])
        return
    found = OPERATION.fullmatch(line)
    assert found, line
    label = found["label"]
    if label:
        assert label not in WORDS
        assert label not in labels
        labels[label] = len(operations)
    if found["kind"] is None:
        operations.append(Operation("calc", int(found["time"])))
        return
    assert (found["kind"], found["way"]) in (("send", "to"), ("recv", "from"))
    tag = int(found["tag"] or 0)
    assert int(found["size"]) >= 1
    assert tag < 2**32 - 1
    assert max(int(found["cpu"] or 0), int(found["nic"] or 0)) < 256
    operations.append(Operation(found["kind"], int(found["size"]), int(found["peer"]), tag))


def run(ranks: list[list[Operation]]) -> list[tuple[int, int]]:
    """An order in which all happens, as (rank, place): no message without its receive, no tag twice between two ranks,
    nothing that waits for itself. A receive ends after its send has begun."""
    names = {
        kind: Counter(
            (r, one.peer, one.tag, one.size) if kind == "send" else (one.peer, r, one.tag, one.size)
            for r, operations in enumerate(ranks)
            for one in operations
            if one.kind == kind
        )
        for kind in ("send", "recv")
    }
    assert names["send"] == names["recv"], "a message without its receive, or the other way round"
    assert max(Counter((src, dst, tag) for src, dst, tag, _ in names["send"]).values(), default=1) == 1
    assert all(src != dst and dst < len(ranks) and src < len(ranks) for src, dst, _, _ in names["send"])
    done: dict[tuple[int, int], None] = {}
    sent = set[tuple[int, int, int]]()
    while True:
        before = len(done)
        for r, operations in enumerate(ranks):
            for place, one in enumerate(operations):
                if (r, place) in done or any((r, other) not in done for other in (*one.requires, *one.irequires)):
                    continue
                if one.kind == "recv" and (one.peer, r, one.tag) not in sent:
                    continue
                done[r, place] = None
                if one.kind == "send":
                    sent.add((r, one.peer, one.tag))
        if len(done) == before:
            break
    assert len(done) == sum(map(len, ranks)), "something waits for itself"
    return list(done)
