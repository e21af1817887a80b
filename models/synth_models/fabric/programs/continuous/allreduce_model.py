"""A sum that several want (allreduce): who sends which partial sum to whom, with the contributions that it carries.

| symbol | name | meaning |
|---|---|---|
| c_mi | ``bits[m, i]`` | transfer m, which adds, carries the contribution of member i |
| y_mn | ``before`` | transfer m has arrived where n starts, before it does |

    (1) contributions       c_mi <= x_m; c_mi = x_m for the sender's own; 0 for who receives it; a relay brings some
    (2) arrived before      y_mn <= x_m, x_n; s_n >= arrival of m if y_mn; s_n < arrival of m if not (and both are sent)
    (3) takes along         c_mi and y_mn: c_ni;  c_mi and not y_mn: not c_ni
    (4) nothing else        c_ni <= sum_m c_mi over what comes to its start
    (5) never twice         all_v <= sum_{m into v} c_mi <= 1 for every other member i
    (6) complete at last    all_v + sum of copies into v = 1 and T >= a_v for members, <= 1 elsewhere
    (7) copies come last    a_v >= arrival of a copy, which comes after all that is added there
    (8) ready when added    a_v >= arrival of m if all_v
    (9) complete copies     x_w <= all_v + sum of copies into v and s_w >= a_v for copies out of v
    (10) added before       s_n < arrival of a copy at v for n that adds, out of v: later it would carry the whole sum
    (11) own when ready     of a late sender c_mi <= x_m for its own: s_m >= ready_i if c_mi; s_m < ready_i if not

A transfer that adds carries its sender's contribution and all that has come to it before. What comes too late comes in
a later unit, by its true time: in coarse units arrivals are rounded up. ``all_v``: v is complete by what is added. In
(7) and (10) nothing is lost: a rank that will be given the whole sum has sent its own contribution before, so what is
added afterwards serves nobody. One transfer that adds and one copy a route are enough: a second one would double.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth_models.fabric.programs.continuous.model import OptionalTransfer, Program

Bits = dict[tuple[int, int], Any]


def add_sums(program: Program) -> None:
    """Put the constraints of all pieces into the model."""
    for piece, spread in enumerate(program.problem.spread_sums):
        if spread:
            _piece(program, piece)


def _piece(program: Program, piece: int) -> None:
    holders = program.problem.holders[piece]
    adding = [move for move in program.moves if move.piece == piece and move.adds]
    bits: Bits = {}
    for number, move in enumerate(adding):
        _contributions(program, holders, bits, number, move)
    nodes = {v for p, v in (*program.into, *program.out) if p == piece} | {*holders, *program.problem.wanters[piece]}
    for v in sorted(nodes):
        _node(program, piece, v, adding, bits)


def _node(program: Program, piece: int, v: int, adding: list[OptionalTransfer], bits: Bits) -> None:
    """What comes to a node and leaves it; ``adding`` are the piece's transfers that add."""
    coming = [
        (n, move, leaf) for n, move in enumerate(adding) for leaf, (w, _) in enumerate(move.route.leaves) if w == v
    ]
    copies = [(move, leaf) for move, leaf in program.into.get((piece, v), []) if not move.adds]
    others = [i for i in program.problem.holders[piece] if i != v]
    numbers = [m for m, _, _ in coming]
    for n, later in [(n, move) for n, move in enumerate(adding) if move.route.source == v]:
        for m, sooner, leaf in coming:
            before = program.before[piece, m, n] = _arrived_before(program, sooner, leaf, later)
            _takes_along(program, others, bits, (m, n), before)
        _nothing_else(program, others, bits, n, numbers)
    whole = program.whole[piece, v] = _never_twice(program, others, bits, numbers)
    complete = sum(move.there for move, _ in copies) + whole
    _complete_at_last(program, piece, v, complete)
    _copies_come_last(program, program.when(piece, v), copies, coming)
    _added_before(program, copies, [move for move in adding if move.route.source == v])
    _ready_when_added(program, program.when(piece, v), whole, coming)
    if v in program.problem.holders[piece]:
        program.model.add(program.when(piece, v) >= program.problem.ready[v]).only_enforce_if(whole)
    _complete_copies(program, piece, v, complete)


