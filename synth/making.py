"""``synth make``: from ``key=value`` to an instance, for every family in the same way.

A family states its keys once, as a :class:`Keys` type: kind, range, default and meaning of each. Here the texts are
read, all faults collected, and the family's ``make`` is called with the typed keys. From Python the values may be
typed already.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from annotated_types import Ge, Gt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from synth.errors import Fault, InputError, did_you_mean, one_of
from synth.family import Family
from synth.instance import LONGEST_NAME, Instance, faults_of, parse
from synth.method import load
from synth.options import as_text, read_flag
from synth.text import amounts
from synth.text.input_file import InputFile


def _flag(value: Any) -> Any:
    return read_flag(value) if isinstance(value, str) else value


def _joined(separator: str) -> Any:
    def join(value: Any) -> Any:
        return separator.join(map(str, value)) if isinstance(value, (list, tuple)) else value

    return BeforeValidator(join)


MAKE = "synth make"
AnyInstance = TypeVar("AnyInstance", bound=Instance)
Flag = Annotated[bool, BeforeValidator(_flag)]
"""``on`` or ``off`` (also true/false, yes/no, 1/0)."""
Listed = Annotated[str, _joined(",")]
"""Values with commas, such as ``8,8,16``; from Python also a list."""
Sides = Annotated[str, _joined("x")]
"""Sides such as ``8x8x4``; from Python also a list."""
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


def _quantity(read: Callable[[str], object], form: str) -> tuple[Any, ...]:
    """Read texts with their units; the help calls what is taken by ``form``."""
    return BeforeValidator(amounts.typed(read)), Field(json_schema_extra={"format": form})


_BYTES = _quantity(partial(amounts.real, kind="size"), "size")
Size = Annotated[int, *_quantity(amounts.whole_bytes, "size"), Ge(1)]
"""A whole number of bytes, with a unit where one is written: ``1GiB`` = 2^30, ``64KB`` = 64000, ``4096``, ``1e9``."""
Bytes = Annotated[float, *_BYTES, Gt(0)]
"""Bytes likewise, not always whole: of models that share them out."""
BytesOrNone = Annotated[float, *_BYTES, Ge(0)]
Rate = Annotated[float, *_quantity(partial(amounts.real, kind="rate"), "rate"), Gt(0)]
"""Bytes per second: ``25GB/s``, ``200Gbit/s``, ``25e9``."""
Seconds = Annotated[float, *_quantity(partial(amounts.real, kind="time"), "time"), Ge(0)]
"""``0.7us``, ``7e-7``."""


class Keys(BaseModel):
    """What ``synth make`` takes for one family: a field a key, its ``description`` the help (with the unit).

    ``examples`` are whole parameter lists, one for each kind of source. ``machine_key`` is the key that takes a machine
    which ``synth import`` has read (the data of a machine file, :mod:`synth.exchange.machines.file`), if there is one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    examples: ClassVar[tuple[str, ...]] = ()
    machine_key: ClassVar[str | None] = None
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    name: str | None = Field(None, description="name of the instance (default: made from the keys)")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        """Faults that concern several keys; ``values`` holds the keys that were given and could be read."""
        return []

    @classmethod
    def names(cls) -> list[str]:
        """All keys, ``name`` last."""
        return [*(key for key in cls.model_fields if key != "name"), "name"]

    @classmethod
    def described(cls) -> list[tuple[str, str, str, str]]:
        """A row a key: its name, what it takes, its default, its meaning."""
        properties, rows = cls.model_json_schema()["properties"], []
        for key in cls.names():
            field = cls.model_fields[key]
            default = "needed" if field.is_required() else "" if field.default is None else as_text(field.default)
            rows.append((key, _takes(properties[key]), default, field.description or ""))
        return rows

    @classmethod
    def reads(cls, key: str, text: str) -> bool:
        """Whether the key takes this text, whatever the others say."""
        return key in _readable(cls, {key: text})

    @property
    def given(self) -> tuple[str, ...]:
        """The keys that were given, in their order."""
        return tuple(self._given)

    @property
    def command(self) -> str:
        """The parameters as typed, files by their names only; part of the instance's ``source``."""
        values = {key: getattr(self, key) for key in self._given}
        return " ".join(
            shlex.quote(f"{key}={values[key].name if isinstance(values[key], InputFile) else as_text(typed)}")
            for key, typed in self._given.items()
        )

    def instance(
        self, family: str, instance_type: type[AnyInstance], name: str, *, notes: Sequence[str] = (), **raw: Any
    ) -> AnyInstance:
        """The validated instance of these raw data, with ``source``, and with ``name`` where none was given (of a long
        one its beginning and a hash). ``notes`` say what a reader of the parameters alone would not know (what was
        rounded, what failed); they end the source. Raises :class:`InputError`."""
        name = self.name or cut_name(name)
        whole = {"family": family, "source": f"synth make {family} {self.command}", **raw, "name": name}
        whole["source"] = ". ".join([whole["source"], *notes])
        instance = parse(whole, instance_type, f"{MAKE} {family}")
        assert isinstance(instance, instance_type)
        instance._notes = tuple(notes)
        return instance


