"""What `models/xtree.md` says is what the published records and tables say."""

from __future__ import annotations

import re

import pytest
from published import PUBLISHED, held_for, ours, prose, readme

from synth.records import record as records
from synth.records.optimality import gap
from synth.reproduction.stored import parse

COLUMNS = ("xtree", "mirror_xtree", "tacos", "pull", "symmetric", "forest", "ilp-highs")
HEADER = (
    "| instance | bound | published greedy | tacos | `pull` | `symmetric` | `forest` | `ilp` (HiGHS) "
    "| gap of the best |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
)


def published_table(family: str = "xtree") -> str:
    """One line per published instance: values per method, the best bound, and the gap between best value and bound."""
    lines = []
    found = {name: held for name, held in held_for(family).items() if "bound" in held}
    for instance, held in sorted(found.items(), key=_natural):
        bound = max(record.bound for record in held.values() if record.bound is not None)
        value = {name: held[name].value for name in COLUMNS if name in held}
        best = min(v for v in (record.value for record in held.values()) if v is not None)
        shown = {name: "–" if v is None else f"{v:g}" for name, v in value.items()}
        greedy = shown.get("xtree", "–") if shown.get("xtree", "–") != "–" else shown.get("mirror_xtree", "–")
        left = gap(best, bound)
        cells = [instance, f"{bound:g}", greedy, *(shown.get(name, "–") for name in COLUMNS[2:])]
        lines.append("| " + " | ".join([*cells, "0" if left == 0 else f"{100 * left:.1f} %"]) + " |\n")
    return HEADER + "".join(lines)


def _natural(item: tuple[str, object]) -> list[object]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", item[0])]


def test_the_table_is_that_of_the_published_records():
    block = readme("models/xtree.md").split("<!-- published: xtree -->\n")[1].split("<!-- end -->")[0]
    assert block.strip() == published_table().strip()


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        ("equimesh-2x3-c4", 5), ("equimesh-3x3-c4", 8), ("equimesh-4x4-c4", 15), ("equimesh-5x5-c4", 24),
        ("equimesh-8x8-c4", 63), ("equimesh-5x11-c4", 54), ("mesh-8x8-c4", 126), ("torus-8x8-c4", 63),
        ("equimesh-3x3-c2", 4), ("equimesh-4x4-c1", 5), ("equimesh-5x5-c1", 7), ("equimesh-5x5-c2", 12),
        ("equimesh-5x11-c1", 14), ("equimesh-8x8-c1", 17), ("equimesh-5x11-c2", 27), ("torus-4x16-c1", 16),
    ],
)  # fmt: skip
def test_settled_instances_have_a_record_with_gap_0(instance, value):
    held = held_for("xtree", instance)[instance].values()
    assert min(record.value for record in held if record.value is not None) == value
    assert max(record.bound for record in held if record.bound is not None) == value


