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
    instance: Annotated[str, Field(description="the instance's `name`")]
    instance_file: Annotated[str | None, Field(description="where its file was; null: never in a file")]
    instance_sha256: Annotated[str, Field(description="SHA-256 (hex) of the bytes of that file")]
    method: str
    kind: Literal["program", "reference", "bound", "submitted"]
    solver: Annotated[str | None, Field(description="null for a method without one")]
    options: Annotated[dict[str, Any], Field(description="of the run, see below")]
    termination: Annotated[str, Field(description="why the run ended, see below")]
    objective: _Objective
    bound: Annotated[float | None, Field(description="a lower bound on the objective of the whole instance")]
    verified: Annotated[_Verified, Field(description="what the check found when the run ended")]
    seconds: _Seconds
    solution: Annotated[dict[str, Any] | None, Field(description="for the kind `bound` the certificate")]
    solution_file: Annotated[str | None, Field(description="name of the `.npz` beside it that holds further arrays")]
    message: str | None
    certificate: Annotated[dict[str, Any] | None, Field(description="proves the bound, beside a solution")] = None
    bound_grade: Literal["certified", "solver"] | None = None
    instance_text: Annotated[str | None, Field(description="the file's text, where it is not in `instances/`")] = None
    progress: Annotated[Any, Field(description="rows `[seconds, value, bound]`, none worse than the one before")] = None
    submitted: Annotated[_Submitted | None, Field(description="who handed it in, of the kind `submitted`")] = None
    stopped_by: Annotated[Literal["clock"] | None, Field(description="the time limit ended a search")] = None
    method_origin: Annotated[Origin | None, Field(description="whence a method of others comes")] = None
    solver_origin: Annotated[Origin | None, Field(description="whence a solver of others comes")] = None
    made_by: Annotated[
        list[Maker] | None,
        Field(
            min_length=1, max_length=MOST_MAKERS, description="made the solution, where not `method`; then its parts"
        ),
    ] = None
    question: Annotated[Question | None, Field(description="options that change the question")] = None


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
