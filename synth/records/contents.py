"""What every record holds, as its JSON object: keys and kinds of values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


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


class Contents(_Stored):
    """What every record holds. Further keys are kept and ignored, so that later versions may add some."""

    format: Literal["synth-record/1"]
    family: str
    instance: str
    instance_file: str | None
    instance_sha256: str
    method: str
    kind: Literal["program", "reference", "bound"]
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
    stopped_by: Literal["clock"] | None = None  # whether the limit ended any search; older records do not say


KEYS = frozenset(Contents.model_fields)  # of a record
