"""What the page on demands says of late ranks, holders and order is what files and methods take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import synth
from synth.family import get_family
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.reach import COLLECTIVES_OF

PAGE = (Path(__file__).parents[3] / "models/fabric-demands.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Late ranks and order")[1].split("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("|")][
    2:
]
FILES = {
    "src,dst,bytes": "src,dst,bytes\n0,1,64KB\n",
    "bytes,holders,mode,wanters": 'bytes,holders,mode,wanters\n64KB,"0,1",sum,"2,3"\n',
    "rank,ready": "rank,ready\n3,300us\n",
    "release": "name,collective,bytes,release,late,after\na,allreduce,4KiB,1us,3:300us,\nb,alltoall,4KiB,,,a\n",
}


def test_the_table_has_a_row_a_question() -> None:
    assert len(ROWS) == 6
    assert all(len(row) == 3 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_question_makes_an_instance(row: list[str], tmp_path: Path) -> None:
    """The keys that stand behind it, and its table as the file."""
    file = tmp_path / "table.csv"
    headers = [header for header in FILES if header in row[1] or (row[2] == "the same" and "holders" in header)]
    file.write_text(FILES[headers[0]] if headers else "")
    texts = ["collective=demand demand=FILE.csv"] if row[2] == "the same" else re.findall(r"`([^`]+)`", row[2])
    for text in texts:
        keys = dict(word.split("=", 1) for word in text.replace("FILE.csv", str(file)).split())
        keys = ({"bytes": "1MiB"} if not {"bytes", "demand", "collectives"} & set(keys) else {}) | keys
        instance = synth.make("fabric", machine="dgx-h100", boxes=2, **keys)
        assert isinstance(instance, FabricInstance)
        assert len(instance.members) == 16


def test_the_methods_that_take_holders_are_those_of_the_page() -> None:
    line = SECTION.split("**Holders.**")[1].split("* **")[0]
    said = {word for word in re.findall(r"`([a-z_]+)`", line) if word in get_family("fabric").methods}
    assert said == {name for name, known in COLLECTIVES_OF.items() if "traffic" in known} - {"bound"}
