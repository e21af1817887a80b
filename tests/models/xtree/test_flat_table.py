"""`synth show --csv`: a replay of ten lines from the table and the instance file (links one by one) alone."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.method import load
from synth.text.input_file import InputFile
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.family import FAMILY
from synth_models.xtree.views.from_table import from_table


def replay(text: str, instance: dict[str, Any]) -> int:
    """The timesteps of a schedule; a table that is none ends in an error. A set of ranks is a bit each."""
    links, nodes = instance["network"]["links"], range(instance["network"]["nodes"])
    rows, reduces = list(csv.DictReader(io.StringIO(text))), instance["collective"] != "allgather"
    full, pieces = (1 << len(nodes)) - 1, [(v, c) for v in nodes for c in range(instance["chunks"])]
    has = {(v, p): 1 << v if reduces else full * (v == p[0]) for v in nodes for p in pieces}
    for step in sorted({int(row["step"]) for row in rows}):
        now, before = [row for row in rows if int(row["step"]) == step], dict(has)
        assert len({row["link"] for row in now}) == len(now)
        for row in now:
            link, p = links[int(row["link"])], (int(row["origin"]), int(row["chunk"]))
            u, v, adds = link["src"], link["dst"], row.get("collective phase") == "reduce_scatter"
            assert (u, v) == (int(row["src"]), int(row["dst"]))
            assert not before[u, p] & has[v, p] if adds else before[u, p] == full
            has[v, p] = before[u, p] | (has[v, p] if adds else 0)
    assert all(has[v, p] == full for v, p in has if instance["collective"] != "reduce_scatter" or p[0] == v)
    return len({row["step"] for row in rows})


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce"])
def test_a_replay_from_the_table_alone(collective: str, tmp_path: Path) -> None:
    chooser = random.Random(collective)
    for nodes in (3, 5):
        ends = {(v, (v + 1) % nodes) for v in range(nodes)} | {((v + 1) % nodes, v) for v in range(nodes)}
        links = [{"src": u, "dst": v} for u, v in chooser.sample(sorted(ends), len(ends))]
        links.append(links[0])  # one link twice
        network = {"kind": "links", "nodes": nodes, "links": links}
        raw = {"family": "xtree", "format": "synth-instance/1", "name": "t", "source": "test", "chunks": 2}
        (tmp_path / "i.json").write_text(json.dumps(raw | {"collective": collective, "network": network}))
        instance = synth.read(tmp_path / "i.json")
        record = synth.solve(instance, method="pull", time_limit=5)
        text = load(FAMILY.table)(instance, record.solution()).to_csv(index=False)
        whole = json.loads(instance.model_dump_json())
        assert replay(text, whole) == record.value
        (tmp_path / "t.csv").write_text(text)
        assert check_schedule(instance, from_table(instance, InputFile(tmp_path / "t.csv"))).value == record.value
        lines = text.splitlines()
        for column in range(6):  # step, src, dst, link, origin, chunk
            row = chooser.randrange(1, len(lines))
            values = lines[row].split(",")
            values[column] = str(int(values[column]) + (1 if column else 10**6))
            with pytest.raises((AssertionError, KeyError, IndexError)):
                assert replay("\n".join([*lines[:row], ",".join(values), *lines[row + 1 :]]), whole) == record.value
