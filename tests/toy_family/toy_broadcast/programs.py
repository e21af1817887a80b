"""Step 4: a program: how many nodes send in each round, such that fewest rounds are used."""

from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers import mathprog
from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, add_rows, ones
from toy_broadcast.instance import ToyInstance


def causality(model: pyo.ConcreteModel) -> list[Row]:
    """(1) Only who was told before sends: sends[t] <= 1 + sum(sends[u] for u < t)."""
    return [([(1, x), *ones((model.sends[u] for u in range(t)), -1)], "<=", 1) for t, x in model.sends.items()]


def use(model: pyo.ConcreteModel, nodes: int) -> list[Row]:
    """(2) A round with sends is used: sends[t] <= nodes used[t], where no round has more sends than nodes."""
    return [([(1, x), (-nodes, model.used[t])], "<=", 0) for t, x in model.sends.items()]


def build(nodes: int) -> pyo.ConcreteModel:
    """Minimise the used rounds under (1), (2) and (3): all nodes but one are told."""
    model = pyo.ConcreteModel()
    model.sends = pyo.Var(range(nodes - 1), domain=pyo.Integers, bounds=(0, nodes))
    model.used = pyo.Var(range(nodes - 1), domain=pyo.Binary)
    add_rows(model, "causality", causality(model))
    add_rows(model, "use", use(model, nodes))
    add_rows(model, "everybody", [(ones(model.sends.values()), ">=", nodes - 1)])
    model.rounds = pyo.Objective(expr=pyo.quicksum(model.used.values()))
    return model


def solve(instance: ToyInstance, options: RunOptions) -> Outcome:
    """Any solver that takes linear rows; the bound is its word."""
    if instance.nodes == 1:
        return Outcome("finished", [])
    model, sends, known = build(instance.nodes), [], 1
    result = mathprog.solve(model, options, bounded=True)
    counts = [round(x.value) for x in model.sends.values()] if result.has_point else []
    for step, count in enumerate(filter(None, counts), 1):
        sends += [(step, v, known + v) for v in range(min(count, instance.nodes - known))]
        known = min(instance.nodes, known + count)
    ended = "optimal" if result.termination == "optimal" else "time_limit"
    return Outcome(ended, sends or None, result.bound, "branch and bound" if result.bound is not None else None)
