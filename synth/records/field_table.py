"""The keys of our files as a table of Markdown, from the JSON schemas: type and range, unit, default."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from synth.records.schema import RECORD, schema

HEAD, BAR = ("in", "key", "holds", "default", "meaning"), "\\|"
HIDDEN = ("format", "family", "name", "source")  # of every instance alike, so told once
WHOLE = {"integer": "whole", "number": "number", "string": "text", "boolean": "true or false", "object": "object"}
Schema = Mapping[str, Any]


def field_table(what: str) -> str:
    """Return a table of the keys of a record (``record``) or of a family's instances, those of the file first, then
    those of the objects in it. A key without a default is required. Raises :class:`InputError` for an unknown family.
    """
    found = schema(what)
    hidden = () if what == RECORD else HIDDEN
    inside = [(name.lstrip("_"), keys) for name, keys in found.get("$defs", {}).items() if "properties" in keys]
    rows = [row for name, keys in [("", found), *inside] for row in _rows(name, keys, () if name else hidden)]
    used = [i for i in range(len(rows[0])) if any(row[i] for row in rows)]
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    return "".join(f"| {' | '.join(line[i].replace('|', BAR) for i in used)} |\n" for line in lines)


def _rows(name: str, inside: Schema, hidden: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A row a key: the object it is in, the key, what it holds, its default, and what it means."""
    for key, field in inside["properties"].items():
        if key not in hidden:
            default = "required" if key in inside.get("required", ()) else f"`{_plain(field.get('default'))}`"
            yield name, f"`{key}`", _holds(field), default, field.get("description", "")


def _plain(value: Any) -> str:
    """A value as it stands in a file; an object without its keys, as they have defaults of their own."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return "{}" if isinstance(value, dict) else json.dumps(value)


def _holds(field: Schema) -> str:
    """What a value may be, in words: its type, range and unit."""
    choices = field.get("anyOf") or field.get("oneOf")
    if choices:
        kinds = list(dict.fromkeys(_holds(one) for one in choices))
        return " or ".join(sorted(kinds, key="null".__eq__)) + _unit(field)
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2].lstrip("_")
    if "const" in field or "enum" in field:
        return ", ".join(f"`{_plain(one)}`" for one in field.get("enum", [field.get("const")]))
    kind = field.get("type", "anything")
    if kind == "array":
        return _list(field)
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {_holds(field['additionalProperties'])}"
    if "pattern" in field:
        return f"text `{field['pattern']}`"
    return " ".join(filter(None, [WHOLE.get(kind, kind), _range(field)])) + _unit(field)


def _list(field: Schema) -> str:
    """A list of so many of one kind, or a row of several."""
    if "prefixItems" in field:
        return f"row ({', '.join(map(_holds, field['prefixItems']))})"
    least, most = field.get("minItems", 0), field.get("maxItems")
    many = f"{least} to {most} of " if most is not None else f"{least} or more of " if least else ""
    return f"list of {many}{_holds(field['items'])}" if field.get("items") else "list"


def _range(field: Schema) -> str:
    """The least and the greatest that a number may be."""
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{_number(low)}..{_number(high)}"
    signs = (">", field.get("exclusiveMinimum")), ("≥", low), ("<", field.get("exclusiveMaximum")), ("≤", high)
    return ", ".join(f"{sign} {_number(limit)}" for sign, limit in signs if limit is not None)


def _number(limit: float) -> str:
    """A limit; from a million on a power of two or of ten as one."""
    if limit < 10**6 or int(limit) != limit:
        return f"{limit:g}"
    whole = int(limit)
    power = whole.bit_length() - 1
    tens = len(str(whole)) - 1
    return f"2^{power}" if whole == 2**power else f"10^{tens}" if whole == 10**tens else str(whole)


def _unit(field: Schema) -> str:
    return f", {field['unit']}" if "unit" in field else ""