def _contributions(program: Program, holders: Sequence[int], bits: Bits, number: int, move: OptionalTransfer) -> None:
    """(1), (11): what a transfer may carry."""
    model, late = program.model, program.problem.ready[move.route.source]
    for i in holders:
        own = move.route.source == i and not late
        bits[number, i] = move.there if own else model.new_bool_var("")
        if not own:
            program.carries[move.piece, number, i] = bits[number, i]
            model.add_implication(bits[number, i], move.there)
        if any(v == i for v, _ in move.route.leaves):  # its owner has it
            model.add(bits[number, i] == 0)
    if move.route.source not in holders or late:
        model.add_bool_or([bits[number, i] for i in holders]).only_enforce_if(move.there)
    if move.route.source in holders and late:
        own_part = bits[number, move.route.source]
        model.add(move.starts[0] >= late).only_enforce_if(own_part)
        model.add(move.starts[0] < late).only_enforce_if([own_part.negated(), move.there])


def _arrived_before(program: Program, sooner: OptionalTransfer, leaf: int, later: OptionalTransfer) -> Any:
    """(2): whether one transfer has arrived when another leaves from there; what comes too late is a unit later."""
    model = program.model
    before = model.new_bool_var("")
    model.add_implication(before, sooner.there)
    model.add_implication(before, later.there)
    model.add(later.starts[0] >= sooner.arrival(leaf)).only_enforce_if(before)
    model.add(later.starts[0] <= sooner.absent(leaf)).only_enforce_if([before.negated(), sooner.there, later.there])
    return before


def _takes_along(program: Program, others: list[int], bits: Bits, pair: tuple[int, int], before: Any) -> None:
    """(3): all that has come before goes along, and nothing that has not."""
    m, n = pair
    for i in others:
        program.model.add_bool_or([bits[n, i].negated(), bits[m, i].negated(), before])
        program.model.add_bool_or([bits[n, i], bits[m, i].negated(), before.negated()])


def _nothing_else(program: Program, others: list[int], bits: Bits, n: int, coming: list[int]) -> None:
    """(4): a contribution that goes along has come."""
    for i in others:
        program.model.add_bool_or([bits[n, i].negated(), *(bits[m, i] for m in coming)])


def _never_twice(program: Program, others: list[int], bits: Bits, coming: list[int]) -> Any:
    """(5): no contribution comes to a node twice; whether all come."""
    whole = program.model.new_bool_var("")
    for i in others:
        carried = sum(bits[m, i] for m in coming)
        program.model.add(carried <= 1)
        program.model.add(carried >= whole)
    return whole


def _complete_at_last(program: Program, piece: int, v: int, complete: Any) -> None:
    """(6): a member has all contributions added or gets a copy of their sum, but not both."""
    ready = program.when(piece, v)
    if v in program.problem.wanters[piece]:
        program.model.add(complete == 1)
        program.model.add(program.makespan >= ready)
    else:  # what comes here for nothing would end no later
        program.model.add(complete <= 1)
        for move, leaf in program.into.get((piece, v), []):
            program.model.add(program.makespan >= move.arrival(leaf)).only_enforce_if(move.there)


def _copies_come_last(
    program: Program,
    ready: Any,
    copies: list[tuple[OptionalTransfer, int]],
    coming: list[tuple[int, OptionalTransfer, int]],
) -> None:
    """(7): a copy makes complete when it has arrived, which is after all that is added."""
    for move, leaf in copies:
        program.model.add(ready >= move.arrival(leaf)).only_enforce_if(move.there)
        for _, sooner, at in coming:
            program.model.add(sooner.arrival(at) <= move.absent(leaf)).only_enforce_if([move.there, sooner.there])


def _added_before(
    program: Program, copies: list[tuple[OptionalTransfer, int]], leaving: list[OptionalTransfer]
) -> None:
    """(10): what leaves to be added leaves before a copy comes."""
    for copy, leaf in copies:
        for move in leaving:
            program.model.add(move.starts[0] <= copy.absent(leaf)).only_enforce_if([copy.there, move.there])


def _ready_when_added(
    program: Program, ready: Any, whole: Any, coming: list[tuple[int, OptionalTransfer, int]]
) -> None:
    """(8): what is complete by adding is ready when all has arrived."""
    for _, move, leaf in coming:
        program.model.add(ready >= move.arrival(leaf)).only_enforce_if([whole, move.there])


def _complete_copies(program: Program, piece: int, v: int, complete: Any) -> None:
    """(9): a copy is sent only of what is complete, and when it is."""
    for move in program.out.get((piece, v), []):
        if not move.adds:
            program.model.add(move.there <= complete)
            program.model.add(move.starts[0] >= program.when(piece, v)).only_enforce_if(move.there)
