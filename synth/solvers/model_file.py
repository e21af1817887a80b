"""Models written to a file instead of being solved, or answered by a point from one: the seam of all program methods.

Whoever hands a model to a solver offers it here first (:func:`offer`). Within :func:`instead_of_solving` the n-th model
offered is written and :class:`Written` leaves the method; the ones before it are solved as ever. Within
:func:`answered_by` the n-th model takes the values of a given point, and the method goes on with it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from synth.errors import InputError
from synth.solvers.names import Names, all_named, families_of, name_of

Form = Literal["mps", "lp", "cpsat"]
Kind = Literal["pyomo", "highs", "linprog", "cpsat"]


class Written(BaseException):
    """The model was written; what asked for it need not go on. No error, so no handler of errors stops it."""


@dataclass
class Wish:
    """What the ``number``-th model is wanted for: a file, or to take a ``point``. ``question``: what it decides."""

    number: int
    path: Path = Path()
    form: Form = "mps"
    point: Mapping[str, float] | None = None
    offered: int = 0
    question: str | None = None


_WISH: ContextVar[Wish | None] = ContextVar("model that is wanted", default=None)
_QUESTION: ContextVar[str | None] = ContextVar("what the next models decide", default=None)


@contextmanager
def deciding(question: str) -> Iterator[None]:
    """Within, models decide this question: ``is there a schedule of 4 timesteps?``"""
    token = _QUESTION.set(question)
    try:
        yield
    finally:
        _QUESTION.reset(token)


@contextmanager
def instead_of_solving(path: Path, form: Form, number: int = 1) -> Iterator[Wish]:
    """Within, the ``number``-th model that is offered goes into the file ``path``; leaves by itself once it is written,
    and the wish then says what the model decides.

    Raises :class:`InputError` where fewer models were offered, where the form does not fit the model, and where the
    file cannot be written.
    """
    wish = Wish(number, path, form)
    token = _WISH.set(wish)
    try:
        yield wish
    except Written:
        return
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    finally:
        _WISH.reset(token)
    _demand_offered(wish)


@contextmanager
def answered_by(point: Mapping[str, float], number: int = 1) -> Iterator[Wish]:
    """Within, the ``number``-th model that is offered takes the values of a point, by the names of its variables.

    Raises :class:`InputError` where fewer models were offered, and where the point is none of the model's.
    """
    wish = Wish(number, point=point)
    token = _WISH.set(wish)
    try:
        yield wish
    finally:
        _WISH.reset(token)
    if wish.offered < number:
        _demand_offered(wish)


def _demand_offered(wish: Wish) -> None:
    """Raise :class:`InputError` that says how many models there were."""
    if not wish.offered:
        raise InputError("the method handed no model to a solver: bounds, references or algorithms of its own sufficed")
    raise InputError(
        f"the method handed a solver {wish.offered} model{'s'[: wish.offered - 1]}: there is no number {wish.number}"
    )


def offer(kind: Kind, model: Any, names: Names | None = None) -> Any:
    """A model on its way to a solver: a Pyomo model, a ``highspy.Highs`` that holds one, the words of a call of
    ``scipy.optimize.linprog``, or a ``CpModel``. Does nothing unless somebody wants it written or answered; then
    ``names`` makes the names of its variables and rows (a Pyomo model knows its own). Returns None, or for a model
    that is answered the values of its variables in order (a Pyomo model has them, and its objective is returned)."""
    wish = _WISH.get()
    if wish is None:
        return None
    wish.offered += 1
    if wish.offered != wish.number:
        return None
    wish.question = _QUESTION.get()
    if wish.point is not None:
        from synth.solvers import points  # numpy, which starts threads

        return points.taken(kind, model, wish.point, names, _name)
    _WRITERS[kind](model, wish.path, wish.form, names)
    raise Written


def _write_pyomo(model: Any, path: Path, form: Form, names: Names | None) -> None:
    from pyomo.repn.plugins.lp_writer import LPWriter

    from synth.solvers import algebra  # noqa: F401  (Pyomo registers the writers)

    if form == "cpsat":
        raise InputError("this model is a mathematical program, not one of CP-SAT: --format mps or lp")
    with path.open("w", encoding="utf-8"):  # an error of the path in the words of the system
        pass
    if form == "lp":
        with path.open("w", encoding="utf-8") as file:
            LPWriter().write(model, file, labeler=_name)
    else:
        logger = logging.getLogger("pyomo")
        level = logger.level
        logger.setLevel(logging.ERROR)  # it warns of a constant objective, for which it writes a placeholder
        try:
            model.write(str(path), format="mps", io_options={"labeler": _name})
        finally:
            logger.setLevel(level)
    text = path.read_text(encoding="utf-8").replace("ONE_VAR_CONSTANT", "constant_one_")
    path.write_text(_OF_PYOMO.sub(r"\1", text.replace(" constant_one_", " constant_one")), encoding="utf-8")


# Pyomo's writers say of a row what its sense is: c_u_NAME_ for at most, c_l_NAME_ for at least, c_e_NAME_ for equal
_OF_PYOMO = re.compile(r"(?<!\S)c_[elu]_(\S+?)_(?=:?(?!\S))")


def _name(component: Any) -> str:
    """A component's name in a file, where readers of LP take names that begin like a number for one (``informed`` for
    ``inf``, ``e1`` for an exponent)."""
    from pyomo.core.base.label import cpxlp_label_from_name

    name = str(cpxlp_label_from_name(name_of(component) or component.name))
    return f"_{name}" if re.match(r"(?i)inf|nan|free|e\d", name) else name


def _write_highs(highs: Any, path: Path, form: Form, names: Names | None) -> None:
    if form == "cpsat":
        raise InputError("this model is a linear program, not one of CP-SAT: --format mps or lp")
    if names is not None:
        columns, rows = names()
        for i, name in enumerate(columns):
            highs.passColName(i, name)
        for i, name in enumerate(rows):
            highs.passRowName(i, name)
    with path.open("w"):
        pass
    if path.suffix == f".{form}":
        highs.writeModel(str(path))  # the form follows from the suffix
        return
    beside = path.with_name(f".{path.name}.{form}")
    highs.writeModel(str(beside))
    beside.replace(path)


def _write_linprog(words: Mapping[str, Any], path: Path, form: Form, names: Names | None) -> None:
    import highspy
    import numpy as np
    from scipy.sparse import csc_array, vstack

    cost = np.asarray(words["c"], dtype=float)
    blocks = [csc_array(words[key]) for key in ("A_ub", "A_eq") if words.get(key) is not None]
    upper = [np.asarray(words[key], dtype=float) for key in ("b_ub", "b_eq") if words.get(key) is not None]
    lower = [np.full(len(side), -highspy.kHighsInf) for side in upper[: words.get("A_ub") is not None]]
    bounds = np.asarray(words.get("bounds", [(0, np.inf)] * len(cost)), dtype=float)
    rows = csc_array(vstack(blocks))
    lp: Any = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), rows.shape[0]
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, bounds[:, 0], bounds[:, 1]
    lp.row_lower_, lp.row_upper_ = np.concatenate([*lower, *upper[len(lower) :]]), np.concatenate(upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr.astype(np.int32), rows.indices.astype(np.int32)
    lp.a_matrix_.value_ = rows.data
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    _write_highs(highs, path, form, names)


def _write_cpsat(model: Any, path: Path, form: Form, names: Names | None) -> None:
    if form != "cpsat":
        raise InputError(
            f"a CP-SAT model (intervals, circuits, implications) has no {form.upper()} form: --format cpsat writes it "
            "as its protocol buffer in text, --solver highs the program as MILP solvers have it, where there is one"
        )
    proto = model.Proto()
    if names is not None:
        for whole, parts in zip((proto.variables, proto.constraints), names(), strict=True):
            for part, name in zip(whole, parts, strict=False):
                part.name = name
    for family, letters, variables in families_of(model):
        for variable, name in zip(variables.values(), all_named(family, letters, variables), strict=True):
            proto.variables[variable.index].name = name
    path.write_text(str(proto), encoding="utf-8")


_WRITERS: dict[Kind, Callable[[Any, Path, Form, Names | None], None]] = {
    "pyomo": _write_pyomo, "highs": _write_highs, "linprog": _write_linprog, "cpsat": _write_cpsat,
}  # fmt: skip
