"""Step 1: the family as data, named by the entry point: its name, its methods and where its parts are."""

from __future__ import annotations

from synth.family import Family
from synth.method import Method, Objective, by_name

_HERE = "toy_broadcast."

FAMILY = Family(
    name="toy_broadcast",
    title="Toy: broadcast in rounds",
    citation="folklore",
    objective=Objective("rounds", "rounds"),
    instance=_HERE + "instance:ToyInstance",
    keys=_HERE + "making:ToyKeys",
    make=_HERE + "making:make",
    check=_HERE + "check:check_solution",
    check_bound=_HERE + "check:check_bound",
    pack=_HERE + "solution:pack",
    unpack=_HERE + "solution:unpack",
    table=_HERE + "solution:table",
    describe=_HERE + "views:describe",
    plot=_HERE + "views:plot",
    methods=by_name(
        Method("bound", "bound", "informed nodes at most double", _HERE + "bounds:solve"),
        Method("chain", "reference", "one after the other", _HERE + "references:chain"),
        Method("doubling", "reference", "all informed nodes send", _HERE + "references:doubling"),
        Method("ilp", "program", "how many send in each round", _HERE + "programs:solve", needs=("milp",)),
    ),
    default_methods=("bound", "chain", "doubling"),
    capabilities={"paper": _HERE + "paper:reproduce"},
)
