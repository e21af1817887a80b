"""Points from outside: the values of a model's variables by name, verified against the model before it takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from synth.arrays import SOLVED, FloatArray
from synth.errors import InputError
from synth.solvers.names import Names

Point = Mapping[str, float]
CONSTANT = "constant_one"  # the variable fixed to 1 that stands for a constant in the objective of an exported model


def taken(kind: str, model: Any, point: Point, names: Names | None, name_of: Callable[[Any], str]) -> Any:
    """The model's answer by a point: a Pyomo model takes the values and its objective is returned, of a linear program
    given as words of ``linprog`` the values of its columns. ``name_of`` names Pyomo's components. Raises
    :class:`InputError` for other models, and where the point is none of the model's."""
    if kind == "pyomo":
        return _by_pyomo(model, point, name_of)
    if kind == "linprog":
        return _by_linprog(model, point, names)
    raise InputError(
        "CP-SAT's models take no points from files: --solver highs, where the method has a program for it"
        if kind == "cpsat"
        else "this linear program grows while it is solved: its method needs prices, not a point"
    )


def _by_pyomo(model: Any, point: Point, name_of: Callable[[Any], str]) -> float:
    from pyomo.environ import Var

    from synth.solvers.matrix_form import matrix_form

    try:
        form = matrix_form(model)
    except Exception as error:  # Pyomo's own
        raise InputError(f"the model has rows that are not linear: {error}") from None
    point = {name: value for name, value in point.items() if name != CONSTANT}
    values = _in_order([name_of(variable) for variable in form.variables], point)
    _demand_inside(values, form.lower, form.upper, [name_of(variable) for variable in form.variables])
    whole = form.whole == 1
    _demand_whole(values, whole, form.variables, name_of)
    values[whole] = np.round(values[whole])
    _demand_rows(form.rows @ values, form.row_lower, form.row_upper, lambda i: name_of(form.constraints[i]))
    for variable in model.component_data_objects(Var, active=True):
        if variable.value is None and not variable.fixed:  # in no row: any value will do
            variable.set_value(max(0.0, variable.lb or 0.0), skip_validation=True)
    form.put(values.tolist())
    return float(form.cost @ values + form.offset)


def _by_linprog(words: Mapping[str, Any], point: Point, names: Names | None) -> FloatArray:
    count = len(words["c"])
    columns, rows = names() if names is not None else ([f"x{i}" for i in range(count)], [])
    values = _in_order(columns, point)
    bounds = np.asarray(words.get("bounds", [(0, np.inf)] * count), dtype=float)
    _demand_inside(values, bounds[:, 0], bounds[:, 1], columns)
    first = 0
    for matrix, side, below in (("A_ub", "b_ub", -np.inf), ("A_eq", "b_eq", None)):
        if words.get(matrix) is None:
            continue
        upper = np.asarray(words[side], dtype=float)
        lower = upper if below is None else np.full(len(upper), below)
        own = list(rows[first : first + len(upper)]) or [str(first + i) for i in range(len(upper))]
        _demand_rows(words[matrix] @ values, lower, upper, own.__getitem__)
        first += len(upper)
    return values


def _in_order(names: Sequence[str], point: Point) -> FloatArray:
    """The values of the variables; those that a file leaves out are 0. Raises :class:`InputError` for a name that the
    model does not have."""
    unknown = sorted(set(point) - set(names))
    if unknown:
        words = f"the model has no variable {unknown[0]!r} ({len(unknown)} of {len(point)} names are unknown)"
        raise InputError(f"{words}: is it another model, or another --nth?")
    return np.array([point.get(name, 0.0) for name in names], dtype=np.float64)


def _demand_inside(values: FloatArray, lower: FloatArray, upper: FloatArray, names: Sequence[str]) -> None:
    room = SOLVED * np.maximum(1.0, np.abs(values))
    wrong = np.flatnonzero((values < lower - room) | (values > upper + room))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(f"{names[i]} = {values[i]:g} is outside {lower[i]:g}..{upper[i]:g}")


def _demand_whole(values: FloatArray, whole: Any, variables: Sequence[Any], name_of: Callable[[Any], str]) -> None:
    wrong = np.flatnonzero(whole & (np.abs(values - np.round(values)) > SOLVED))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(f"{name_of(variables[i])} = {values[i]:g} is not whole")


def _demand_rows(held: FloatArray, lower: FloatArray, upper: FloatArray, name: Callable[[int], str]) -> None:
    """Raise :class:`InputError` for the first row that does not hold."""
    side = np.where(np.isfinite(upper), np.abs(upper), np.where(np.isfinite(lower), np.abs(lower), 0.0))
    room = SOLVED * np.maximum(1.0, side)
    wrong = np.flatnonzero((held < lower - room) | (held > upper + room))
    if len(wrong):
        i = int(wrong[0])
        right = f"at least {lower[i]:g}" if held[i] < lower[i] else f"at most {upper[i]:g}"
        raise InputError(f"the point breaks the row {name(i)}: it is {held[i]:g}, must be {right}")
