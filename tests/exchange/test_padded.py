"""Demands as XML and plans: one all-to-all with given parts, padded to the greatest; what is asked for arrives, by
interpreters of other hands, by the check, and with real data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command import run
from examples import some
from exchange.given_parts import right_as_plan, right_in_xml
from exchange.random_transfers import random_transfers

from synth.errors import InputError
from synth.exchange import msccl_xml, mscclpp, padded
from synth.exchange.file_check import check_file
from synth.exchange.file_kinds import beside
from synth.exchange.formats import FORMATS
from synth.exchange.lowering import Wish
from synth.exchange.record_export import write_schedule
from synth.exchange.transfers import Demand, Transfers, in_order

SHAPES = ((4, "dgx-a100", "gpus=4"), (6, "dgx-h100", "boxes=2", "gpus=3"))  # ranks, words of `synth plan`


def random_demand(seed: int) -> Transfers:
    """Data of any size among at most five ranks, some pairs twice, some ranks without any; pieces go straight, or over
    one other rank."""
    chance = np.random.default_rng(seed)
    ranks = int(chance.integers(2, 6))
    parts = int(chance.integers(1, 9))
    origin = chance.integers(0, ranks, parts)
    goal = (origin + chance.integers(1, ranks, parts)) % ranks
    size = chance.choice([1, 7, 100, 5000, 123_457], parts)
    pieces, moves = [], []
    for part in range(parts):
        for low, high in zip([0, int(size[part]) // 3], [int(size[part]) // 3, int(size[part])], strict=True):
            if high == low:
                continue
            over = [int(chance.integers(ranks))] if chance.random() < 0.4 else []
            way = [int(origin[part]), *(r for r in over if r not in (origin[part], goal[part])), int(goal[part])]
            begin = float(chance.integers(5))
            moves += [(len(pieces), a, b, begin + k, begin + k + 1) for k, (a, b) in enumerate(pairwise(way))]
            pieces.append((part, low, high - low))
    table, rows = np.array(pieces, dtype=np.int64), np.array(moves)
    whole = rows[:, :3].astype(np.int64)
    return in_order(
        Transfers(
            f"demand-{seed}", "demand", ranks, None, int(size.sum()), *table.T.copy(), *whole.T.copy(),
            np.zeros(len(rows), dtype=bool), rows[:, 3].copy(), rows[:, 4].copy(), np.full(len(rows), -1),
            demand=Demand(origin, goal, size.astype(np.int64)),
        )
    )  # fmt: skip


def test_every_byte_of_a_demand_arrives_in_xml_and_in_plans(tmp_path: Path) -> None:
    for seed in range(some(40)):
        t = random_demand(seed)
        wish = Wish(chunks=(None, 3, 8)[seed % 3], instances=1 + seed % 2)
        in_xml = replace(wish, slices=1 + seed // 2 % 2)
        for form, executor in (("msccl-xml", "azure"), ("msccl-xml", "msccl"), ("mscclpp", "mscclpp")):
            path = tmp_path / f"{seed}-{executor}{FORMATS[form].suffix}"
            write_schedule(t, FORMATS[form], path, executor, in_xml if form == "msccl-xml" else wish, both=True)
            for file in [one for one in (path, beside(path)) if one.exists()]:
                assert not check_file(file, executor=executor).faults, file
                (right_in_xml if form == "msccl-xml" else right_as_plan)(t, file, seed)


def test_a_chunk_that_does_not_arrive_is_missed(tmp_path: Path) -> None:
    """The file says what is to arrive; more than the steps bring is a fault, in XML and in plans."""
    t = random_demand(3)
    write_schedule(t, FORMATS["msccl-xml"], file := tmp_path / "x.xml", "azure")
    write_schedule(t, FORMATS["mscclpp"], plan := tmp_path / "p.json")
    wanted = re.search(r'wanted="([^"]*)"', file.read_text())
    assert wanted is not None
    numbers = wanted[1].split()
    more = " ".join(["1", *numbers[1:]])  # of its own part, which nobody moves
    assert numbers[0] == "0"
    file.write_text(file.read_text().replace(wanted[1], more, 1))
    stored = json.loads(plan.read_text())
    stored["gpus"][0]["wanted_chunks"][0] = 1
    plan.write_text(json.dumps(stored))
    for one, words in ((file, "must end with"), (plan, "ends with nothing")):
        assert any(words in str(fault) for fault in check_file(one).faults)


@pytest.mark.parametrize("damage", ["0 0", "", "0 -1 0 0 0", "0 x 0", "9" * 30, "7 7 7 7 7"])
def test_parts_that_are_none_are_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    t = random_demand(3)
    write_schedule(t, FORMATS["msccl-xml"], file := tmp_path / "x.xml", "azure", Wish(chunks=4))
    file.write_text(re.sub(r'wanted="[^"]*"', f'wanted="{damage}"', file.read_text(), count=1))
    with pytest.raises(InputError, match=f"wanted must be {t.ranks} whole numbers") as found:
        msccl_xml.read(file)
    assert len(found.value.faults) == 1
    write_schedule(t, FORMATS["mscclpp"], plan := tmp_path / "p.json", wish=Wish(chunks=4))
    stored = json.loads(plan.read_text())
    stored["gpus"][0]["wanted_chunks"] = [int(word) for word in damage.replace("x", "99").split()]
    plan.write_text(json.dumps(stored))
    with pytest.raises(InputError, match="wanted_chunks"):
        mscclpp.read(plan)


def test_sizes_by_hand() -> None:
    """100 and 5 bytes from 0 to 1, 50 from 1 to 0: parts of 105 bytes, which 4 chunks of 32 bytes hold."""
    t = random_demand(0)
    demand = Demand(np.array([0, 1, 0]), np.array([1, 0, 1]), np.array([100, 50, 5]))
    amount, first = padded.pairs(demand, 2)
    assert (amount.tolist(), first.tolist()) == ([0, 105, 50, 0], [0, 0, 100])
    one = Transfers(
        "x", "demand", 2, None, 155, np.arange(3), np.zeros(3, dtype=np.int64), np.array([100, 50, 5]), np.arange(3),
        np.array([0, 1, 0]), np.array([1, 0, 1]), np.zeros(3, dtype=bool), np.zeros(3), np.ones(3), t.channel_hint[:3],
        demand=demand,
    )  # fmt: skip
    assert padded.chunk_bytes(one, 4) == 32
    made = padded.padded(one, 4)
    assert made.wants is not None
    assert made.wants.tolist() == [0, 4, 2, 0]
    assert list(zip(made.piece_offset.tolist(), made.piece_bytes.tolist(), strict=True)) == [(0, 3), (0, 2), (3, 1)]
    assert "parts padded to 128 bytes" in padded.told(one, 4)
    assert "buffers of 256 bytes a rank" in padded.told(one, 4)


@pytest.mark.parametrize("seed", range(2))
def test_a_planned_demand_is_exported_and_run(seed: int, tmp_path: Path) -> None:
    """From `synth plan` to files that are run with real data; their time is beside the schedule's."""
    ranks, *words = SHAPES[seed]
    chance = np.random.default_rng(seed)
    matrix = chance.choice([0, 3, 40_000, 1_000_003], (ranks, ranks))
    np.fill_diagonal(matrix, 0)
    (tmp_path / "demands.jsonl").write_text(json.dumps(matrix.tolist()) + "\n")
    run("plan", *words, "--demands", "demands.jsonl", "-o", "planned", cwd=tmp_path)
    [record] = (tmp_path / "planned").glob("fabric/*/plan.json")
    for name in ("d.xml", "d.json"):
        said = run("export", record, "-o", name, cwd=tmp_path).stderr
        assert "one all-to-all with parts padded to" in said
        assert "padded and as exported it takes" in said
        refused = run("import", name, "--machine", "dgx-a100", f"gpus={ranks}", "bytes=1MiB", cwd=tmp_path, code=2)
        assert "is an all-to-all of given parts" in refused.stderr
        for file in (tmp_path / name, beside(tmp_path / name)):
            if file.exists():
                assert "yes" in run("run", file, "--bytes", "256KiB", "--repeat", 1, cwd=tmp_path).stdout


def test_an_ordinary_alltoall_says_nothing_of_parts(tmp_path: Path) -> None:
    t = random_transfers(next(s for s in range(99) if random_transfers(s).collective == "alltoall"))
    write_schedule(t, FORMATS["msccl-xml"], tmp_path / "x.xml", "azure")
    assert "wanted" not in (tmp_path / "x.xml").read_text()
