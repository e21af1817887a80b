"""All steps at once, where what a change of topology costs depends on what changes: a program file beside
:mod:`synth_models.harvest.programs.misocp.model` and :mod:`synth_models.harvest.programs.misocp.one_port`.

Every step has a copy of the program of one topology (``model.step``), and the changes between neighbours are counted.
Ours: the paper's section 3.1 names such delays and has no program for them. A link that is not needed costs something
here, so (10) and (11) are at most ``ports`` and there are no loops: outputs and inputs that are left are idle. Counts
of circuits are whole because links are.

=================  ========================  ==================================  ====================
page               code                      index set                           unit
=================  ========================  ==================================  ====================
x_i[u,v]           ``model.step[i].links``   step, ordered pairs of GPUs         links
s_i[u,v]           ``model.set_up``          change i, ordered pairs of GPUs     circuits set up
r_i[u,v]           ``model.taken_down``      change i, ordered pairs of GPUs     circuits that end
p_i[e]             ``model.port_changes``    change i, side, GPU                 ports
y_i                ``model.is_changed``      change i (before step i, from 1)    0/1
q_i[j]             ``model.table_row``       change i, row of the table          0/1
D_i                ``model.paid``            change i                            ``model.unit`` seconds
d, n               ``model.ports``,          one number each                     links, GPUs
                   ``model.gpus``
n_j, tau_j         ``instance.               row of the table                    ports, seconds
                   delay_by_ports``
alpha_r, alpha_c   ``instance.               one number each                     seconds
                   reconfiguration_delay``,
                   ``delay_per_circuit``
o_i                ``instance.overlap``      step                                seconds
=================  ========================  ==================================  ====================

What a change costs is capped at ``most`` seconds above its overlap. With the time of a known schedule as ``most``, a
schedule with such a change is no better, and the program's optimum is at most the least time all the same. It keeps the
coefficients in the range that solvers take.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.names import give_letters
from synth.solvers.rows import Row, Term, add_rows, linear, ones, variables
from synth_models.harvest.instance import HarvestInstance

SIDES = ("output", "input")
SMALLEST = 1e-9  # coefficients of costs up to this are left out, which only lowers the optimum: a bound stays
LARGEST = 1e6  # in ``model.unit``: a change whose overlap is beyond this costs nothing in the program
UNIT = 1e-2  # of ``most``

_Prices = tuple[float, float, float, list[float]]  # seconds: overlap, a change, a circuit, each row of the table


def build(instance: HarvestInstance, parts: Sequence[Any], most: float) -> pyo.ConcreteModel:
    """The model of all steps; ``parts`` are the programs of one topology a step, without loops, which become its own.
    ``most`` is the time of a known schedule in seconds, above 0."""
    model: Any = pyo.ConcreteModel()
    model.gpus, model.ports, model.unit = instance.gpus, instance.ports, most * UNIT
    model.blocks = tuple(block for part in parts for block in part.blocks)
    model.step = give_letters(pyo.Block(range(len(parts)), rule=lambda _, i: parts[i]), "i")
    for i in model.step:
        model.step[i].objective.deactivate()
    change_variables(model, instance, most)
    circuits_that_change(model)
    ports_that_change(model)
    changes_alone(model)
    row_of_table(model)
    delay_paid(model)
    least_total_time(model)
    return model


def change_variables(model: Any, instance: HarvestInstance, most: float) -> None:
    """All that is counted of every change, and ``model.prices``: seconds by overlap, change, circuit and row."""
    changes = range(1, len(model.step))
    nodes = range(model.gpus)
    circuits = [(i, u, v) for i in changes for u, v in product(nodes, nodes) if u != v]
    model.table = _table(instance)
    model.prices = {i: _prices(instance, i, most) for i in changes}
    model.set_up = variables("i u v", circuits, bounds=(0, model.ports))
    model.taken_down = variables("i u v", circuits, bounds=(0, model.ports))
    model.port_changes = variables("i side u", product(changes, SIDES, nodes), bounds=(0, model.ports))
    model.is_changed = variables("i", changes, domain=pyo.Integers, bounds=(0, 1))
    rows = range(len(model.table))
    model.table_row = variables("i j", product(changes, rows), domain=pyo.Integers, bounds=(0, 1))
    model.paid = variables("i", changes, bounds=(0, 1 / UNIT))


def _table(instance: HarvestInstance) -> list[tuple[int, float]]:
    """The rows (ports, seconds) that a change can have; without a table one for any number."""
    every = 2 * instance.gpus * instance.ports
    found = []
    for ports, seconds in instance.delay_by_ports or ((every, 0.0),):
        found.append((min(ports, every), seconds))
        if ports >= every:
            break
    return found


def _prices(instance: HarvestInstance, step: int, most: float) -> _Prices | None:
    """Overlap, and what a change, a circuit and each row of the table cost, each capped at ``most`` above the overlap;
    None where the overlap hides more than the program can say."""
    hidden = float(instance.overlap[step])
    if hidden > LARGEST * most * UNIT:
        return None
    cap = most + hidden
    by_row = [min(seconds, cap) for _, seconds in _table(instance)]
    return hidden, min(instance.reconfiguration_delay, cap), min(instance.delay_per_circuit or 0.0, cap), by_row


def dearest(model: Any) -> float:
    """Seconds of the dearest coefficients of all changes together: what an error of 1 in each would cost."""
    prices: list[_Prices | None] = list(model.prices.values())
    return sum(max(change, circuit, *rows) for _, change, circuit, rows in filter(None, prices))


def circuits_that_change(model: Any) -> None:
    """(31): what a topology has above the one before is set up, what it lacks is taken down."""
    rows: dict[Any, Row] = {}
    for i, u, v in model.set_up:
        now, before = model.step[i].links[u, v], model.step[i - 1].links[u, v]
        differ = [(1, now), (-1, before), (-1, model.set_up[i, u, v]), (1, model.taken_down[i, u, v])]
        rows[i, u, v] = differ, "==", 0
    add_rows(model, "circuits_that_change", rows, "i u v")


def ports_that_change(model: Any) -> None:
    """(32): of a GPU's outputs, and inputs, as many change as it gains links there or loses, whichever is more."""
    rows: dict[Any, Row] = {}
    for i, side, gpu in model.port_changes:
        ends = [(gpu, v) if side == "output" else (v, gpu) for v in range(model.gpus) if v != gpu]
        for word, circuits in (("gained", model.set_up), ("lost", model.taken_down)):
            terms = [*ones(circuits[i, u, v] for u, v in ends), (-1, model.port_changes[i, side, gpu])]
            rows[i, side, gpu, word] = terms, "<=", 0
    add_rows(model, "ports_that_change", rows, "i side u word")


