"""JSON schemas of what our files hold, generated from the types that read them.

A schema says which keys there are and of what kind; what concerns several fields at once (a root among the ranks, a
network that hangs together) it cannot say: reading a file does.
"""

from __future__ import annotations

from typing import Any

from synth.family import get_family
from synth.method import load
from synth.records.contents import Contents

DIALECT = "https://json-schema.org/draft/2020-12/schema"
RECORD = "record"


def schema(what: str) -> dict[str, Any]:
    """Return the schema of a record (``record``), or of a family's instances. Raises :class:`InputError` for an unknown
    family."""
    if what == RECORD:
        found = Contents.model_json_schema()
        title = "a record of synth (synth-record/1)"
    else:
        found = load(get_family(what).instance).model_json_schema()
        title = f"an instance of the family {what} (synth-instance/1)"
        found["properties"]["family"] = {"const": what}
        found["required"] = sorted({*found["required"], "format", "family"})
    return {"$schema": DIALECT, **found, "title": title}
