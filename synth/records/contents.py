"""What every record holds, as its JSON object: keys and kinds of values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from synth.errors import Fault, InputError
from synth.instance import faults_of
from synth.text.untrusted import not_finite

FORMAT = "synth-record/1"
MOST_ORIGIN = 300  # characters of where a method or a solver comes from: a file or distribution, and its version
MOST_NAME = 200  # of who handed a record in, and of the file's name
MOST_MAKERS = 64  # methods that made a solution and its parts
DOI = r"10\.[0-9]{4,9}/[!-~]{1,180}"
MOST_QUESTION = 255  # of what a run asked: it is part of a file's name


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable: no control characters")
    return text


Origin = Annotated[str, Field(max_length=MOST_ORIGIN), AfterValidator(_printable)]
Maker = Annotated[str, Field(min_length=1, max_length=MOST_NAME), AfterValidator(_printable)]
Question = Annotated[str, Field(max_length=MOST_QUESTION, pattern="^[A-Za-z0-9_=-]*$")]


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Objective(_Stored):
    name: str
    unit: str
    sense: Literal["minimise"]
    value: float | None


class _Verified(_Stored):
    ok: bool
    facts: dict[str, Any]
    faults: list[str]


class _Seconds(_Stored):
    build: float
    solve: float
    check: float


class _Submitted(_Stored):
    by: Annotated[str, Field(min_length=1, max_length=MOST_NAME), AfterValidator(_printable)]
    doi: Annotated[str, Field(pattern=f"^{DOI}$")] | None = None
    file: Annotated[str, Field(max_length=MOST_NAME), AfterValidator(_printable)]
    file_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    program: Annotated[str, Field(max_length=MOST_ORIGIN), AfterValidator(_printable)] | None = None


class Contents(_Stored):
    """What every record holds. Further keys are kept and ignored, so that later versions may add some."""

    format: Literal["synth-record/1"]
    family: str
    instance: str
    instance_file: str | None
    instance_sha256: str
    method: str
    kind: Literal["program", "reference", "bound", "submitted"]
    solver: str | None
    options: dict[str, Any]
    termination: str
    objective: _Objective
    bound: float | None
    verified: _Verified
    seconds: _Seconds
    solution: dict[str, Any] | None
    solution_file: str | None
    message: str | None
    certificate: dict[str, Any] | None = None
    bound_grade: Literal["certified", "solver"] | None = None
    instance_text: str | None = None
    progress: Any = None
    submitted: _Submitted | None = None  # who handed it in, of the kind ``submitted``
    stopped_by: Literal["clock"] | None = None  # whether the limit ended any search; older records do not say
    method_origin: Origin | None = None  # whence a method of others comes: a distribution or a file
    solver_origin: Origin | None = None
    made_by: Annotated[list[Maker], Field(min_length=1, max_length=MOST_MAKERS)] | None = None  # older: by ``method``
    question: Question | None = None  # what a method in a file was asked, as :func:`synth.options.asked` says it


KEYS = frozenset(Contents.model_fields)  # of a record


def demand_contents(data: Any, source: str) -> None:
    """Raise :class:`InputError` where the keys and kinds of values are not those of a record."""
    if isinstance(data, dict) and str(data.get("format")).startswith("synth-instance"):
        raise InputError("is an instance, not a record: synth solve makes records of it", source)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"not a record ({FORMAT})", source)
    try:
        Contents.model_validate(data)
    except ValidationError as error:
        missing = [
            str(item["loc"][0]) for item in error.errors() if item["type"] == "missing" and len(item["loc"]) == 1
        ]
        if missing:
            raise InputError(f"incomplete record, missing: {', '.join(missing)}", source) from None
        raise InputError(list(faults_of(error, data)), source) from None
    if infinite := [Fault(place, "must be a finite number") for place in not_finite(data)]:
        raise InputError(infinite, source)