def cut_name(name: str) -> str:
    """The name, or its beginning and a hash of it where it is longer than an instance's may be."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 1 - len(digest)]}-{digest}"


def plain_name(words: str) -> str:
    """The words as a part of an instance's name: what a name may not hold becomes a hyphen or a dot."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", words.replace("/", ".")).strip("-")


def make(family: Family, parameters: Mapping[str, Any]) -> Instance:
    """An instance of the family from its keys. Raises :class:`InputError` listing every fault."""
    keys = read_keys(family, parameters)
    try:
        made: Instance = load(family.make)(keys)
        return made
    except InputError as error:
        raise error if error.source else InputError(error.faults, f"{MAKE} {family.name}") from None


@contextmanager
def asked_by(command: str) -> Iterator[None]:
    """Within, what is wrong with keys is said of this command, which takes them too, instead of ``synth make``."""
    try:
        yield
    except InputError as error:
        if (error.source or "").startswith(f"{MAKE} "):
            error.source = command
        raise


def read_keys(family: Family, parameters: Mapping[str, Any]) -> Keys:
    """The typed keys. Raises :class:`InputError` listing every fault."""
    keys_type: type[Keys] = load(family.keys)
    given = {key: value.as_posix() if isinstance(value, Path) else value for key, value in parameters.items()}
    faults: list[Fault] = []
    try:
        keys = keys_type.model_validate(given)
        values = {key: getattr(keys, key) for key in given}
    except ValidationError as error:
        faults += [_in_words(fault, keys_type, given) for fault in faults_of(error, given)]
        values = _readable(keys_type, given)
    seen = {fault.path for fault in faults}
    for fault in keys_type.faults_in(values):
        if (not fault.path or fault.path not in seen) and not _asks(fault, given.keys() - values.keys()):
            shown_as_typed = fault.has_value and fault.path in given
            faults.append(replace(fault, value=given[fault.path]) if shown_as_typed else fault)
    if faults:
        raise InputError(faults, f"{MAKE} {family.name}")
    keys._given.update(given)
    return keys


def _asks(fault: Fault, unread: Set[str]) -> bool:
    """Whether a fault asks for a key that was given and could not be read, whose own fault is told."""
    return any(f"{key}=" in fault.message for key in unread)


def _readable(keys_type: type[Keys], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those keys that can be read, each on its own."""
    validator, values = keys_type.__pydantic_validator__, {}
    for key, value in given.items():
        if key in keys_type.model_fields:
            with suppress(ValidationError):
                values[key] = getattr(validator.validate_assignment(keys_type.model_construct(), key, value), key)
    return values


def _in_words(fault: Fault, keys_type: type[Keys], given: Mapping[str, Any]) -> Fault:
    """Pydantic's words for parameters."""
    if fault.message == "unknown key":
        words = f"unknown parameter; {one_of(fault.path, keys_type.names())}"
        return Fault(fault.path, words, given[fault.path], True)
    choices = re.findall(r"'([^']*)'", fault.message)
    if fault.path != "links" and "links" in keys_type.model_fields and hasattr(fault.value, "edges"):
        return replace(fault, message="a graph is given as links=")
    if fault.message.startswith("input should be '"):
        nearest = did_you_mean(fault.value, choices)
        return replace(fault, message=f"must be one of {', '.join(choices)}{'; ' * bool(nearest)}{nearest.strip()}")
    return fault


def _takes(schema: Mapping[str, Any]) -> str:
    """What texts a key takes, in words, from its JSON schema; what only Python can give is left out."""
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(filter(None, map(_takes, schema["anyOf"]))))
    if "enum" in schema or "const" in schema:
        return " | ".join(schema.get("enum") or [schema["const"]])
    words = {"boolean": "on | off", "integer": "whole number", "number": "number", "string": "text"}
    forms = {"path": "file", "size": "size such as 64KiB", "rate": "rate such as 25GB/s", "time": "time such as 0.7us"}
    word = forms.get(schema.get("format", ""), words.get(schema.get("type", ""), ""))
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    return " ".join([word, *(f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema)])
