"""The JSON schemas in models/formats: those that are generated, and all shipped files hold them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from published import PUBLISHED, ROOT

from synth.errors import InputError
from synth.records.schema import schema

SCHEMAS = ROOT / "models" / "formats" / "schemas"
FAMILIES = ("bine", "fabric", "harvest", "mlfm", "optree", "xtree")


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
