"""The JSON schemas in models/formats and the tables of keys on its pages: those that are generated, and all shipped
files hold them.

``PYTHONPATH=tests python tests/synth/records/test_schemas.py`` writes both (``<!-- fields: … -->``) again.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from published import PUBLISHED, ROOT
from pydantic import Field

from synth.errors import InputError
from synth.instance import Part, Unit
from synth.records import field_table as tables
from synth.records.field_table import field_table
from synth.records.schema import schema

SCHEMAS = ROOT / "models" / "formats" / "schemas"
PAGES = {"record": "records.md"}  # of a family's instances: instances.md
FAMILIES = ("bine", "fabric", "harvest", "mlfm", "optree", "step", "topology", "xtree")


@cache
def validator(what: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SCHEMAS / f"{what}.json").read_text()))


def fault(what: str, data: Any) -> str | None:
    found = next(validator(what).iter_errors(data), None)
    return None if found is None else f"{list(found.absolute_path)}: {found.message[:200]}"


@pytest.mark.parametrize("what", ["record", *FAMILIES])
def test_a_schema_is_what_is_generated(what: str) -> None:
    Draft202012Validator.check_schema(schema(what))
    assert json.loads((SCHEMAS / f"{what}.json").read_text()) == schema(what), f"run synth schema {what}"


def written(page: str, what: str, table: str | None = None) -> str:
    """The table of keys on a page, or the page with another one in its place."""
    text = (SCHEMAS.parent / page).read_text()
    before, mark, rest = text.partition(f"<!-- fields: {what} -->\n")
    assert mark, page
    now, end, after = rest.partition("<!-- end -->")
    return now if table is None else f"{before}{mark}{table}{end}{after}"


@pytest.mark.parametrize("what", ["record", *FAMILIES])
def test_a_table_of_keys_is_what_is_generated(what: str) -> None:
    told = f"run PYTHONPATH=tests python {Path(__file__).relative_to(ROOT)}"
    assert written(PAGES.get(what, "instances.md"), what) == field_table(what), told


def test_no_page_has_a_table_that_is_not_generated() -> None:
    pages = "".join(page.read_text() for page in SCHEMAS.parent.glob("*.md") if page.name != "tables.md")
    assert sorted(re.findall(r"^<!-- fields: (\w+) -->$", pages, re.MULTILINE)) == sorted(["record", *FAMILIES])


class Inner(Part):
    """What is in a file."""

    pair: tuple[int, Annotated[int, Field(ge=0, lt=5)]]
    share: Annotated[float, Field(gt=0, le=1), Unit("s")] | None = None


class Outer(Part):
    """A file."""

    name: str
    kinds: Annotated[tuple[Literal["a", "b"], ...], Field(min_length=1, max_length=3)]
    inner: Inner
    size: Annotated[int, Field(ge=1, le=2**48, description="all | of it")] = 7
    least: Annotated[float, Field(ge=10**7)] = 2e7


def test_a_table_says_type_range_unit_default_and_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand, of a file with an object inside; what every instance has is left out, a bar does not end a cell."""
    monkeypatch.setattr(tables, "schema", lambda _: Outer.model_json_schema())
    assert field_table("toy").splitlines() == [
        "| in | key | holds | default | meaning |",
        "| --- | --- | --- | --- | --- |",
        '|  | `kinds` | list of 1 to 3 of `"a"`, `"b"` | required |  |',
        "|  | `inner` | Inner | required |  |",
        "|  | `size` | whole 1..2^48 | `7` | all \\| of it |",
        "|  | `least` | number ≥ 10^7 | `2e+07` |  |",
        "| Inner | `pair` | row (whole, whole ≥ 0, < 5) | required |  |",
        "| Inner | `share` | number > 0, ≤ 1, s or null | `null` |  |",
    ]


def test_no_schema_of_an_unknown_family() -> None:
    with pytest.raises(InputError, match="unknown family"):
        schema("nosuch")


@pytest.mark.long
def test_all_shipped_instances_and_records_hold_their_schemas() -> None:
    count = 0
    for file in (ROOT / "instances").glob("*/*.json"):
        data = json.loads(file.read_text())
        if data.get("format") == "synth-instance/1":
            assert fault(data["family"], data) is None, file
            count += 1
    seen = set()
    for file in PUBLISHED.rglob("records.jsonl"):
        for line in file.read_text().splitlines():
            data = json.loads(line)
            assert fault("record", data) is None, (file, data["record_path"])
            text = data.get("instance_text")
            if text is not None and data["instance_sha256"] not in seen:
                seen.add(data["instance_sha256"])
                assert fault(data["family"], json.loads(text)) is None, (file, data["record_path"])
    assert count > 190
    assert len(seen) > 700


@pytest.mark.parametrize("family", FAMILIES)
def test_a_schema_refuses_what_reading_refuses(family: str) -> None:
    """An unknown key, a missing one, a text for a number."""
    file = sorted(Path(ROOT / "instances" / family).glob("*.json"))[0]
    data = json.loads(file.read_text())
    assert fault(family, data) is None
    assert fault(family, data | {"evil": 1}) is not None
    assert fault(family, {key: value for key, value in data.items() if key != "name"}) is not None
    assert fault(family, data | {"name": 3}) is not None
    assert fault(family, data | {"family": "other"}) is not None


if __name__ == "__main__":
    for what in ("record", *FAMILIES):
        (SCHEMAS / f"{what}.json").write_text(json.dumps(schema(what), indent=1, ensure_ascii=False) + "\n")
        page = PAGES.get(what, "instances.md")
        (SCHEMAS.parent / page).write_text(written(page, what, field_table(what)))
