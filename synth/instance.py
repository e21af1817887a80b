"""Instances: one problem each, read from a JSON file, validated at once and in full, immutable."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, PrivateAttr, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, to_jsonable_python

from synth.errors import Fault, InputError
from synth.text.files import decode
from synth.text.input_file import InputFile
from synth.text.quantities import counted, shown
from synth.views.notebook_html import card

FORMAT: Literal["synth-instance/1"] = "synth-instance/1"
LONGEST_NAME = 100  # characters of an instance's name, which names folders
MOST_BYTES, MOST_PARTS = 2**28, 2**22  # of a JSON text: a list takes up to 30 times the memory of its two brackets
HIDDEN = ("format", "family", "name", "source")
Parsed = TypeVar("Parsed", bound="Part")


@dataclass(frozen=True)
class Unit:
    """The unit of a field, written into its type: ``Annotated[float, Field(gt=0), Unit("bytes")]``."""

    name: str

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The field's schema with its unit."""
        return handler(core) | {"unit": self.name}


class Part(BaseModel):
    """Base of everything inside an instance file: unknown keys rejected, immutable, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, validated as if it had been read from a file: nothing computed from the old values
        stays with it, and an instance's copy belongs to no file. ``deep`` is always so.

        Raises :class:`InputError` listing what is wrong with the new values.
        """
        raw = self.model_dump(mode="json", exclude_none=True) | to_jsonable_python(dict(update or {}))
        return parse(raw, type(self), f"a copy of {getattr(self, 'name', type(self).__name__)}")


class Instance(Part):
    """Base of every family's instance type. Subclasses add the problem's own fields."""

    format: Literal["synth-instance/1"] = FORMAT
    family: str
    name: str = Field(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}$")
    source: str = Field(min_length=1, description="where the instance comes from")

    _file: Path | None = PrivateAttr(default=None)
    _sha256: str | None = PrivateAttr(default=None)
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        """Faults that concern several fields at once, found on raw data that may be wrong in other ways too."""
        return []

    @model_validator(mode="after")
    def _whole(self) -> Self:
        faults = self.faults_in(self.model_dump(mode="json"))
        if faults:
            raise ValueError("; ".join(map(str, faults)))
        return self

    @property
    def file(self) -> Path | None:
        """The file it was read from, if any."""
        return self._file

    @property
    def notes(self) -> tuple[str, ...]:
        """What was rounded or resolved when it was made here; the end of ``source``. Empty when read from a file."""
        return self._notes

    @property
    def sha256(self) -> str:
        """Hash of the file's bytes, or of the canonical JSON of an instance that was never in a file."""
        return self._sha256 or hashlib.sha256(self.to_json().encode()).hexdigest()

    def _repr_html_(self) -> str:
        """A short form for notebooks: what it is, where it comes from, and its fields that are one value."""
        rows = {"instance": f"{self.family} {self.name}", "source": self.source}
        for key, field in type(self).model_fields.items():
            value = getattr(self, key)
            if key in HIDDEN or not isinstance(value, (str, int, float)):
                continue
            unit = next((one.name for one in field.metadata if isinstance(one, Unit)), "")
            rows[key] = value if isinstance(value, str) else shown(value, unit)
        return card(rows)

    def to_json(self) -> str:
        """The instance file's text."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"


def parse(raw: Any, instance_type: type[Parsed], source: str) -> Parsed:
    """Validate ``raw``; raise :class:`InputError` that lists every fault found."""
    try:
        return instance_type.model_validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        faults = list(faults_of(error, raw, skip_whole=True))
        if isinstance(raw, dict) and issubclass(instance_type, Instance):
            seen = {fault.path for fault in faults}
            faults += [fault for fault in instance_type.faults_in(raw) if fault.path not in seen]
        raise InputError(faults or list(faults_of(error, raw)), source) from None


def faults_of(error: ValidationError, raw: Any, skip_whole: bool = False) -> Iterable[Fault]:
    """Pydantic's errors in our words, with paths such as ``network.links[3].bandwidth``."""
    for item in error.errors():
        if skip_whole and not item["loc"] and item["type"] == "value_error":
            continue  # raised by Instance._whole, whose faults come with their own paths
        path, value, found = _locate(item["loc"], raw)
        if item["type"] == "too_short" and value:
            continue  # pydantic counts only the valid items; the invalid ones have their own faults
        match item["type"]:
            case "missing":
                yield Fault(path, "is missing")
            case "extra_forbidden":
                yield Fault(path, "unknown key")
            case "union_tag_invalid":
                context = item["ctx"]
                path = f"{path}.{str(context['discriminator']).strip(chr(39))}"
                yield Fault(path, f"unknown; one of {context['expected_tags']}", context["tag"], True)
            case _:
                message = _words_of(item)
                yield Fault(path, message[:1].lower() + message[1:], value, found)