def changes_alone(model: Any) -> None:
    """(33): ports change only where there is a change."""
    rows: dict[Any, Row] = {
        (i, side, gpu): ([(1, var), (-model.ports, model.is_changed[i])], "<=", 0)
        for (i, side, gpu), var in model.port_changes.items()
    }
    add_rows(model, "changes_alone", rows, "i side u")


def row_of_table(model: Any) -> None:
    """(34): a change has one row of the table, which is for at least as many ports as change."""
    chosen: dict[Any, Row] = {}
    enough: dict[Any, Row] = {}
    for i in model.is_changed:
        row = [(ports, model.table_row[i, j]) for j, (ports, _) in enumerate(model.table)]
        chosen[i] = [*ones(var for _, var in row), (-1, model.is_changed[i])], "==", 0
        ports = ones(var for (change, *_), var in model.port_changes.items() if change == i)
        enough[i] = [*ports, *((-most, var) for most, var in row)], "<=", 0
    add_rows(model, "row_of_table", chosen, "i")
    add_rows(model, "row_of_table_enough", enough, "i")


def delay_paid(model: Any) -> None:
    """(35): what a change takes beyond its overlap. Where nothing changes, nothing is hidden either."""
    rows: dict[Any, Row] = {}
    for i, prices in model.prices.items():
        if prices is None:
            continue
        hidden, change, circuit, by_row = prices
        terms: list[Term] = [(change - hidden, model.is_changed[i])]
        terms += [(circuit, var) for (own, *_), var in model.set_up.items() if own == i]
        terms += [(seconds, model.table_row[i, j]) for j, seconds in enumerate(by_row)]
        rows[i] = [*_in_unit(model, terms), (-1, model.paid[i])], "<=", 0
    add_rows(model, "delay_paid", rows, "i")


def least_total_time(model: Any) -> None:
    """(36): the steps' times as in (9), and what is paid for changes, in ``model.unit``."""
    cost: list[Term] = ones(model.paid.values())
    for part in model.step.values():
        cost += _in_unit(model, [(factor * part.unit, var) for factor, var in part.cost])
    model.cost = cost
    model.fixed_cost = sum(part.fixed_cost for part in model.step.values())
    model.objective = pyo.Objective(expr=linear(cost))


def some_circuit(model: Any) -> None:
    """(37), strengthening, without a table: a change sets up a circuit at least. One that only takes circuits down can
    be left out: no step is slower, and no later change sets up more."""
    rows: dict[Any, Row] = {}
    for i, var in model.is_changed.items():
        rows[i] = [*ones(circuit for (own, *_), circuit in model.set_up.items() if own == i), (-1, var)], ">=", 0
    add_rows(model, "some_circuit", rows, "i")


def _in_unit(model: Any, terms: Sequence[Term]) -> list[Term]:
    """Costs in seconds as coefficients in ``model.unit``, without those that solvers do not take. A negative one is
    rounded away from zero."""
    found = []
    for seconds, var in terms:
        factor = seconds / model.unit
        if abs(factor) > SMALLEST:
            found.append((factor, var))
        elif factor < 0:
            found.append((-2 * SMALLEST, var))
    return found
