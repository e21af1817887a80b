"""Copies of instances are instances of their own, and text files may begin with a byte-order mark."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import synth
from synth.errors import InputError
from synth.family import family_names
from synth.network.links_table import read_csv
from synth.study.definition import load
from synth.text.input_file import InputFile
from synth_models.bine.making import lines_of
from synth_models.harvest.parts.step_files import read_matrix

SHIPPED = Path(__file__).resolve().parents[2] / "instances"


def smallest(family: str) -> Path:
    """The family's shipped instance with the fewest bytes."""
    return min((SHIPPED / family).glob("*.json"), key=lambda path: (path.stat().st_size, path.name))


@pytest.mark.parametrize("family", ["xtree", "mlfm", "optree", "bine", "harvest"])
def test_a_copy_is_what_a_file_with_its_values_would_be(family: str, tmp_path: Path) -> None:
    """Whatever was computed from the original (touched here first), the copy says what a fresh file of it says."""
    original = synth.read(smallest(family))
    computed = [
        name for name in dir(type(original)) if type(getattr(type(original), name)).__name__ == "cached_property"
    ]
    for name in computed:
        getattr(original, name)
    copy = original.model_copy(update={"name": "other", "source": "a copy"})
    assert (copy.file, copy.name) == (None, "other")
    assert copy.sha256 != original.sha256
    assert not set(computed) & set(vars(copy))  # nothing computed stays
    path = tmp_path / "other.json"
    path.write_text(copy.to_json())
    assert synth.read(path).sha256 == copy.sha256
    assert original.model_copy().model_dump() == original.model_dump()
    for wrong in ({"name": "no/name"}, {"name": 5}, {"family": "other"}, {"colour": "red"}, {"source": ""}):
        with pytest.raises(InputError):
            original.model_copy(update=wrong)


@pytest.mark.parametrize(
    ("family", "changes", "computed", "expected"),
    [
        ("xtree", {"network": {"kind": "ring", "nodes": 5}}, lambda one: one.topology.nodes, 5),
        ("harvest", {"algorithm": None, "gpus": 3, "steps": [{"bytes": 7.0, "shift": 1}]}, lambda r: len(r.pairs), 1),
        ("bine", {"jobs": [{"name": "j", "allocation": "0x3 1x2"}], "torus": None}, lambda r: len(r.allocations[0]), 5),
        ("mlfm", {"block": {"layers": 2, "columns": 3, "servers": 1}}, lambda one: one.ranks, 6),
    ],
)
def test_what_is_computed_follows_the_new_values(family: str, changes: Any, computed: Any, expected: int) -> None:
    original = synth.read(smallest(family))
    before = computed(original)
    assert computed(original.model_copy(update=changes)) == expected != before


def test_faults_of_several_fields_are_found_in_a_copy() -> None:
    """An EquiMesh needs at least two rows: a copy cannot have one, as no file can."""
    original = synth.make("xtree", **{"network": "equimesh", "rows": "2", "cols": "3"})
    with pytest.raises(InputError):
        original.model_copy(update={"network": {"kind": "equimesh", "rows": 1, "cols": 0}})


MARKS = {
    "none": ("utf-8", b""),
    "utf-8": ("utf-8", codecs.BOM_UTF8),
    "utf-16-le": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16-be": ("utf-16-be", codecs.BOM_UTF16_BE),
    "utf-32": ("utf-32-le", codecs.BOM_UTF32_LE),
}


def marked(path: Path, text: str, kind: str, newline: str = "\n") -> Path:
    encoding, mark = MARKS[kind]
    path.write_bytes(mark + text.replace("\n", newline).encode(encoding))
    return path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", MARKS)
def test_every_reader_takes_marked_files(kind: str, newline: str, tmp_path: Path) -> None:
    """The same text with and without a mark reads the same: instances, links, studies, demands, node maps, subsets."""
    assert {path.name for path in SHIPPED.iterdir()} >= set(family_names())
    for family in family_names():
        path = smallest(family)
        copy = marked(tmp_path / path.name, path.read_text(), kind, newline)
        assert synth.read(copy).model_dump() == synth.read(path).model_dump()
    links = read_csv(InputFile(marked(tmp_path / "links.csv", "src,dst\n0,1\n1,0\n", kind, newline)).text)
    assert [(link.src, link.dst) for link in links.links] == [(0, 1), (1, 0)]
    text = f'name = "marked"\ntitle = "Übersicht"\ninstances = ["{smallest("xtree").as_posix()}"]\n'
    assert load(marked(tmp_path / "marked.toml", text, kind, newline)).title == "Übersicht"
    assert read_matrix(marked(tmp_path / "demand.csv", "0,2\n3,0\n", kind, newline)).tolist() == [[0, 2], [3, 0]]
    made = synth.make("harvest", **
        {"steps": str(marked(tmp_path / "steps.json", json.dumps([{"bytes": 5, "shift": 1}]), kind, newline)),
         "gpus": "3", "ports": "1", "port_bandwidth": "1e9", "alpha": "0", "delta": "0", "reconfiguration_delay": "0"}
    )  # fmt: skip
    assert len(made.model_dump()["steps"]) == 1
    mapped = marked(tmp_path / "map.csv", "host,group\nh0,g0\n# a remark\nh1,g1\n", kind, newline)
    assert [line for _, line in lines_of(mapped)] == ["host,group", "h0,g0", "h1,g1"]
    packed = tmp_path / "map.csv.gz"
    packed.write_bytes(gzip.compress(mapped.read_bytes()))
    assert list(lines_of(packed)) == list(lines_of(mapped))
    subset = marked(tmp_path / "subset.txt", "layer,column,slot\n0,0,0\n0,1,0\n0,2,1\n", kind, newline)
    plain = marked(tmp_path / "plain.txt", "0 0 0\n0 1 0\n0 2 1\n", "none")
    made_of = [synth.make("mlfm", **{"d": "2", "subset": str(one), "name": "x"}) for one in (subset, plain)]
    assert made_of[0].model_dump(exclude={"source"}) == made_of[1].model_dump(exclude={"source"})