def test_numbers_in_prose_are_those_of_the_records():
    """Each settled instance that the text names, with its timesteps; what programs found and refuted by themselves."""
    text = prose("xtree")
    assert "C = 1 takes 5 timesteps at 4×4, 7 at 5×5 and 17 at 8×8, where the receive bounds are 4, 6 and 16" in text
    for side, value, receive in ((4, 5, 4), (5, 7, 6), (8, 17, 16)):
        folder = PUBLISHED / "xtree" / f"equimesh-{side}x{side}-c1"
        assert receive == -(-(side * side - 1) // 4)
        assert records.read(folder / "bound.json").bound == value
        assert records.read(folder / "pull.json").value == value
    assert "5×11 with C = 1 takes 14: HiGHS finds" in text
    for name in ("3x3-c2", "4x4-c1", "5x5-c1", "5x5-c2", "5x11-c1"):
        alone = records.read(PUBLISHED / "xtree" / "alone" / "xtree" / f"equimesh-{name}" / "ilp-highs.json")
        assert (alone["termination"], alone["options"]["method"]["warm_start"]) == ("optimal", False)
    for solver in ("ilp-highs", "ilp-scip", "ilp-gurobi", "cpsat-cpsat"):
        refuted = records.read(PUBLISHED / "xtree" / "four-steps" / "xtree" / "equimesh-2x3-c4" / f"{solver}.json")
        assert (refuted["termination"], refuted["options"]["method"]["horizon"]) == ("infeasible", 4)
    kautz = PUBLISHED / "xtree" / "kautz-9x2-c1"
    assert records.read(kautz / "bound.json").bound < records.read(kautz / "relaxation-highs.json").bound


def test_numbers_of_the_xtree_paragraph():
    text = prose("xtree")
    assert "than the best mesh baseline on 8×8: 2.00 times in an allgather and 1.18 times in an allreduce" in text
    assert f"{ours('xtree', 'Figure 7, 8x8 allgather', 'ours over the best mesh baseline'):.2f}" == "2.00"
    assert f"{ours('xtree', 'Figure 8, 8x8 allreduce', 'ours over the best mesh baseline'):.2f}" == "1.18"
    assert f"{ours('xtree', 'Figure 8, 8x8 allreduce', 'ours over any algorithm on the mesh, at least'):.2f}" == "1.14"
    for mesh, gain in (("8x8", "1.15"), ("5x11", "1.18")):
        where, over = f"Figure 8, {mesh} allreduce", "over the best on the mesh, `forest` (ours) included"
        share = ours("xtree", where, "`forest` (ours) on the mesh, share of the bound's bandwidth")
        assert share >= 99
        assert f"{share:.1f}" == "99.5"
        assert f"{ours('xtree', where, f'XTree {over}'):.2f}" == "1.10"
        assert f"{ours('xtree', where, f'ours {over}'):.2f}" == gain


@pytest.mark.parametrize(
    ("mesh", "chunks", "value", "bound"),
    [
        ("8x8", 4, 161, 144), ("8x8", 16, 582, 576), ("8x8", 32, 1152, 1152), ("8x8", 64, 2304, 2304),
        ("5x11", 4, 144, 127), ("5x11", 16, 517, 506), ("5x11", 32, 1012, 1012), ("5x11", 64, 2023, 2023),
    ],
)  # fmt: skip
def test_allreduces_on_meshes_by_forest(mesh, chunks, value, bound):
    """The schedules that the text names are published, with certified bounds."""
    shipped = (mesh, chunks) == ("8x8", 4)
    folder = PUBLISHED / "xtree" if shipped else PUBLISHED / "xtree" / f"forest-{mesh}" / "xtree"
    record = records.read(folder / f"mesh-{mesh}-c{chunks}-allreduce" / "forest.json")
    assert (record.value, record.bound, record.grade) == (value, bound, "certified")
    if (mesh, chunks) == ("8x8", 32):
        assert record["verified"]["facts"]["transfers"] == 258_048 == 224 * value
    if shipped:
        held = held_for("xtree", record.path.parent.name)[record.path.parent.name]
        others = [one.value for name, one in held.items() if name != "forest" and one.value is not None]
        assert min(others) == 176
    text = prose("xtree")
    assert "On 8×8 `forest` takes 161 timesteps with C = 4 (bound 144, the best other schedule 176) and 582" in text
    assert "schedule 176) and 582 with C = 16 (576)" in text
    assert "On 5×11 it takes 144 (127) and 517 (506). With C = 32 and 64 it meets the bound: 1152 and 2304 on" in text
    assert "1012 and 2023 on 5×11" in text


def test_the_published_greedy_with_random_ties() -> None:
    table = parse((PUBLISHED / "xtree.md").read_text()).table("The published greedy").set_index("EquiMesh, C = 4")
    assert [int(best) for best in table["best"]] == [5, 8, 16, 25, 65, 58]
    assert [int(bound) for bound in table["bound"]] == [5, 8, 15, 24, 63, 54]
    assert dict(table["seeds"].astype(int)) == dict.fromkeys(table.index, 100) | {"8x8": 20, "5x11": 20}


def test_the_number_of_chunks_by_size() -> None:
    """On 8x8, as the table of the page has it."""
    table = parse((PUBLISHED / "xtree.md").read_text()).table("Chunks per node in an allgather")
    on = table[table["EquiMesh"] == "8x8"]
    most = {int(chunks): max(map(int, rows["bytes per node"])) // 2**20 for chunks, rows in on.groupby("chunks")}
    assert sorted(most) == [1, 2, 4]
    assert (
        f"On 8×8 one chunk is best up to {most[1]} MiB held by each node, two up to {most[2]} MiB, four beyond"
        in prose("xtree")
    )
    assert f"At all {len(table)} sizes of the" in prose("xtree")
    assert {*table["gap"]} == {"0.00 %"}


if __name__ == "__main__":  # prints the table for the page
    print(published_table())
