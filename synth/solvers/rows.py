"""Linear rows of Pyomo models: the one way to write them.

Expressions are made directly from coefficients and variables; a Python sum of products would be walked term by term,
which takes longer than solving on models of some ten thousand rows. A model is a list of :data:`Row` a constraint
family, written beside its equation number, and :func:`add_rows` puts it into the model. The rows themselves know no
modelling language (:func:`synth.solvers.cpsat.add_rows` takes them too), so Pyomo is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

Term = tuple[float, Any]
"""Coefficient and variable."""
Sense = Literal["<=", ">=", "=="]
Row = tuple[Iterable[Term], Sense, float]
"""Terms, sense, right-hand side."""


def linear(terms: Iterable[Term]) -> Any:
    """Sum of coefficient times variable."""
    import pyomo.core.expr.numeric_expr as numeric

    return numeric.LinearExpression([v if c == 1 else numeric.MonomialTermExpression((c, v)) for c, v in terms])


def ones(variables: Iterable[Any], factor: float = 1) -> list[Term]:
    """Every variable with the same coefficient."""
    return [(factor, variable) for variable in variables]


def relation(terms: Iterable[Term], sense: Sense, right: float) -> Any:
    """One row as Pyomo's relation."""
    import pyomo.core.expr.relational_expr as relational

    body = linear(terms)
    match sense:
        case "==":
            return relational.EqualityExpression((body, right))
        case "<=":
            return relational.InequalityExpression((body, right), strict=False)
        case ">=":
            return relational.InequalityExpression((right, body), strict=False)


def add_rows(model: Any, name: str, rows: Sequence[Row]) -> None:
    """Put the rows into the model as the constraint ``name``, indexed 0, 1, … in their order."""
    from synth.solvers.algebra import pyo

    setattr(model, name, pyo.Constraint(range(len(rows)), rule=lambda _, i: relation(*rows[i])))
