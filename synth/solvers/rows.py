"""Linear rows of Pyomo models: the one way to write them.

Expressions are made directly from coefficients and variables; a Python sum of products would be walked term by term,
which takes longer than solving on models of some ten thousand rows. An equation is a mapping from its index to its
:data:`Row`, written beside its number, and :func:`add_rows` puts it into the model. The rows themselves know no
modelling language (:func:`synth.solvers.cpsat.add_rows` takes them too), so Pyomo is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

from synth.solvers.names import give_indices, give_letters

Term = tuple[float, Any]
"""Coefficient and variable."""
Sense = Literal["<=", ">=", "=="]
Row = tuple[Iterable[Term], Sense, float]
"""Terms, sense, right-hand side."""


@cache
def _expressions() -> tuple[Any, Any]:
    """Pyomo's modules of linear expressions and of relations: an import statement in each row would take as long as the
    rest of it."""
    import pyomo.core.expr.numeric_expr as numeric
    import pyomo.core.expr.relational_expr as relational

    return numeric, relational


def linear(terms: Iterable[Term]) -> Any:
    """Sum of coefficient times variable."""
    numeric, _ = _expressions()
    return numeric.LinearExpression([v if c == 1 else numeric.MonomialTermExpression((c, v)) for c, v in terms])


def ones(variables: Iterable[Any], factor: float = 1) -> list[Term]:
    """Every variable with the same coefficient."""
    return [(factor, variable) for variable in variables]


def relation(terms: Iterable[Term], sense: Sense, right: float) -> Any:
    """One row as Pyomo's relation."""
    _, relational = _expressions()
    body = linear(terms)
    match sense:
        case "==":
            return relational.EqualityExpression((body, right))
        case "<=":
            return relational.InequalityExpression((body, right), strict=False)
        case ">=":
            return relational.InequalityExpression((right, body), strict=False)


def variables(letters: str, indices: Iterable[Any], **words: Any) -> Any:
    """A Pyomo variable an index (a tuple of numbers and words); ``words`` go to ``pyomo.Var``. The letters, one a part
    of the index, are for the names in exported files (:mod:`synth.solvers.names`)."""
    from synth.solvers.algebra import pyo

    return give_letters(pyo.Var(pyo.SetOf(list(indices)), **words), letters)  # a Set would copy them one by one


def add_rows(model: Any, name: str, rows: Iterable[Row] | Mapping[Any, Row], letters: str = "row") -> None:
    """Put the rows into the model as the constraint ``name``, whose elements 0, 1, … are the rows in their order.

    Their indices, for exported names and :func:`synth.solvers.names.indices_of`, are those of the mapping, whose parts
    have these ``letters`` as in :func:`variables`; of one row alone the index may be None."""
    from synth.solvers.algebra import pyo

    of: Mapping[Any, Row] = rows if isinstance(rows, Mapping) else dict(enumerate(rows))
    if None in of:
        setattr(model, name, pyo.Constraint(expr=relation(*of[None])))
        return
    row = iter(of.values())
    found = pyo.Constraint(range(len(of)), rule=lambda *_: relation(*next(row)))  # by tuples Pyomo takes longer
    setattr(model, name, give_indices(found, letters, list(of)))