def _words_of(item: Mapping[str, Any]) -> str:
    """What pydantic says of a value, in our words where it has others."""
    context = item.get("ctx", {})
    match item["type"]:
        case "greater_than":
            return f"must be > {context['gt']:g}"
        case "greater_than_equal":
            return f"must be >= {context['ge']:g}"
        case "less_than_equal":
            return f"must be <= {context['le']:g}"
        case "int_parsing" | "int_from_float":  # a text that should be a number
            return "must be a whole number"
        case "finite_number":
            return "must be a finite number"
        case "float_parsing":
            return "must be a number"
        case "too_short":
            return f"must have at least {counted(context['min_length'], 'item')}"
        case "too_long":
            return f"must have at most {counted(context['max_length'], 'item')}"
        case "union_tag_not_found":
            return f"needs the key {context['discriminator']}"
    return str(item["msg"]).removeprefix("Value error, ")


def _locate(location: Sequence[int | str], raw: Any) -> tuple[str, Any, bool]:
    """Path text of a pydantic location; the tags of unions, which are not keys of the file, are left out."""
    path, value, found = "", raw, True
    entered = False  # just stepped into a value, whose tag comes next if it has one
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if entered and isinstance(value, dict) and value.get("kind") == part:
            entered = False
            continue
        entered = True
        if isinstance(part, int) and isinstance(value, list) and part < len(value):
            path, value = f"{path}[{part}]", value[part]
        elif isinstance(part, str) and isinstance(value, dict) and part in value:
            path, value = f"{path}.{part}" if path else part, value[part]
        elif last and isinstance(value, dict):
            path, value, found = f"{path}.{part}" if path else str(part), None, False
    return path, value, found


def read_json(path: Path) -> tuple[Any, bytes]:
    """The file's data and bytes. Raises :class:`InputError` when it cannot be read or is not JSON."""
    data = read_bytes(path)
    return parse_json(data, str(path)), data


def read_bytes(path: Path) -> bytes:
    """A file's bytes. Raises :class:`InputError` naming the file and the reason."""
    return InputFile(path).data


def parse_json(data: bytes, source: str, line: int | None = None) -> Any:
    """The data of a JSON text, or of one ``line`` of a file of such. Raises :class:`InputError`."""
    where = "" if line is None else f"line {line}: "
    if len(data) > MOST_BYTES or data.count(b"[") + data.count(b"{") > MOST_PARTS:
        most = f"{MOST_BYTES:,} bytes or {MOST_PARTS:,} lists and objects"
        raise InputError(f"{where}holds more than {most}, the most that is read", source)
    try:
        return json.loads(decode(data), object_pairs_hook=no_repeated_keys)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: line {line or error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(message, source) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid JSON: {where}{error}", source) from None


def no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON as a dict. Raises ``ValueError`` naming the first key, by the alphabet, that stands twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        repeated = min(key for key, many in Counter(key for key, _ in pairs).items() if many > 1)
        raise ValueError(f"the key {repeated!r} stands twice")
    return result


def read(path: str | Path) -> Instance:
    """Read an instance file of any installed family.

    Raises :class:`InputError` naming the file and every fault in it.
    """
    path = Path(path)
    instance = from_bytes(read_bytes(path), str(path))
    instance._file = path
    return instance


def demand_one(given: object) -> None:
    """Raises :class:`InputError` for what is no instance."""
    if isinstance(given, Instance):
        return
    hint = "synth.read reads a file" if isinstance(given, str | Path) else "synth.read and synth.make give one"
    if isinstance(given, Iterable) and not isinstance(given, str):
        hint = "one at a time; synth.study takes several"
    raise InputError(f"instance is of type {type(given).__name__}: must be an Instance: {hint}")


def from_bytes(data: bytes, source: str) -> Instance:
    """The instance whose file holds these bytes; ``source`` is what messages name. Raises :class:`InputError`."""
    from synth.family import get_family
    from synth.method import load

    raw = parse_json(data, source)
    if not isinstance(raw, dict):
        raise InputError("an instance file holds one JSON object", source)
    if raw.get("format") != FORMAT:
        raise InputError([Fault("format", f"must be {FORMAT!r}", raw.get("format"), "format" in raw)], source)
    if not isinstance(raw.get("family"), str):
        raise InputError([Fault("family", "is missing or not a text")], source)
    try:
        family = get_family(raw["family"])
    except InputError as error:
        raise InputError([Fault("family", error.faults[0].message, raw["family"], True)], source) from None
    instance: Instance = parse(raw, load(family.instance), source)
    instance._sha256 = hashlib.sha256(data).hexdigest()
    return instance
