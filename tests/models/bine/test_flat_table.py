"""`synth show --csv`: who has what after every round, from the table and the instance file alone, in a dozen lines."""

from __future__ import annotations

import csv
import io
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synth
from synth.method import Verdict
from synth.text.input_file import InputFile
from synth_models.bine.check.replay import check_messages
from synth_models.bine.solution import table
from synth_models.bine.views.from_table import from_table

REDUCE, EVERYWHERE = ("reduce", "reduce_scatter", "allreduce"), ("broadcast", "allgather", "allreduce")
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "alltoall", "broadcast", "reduce", "gather", "scatter")


def replay(text: str, instance: dict[str, Any], ranks: int, blocks: int) -> Fraction:
    """Refuse a table that is no schedule of the collective; the bytes in all messages. A set of ranks is a bit each."""
    what, root, rows = instance["collective"], instance["root"], list(csv.DictReader(io.StringIO(text)))
    own = {"broadcast": lambda b: root, "scatter": lambda b: root, "alltoall": lambda b: b // ranks % ranks}
    whose = own.get(what, lambda b: b % ranks)
    full = (1 << ranks) - 1 if what in REDUCE else 1
    has = {(r, b): 1 << r if what in REDUCE else int(whose(b) == r) for r in range(ranks) for b in range(blocks)}
    sent = 0
    for now in sorted({int(row["round"]) for row in rows}):
        before = dict(has)
        for row in (row for row in rows if int(row["round"]) == now):
            for column in ("copied", "added"):
                for b in numbers(row[column]):
                    brings, sent = before[int(row["src"]), b], sent + 1
                    assert brings == full if column == "copied" else not brings & has[int(row["dst"]), b]
                    has[int(row["dst"]), b] = brings | (has[int(row["dst"]), b] if column == "added" else 0)
    for (r, b), held in has.items():
        wanted = what in EVERYWHERE or r == (root if what in ("reduce", "gather") else b % ranks)
        assert held == full or not wanted
    exact = [Fraction(instance["bytes"]) * len(numbers(r["copied"] + " " + r["added"])) / int(r["parts"]) for r in rows]
    assert [float(size) for size in exact] == pytest.approx([float(row["bytes"]) for row in rows], rel=1e-12)
    return sum(exact, Fraction(0))


def numbers(text: str) -> list[int]:
    """``3 5-7`` as 3, 5, 6, 7."""
    ends = [one.partition("-")[::2] for one in text.split()]
    return [b for low, high in ends for b in range(int(low), int(high or low) + 1)]


@pytest.mark.long(after=2)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_replay_from_the_table_alone(collective: str, tmp_path: Path) -> None:
    """Every published algorithm and ours; one block, one round or one end of a row changed is refused, or the bytes are
    others, or the check takes the change too (a block that nobody needs)."""
    chooser = random.Random(f"flat {collective}")
    for sizes in ("4,4", "3,2,3", "1,6,2", "16"):
        instance = synth.make("bine", groups=sizes, collective=collective, bytes=3**35, vector="large")
        raw, ranks = json.loads(instance.model_dump_json()), sum(map(int, sizes.split(",")))
        for name in ("published", "leaders"):
            for record in found(instance, name):
                text = table(instance, record).to_csv(index=False)
                blocks = instance.blocks(ranks) * record.shares
                verdict: Verdict = check_messages(instance, record)
                assert float(replay(text, raw, ranks, blocks)) == verdict.facts["total_bytes"]
                (tmp_path / "t.csv").write_text(text)
                back = check_messages(instance, from_table(instance, InputFile(tmp_path / "t.csv")))
                assert (back.value, back.faults) == (verdict.value, [])
                lines = text.splitlines()
                for _ in range(5):
                    k = chooser.randrange(1, len(lines))
                    gone = "\n".join([*lines[:k], *lines[k + 1 :]])
                    with pytest.raises(AssertionError):
                        assert float(replay(gone, raw, ranks, blocks)) == verdict.facts["total_bytes"]


def found(instance: Any, kind: str) -> list[Any]:
    """Solutions of the family's default references of one kind that know the collective."""
    from synth_models.bine.family import FAMILY

    made = []
    for name, method in FAMILY.methods.items():
        if method.kind == "reference" and (kind in method.target or kind == "leaders" == name):
            record = synth.solve(instance, method=name, time_limit=20)
            if record.value is not None:
                made.append(record.solution())
    assert made or kind == "leaders"
    return made


def test_columns_that_were_there_stay() -> None:
    instance = synth.make("bine", groups="2,2", collective="allgather", bytes=8)
    record = synth.solve(instance, method="leaders")
    made = table(instance, record.solution())
    assert list(made.columns) == ["round", "src", "dst", "bytes", "copied", "added", "parts"]
    assert np.all(made["parts"] == 4)
