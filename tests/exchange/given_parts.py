"""Files of a demand, which is one all-to-all of given parts: whether what is asked for arrives, by interpreters of
other hands, whatever a file itself says of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from exchange.interpreter import Machine
from exchange.plan_runner import outcome

from synth.exchange.transfers import Transfers


def needed(t: Transfers, chunk: int) -> list[list[int]]:
    """Chunks of so many bytes that every rank (row) must send to every other: by hand, from the demand's rows."""
    found = [[0] * t.ranks for _ in range(t.ranks)]
    assert t.demand is not None
    for origin, goal, size in zip(*(column.tolist() for column in t.demand), strict=True):
        found[origin][goal] += size
    return [[-(-size // chunk) for size in row] for row in found]


class Given(Machine):
    """An all-to-all of which only some chunks of every part are wanted."""

    asked: list[list[int]]

    def wanted(self) -> list[tuple[Any, list[Any]]]:
        n, c = self.n, self.c
        return [
            (self.where(r, "o", q * c + k), [(q, r * c + k)])
            for r in range(n) for q in range(n) for k in range(self.asked[q][r])
        ]  # fmt: skip


def right_in_xml(t: Transfers, file: Path, seed: int) -> None:
    text = file.read_text()
    head = dict(re.findall(r'(\w+)="([^"]*)"', text.splitlines()[0]))
    assert head["coll"] == "alltoall"
    part, chunks = int(head["minBytes"]) // t.ranks, int(head["nchunksperloop"]) // t.ranks
    assert int(head["maxBytes"]) - int(head["minBytes"]) == ("msccl" in file.name)
    assert part % (16 * chunks) == 0
    for one in {"0": (False,), "1": (True,) if head["outofplace"] == "0" else (False, True)}[head["inplace"]]:
        machine = Given(re.sub(r' inplace="."', f' inplace="{int(one)}"', text))
        machine.asked = needed(t, part // chunks)
        assert machine.run(seed) == set(), file
    assert all(gpu.find("tb") >= 0 for gpu in text.split("<gpu")[1:])  # no kernel of no thread blocks


def right_as_plan(t: Transfers, file: Path, seed: int) -> None:
    plan = json.loads(file.read_text())
    part = plan["min_message_size"] // t.ranks
    assert plan["min_message_size"] == plan["max_message_size"]
    asked = needed(t, part // (plan["gpus"][0]["input_chunks"] // t.ranks))
    assert outcome(plan, "alltoall", seed, given_parts=asked), file
