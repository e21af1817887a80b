"""Allreduce as one program: who sends which partial sum to whom, with the contributions that it carries.

| symbol | name | meaning |
|---|---|---|
| c_mi | ``bits[m, i]`` | transfer m, which adds, carries the contribution of member i |
| y_mn | ``before`` | transfer m has arrived where n starts, before it does |

A transfer that adds carries its sender's contribution and all that has come to it before (1); what comes too late is at
least one unit later (2); no contribution comes to a node twice, nor to its owner (3). Every member ends with all
contributions, or with a copy of a complete sum (4), which can be sent where the sender is complete (5) and which comes
after all that is added there (6: a rank that will be given the whole sum has sent its own contribution before, so what
is added afterwards serves nobody). One transfer that adds and one copy a way are enough: a second one would double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth_models.fabric.programs.continuous.model import Move, Program

Bits = dict[tuple[int, int], Any]


def add_sums(program: Program) -> None:
    """Put the constraints of all pieces into the model."""
    for piece, (origin, goal) in enumerate(zip(program.problem.origin, program.problem.goal, strict=True)):
        if origin < 0 and goal < 0:
            _piece(program, piece)


def _piece(program: Program, piece: int) -> None:
    members = list(program.problem.instance.members)
    adding = [move for move in program.moves if move.piece == piece and move.adds]
    bits: Bits = {}
    for number, move in enumerate(adding):
        for i in members:
            own = move.way.source == i
            bits[number, i] = move.there if own else program.model.new_bool_var("")
            if not own:
                program.model.add_implication(bits[number, i], move.there)
            if any(v == i for v, _ in move.way.leaves):  # (3): its owner has it
                program.model.add(bits[number, i] == 0)
        if move.way.source not in members:
            program.model.add_bool_or([bits[number, i] for i in members]).only_enforce_if(move.there)
    nodes = {v for p, v in (*program.into, *program.out) if p == piece} | set(members)
    for v in sorted(nodes):
        coming = [
            (n, move, leaf) for n, move in enumerate(adding) for leaf, (w, _) in enumerate(move.way.leaves) if w == v
        ]
        copies = [(move, leaf) for move, leaf in program.into.get((piece, v), []) if not move.adds]
        going = [(n, move) for n, move in enumerate(adding) if move.way.source == v]
        _carried(program, members, bits, coming, going)
        _complete(program, piece, v, members, bits, coming, copies)


def _carried(
    program: Program, members: list[int], bits: Bits, coming: list[tuple[int, Move, int]], going: list[tuple[int, Move]]
) -> None:
    """(1) and (2)."""
    model = program.model
    for n, later in going:
        inside = []
        for m, sooner, leaf in coming:
            before = model.new_bool_var("")
            inside.append(before)
            model.add_implication(before, sooner.there)
            model.add_implication(before, later.there)
            model.add(later.starts[0] >= sooner.arrival(leaf)).only_enforce_if(before)
            model.add(later.starts[0] + 1 <= sooner.arrival(leaf)).only_enforce_if(
                [before.negated(), sooner.there, later.there]
            )
            for i in members:
                if i != later.way.source:
                    model.add_bool_or([bits[n, i].negated(), bits[m, i].negated(), before])
                    model.add_bool_or([bits[n, i], bits[m, i].negated(), before.negated()])
        for i in members:
            if i != later.way.source:
                model.add_bool_or([bits[n, i].negated(), *(bits[m, i] for m, _, _ in coming)])


def _complete(
    program: Program,
    piece: int,
    v: int,
    members: list[int],
    bits: Bits,
    coming: list[tuple[int, Move, int]],
    copies: list[tuple[Move, int]],
) -> None:
    """(3) to (6)."""
    model = program.model
    copied = sum(move.there for move, _ in copies)
    whole = model.new_bool_var("")  # by what is added
    for i in members:
        if i != v:
            carried = sum(bits[m, i] for m, _, _ in coming)
            model.add(carried <= 1)
            model.add(carried >= whole)
    ready = program.when(piece, v)
    if v in members:
        model.add(copied + whole == 1)
        model.add(program.makespan >= ready)
    else:
        model.add(copied + whole <= 1)
    for move, leaf in copies:
        model.add(ready >= move.arrival(leaf)).only_enforce_if(move.there)
        for _, sooner, at in coming:
            model.add(sooner.arrival(at) + 1 <= move.arrival(leaf)).only_enforce_if([move.there, sooner.there])
    for _, move, leaf in coming:
        model.add(ready >= move.arrival(leaf)).only_enforce_if([whole, move.there])
    for move in program.out.get((piece, v), []):
        if not move.adds:
            model.add(move.there <= copied + whole)
            model.add(move.starts[0] >= ready).only_enforce_if(move.there)
