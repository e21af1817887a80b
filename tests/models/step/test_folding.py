"""Ranks of traces that are alike are one class: same value, same bound, and out again as all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from models.step.test_traces import node, write

import synth
from synth.errors import InputError
from synth.exchange.chakra.messages import COLL, COMP, RECV, SEND
from synth.instance import parse
from synth.options import RunOptions
from synth_models.step.bounds.strongest import strongest
from synth_models.step.check.replay import check_step
from synth_models.step.instance import StepInstance, size
from synth_models.step.parts import reading as reader
from synth_models.step.parts.folding import Folded
from synth_models.step.references.longest_tail import solve
from synth_models.step.views.chakra import traces

GROUPS = {"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3], "5": [0], "6": [1], "7": [2], "8": [3]}
ALLREDUCE, REDUCE_SCATTER = 0, 7


def four(folder: Path, *, odd: int = 0) -> Path:
    """Ranks 0 and 1 compute, reduce and send to 2 and 3, which do the same then; ``odd`` us more of rank 3."""
    files: list[list[Any]] = []
    for rank in range(4):
        stage, tensor = divmod(rank, 2)
        inner, outer, alone = str(stage + 1), str(tensor + 3), str(rank + 5)
        message = node(3, RECV, comm_src=rank - 2, comm_size=64, comm_tag=rank) if stage else (
            node(3, SEND, 2, comm_dst=rank + 2, comm_size=64, comm_tag=rank + 2))  # fmt: skip
        rows = [
            node(1, COMP, *([3] if stage else []), micros=5 + (odd if rank == 3 else 0)),
            node(2, COLL, 1, comm_type=ALLREDUCE, comm_size=4000, pg_name=inner),
            message,
            node(4, COLL, 2, 3, comm_type=REDUCE_SCATTER, comm_size=6000, pg_name=outer),
            node(5, COLL, 4, comm_type=ALLREDUCE, comm_size=6000, pg_name=alone),
            node(6, COMP, 5, micros=1),
        ]
        files.append(rows)
    (folder / "g.json").write_text(json.dumps(GROUPS))
    return folder / write(folder, *files).name


def made(prefix: Path) -> StepInstance:
    found = synth.make("step", traces=prefix, groups=prefix.with_name("g.json"), bandwidth="1GB/s", latency="1us")
    assert isinstance(found, StepInstance)
    return found


def apart(own: Any, ranks_of: Any, looks: Any) -> Folded:
    """Every rank its own class."""
    return Folded([[rank] for rank in own], list(range(len(ranks_of))), {i: [tuple(r)] for i, r in enumerate(ranks_of)})


@pytest.mark.parametrize(("odd", "classes"), [(0, [[0, 1], [2, 3]]), (2, [[0], [1], [2], [3]])])
def test_classes_have_the_value_and_the_bound_of_all(
    odd: int, classes: list[list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of 4,000 bytes, so 4 + 2 us after 5 us, twice, with the message between, then 3 + 1 us and 1 us."""
    prefix = four(tmp_path, odd=odd)
    instance = made(prefix)
    assert [list(row) for row in instance.classes] == ([] if odd else classes)
    assert size(instance) == 4
    assert "4 collectives of groups of one rank move nothing" in instance.source
    monkeypatch.setattr(reader, "folded", apart)
    whole = made(prefix)
    assert len(whole.nodes) > len(instance.nodes) or odd
    for step in (instance, whole):
        value = check_step(step, solve(step, RunOptions()).solution).value
        assert value == pytest.approx((5 + 6) * 2e-6 + odd * 1e-6 + 1.064e-6 + 4e-6 + 1e-6)
        assert strongest(step)[0] == strongest(instance)[0]


def test_out_come_all_ranks(tmp_path: Path) -> None:
    instance = made(four(tmp_path))
    written = traces(instance, solve(instance, RunOptions()).solution, tmp_path / "out")
    assert [path.name for path in written] == [*(f"out.{rank}.et" for rank in range(4)), "out.groups.json"]
    again = synth.make("step", traces=tmp_path / "out", groups=written[-1], bandwidth="1GB/s", latency="1us")
    assert isinstance(again, StepInstance)
    assert again.classes == instance.classes
    assert strongest(again)[0] == strongest(instance)[0]


def test_a_ring_of_messages_is_taken_apart(tmp_path: Path) -> None:
    """Each of four sends to the next: none could stand on both ends of one message."""
    ring = [
        [node(1, SEND, comm_dst=(i + 1) % 4, comm_size=8), node(2, RECV, 1, comm_src=(i - 1) % 4, comm_size=8)]
        for i in range(4)
    ]
    with pytest.raises(InputError, match="waits for itself"):
        synth.make("step", traces=write(tmp_path, *ring))
    for rows in ring:
        del rows[1].data_deps[:]
    found = synth.make("step", traces=write(tmp_path, *ring))
    assert isinstance(found, StepInstance)
    assert [one.ranks for one in found.nodes] == [(0, 1), (1, 2), (2, 3), (3, 0)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": [[0, 1], [1, 3]]}, "a rank stands twice"),
        ({"classes": [[1, 0], [2, 3]]}, "the first of no class"),
        ({"groups": []}, "must be the number of its groups"),
        ({"groups": [[[0, 1, 2]]] * 3}, "a group that is not of 2 ranks"),
        ({"groups": [[[0, 1]]] * 3}, "not every rank of its classes stands once"),
        ({"groups": [[[2, 0], [3, 1]]] * 3}, "does not go from the first class"),
        ({"alike": 2}, "must be 1 where classes are given"),
        ({"classes": []}, "need classes"),
    ],
)
def test_classes_that_cannot_be(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    raw = made(four(tmp_path)).model_dump(mode="json")
    with pytest.raises(InputError, match=words):
        parse(raw | change, StepInstance, "x")
