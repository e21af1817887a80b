"""The CSV file of NCCL's tuner plug-in ``example``: a line a rule, the first that fits is taken.

``collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]``; ``#`` in column one
begins a comment, -1 stands for any number. The plug-in never complains: a line of 255 characters or more it reads as
two, an unknown word it takes for allreduce, ring or simple, a number up to where it stops being one. :func:`read`
refuses what the plug-in would take for something else than what is written. NCCL skips a rule whose algorithm and
protocol it has marked as impossible, so here are only those that its tuning model has
(src/graph/tuning.cc): trees for allreduce, PAT, NVLS and CollNet with ``simple``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from synth.errors import Fault, InputError
from synth.exchange.selection.rules import Rule, Vocabulary, merged

LONGEST = 254  # characters of a line: a buffer of 256 with a line end and a zero
WITHOUT_END = 2**64 - 1  # of size_t
ANY = -1
OWN_COUNT = 0  # of channels: NCCL counts them itself; of -1 the plug-in makes one
NAMES = {
    "broadcast": "broadcast", "reduce": "reduce", "allgather": "allgather", "reduce_scatter": "reducescatter",
    "allreduce": "allreduce",
}  # fmt: skip
PROTOCOLS = ("simple", "ll", "ll128")
_EVERY = ("ring", "pat", "nvls", "collnet_direct")


def _words(*names: str) -> Mapping[str, int | str]:
    return {name: name for name in names}


VOCABULARY = Vocabulary(
    "NCCL",
    {
        "allreduce": _words("ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
        "allgather": _words(*_EVERY),
        "reduce_scatter": _words(*_EVERY),
        "broadcast": _words("ring"),
        "reduce": _words("ring"),
    },
    {"protocol": PROTOCOLS, "channels": range(-1, 65)},
    nodes=True,
)


def write(rules: Iterable[Rule]) -> str:
    """The file's text. Raises :class:`InputError` for rules that NCCL cannot follow."""
    lines = [
        "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks",
        "# channels 0: as many as NCCL takes itself. Of the rows that fit, the first that NCCL can run is taken.",
    ]
    ordered = VOCABULARY.checked(rules)
    _demand_possible(ordered)
    for rule in sorted(ordered, key=lambda one: (one.ranks is None, one.nodes is None)):  # the first that fits is taken
        last = WITHOUT_END if rule.max_bytes is None else rule.max_bytes
        told = rule.parameters.get("protocol", PROTOCOLS[0]), rule.parameters.get("channels", OWN_COUNT)
        cells = (
            NAMES[rule.collective],
            rule.min_bytes,
            last,
            rule.algorithm,
            *told,
            rule.nodes or ANY,
            rule.ranks or ANY,
        )
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def read(text: str) -> list[Rule]:
    """The rules of a file, in the order in which sizes and ranks have them. Raises :class:`InputError` with a fault for
    every line that the plug-in would not take as it stands."""
    rules, faults = [], []
    known = {name: collective for collective, name in NAMES.items()}
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        wrong = list(_line_faults(line, known))
        faults += [Fault(f"line {number}{place}", words) for place, words in wrong]
        if not wrong:
            rules.append(_rule(line, known))
    if faults:
        raise InputError(faults)
    ordered = VOCABULARY.checked(rules)
    _demand_possible(ordered)
    return merged(ordered)


def _demand_possible(rules: Iterable[Rule]) -> None:
    faults = [
        Fault(
            f"{rule.collective}, {rule.algorithm}",
            "runs with the protocol simple only",
            rule.parameters["protocol"],
            True,
        )
        for rule in rules
        if rule.algorithm not in ("ring", "tree") and rule.parameters.get("protocol", "simple") != "simple"
    ]
    if faults:
        raise InputError(faults)


def _line_faults(line: str, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if len(line.encode()) > LONGEST:
        yield "", f"is longer than {LONGEST} characters: the plug-in reads it as two lines"
        return
    raw = line.split(",")
    cells = [cell.strip(" \t") for cell in raw]
    if "" in raw or not 8 <= len(cells) <= 10:
        yield "", f"has {len([cell for cell in raw if cell])} fields, not 8 to 10 with something in each"
        return
    yield from _word_faults(cells, known)
    yield from _number_faults(cells)


def _word_faults(cells: Sequence[str], known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    name, _, _, algorithm, protocol, *_ = cells
    if name not in known:
        yield ", collective", f"must be one of {', '.join(known)}; the plug-in takes anything else for allreduce"
    elif algorithm not in VOCABULARY.algorithms[known[name]]:
        words = ", ".join(VOCABULARY.algorithms[known[name]])
        yield ", algorithm", f"must be one of {words}; the plug-in takes unknown words for ring"
    if protocol not in PROTOCOLS:
        yield ", protocol", f"must be one of {', '.join(PROTOCOLS)}; the plug-in takes unknown words for simple"


def _number_faults(cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    for cell in cells[1:3]:
        if not cell.isascii() or not cell.isdigit() or int(cell[:40]) > WITHOUT_END:
            yield ", bytes", "must be whole numbers of 64 bits"
    for cell in cells[5:]:
        if not cell.removeprefix("-").isascii() or not cell.removeprefix("-").isdigit() or len(cell) > 9:
            yield "", "behind the protocol there must be whole numbers, -1 for any"
    if any(cell != "-1" for cell in cells[8:]):
        yield "", "numPipeOps and regBuff must be -1 (any): rules here know neither"


def _rule(line: str, known: Mapping[str, str]) -> Rule:
    name, first, last, algorithm, protocol, channels, nodes, ranks = (cell.strip(" \t") for cell in line.split(",")[:8])
    end = None if int(last) == WITHOUT_END else int(last)
    told: dict[str, int | str] = {"protocol": protocol, "channels": int(channels)}
    among, on = (None if int(cell) == ANY else int(cell) for cell in (ranks, nodes))
    return Rule(known[name], among, on, int(first), end, algorithm, told)
