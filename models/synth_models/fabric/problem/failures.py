"""Files of failures: ``link A B`` (both directions), ``link A -> B`` (one), either with the share of the bandwidth that
is left (``11/12``), and ``node A``; nodes by number or name, ``#`` before remarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from synth.errors import Fault, InputError
from synth.text import amounts
from synth.text.input_file import InputFile
from synth_models.fabric.problem.machine import Machine

FORM = "must be 'link A B' (both directions), 'link A -> B' (one), either with a share left such as 11/12, or 'node A'"
MOST_SHOWN = 6
Pair = tuple[int, int]


@dataclass(frozen=True)
class Statement:
    """One line: ``ends`` are two nodes of a link or one node, as written; ``share`` of a link's bandwidth is left, None
    for nothing."""

    line: int
    ends: tuple[str, ...]
    one_way: bool = False
    share: Fraction | None = None


def read_statements(file: InputFile) -> list[Statement]:
    """Return what the file's lines say. Raises :class:`InputError` with all faults."""
    faults: list[Fault] = []
    found: list[Statement] = []
    for number, line in enumerate(file.text.split("\n"), 1):
        said = line.split("#")[0].replace(",", " ").strip()
        if said:
            try:
                found.append(statement(number, said))
            except ValueError as error:
                faults.append(Fault(f"line {number}", str(error), said, True))
    if faults:
        raise InputError(faults, str(file))
    return found


def statement(number: int, said: str) -> Statement:
    """Return what one line says. Raises ``ValueError``."""
    kind, *words = said.replace("->", " -> ").split()
    if kind == "node" and len(words) == 1 and words[0] != "->":
        return Statement(number, (words[0],))
    one_way = len(words) > 1 and words[1] == "->"
    ends = [words[0], *words[2:]] if one_way else words
    if kind != "link" or len(ends) not in (2, 3) or "->" in ends:
        raise ValueError(FORM)
    source, target, *share = ends
    return Statement(number, (source, target), one_way, amounts.share(share[0]) if share else None)


def node_number(word: str, machine: Machine | None) -> int | None:
    """Return the node that a name or a number means; None where there is no such node."""
    if machine is not None and word in machine.names:
        return machine.names.index(word)
    if word.isascii() and word.isdecimal() and len(word) < 19:
        return int(word) if machine is None or int(word) < machine.nodes else None
    return None


def failures(file: InputFile, machine: Machine | None) -> dict[str, Any]:
    """Return ``failed`` of an instance file: every link in each direction that the file means.

    Without a machine (its description is wrong, which is said elsewhere) names mean nothing. Raises
    :class:`InputError` with all faults by their lines.
    """
    shares: dict[Pair, Fraction | None] = {}
    nodes: dict[int, None] = {}
    faults: list[Fault] = []
    there = _pairs(machine)
    for said in file.once(read_statements):
        ends = [node_number(word, machine) for word in said.ends]
        if None in ends:
            faults.append(Fault(f"line {said.line}", "no such node", said.ends[ends.index(None)], True))
            continue
        known = [end for end in ends if end is not None]
        if len(known) == 1:
            nodes[known[0]] = None
            continue
        held = _meant(said, (known[0], known[1]), there)
        if not held:
            back = "" if said.one_way else " in either direction"
            faults.append(Fault(f"line {said.line}", f"there is no link from {said.ends[0]} to {said.ends[1]}{back}"))
        for u, v in held:
            if shares.setdefault((u, v), said.share) != said.share:
                faults.append(Fault(f"line {said.line}", f"the link {u} -> {v} was said to fail otherwise"))
    if faults:
        raise InputError(faults, str(file))
    found: dict[str, Any] = {"links": [list(pair) for pair, share in shares.items() if share is None]}
    found["nodes"] = list(nodes)
    reduced = [[*pair, f"{share.numerator}/{share.denominator}"] for pair, share in shares.items() if share is not None]
    return found | ({"reduced": reduced} if reduced else {})


def _pairs(machine: Machine | None) -> set[Pair] | None:
    """The pairs that links join; None where no machine says so."""
    if machine is None:
        return None
    return set(zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True))


def _meant(said: Statement, ends: Pair, there: set[Pair] | None) -> list[Pair]:
    """The directions between two nodes of which a statement speaks, as far as there are such links."""
    u, v = ends
    pairs = [(u, v)] if said.one_way else [(u, v), (v, u)]
    return [pair for pair in pairs if there is None or pair in there]


def in_words(failed: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return what an instance's ``failed`` says, by the nodes' names, each link's directions; empty for nothing."""
    gone, nodes = failed.get("links") or (), failed.get("nodes") or ()
    parts = [f"links {_listed(_both_ways(gone, names))}"] if gone else []
    parts += [f"nodes {_listed(names[node] for node in nodes)}"] if nodes else []
    by_share: dict[str, list[Sequence[int]]] = {}
    for u, v, share in failed.get("reduced") or ():
        by_share.setdefault(share, []).append((u, v))
    parts += [f"{share} of the bandwidth left on {_listed(_both_ways(p, names))}" for share, p in by_share.items()]
    return [f"failed: {'; '.join(parts)}"] if parts else []


def _both_ways(pairs: Iterable[Sequence[int]], names: Sequence[str]) -> list[str]:
    """``a <-> b`` where both directions stand, else ``a -> b``."""
    every = {(pair[0], pair[1]): place for place, pair in enumerate(pairs)}
    words = []
    for (u, v), place in every.items():
        if (v, u) not in every:
            words.append(f"{names[u]} -> {names[v]} (one direction)")
        elif place < every[v, u]:
            words.append(f"{names[u]} <-> {names[v]} (both directions)")
    return words


def _listed(words: Iterable[str]) -> str:
    every = list(words)
    return ", ".join(every[:MOST_SHOWN]) + (f", … ({len(every)})" if len(every) > MOST_SHOWN else "")
