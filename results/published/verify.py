#!/usr/bin/env python3
"""A second checker: replay published schedules and verify published lower bounds, trusting nothing of ours.

    python3 verify.py PATH…          records (.json), collections (records.jsonl), instances or folders of them
    python3 verify.py --faults PATH… prints only what is refused or not covered, and the summary

This file was written from the pages in models/formats alone, by somebody who has not read the toolkit's own checks.
It uses Python's standard library and nothing else. All arithmetic is exact: whole numbers, and fractions of them.
Every record is accepted, refused (with the first fault found) or not covered (with the reason); the exit code is 1
if a record is refused, else 0. Each class checks what the page of its name in models/formats says: read them together.

Not looked at: how a run went (seconds, options, progress, solver), and plans. Not covered: more than 2^20 transfers;
schedules that a formula counts, or that are a quotient's; several collectives at once; a network of kind dragonfly,
boxes in part, links of reduced bandwidth; switches that store and add, buffer or do not copy, or that limit streams;
refuted plans of steps; tolls (orbit_moments), bundles of prices (harvest), prices of rounds (bine); mlfm's forms other
than tables, and detours that have to be split; optree's budgets of power and crosstalk, and reach on large rings.

Order of this file: 1 numbers, files, arrays · 2 records · 3 graphs and networks · 4 replay by rounds · 5 xtree ·
6 fabric: machine, replay, certificates · 7 harvest · 8 mlfm · 9 optree · 10 bine · 11 the command.
"""

import ast
import copy
import gc
import hashlib
import heapq
import json
import math
import os
import re
import sys
import zipfile
import zlib
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict, namedtuple
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, groupby, pairwise, product
from lzma import LZMAError
from operator import itemgetter
from reprlib import repr as short

MOST_TRANSFERS = 2**20  # larger solutions are not covered
MOST_CELLS = 40_000_000  # larger tables of possession are not covered
INFINITE = float("inf")  # only ever compared with, never calculated with
LEAST = 5e-324  # the least double above 0


class Fault(Exception):
    """What a record states is false, or is not stated as the pages demand."""


class NotCovered(Exception):
    """This checker does not do that."""


MISSHAPEN = (  # what reading something else than the pages describe leads to: a fault too
    KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, OSError, RecursionError, SyntaxError,
    NotImplementedError, EOFError, zipfile.BadZipFile, zlib.error, LZMAError,
)  # fmt: skip


# --- 1  Numbers, files, and arrays in JSON or in numpy's .npz files ---


def need(condition, message):
    """Raise a fault unless the condition holds."""
    if not condition:
        raise Fault(message)


def cover(condition, message):
    """Give up unless the condition holds."""
    if not condition:
        raise NotCovered(message)


def one_of(value, allowed, name):
    need(value in allowed, f"{name}: {short(value)} is none of {', '.join(map(str, allowed))}")
    return value


def whole(value, least, most, name):
    """Return a whole number in a range (truth values are no numbers)."""
    need(type(value) is int and least <= value <= most, f"{name}: {short(value)} is no whole number in {least}..{most}")
    return value


def number(value, name, least=-INFINITE):
    """Return a finite number as a JSON file holds it: int or float."""
    finite = (type(value) is int and abs(value) < 10**300) or (type(value) is float and math.isfinite(value))
    need(finite and value >= least, f"{name}: {short(value)} is no finite number from {least} on")
    return value


def decimal(value, name, least):
    """Return the shortest decimal that reads back as this number, as an exact fraction."""
    return Fraction(repr(number(value, name, least)))


def ceiling(over, under):
    return -(-over // under)


def read_json(text):
    """Read JSON without doubled keys and without NaN or infinite numbers."""

    def once(pairs):
        need(len(dict(pairs)) == len(pairs), "JSON: a key stands twice in an object")
        return dict(pairs)

    def finite(digits):
        return number(float(digits), "JSON")

    return json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=finite)


TYPES = {"|u1": "B", "|i1": "b", "|b1": "B", "<u2": "H", "<i2": "h", "<u4": "I", "<i4": "i",
         "<u8": "Q", "<i8": "q", "<f8": "d"}  # fmt: skip
Array = namedtuple("Array", "shape values")  # the numbers stand row after row


class Arrays:
    """The arrays of one .npz file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        need(os.path.basename(path).split(".")[-2:] == [found, "npz"], f"{os.path.basename(path)}: its hash is {found}")
        self.zip = zipfile.ZipFile(path)
        names = self.zip.namelist()
        need(len(set(names)) == len(names), f"{os.path.basename(path)}: a member stands twice")
        self.names = [name[:-4] for name in names if name.endswith(".npy")]

    def read(self, name):
        data = self.zip.read(name + ".npy")
        need(data[:6] == b"\x93NUMPY" and data[6:7] in (b"\x01", b"\x02"), f"array {name}: not in numpy's format")
        width = 2 if data[6] == 1 else 4
        start = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
        header = ast.literal_eval(data[8 + width : start].decode("latin1").strip())
        need(header["descr"] in TYPES and header["fortran_order"] is False, f"array {name}: its type is none of ours")
        values = array(TYPES[header["descr"]], data[start:])
        need(len(values) == math.prod(header["shape"]), f"array {name}: its size and shape differ")
        if sys.byteorder == "big":
            values.byteswap()
        return Array(tuple(header["shape"]), values)


class Held(dict):
    """A solution or a certificate: its plain values, and its arrays wherever they are stored."""

    def __init__(self, plain, file=None, prefix=""):
        need(type(plain) is dict, "a solution or certificate is an object")
        super().__init__((key, value) for key, value in plain.items() if value is not None)
        for name in file.names if file else ():
            key = name.removeprefix(prefix)
            if name.startswith(prefix) and "/" not in key:
                need(key not in self, f"{key}: stands in the record and in its arrays' file")
                self[key] = file.read(name)

    def choose(self, key, choices):
        """Return what belongs to a text in a dict of choices."""
        need(type(self.get(key)) is str, f"{key}: {short(self.get(key))} is no text")
        return choices[one_of(self[key], choices, key)]

    def whole(self, key, least, most):
        return whole(self.get(key), least, most, key)

    def list(self, key):
        need(type(self.get(key)) is list, f"{key}: {short(self.get(key))} is no list")
        return self[key]

    def shaped(self, key):
        """Return an array as it is stored: in a file, or as nested lists."""
        if type(self.get(key)) is Array:
            return self[key]
        values = self.list(key)
        shape = [len(values)]
        while values and type(values[0]) is list:
            length = len(values[0])
            need(all(type(row) is list and len(row) == length for row in values), f"{key}: rows of unlike lengths")
            shape.append(length)
            values = [entry for row in values for entry in row]
        return Array(tuple(shape), values)

    def array(self, key, least, most, shape=(None,), default=None):
        """Return the numbers, row after row, of an array of whole numbers; None in a shape stands for any length."""
        if default is not None and key not in self:
            return default
        stored, values = self.shaped(key)
        need(set(map(type, values)) <= {int}, f"{key}: holds what is no whole number")
        need(not values or least <= min(values) <= max(values) <= most, f"{key}: a number is not in {least}..{most}")
        fits = len(shape) == len(stored) and all(length in (None, other) for length, other in zip(shape, stored))
        need(fits or (stored[0] == 0 and shape[0] in (None, 0)), f"{key}: its shape is {stored}, not {shape}")
        return list(values)

    def arrays(self, keys, least, most, shape=(None,)):
        return [self.array(key, least, most, shape) for key in keys.split()]

    def rows(self, key, least, most, width, count=None):
        """Return an array's rows (which may be stored one after the other)."""
        shape = (None,) if len(self.shaped(key).shape) == 1 else (count, width)
        values = self.array(key, least, most, shape)
        need(len(values) % width == 0 and count in (None, len(values) // width), f"{key}: not rows of {width} numbers")
        return [values[at : at + width] for at in range(0, len(values), width)]

    def distinct(self, key, count):
        """Return numbers below ``count`` of which none stands twice."""
        found = self.array(key, 0, count - 1)
        need(len(set(found)) == len(found), f"{key}: a number stands twice")
        return found

    def permutations(self, key, nodes):
        """Return rows that are permutations of 0..nodes - 1."""
        rows = self.rows(key, 0, nodes - 1, nodes)
        need(all(len(set(row)) == nodes for row in rows), f"{key}: a row is no permutation")
        return rows

    def starts(self, key, end, count=None):
        """Return where each of some runs of rows begins, and where the last one ends."""
        found = self.array(key, 0, 2**31, (count,))
        rising = found and found[0] == 0 and found[-1] == end and found == sorted(found)
        need(rising, f"{key}: does not rise from 0 to {end}")
        return found


# --- 2  Records ---

OBJECTIVES = {
    "xtree": ("timesteps", "timesteps"), "mlfm": ("phases", "phases"), "optree": ("steps", "steps"),
    "bine": ("bytes on global links", "bytes"), "harvest": ("completion time", "s"), "fabric": ("completion time", "s"),
}  # fmt: skip
EMPTY = ("unsupported", "killed", "out_of_memory")  # terminations of records that hold nothing
TERMINATIONS = ("finished", "optimal", "infeasible", "time_limit", "size_limit", "error", *EMPTY)


def check_statement(record):
    """Check that a record says what it is, and that its numbers are numbers; how the run went is not looked at."""
    one_of(record["format"], ("synth-record/1",), "format")
    one_of(record["family"], OBJECTIVES, "family")
    one_of(record["kind"], ("program", "reference", "bound", "submitted"), "kind")
    one_of(record["termination"], TERMINATIONS, "termination")
    for key in ("instance_file", "solution_file", "solver", "message", "instance_text", "bound_proof"):
        there = key in record or key in ("instance_text", "bound_proof")
        need(there and type(record.get(key)) in (str, type(None)), f"{key}: {short(record.get(key))} is no text")
    both = (record["solver"] is None) == (record.get("solver_version") is None)
    need(both, "solver and solver_version: both or neither")
    objective, verified = record["objective"], record["verified"]
    stated = (objective.get("name"), objective.get("unit"), objective.get("sense"))
    need(stated == (*OBJECTIVES[record["family"]], "minimise"), f"objective: {short(objective)}")
    for name, value in (("objective.value", objective["value"]), ("bound", record["bound"])):
        need(value is None or number(value, name) is value, name)
    need(verified.get("ok") is True and verified.get("faults") == [], f"verified: {short(verified)}")
    number(record["options"].get("relative_gap", 1e-4), "options.relative_gap", 0)


def exceeds(bound, value):
    """Return whether a lower bound is above a value by more than rounding."""
    bound, value = Fraction(bound), Fraction(value)
    return bound - value > Fraction(1e-6) * max(abs(value), abs(bound) / 1000)


def check_claims(record, value, bound, held, certificate):
    """Check grade, termination and gap of a record whose value and certificate hold; ``held``: it has a solution."""
    termination, is_bound, proof = record["termination"], record["kind"] == "bound", record.get("bound_proof")
    need(value is None or held, "objective.value: stated without a solution")
    need(bound is not None or certificate is None, "certificate: there is no bound that it proves")
    need(bound is not None or termination == "infeasible" or proof is None, "bound_proof: there is no bound")
    need(bound is None or not is_bound or certificate is not None, "a bound of kind bound without a certificate")
    grade = (
        None if bound is None else "certified" if certificate is not None else "solver" if record["solver"] else None
    )
    one_of(record.get("bound_grade", grade), (grade,), "bound_grade")
    both = value is not None and bound is not None
    need(not both or not exceeds(bound, value), f"bound {bound} exceeds the replayed value {value}")
    if termination == "optimal":
        need(both, "optimal without value and bound")
        equal = value == bound or math.nextafter(value, bound) == bound
        gap = 0 if equal else abs(Fraction(value) - Fraction(bound)) / abs(Fraction(value)) if value else INFINITE
        allowed = Fraction(record["options"].get("relative_gap", 1e-4)) + Fraction(1e-9)
        need(gap <= allowed, f"optimal, but the gap is {float(gap):.3g}")
    elif termination == "infeasible":
        need(not held and (not is_bound or bound is None), "infeasible with a solution or a bound")
        need(record["message"] or proof, "infeasible: neither message nor bound_proof says by what")
    elif termination == "finished":
        need(held or bound is not None, "finished without a solution or a bound")
    need(termination not in EMPTY or (record["solution"] is None and bound is None), f"{termination}: holds something")


def find_file(place, folder):
    """Yield the files of a place below a folder, one above it, or one above this file: one is the repository's root."""
    for start in (os.path.abspath(folder), os.path.dirname(os.path.abspath(__file__))):
        before = None
        while start != before:
            if os.path.isfile(os.path.join(start, place)):
                yield os.path.join(start, place)
            start, before = os.path.dirname(start), start


def find_instance(record, folder):
    """Return the text of a record's instance: from the record itself, or from a file below a folder above it."""
    text, file, digest = record.get("instance_text"), record["instance_file"], record["instance_sha256"]
    if text is not None:
        same = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == digest
        need(same, "instance_text: its hash differs")
        return text
    need(file is not None, "instance_file: null, and no instance_text")
    for path in find_file(file, folder):
        with open(path, "rb") as opened:
            data = opened.read()
        if hashlib.sha256(data).hexdigest() == digest:
            return data.decode("utf-8-sig")
    raise Fault(f"instance_file: no {short(file)} with that hash")


@cache
def read_instance(text, folder):
    """Return the instance that a text states; the same text is read once."""
    data = read_json(text.removeprefix("\ufeff"))
    one_of(data["format"], ("synth-instance/1",), "instance: format")
    one_of(data["family"], FAMILIES, "instance: family")
    need(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", data["name"]), f"instance: name {short(data['name'])}")
    instance = FAMILIES[data["family"]](data, folder)
    instance.data = data
    return instance


def check_record(record, folder, open_arrays):
    """Check one record. Return (what was done, what was not, value, bound): for the summary and to compare records."""
    check_statement(record)
    instance = read_instance(find_instance(record, folder), folder)
    need(instance.data["family"] == record["family"], "family: is not the instance's")
    need(instance.data["name"] == record["instance"], "instance: is not the name in the instance's file")
    file, prefix = None, record["record_path"] + "/" if "record_path" in record else ""
    if record["solution_file"] is not None:
        need(re.fullmatch(r"[^/\\]+", record["solution_file"]), "solution_file: is no plain file name")
        file = open_arrays(os.path.join(folder, record["solution_file"]))
    value, bound, done, left = record["objective"]["value"], record["bound"], [], []
    solution = None if record["solution"] is None else Held(record["solution"], file, prefix)
    certificate = record.get("certificate")
    if record["kind"] == "bound":
        need(certificate in (None, {}), "certificate: in a record of kind bound it is the solution")
        solution, certificate = None, solution
    elif certificate is not None:
        certificate = Held(certificate, file, prefix + "certificate/")
    if solution is not None:
        try:
            found = instance.replay(solution)
            need(value is not None and value == found, f"objective.value is {value}, the replay says {found}")
            done.append("replay")
        except NotCovered as why:
            left.append(f"replay: {why}")
    replayed = solution is not None and "algorithm" not in solution
    one_of(record["verified"]["facts"].get("replayed"), (None, replayed), "verified.facts.replayed")
    if certificate is not None:
        need(bound is not None, "certificate: there is no bound that it proves")
        kind = f"certificate {certificate.get('argument', certificate.get('binding', 'intervals'))}"
        try:
            instance.certify(certificate, Fraction(bound))
            done.append(kind)
        except NotCovered as why:
            left.append(f"{kind}: {why}")
    check_claims(record, value, bound, solution is not None, certificate)
    return done, left, value if "replay" in done else None, bound if certificate is not None else None


# --- 3  Graphs and networks ---


def closure(starts, leads_to):
    """Return the set of all that can be reached from some starts."""
    found, front = set(starts), list(starts)
    while front:
        new = set(leads_to(front.pop())) - found
        found |= new
        front += new
    return found


def orbits_of(items, images):
    """Return a dict item → number of its orbit under permutations, in the order of the orbits' first items."""
    numbers, count = {}, 0
    for item in items:
        if item not in numbers:
            numbers.update(dict.fromkeys(closure([item], images), count))
            count += 1
    return numbers


def grid_links(sides, wrapped):
    """Return the links (tail, head) of a grid in their order: axis by axis, node by node, there and back."""
    links, nodes, stride = [], math.prod(sides), math.prod(sides)
    for side in sides:
        stride //= side
        for node in range(nodes):
            place = node // stride % side
            after = node + stride if place + 1 < side else node - place * stride
            if place + 1 < side or (wrapped and side > 2):
                links += [(node, after), (after, node)]
    return links


def equimesh_rings(sides, rings):
    """Return the links of the four rings along the edges of an EquiMesh."""
    rows, cols = sides
    nodes, links = range(rows * cols), []
    edges = {"top": nodes[:cols], "bottom": nodes[-cols:], "left": nodes[::cols], "right": nodes[cols - 1 :: cols]}
    for edge, along in edges.items():
        up = ("even_up", "odd_up").index(rings.get(edge, "even_up"))
        ring = [*along[up::2], *along[1 - up :: 2][::-1]]
        links += zip(ring, ring[1:] + ring[:1])
    return links


def simple_network(network):
    """Return (ranks, switches, [(tail, head) or (tail, head, bandwidth)]) of a network that a few numbers describe."""

    def size(key, default=None):
        return whole(network.get(key, default), 1, 10**6, f"network.{key}")

    kind, switches, near = network["kind"], 0, network.get("bandwidth", 128e9)
    cover(kind != "dragonfly", "dragonflies")
    if kind in ("mesh", "torus", "equimesh"):
        sides = [size(key) for key in ("rows", "cols", "layers") if key != "layers" or network.get(key) is not None]
        ranks, links = math.prod(sides), grid_links(sides, kind == "torus")
        links += equimesh_rings(sides, network.get("rings") or {}) if kind == "equimesh" else []
    elif kind == "hypercube":
        dimension = whole(network.get("dimension"), 1, 20, "network.dimension")
        ranks, links = 2**dimension, grid_links((2,) * dimension, False)
    elif kind in ("star", "fat_tree"):
        leaves, hosts = (1, size("nodes")) if kind == "star" else (size("leaves"), size("hosts"))
        ranks = leaves * hosts
        spines = range(ranks + leaves, ranks + leaves + (size("spines", 1) if kind == "fat_tree" else 0))
        up = network.get("uplink_bandwidth", near)
        ends = [(v, ranks + v // hosts, near) for v in range(ranks)]
        ends += [(leaf, spine, up) for leaf in range(ranks, ranks + leaves) for spine in spines]
        switches, links = leaves + len(spines), [x for u, v, b in ends for x in ((u, v, b), (v, u, b))]
    else:
        ranks = size("nodes")
        if kind == "kautz":
            degree = size("degree")
            links = [(u, -(degree * u + j) % ranks) for u in range(ranks) for j in range(1, degree + 1)]
            links = [(u, v) for u, v in links if u != v]
        elif kind == "full":
            links = [x for u, v in combinations(range(ranks), 2) for x in ((u, v), (v, u))]
        elif kind == "ring" and not network.get("bidirectional", True):
            links = [(v, (v + 1) % ranks) for v in range(ranks)]
        else:
            one_of(kind, ("line", "ring"), "network.kind")
            links = grid_links((ranks,), kind == "ring")
    return ranks, switches, [(u, v, *(bandwidth or [near])) for u, v, *bandwidth in links]


# A link: its ends, bandwidth (bytes/s) and latency (s) as exact fractions, and its group (or None).
Link = namedtuple("Link", "tail head bandwidth latency group")


def new_link(tail, head, bandwidth, latency, group=None):
    return Link(tail, head, decimal(bandwidth, "bandwidth", LEAST), decimal(latency, "latency", 0), group)


def links_of(network, **default):
    """Return (number of ranks, of switches, links) of a network that is listed link by link, or simple."""
    if network["kind"] != "links":
        ranks, switches, links = simple_network(network)
        return ranks, switches, [new_link(*link, network.get("latency", 20e-9)) for link in links]
    links = [{**default, **link} for link in network["links"]]
    links = [new_link(x["src"], x["dst"], x["bandwidth"], x["latency"], x.get("group")) for x in links]
    return whole(network["nodes"], 1, 2**20, "network.nodes"), 0, links


class Instance:
    """An instance whose certificates name their argument in ``binding``: a dict of functions that return a bound."""

    def certify(self, held, bound):
        proven = held.choose("binding", self.arguments)(held)
        need(bound <= proven, f"{held.get('binding')}: proves {float(proven)}, not {float(bound)}")


class Network(Instance):
    """An instance on a network: ``out[v]`` and ``into[v]`` are (link, other end)."""

    def connect(self, nodes, links):
        self.nodes, self.links = nodes, links
        self.out, self.into = [[] for _ in range(nodes)], [[] for _ in range(nodes)]
        for e, link in enumerate(links):
            whole(link.tail, 0, nodes - 1, "src"), whole(link.head, 0, nodes - 1, "dst")
            need(link.tail != link.head, "network: a link from a node to itself")
            self.out[link.tail].append((e, link.head))
            self.into[link.head].append((e, link.tail))

    def turned(self):
        """Return the same instance with all links turned round."""
        other = copy.copy(self)
        other.connect(self.nodes, [link._replace(tail=link.head, head=link.tail) for link in self.links])
        return other

    def distances(self, starts, costs=None, passes=None, back=False):
        """Return a dict node → least cost (or hops) of a path from any start (with ``back``: to any of them).

        Starts may have costs of their own. With ``passes`` only nodes for which it is true, and starts, are inner nodes
        of a path. Absent: not reachable."""
        best = dict(starts) if isinstance(starts, dict) else dict.fromkeys(starts, 0)
        starts, queue, out = set(best), sorted((cost, v) for v, cost in best.items()), self.into if back else self.out
        while queue:
            cost, u = heapq.heappop(queue)
            if cost == best[u] and (passes is None or passes[u] or u in starts):
                for e, v in out[u]:
                    there = cost + (costs[e] if costs else 1)
                    if v not in best or there < best[v]:
                        best[v] = there
                        heapq.heappush(queue, (there, v))
        return best

    def link_orbits(self, images, moving):
        """Return the orbits of links under permutations of the nodes that keep them: of parallel links of one kind the
        i-th goes to the i-th."""

        def ordered(move):
            moved = ((move[x.tail], move[x.head], x.bandwidth, x.latency, e) for e in moving for x in [self.links[e]])
            return sorted(moved)

        maps, after = [], ordered(range(self.nodes))
        for g in images:
            before = ordered(g)
            need([x[:4] for x in before] == [x[:4] for x in after], "symmetries: do not keep the links")
            maps.append({x[4]: y[4] for x, y in zip(before, after)})
        return orbits_of(sorted(moving), lambda e: [moved[e] for moved in maps])


# --- 4  Replay by rounds: xtree, optree, bine ---


def replay_rounds(rows, have, everybody):
    """Move items from node to node: rows (round, from, to, items, adds) in the order of rounds and of their effect.

    ``have[node][item]`` is the set of contributions (bits) that a node holds. All rows of a round carry what is held
    when it begins. Without ``adds`` that must be complete; with it, it must not overlap what it is added to."""
    for now, moves in groupby(rows, key=itemgetter(0)):
        taken = [(v, items, adds, [have[u][item] for item in items]) for _, u, v, items, adds in moves]
        for v, items, adds, carried in taken:
            there = have[v]
            for item, contributions in zip(items, carried):
                if (there[item] & contributions) if adds else (contributions != everybody):
                    raise Fault(f"round {now}: {item} comes to {v} twice, or is not complete where it is sent from")
                there[item] |= contributions


# --- 5  xtree: timesteps of a collective on a network of equal links ---


class Xtree(Network):
    """An xtree instance. Chunk k belongs to node k // chunks."""

    def __init__(self, data, folder):
        network = data["network"]
        collectives = ("allgather", "reduce_scatter", "allreduce")
        self.collective = one_of(data.get("collective", "allgather"), collectives, "collective")
        self.chunks = whole(data["chunks"], 1, 2**31, "chunks")
        default = {"bandwidth": network.get("bandwidth", 128e9), "latency": network.get("latency", 20e-9)}
        nodes, _, links = links_of(network, **default)
        self.connect(nodes, links)
        reached = [len(self.distances([0], back=back)) for back in (False, True)]
        need(reached == [nodes, nodes], "network: is not strongly connected")
        self.arguments = {"cut": self.cut, "late arrivals": self.late, "relaxation": self.relaxation,
                          "diameter": self.diameter, "volume": self.volume}  # fmt: skip

    def replay(self, held):
        """Return the greatest timestep of a schedule that does what is asked."""
        steps = held.array("step", 1, 2**62)
        size, quotient = (len(steps),), "generators" in held
        wanted = range((1 if quotient else self.nodes) * self.chunks)
        links = held.array("link", 0, len(self.links) - 1, size)
        chunks = held.array("chunk", 0, len(wanted) - 1, size)
        adds = held.array("adds", 0, 1, size, default=[0] * len(steps))
        sums = self.collective != "allgather"
        need(sums or not any(adds), "adds: nothing is added in an allgather")
        small = len(steps) <= MOST_TRANSFERS and len(wanted) * self.nodes <= MOST_CELLS
        cover(small, f"{len(steps)} transfers of {len(wanted)} chunks")
        orbits = self.quotient_orbits(held, links) if quotient else range(len(self.links))
        used = {(step, orbits[link]) for step, link in zip(steps, links)}
        need(len(used) == len(steps), "two transfers of a timestep use one link (of a quotient: links of one orbit)")
        everybody = (1 << self.nodes) - 1 if sums else 1
        have = [[1 << v if sums else int(k // self.chunks == v) for k in wanted] for v in range(self.nodes)]
        rows = (
            (t, self.links[e].tail, self.links[e].head, (k,), add)
            for t, add, e, k in sorted(zip(steps, adds, links, chunks))
        )
        replay_rounds(rows, have, everybody)
        for k in wanted:
            goals = [k // self.chunks] if self.collective == "reduce_scatter" else range(self.nodes)
            need(all(have[v][k] == everybody for v in goals), f"chunk {k} is not complete where it should be")
        return max(steps, default=0)

    def quotient_orbits(self, held, used):
        """Return the orbits of links under symmetries that make a schedule of everybody's chunks from that of node 0's.

        Commuting permutations that carry node 0 everywhere form a group with exactly one element for each node. The
        whole schedule uses a link twice in a step exactly if two of the part's transfers use links of one orbit."""
        need(self.collective != "allreduce", "generators: not in an allreduce")
        generators = held.permutations("generators", self.nodes)
        commute = (a[b[v]] == b[a[v]] for a, b in combinations(generators, 2) for v in range(self.nodes))
        need(all(commute), "generators: do not commute")
        reached = closure([0], lambda v: [g[v] for g in generators])
        need(len(reached) == self.nodes, "generators: do not carry node 0 to every node")
        moving = held.array("within", 0, len(self.links) - 1, default=range(len(self.links)))
        once = len(set(moving)) == len(moving) and set(used) <= set(moving)
        need(once, "within: holds every used link, none twice")
        return self.link_orbits(generators, moving)

    def cut(self, held):
        inside = set(held.array("inside", 0, self.nodes - 1))
        need(0 < len(inside) < self.nodes, "inside: all nodes or none")
        enters = sum(link.tail not in inside and link.head in inside for link in self.links)
        leaves = sum(link.tail in inside and link.head not in inside for link in self.links)
        if self.collective == "allreduce":
            return ceiling(self.nodes * self.chunks, min(enters, leaves))
        outside = self.chunks * (self.nodes - len(inside))
        return ceiling(outside, enters if self.collective == "allgather" else leaves)

    def late(self, held):
        node, hops = held.whole("node", 0, self.nodes - 1), held.whole("hops", 1, 2**31)
        sides = {"allgather": ("in",), "reduce_scatter": ("out",), "allreduce": ("in", "out")}[self.collective]
        into = one_of(held.get("side"), sides, "side") == "in"
        far = sum(distance >= hops for distance in self.distances([node], back=into).values())
        chunks = (self.nodes * bool(far) if self.collective == "allreduce" else far) * self.chunks
        return hops - 1 + ceiling(chunks, len((self.into if into else self.out)[node])) if chunks else 0

    def diameter(self, held):
        u, v = held.array("pair", 0, self.nodes - 1, (2,))
        return self.distances([u])[v]

    def volume(self, held):
        twice = 2 if self.collective == "allreduce" else 1
        return ceiling(twice * (self.nodes - 1) * self.nodes * self.chunks, len(self.links))

    def relaxation(self, held):
        """Multipliers with which the linear program of all schedules in ``horizon`` steps contradicts itself."""
        need(self.collective != "allreduce", "relaxation: not of an allreduce")
        turned, N = self.collective == "reduce_scatter", self.nodes
        parallel = Counter((x.head, x.tail) if turned else (x.tail, x.head) for x in self.links)
        arcs, T = sorted(parallel), held.whole("horizon", 1, 2**20)
        capacity = held.array("capacity", 0, 2**40, (len(arcs), T))
        conservation = held.array("conservation", -(2**40), 2**40, (N, N, T))
        causality = held.array("causality", 0, 2**40, (N, len(arcs), T))
        right, least = sum(parallel[arc] * sum(capacity[a * T : a * T + T]) for a, arc in enumerate(arcs)), 0
        for root in range(N):
            hops = self.distances([root], back=turned)
            q = [conservation[at : at + T] for at in range(root * N * T, (root + 1) * N * T, T)]
            q[root], leaving = [0] * T, [[0] * T for _ in q]  # leaving: Σ of p over the arcs out of a node
            right += sum(row[T - 1] for row in q)
            for a, (u, v) in enumerate(arcs):
                at = (root * len(arcs) + a) * T
                p = [0] * T if u == root else causality[at : at + T]
                leaving[u] = [x + y for x, y in zip(leaving[u], p)]
                for t in range(hops[u] if v != root else T, T):  # timestep t + 1 > hops
                    least += min(0, self.chunks * capacity[a * T + t] + q[v][t] + p[t])
            for v in range(N):
                for t in range(max(hops[v], 1) if v != root else T, T):  # timestep t, in place t - 1
                    least += min(0, q[v][t] - q[v][t - 1] - leaving[v][t])
        need(least > right, f"relaxation: {least} is not above {right}, so nothing is proven")
        return T + 1


# --- 6  fabric: seconds of a collective on any machine ---


def machine_file(name, folder):
    """Return the machine that a data file describes; with ``like`` all else is another file's."""
    need(re.fullmatch(r"[A-Za-z0-9._-]+", name), f"network.name: {short(name)}")
    path = next(find_file(f"models/synth_models/fabric/machines/{name}.json", folder), None)
    need(path is not None, f"network.name: no machine file {name}.json")
    with open(path, encoding="utf-8") as file:
        machine = read_json(file.read())
    return {**machine_file(machine["like"], folder), **machine} if "like" in machine else machine


def built_machine(network, folder):
    """Return (number of ranks, of switches, links, abilities of nodes) of a machine of one or more boxes."""
    cover(network.get("gpus") is None and network.get("rails", True), "boxes in part, leaves that rails share")
    file = machine_file(network["name"], folder)
    boxes = whole(network.get("boxes", 1), 1, file.get("most_boxes", 2**20), "network.boxes")
    several = ("box_switches", "shared_switches", "uplinks", "joins")
    more, shared, uplinks, joins = (file.get(key, []) if boxes > 1 else [] for key in several)
    names = ([f"gpu{i}" for i in range(file["gpus"])], file.get("switches", []) + more)
    nodes, leaf, links = [(b, name) for kind in names for b in range(boxes) for name in kind], network.get("leaf"), []
    groups = range(1 if leaf is None else ceiling(boxes, whole(leaf, 1, 2**20, "network.leaf")))
    nodes += [("leaf", g, name) for g in groups for name in shared]
    at = {name: number for number, name in enumerate(nodes)}

    def node(b, name):
        return at.get(("leaf", b // leaf if leaf else 0, name) if name in shared else (b, name))

    def add(u, v, link, group=None):
        """Add a link, and the link back, if both ends are there."""
        for tail, head in ((u, v), (v, u)) if link.get("both", True) else ((u, v),):
            if tail is not None and head is not None:
                links.append(new_link(tail, head, link["bandwidth"], link.get("latency", 0), group))

    for b in range(boxes):
        for link in file.get("links", []) + uplinks:
            group = (b, link["group"]) if link.get("group") is not None else None
            add(node(b, link["src"]), node(b, link["dst"]), link, group)
    for link in joins:
        for b in range(1 if boxes == 2 and link.get("both", True) else boxes):
            add(node(b, link["src"]), node((b + 1) % boxes, link["dst"]), link)
    abilities = file.get("abilities", {})
    abilities = {v: abilities[name[-1]] for v, name in enumerate(nodes) if name[-1] in abilities}
    spines = ()
    if leaf is not None:
        ports = [x for x in uplinks if x["dst"] in shared or (x.get("both", True) and x["src"] in shared)]
        over = number(network.get("oversubscription", 1), "network.oversubscription", LEAST)
        count = network.get("spines") or max(1, round(boxes * len(ports) / over / 64))
        spines = range(len(nodes), len(nodes) + count)
    for g, name in product(groups, shared if spines else ()):
        mine = [port for port in ports if name in (port["src"], port["dst"])]
        bandwidth = leaf * sum(port["bandwidth"] for port in mine) / over / len(spines)
        for spine in spines:
            latency = max(port.get("latency", 0) for port in mine)
            add(at["leaf", g, name], spine, {"bandwidth": bandwidth, "latency": latency})
    ranks = boxes * file["gpus"]
    return ranks, len(nodes) + len(spines) - ranks, links, abilities


class Fabric(Network):
    """A fabric instance: the links in use (numbered anew), who takes part, and the blocks (origin, goal, bytes) to be
    moved; an origin or goal None stands for all members."""

    def __init__(self, data, folder):
        network, abilities = data["network"], {}
        if network["kind"] == "machine":
            ranks, switches, links, abilities = built_machine(network, folder)
        else:
            ranks, switches, links = links_of(network, latency=0)
        nodes = range(ranks + switches)
        self.is_switch = [v >= ranks for v in nodes]
        if network["kind"] == "links":
            abilities = {ability["switch"]: ability for ability in network.get("abilities") or ()}
            self.is_switch = [v in (network.get("switches") or ()) for v in nodes]
        self.ranks = [v for v in nodes if not self.is_switch[v]]
        failed, members = data.get("failed") or {}, data.get("ranks")
        dead, cut = set(failed.get("nodes", ())), {tuple(pair) for pair in failed.get("links", ())}
        cover(not failed.get("reduced"), "links with less than their bandwidth")
        working = set(self.ranks) - dead
        self.members = sorted(working) if members is None else list(members)
        need(self.members and working.issuperset(self.members), "ranks: each a rank that works")
        need(len(set(self.members)) == len(self.members), "ranks: one stands twice")
        idle = dead | (set() if data.get("relay") else set(self.ranks) - set(self.members))
        in_use = (x for x in links if (x.tail, x.head) not in cut and x.tail not in idle and x.head not in idle)
        self.connect(len(nodes), list(in_use))
        self.set_switching(data.get("switching") or {}, [abilities.get(v) or {} for v in nodes])
        self.set_blocks(data)

    def set_switching(self, switching, abilities):
        modes, every = ("cut_through", "store_and_forward"), range(self.nodes)
        self.stores = one_of(switching.get("mode", "cut_through"), modes, "switching.mode") == "store_and_forward"
        plain = switching.get("copies", True) and not switching.get("buffer") and not switching.get("adds")
        cover(plain or not self.stores, "switches that store and buffer, add or do not copy")
        self.multicast = bool(switching.get("multicast"))
        general = {"copies": self.multicast, "adds": bool(switching.get("adds"))}
        self.copies, self.adds = (
            [self.is_switch[v] and bool(every_switch or abilities[v].get(what)) for v in every]
            for what, every_switch in general.items()
        )
        self.limited = any(ability.get(key) for ability in [*abilities, switching] for key in ("streams", "add_rate"))
        linked = [v for v in every if self.is_switch[v] and (self.out[v] or self.into[v])]
        self.able = [v for v in linked if self.copies[v] or self.adds[v]]  # where switches cut through
        self.pay_alone = not linked or not (self.stores or self.multicast or self.able)

    def set_blocks(self, data):
        cover(data["collective"] != "several", "several collectives")
        collective, members, M = data["collective"], self.members, whole(data["bytes"], 1, 2**62, "bytes")
        N, root = len(members), members[0] if data.get("root") is None else data["root"]
        need(root in members, "root: is no member")
        even = collective not in ("allgather", "reduce_scatter", "alltoall", "gather", "scatter") or M % N == 0
        need(even, f"bytes: {M} is not divisible by {N} members")
        part, others = M // N, [v for v in members if v != root]
        blocks = {
            "allgather": [(v, None, part) for v in members],
            "reduce_scatter": [(None, v, part) for v in members],
            "allreduce": [(None, None, M)],
            "alltoall": ((u, v, part) for u in members for v in members if u != v),
            "broadcast": [(root, None, M)],
            "reduce": [(None, root, M)],
            "gather": [(v, root, part) for v in others],
            "scatter": [(root, v, part) for v in others],
            "demand": [(u, v, whole(n, 1, 2**62, "demand")) for u, v, n in data.get("demand") or ()],
        }
        one_of(collective, blocks, "collective")
        self.blocks = list(blocks[collective]) if N > 1 or collective == "demand" else []
        need({v for block in self.blocks for v in block[:2]} <= {None, *members}, "demand: not between members")
        self.bytes, self.sums, self.collective = M, any(origin is None for origin, _, _ in self.blocks), collective
        cover(not (self.sums and self.stores), "sums over switches that store")

    # -- replay
    def replay(self, held):
        """Return the last arrival in seconds, rounded up to a double."""
        cover("quotient_generators" not in held, "a quotient of a fabric schedule")
        T = held.whole("ticks_per_s", 1, 2**62)
        starts = list(accumulate(held.array("start_steps", -(2**63), 2**63)))
        size = (len(starts),)
        cover(len(starts) <= MOST_TRANSFERS, f"{len(starts)} transfers")
        blocks = held.array("piece_block", 0, len(self.blocks) - 1)
        sizes = held.array("piece_bytes", 1, 2**48, (len(blocks),))
        pieces = list(accumulate(held.array("piece_steps", -(2**63), 2**63, size)))
        links = held.array("link", 0, len(self.links) - 1)
        lengths = held.array("route_lengths", 1, 2**62, size, default=[1] * len(starts))
        adds = held.array("adds", 0, 1, size, default=[0] * len(starts))
        need(min(starts, default=0) >= 0 and max(starts, default=0) <= 2**62, "start_steps: a start is not in 0..2^62")
        need(min(pieces, default=0) >= 0 and max(pieces, default=-1) < len(blocks), "piece_steps: a piece that is none")
        need(sum(lengths) == len(links), "route_lengths: do not add up to the length of link")
        need(self.sums or 1 not in adds, "adds: nothing is added in this collective")
        total = [0] * len(self.blocks)
        for block, n in zip(blocks, sizes):
            total[block] += n
        need(total == [n for _, _, n in self.blocks], "piece_bytes: a block's pieces do not add up to its bytes")
        cover(len(blocks) * self.nodes <= MOST_CELLS, f"{len(blocks)} pieces on {self.nodes} nodes")
        known, uses, end = {}, [], 0  # transfers of equal routes and sizes share what ``route`` returns
        for piece, length in zip(pieces, lengths):
            end += length
            key = (*links[end - length : end], sizes[piece])
            if key not in known:
                known[key] = self.route(T, key[:-1], sizes[piece])
            uses.append(known[key])
        self.check_exclusion(starts, uses)
        exact = Fraction(self.replay_pieces(starts, pieces, blocks, adds, uses), T)
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, INFINITE)

    def route(self, T, route, size):
        """Return ([(source, when it leaves)], [(link, from, to)], [(rank or storing switch, arrival)]), in ticks."""
        sources = dict.fromkeys(x.tail for x in map(self.links.__getitem__, route) if not self.is_switch[x.tail])
        first = self.links[route[0]].tail
        leaving, used, arrivals, reached, rest, left = [(first, 0)], [], [], {first: (0, 0)}, route, set()
        need(not self.stores or len(route) == 1, "route_lengths: where switches store, a route is one link")
        need(self.stores or not self.is_switch[first], f"route {route}: begins at a switch")
        if len(sources) > 1:
            leaving, used, arrivals, reached, rest = self.in_tree(T, route, size, sources)
        before = {e for e, _, _ in used}
        for e in rest:
            u, v, where = self.links[e].tail, self.links[e].head, f"route {route}, link {e}"
            alpha, duration = self.ticks(T, e, size)
            need(u in reached, f"{where}: goes on from no node that it reached")
            need(u not in left or self.multicast or self.copies[u], f"{where}: node {u} does not copy")
            need(v not in reached and e not in before, f"{where}: comes to node {v} twice, or is used twice")
            cover(u not in left or not self.limited, "switches that copy a limited number of streams")
            left.add(u)
            begin, slow = reached[u]
            used.append((e, begin, begin + duration))
            reached[v] = (begin + alpha, max(slow, duration))
            if self.stores or not self.is_switch[v]:
                arrivals.append((v, sum(reached[v])))
        ends = [v for v in reached if v not in left and self.is_switch[v] and not self.stores]
        need(not ends, f"route {route}: ends at switches {ends}")
        return leaving, used, arrivals

    def ticks(self, T, e, size):
        """Return the ticks of a link's latency, and those for which a transfer of some bytes uses it."""
        return math.ceil(self.links[e].latency * T), math.ceil(size * T / self.links[e].bandwidth)

    def in_tree(self, T, route, size, sources):
        """Return the same of the links on which streams of several sources become one; then where, and what is left."""
        cover(not self.limited, "switches that add a limited number of streams")
        left, streams, rest = {}, set(), list(route)  # left: by which link; streams: the nodes at which they are
        while rest:
            e, together = rest[0], len(streams) == 1 and left.keys() >= sources.keys()
            u, v, where = self.links[e].tail, self.links[e].head, f"route {route}, link {e}"
            if together and len({self.links[f].tail for f in rest}) < len(rest):
                break  # from here, the hub, the sum parts
            need(u in streams or u in sources, f"{where}: nothing comes to node {u}")
            need(not {u, v} & left.keys() and v not in sources, f"{where}: at a node that was left before")
            need(v not in streams or self.adds[v], f"{where}: node {v} does not add")
            left[u], streams = e, streams - {u} | {v}
            rest.pop(0)
        need(len(streams) == 1, f"route {route}: its streams do not meet")
        (hub,), used = streams, []
        behind = {hub: (0, 0)}  # of a node: the latency from it to the hub, and the slowest link on the way there
        for e in reversed(left.values()):
            (alpha, duration), (far, slow) = self.ticks(T, e, size), behind[self.links[e].head]
            behind[self.links[e].tail] = far + alpha, max(slow, duration)
            used.append((e, far + alpha, duration))
        end, least = max(sum(behind[u]) for u in sources), min(behind[u][1] for u in sources)
        leaving = [(u, end - sum(behind[u])) for u in sources]
        used = [(e, end - far - duration, end - far) for e, far, duration in used]
        arrivals = [(hub, end)] if not self.is_switch[hub] else []
        return leaving, used, arrivals, {hub: (end - least, least)}, rest

    def check_exclusion(self, starts, uses):
        """Check that no two transfers use a link, or links of one group, at the same time."""
        times = defaultdict(list)  # of a link, or of a group: (begin, end, transfer)
        for i, (start, (_, used, _)) in enumerate(zip(starts, uses)):
            for e, begin, end in used:
                times[e].append((start + begin, start + end, i))
                if self.links[e].group is not None:
                    times["group", self.links[e].group].append((start + begin, start + end, i))
        for what, intervals in times.items():
            intervals.sort()
            last, until, others_until = None, 0, 0  # the latest transfer, its end, and the latest end of another
            for begin, end, i in intervals:
                if begin < (others_until if i == last else until):
                    raise Fault(f"link or group {what}: two transfers at tick {begin}")
                last, until, others_until = (i, max(until, end), others_until) if i == last else (i, end, until)

    def replay_pieces(self, starts, pieces, blocks, adds, uses):
        """Check possession and contributions piece by piece; return the last arrival.

        Sets of contributions are bits. At a tick copies arrive before additions, and both before anything leaves. A
        switch that stores passes on at the tick of an arrival."""
        of_piece, last = [[] for _ in blocks], 0
        for i, piece in enumerate(pieces):
            of_piece[piece].append(i)
        everybody, alone = (1 << len(self.members)) - 1, {v: 1 << i for i, v in enumerate(self.members)}
        for piece, mine in enumerate(of_piece):
            origin, goal, _ = self.blocks[blocks[piece]]
            have = dict(alone) if origin is None else {origin: everybody}
            events, at_switch, carried = [], set(), {}
            for i in mine:
                events += [(4 * (starts[i] + after) + 2, i, v) for v, after in uses[i][0]]
                for v, after in uses[i][2]:
                    last = max(last, starts[i] + after)
                    if self.is_switch[v]:
                        at_switch.add((v, starts[i] + after))
                    else:
                        events.append((4 * (starts[i] + after) + adds[i], i, v))
            for time, i, v in sorted(events):
                held = have.get(v, 0)
                if time % 4 == 2:  # transfer i leaves node v
                    held = everybody if (v, time // 4) in at_switch else held
                    if not held or held & carried.get(i, 0):
                        raise Fault(f"transfer {i}: piece {piece} is not at node {v}, or it takes a contribution twice")
                    carried[i] = held | carried.get(i, 0)
                elif held & carried[i] if adds[i] else carried[i] != everybody:
                    raise Fault(f"transfer {i}: brings piece {piece} incomplete, or adds a contribution twice")
                else:
                    have[v] = held | carried[i]
            for v in self.members if goal is None else (goal,):
                need(have.get(v) == everybody, f"piece {piece} is not (completely) at rank {v} in the end")
        return last

    # -- certificates
    def certify(self, held, bound):
        """Check that a certificate proves a bound in seconds: by then the links carry no more than what is needed."""
        cover(held.get("argument") != "steps", "refuted plans of steps")
        prove = held.choose("argument", {
            "nothing": Fabric.nothing, "cut": Fabric.cut, "prices": Fabric.prices, "gossip": Fabric.gossip,
            "partition": Fabric.partition, "deliveries": Fabric.windows, "sums": Fabric.windows,
            "moments": Fabric.moments, "orbit_moments": Fabric.moments,
        })  # fmt: skip
        greatest = max([link.latency for link in self.links], default=Fraction(0))
        self.P, self.bound = math.lcm(*(link.latency.denominator for link in self.links)), bound
        if self.P > 10**18 or self.P * greatest * self.nodes > 2**61:
            self.P = max(1, min(10**18, 2**61 // max(Fraction(1), greatest * self.nodes)))
        self.latencies = [int(link.latency * self.P) for link in self.links]
        backwards = held.get("backwards", False) if prove in (Fabric.windows, Fabric.moments) else False
        need(type(backwards) in (bool, int) and backwards in (0, 1), f"backwards: {short(backwards)} is no truth value")
        self.is_turned = bool(backwards)
        prove(self.turned() if self.is_turned else self, held)

    def turned(self):
        """Return the instance with links turned round, and each block's origin and goal exchanged."""
        other = super().turned()
        other.blocks = [(goal, origin, n) for origin, goal, n in self.blocks]
        return other

    def enough(self, needed, capacity):
        """Check the inequality that every argument ends with."""
        need(needed > 0, f"nothing has to move ({needed})")
        need(capacity <= needed, f"links carry {float(capacity):.6g} by then, only {float(needed):.6g} is needed")

    def capacity(self, price, begin, left, sharing):
        """Return what links carry by the bound, at their prices, if link e is of use only from ``begin[e]`` ticks on
        and until ``left[e]`` ticks before the end (None: never)."""
        total, grouped = Fraction(0), defaultdict(list)
        for e, link in enumerate(self.links):
            if price[e] > 0 and begin[e] is not None and left[e] is not None:
                grouped[("alone", e) if link.group is None else ("group", link.group)].append(e)
        for group in grouped.values():
            for part in self.parts(group, sharing):
                rate = max(price[e] * self.links[e].bandwidth for e in part)
                lost = min(begin[e] for e in part) + min(left[e] for e in part)
                total += rate * max(0, self.bound * self.P - lost)
        return total / self.P

    def parts(self, group, sharing):
        """Cut the links of a group into parts that cannot carry one byte together (page: Capacity)."""
        if sharing == "once" or self.stores or len(group) == 1:
            return [group]
        if sharing == "each":
            return [[e] for e in group]
        links, switch = [self.links[e] for e in group], self.is_switch
        for x in links:  # may a route use another link of the group behind it?
            joined = self.distances([x.head], passes=switch) if switch[x.head] else {}
            if any(y is not x and switch[y.tail] and y.tail in joined and y.head != x.tail for y in links):
                break
        else:
            return [group]
        leaving = [e for e in group if not switch[self.links[e].tail]]
        entering = [e for e in group if e not in leaving and not switch[self.links[e].head]]
        between = [[e] for e in group if e not in leaving + entering]
        return [part for part in (leaving, entering, *between) if part]

    def along_routes(self):
        """Return how links of a group share what is paid for along a route."""
        return "each" if self.multicast or self.able else "path"

    def between(self, sources, goals, behind_passes=None):
        """Return of every link the ticks from the nearest source through its head, split at its tail, to a goal."""
        before = self.distances(sources, self.latencies)
        behind = self.distances(goals, self.latencies, behind_passes, back=True)
        left = [self.latencies[e] + behind[x.head] if x.head in behind else None for e, x in enumerate(self.links)]
        return [before.get(link.tail) for link in self.links], left

    def nothing(self, held):
        need(self.bound <= 0, "nothing: proves 0")

    def cut(self, held):
        inside, origins, goals = (set(held.distinct(key, self.nodes)) for key in ("inside", "origins", "goals"))
        need(origins and origins <= inside.intersection(self.members), "origins: members inside")
        need(goals and goals <= set(self.members) - inside, "goals: members not inside")
        price = [int(link.tail in inside and link.head not in inside) for link in self.links]
        needed = sum(n for origin, goal, n in self.blocks if origin in {None, *origins} and goal in {None, *goals})
        self.enough(needed, self.capacity(price, *self.between(origins, goals), "once"))

    def prices(self, held):
        need(all(None not in block[:2] for block in self.blocks), "prices: every block leads from one rank to one")
        length, sources, goals, needed = self.of_links(held), set(), set(), 0
        away = Fraction(held.whole("away_ticks", 0, 2**62), held.whole("ticks_per_s", 1, 2**62)) * self.P
        for origin, blocks in groupby(sorted(self.blocks), key=itemgetter(0)):
            ticks, costs = (self.distances([origin], costs) for costs in (self.latencies, length))
            for _, goal, n in blocks:
                need(goal in ticks, f"rank {goal} cannot be reached from rank {origin}")
                if ticks[goal] >= away:
                    sources.add(origin)
                    goals.add(goal)
                    needed += n * costs[goal]
        self.enough(needed, self.capacity(length, *self.between(sources, goals), "path"))

    def of_links(self, held, key="length", most=2**40):
        return held.array(key, 0, most, (len(self.links),))

    def gossip(self, held):
        need(self.collective == "allreduce" and self.blocks, "gossip: only of an allreduce")
        outside = [v for v in set(self.ranks) - set(self.members) if self.out[v] or self.into[v]]
        need(not outside, f"ranks {outside[:3]} are no members and have links in use")
        able, members, length = [] if self.stores else self.able, self.members, self.of_links(held)
        in_switches = any(self.adds[v] for v in able) or (able and not self.multicast)
        need(self.pay_alone or in_switches, "gossip: a transfer may pay for several")
        ends = members + able
        ahead, tree, group = [self.distances([u], length) for u in ends], 0, list(range(len(ends)))
        edges = (
            (min(ahead[i].get(ends[j], INFINITE), ahead[j].get(ends[i], INFINITE)), i, j)
            for i, j in combinations(group, 2)
        )
        for cost, i, j in sorted(edges):  # members come first, so a group with a member has a member for its number
            a, b = sorted((group[i], group[j]))
            if a != b:
                group = [a if x == b else x for x in group]
                tree += cost if b < len(members) else 0
        need(tree < INFINITE, "gossip: members are not joined")
        begin_left = self.between(members, members)
        self.enough(2 * self.bytes * tree, self.capacity(length, *begin_left, self.along_routes()))

    def partition(self, held):
        need(self.collective == "allreduce" and self.blocks, "partition: only of an allreduce")
        part = held.array("part", 0, self.nodes - 1, (self.nodes,))
        need(set(part) == {part[v] for v in self.members}, "part: every part has a member")
        price = [int(part[link.tail] != part[link.head]) for link in self.links]
        capacity = self.capacity(price, *self.between(self.members, self.members), self.along_routes())
        self.enough(2 * (len(set(part)) - 1) * self.bytes, capacity)

    def windows(self, held):
        """Deliveries or sums pay prices that begin at moments: what comes from its origin, or what is passed on."""
        members, switch, latencies = self.members, self.is_switch, self.latencies
        need(self.pay_alone, "transfers may pay for several: switches in use copy or add")
        need(type(held.get("backwards")) is bool, "backwards: true or false")
        need(held.whole("ticks_per_s", 1, 2**62) == self.P, f"ticks_per_s: should be {self.P}")
        windows = [Held(window) for window in held.list("windows")]
        need(1 <= len(windows) <= 4, "windows: 1 to 4 of them")
        rows = [(self.of_links(x, most=2**38), self.of_links(x, "after", 2**61)) for x in windows]
        begins = Counter()  # bytes of the blocks that begin at a rank
        if sums := held["argument"] == "sums":
            need(self.collective == "allreduce" and self.blocks, "sums: only of an allreduce")
            begins.update(dict.fromkeys(members, self.bytes))
        for origin, goal, n in () if sums else self.blocks:
            need(origin is not None and goal is None, "deliveries: every block goes to all (backwards: comes from all)")
            begins[origin] += n

        def paid(starts):
            """What each link costs at the moment when it can first be reached from some ranks over switches."""
            moments = self.distances(starts, latencies, switch)
            at = [moments.get(link.tail, -1) for link in self.links]
            return [sum(x[e] for x, after in rows if moment >= after[e]) for e, moment in enumerate(at)]

        def passed(known):
            """Least payment from any rank that knows something, over at least one link and switches, to each member."""
            costs = paid(known)
            least = self.distances(list(known), costs, switch)
            last = {
                v: [(u, costs[e]) for e, u in self.into[v] if u in known or (switch[u] and u in least)] for v in members
            }
            return {v: min([least[u] + cost for u, cost in links], default=INFINITE) for v, links in last.items()}

        alone = {u: self.distances([u], paid([u]), switch) for u in begins}  # least payment over switches alone
        known, needed = {}, 0  # the moment when a rank knows something
        for u, n in begins.items():
            mine = {w: t for w, t in self.distances([u], latencies).items() if w != u and not switch[w]}
            if sums:
                known = {w: min(known.get(w, INFINITE), mine.get(w, INFINITE)) for w in known.keys() | mine.keys()}
            else:
                on = passed(mine)
                needed += n * sum(min(alone[u].get(v, INFINITE), on[v]) for v in members if v != u)
        if sums:
            on = passed(known)
            together = {v: sum(alone[u].get(v, INFINITE) for u in members if u != v) for v in members}
            needed = self.bytes * sum(min(together[v], on[v]) for v in members)
        need(needed < INFINITE, "a member cannot be reached")
        begin, left = self.between(list(begins), members, switch)
        shift = [ticks * self.is_turned for ticks in latencies]  # backwards a link's latency passes before, not behind
        left, capacity = [None if x is None else x - y for x, y in zip(left, shift)], Fraction(0)
        for length, after in rows:
            late = [None if x is None else max(x, y) + z for x, y, z in zip(begin, after, shift)]
            capacity += self.capacity(length, late, left, self.along_routes())
        self.enough(needed, capacity)

    def moments(self, held):
        """Cuts that move with time: at a moment, ranks v with since[d, v] not after it may have demand d's data.

        ``orbit_moments`` are those of one block's demands and all their images under symmetries, where one link of each
        orbit stands for all; ``moments`` are the same for several blocks without symmetries."""
        images, nodes, ranks, switch = [], self.nodes, self.ranks, self.is_switch
        near = closure(self.able, lambda v: [w for _, w in self.out[v] + self.into[v] if switch[w]])
        alone = self.pay_alone or self.stores or held["argument"] == "moments"
        unpaid = {e for e, x in enumerate(self.links) if not alone and near & {x.tail, x.head}}
        need(self.pay_alone or unpaid, "transfers may pay for several: switches in use copy or add")
        finer, share = held.whole("finer", 1, 2**40), self.of_links(held, "share", 1024)
        source = held.array("source", 0, nodes - 1)
        demands, members = range(len(source)), set(self.members)
        target = held.array("target", 0, nodes - 1, (len(demands),))
        if held["argument"] == "moments":
            block, of, width = held.array("block", 0, len(self.blocks) - 1, (len(demands),)), demands, len(ranks)
            classes = [{v: i for i, v in enumerate(ranks)}] * len(demands)
        else:
            need(len(self.blocks) == 1, "orbit_moments: of one block")
            cover(not held.keys() & {"toll_of", "toll", "toll_at"}, "tolls")
            images, block = held.permutations("images", nodes), [0] * len(demands)
            rows = held.rows("classes", 0, 2**31, len(ranks), len(demands))
            classes, of = [dict(zip(ranks, row)) for row in rows], held.array("of", 0, len(demands) - 1)
            width = max((max(row) for row in rows), default=0) + 1
        weight = held.array("weight", 1, 2**30, (len(of),))
        since = held.rows("since", 0, 2**62, width, len(of))
        need(0 < len(of) <= 10000, f"moments: {len(of)} rows")
        for d in demands:
            origin, goal = self.blocks[block[d]][:2]
            begins = source[d] == origin or (origin is None and source[d] in members)
            ends = target[d] == goal or (goal is None and target[d] in members)
            need(begins and ends and source[d] != target[d], "source, target: not a block's origin and goal")
        need(all(row[classes[d][source[d]]] == 0 for d, row in zip(of, since)), "since: a source has it from 0 on")
        F, latency = self.P * finer, [ticks * finer for ticks in self.latencies]
        first = min(row[classes[d][target[d]]] for d, row in zip(of, since))
        need(self.bound * F <= first, "the bound is after a target's moment")
        for g in images:
            fixed = {g[v] for v in members} == members and all(v is None or g[v] == v for v in self.blocks[0][:2])
            need(fixed, "images: move members, origin or goal")
            need(all(switch[g[v]] == switch[v] for v in range(nodes)), "images: move ranks to switches")
        need(not any(share[e] for e in unpaid), "share: on a link near a switch that copies or adds")
        for u in ranks if unpaid else ():  # over unpaid links nothing comes from u before its receiver's moment
            first = {}
            for e, w in self.out[u]:
                if e in unpaid:
                    first[w] = min(first.get(w, INFINITE), latency[e])
            for v, ticks in self.distances(first, latency, switch).items():
                late = (
                    v == u
                    or switch[v]
                    or all(row[classes[d][v]] <= row[classes[d][u]] + ticks for d, row in zip(of, since))
                )
                need(late, "since: a transfer near a switch that copies or adds could be the one")
        capacity, standing = Fraction(0), {}  # of an orbit: its first link, its share, Σ b_e·share
        orbits = self.link_orbits(images, range(len(self.links)))
        for e, link in enumerate(self.links):
            stands = standing.setdefault(orbits[e], [e, share[e], 0])
            need(stands[1] == share[e], "share: differs within an orbit")
            stands[2] += link.bandwidth * share[e]
        for e, _, rate in standing.values():
            moving = []  # what may cross link e, by orbit of pairs of ranks and block: (its changes in time, pairs)
            for pairs, before, behind in self.crossings(e, latency, images) if rate else ():
                changes = defaultdict(list)
                for d, row, w in zip(of, since, weight):
                    for (a, b), times in Counter((classes[d][u], classes[d][v]) for u, v in pairs).items():
                        begin, end = row[a] + before, row[b] - behind
                        if begin < end:
                            changes[block[d]] += [(begin, w * times), (end, -w * times)]
                moving += [(of_block, len(pairs)) for of_block in changes.values()]
            capacity += rate * area_of_greatest(moving)
        costs = [2**40 if e in unpaid else x for e, x in enumerate(share)]
        paths = ((u, v, cost) for u in ranks for v, cost in self.distances([u], costs, switch).items())
        worth = min((cost for u, v, cost in paths if v != u and not switch[v]), default=INFINITE)
        need(0 < worth < 2**40, "share: some path between ranks is worth nothing, or no path is worth anything")
        moved = sum(w * self.blocks[block[d]][2] for w, d in zip(weight, of))
        self.enough(worth * moved - Fraction(1, 10**12), capacity / F)

    def crossings(self, e, latency, images):
        """Return the distinct (pairs of ranks of an orbit, ticks before, ticks behind) of routes over link e."""
        orbits, found, ends = {}, {}, []
        for node, back in ((self.links[e].tail, True), (self.links[e].head, False)):
            reach = self.distances([node], latency, self.is_switch, back) if self.is_switch[node] else {node: 0}
            ends.append([(v, ticks) for v, ticks in reach.items() if not self.is_switch[v]])
        for (u, before), (v, behind) in product(*ends):
            if u != v:
                if (u, v) not in orbits:
                    orbit = sorted(closure([(u, v)], lambda pair: [(g[pair[0]], g[pair[1]]) for g in images]))
                    orbits.update(dict.fromkeys(orbit, orbit))
                found[orbits[u, v][0], before, behind + latency[e]] = orbits[u, v]
        return [(orbit, before, behind) for (_, before, behind), orbit in found.items()]


def area_of_greatest(moving):
    """Integrate over time the greatest of several ⌈sum / pairs⌉, each stated as (changes (time, weight), pairs)."""
    changes = sorted((time, key, weight) for key, (mine, _) in enumerate(moving) for time, weight in mine)
    sums, heights, heap, area, last = [0] * len(moving), [0] * len(moving), [], 0, 0
    for time, key, weight in changes:
        while heap and heights[heap[0][1]] != -heap[0][0]:
            heapq.heappop(heap)
        area += -heap[0][0] * (time - last) if heap else 0
        last = time
        sums[key] += weight
        heights[key] = ceiling(sums[key], moving[key][1])
        heapq.heappush(heap, (-heights[key], key))
    return area


# --- 7  harvest: seconds of a collective on a network whose links are set up between its steps ---

Step = namedtuple("Step", "bytes overlap volumes")  # volumes: of the pairs (source, destination), in order
Alone = namedtuple("Alone", "longest U d0 many")  # what a pattern needs alone; many: a GPU has more partners than ports


def read_step(data, gpus):
    bytes_, overlap = number(data["bytes"], "bytes", LEAST), number(data.get("overlap", 0), "overlap")
    if data.get("shift") is not None:
        shift = whole(data["shift"], 1, gpus - 1, "shift")
        return Step(bytes_, overlap, {(u, (u + shift) % gpus): 1 for u in range(gpus)})
    volumes, each = {}, data.get("volumes") or [1] * len(data["pairs"])
    need(len(each) == len(data["pairs"]), "volumes: one a pair")
    for (u, v), volume in zip(data["pairs"], each):
        pair = (whole(u, 0, gpus - 1, "pairs"), whole(v, 0, gpus - 1, "pairs"))
        volumes[pair] = volumes.get(pair, 0) + number(volume, "volumes", LEAST)
    need(volumes and all(u != v for u, v in volumes), "pairs: between different GPUs")
    return Step(bytes_, overlap, volumes)


class Harvest:
    """A harvest instance."""

    def __init__(self, data, folder):
        self.n, self.p = whole(data["gpus"], 2, 2**20, "gpus"), whole(data["ports"], 1, 2**20, "ports")
        self.b = number(data["port_bandwidth"], "port_bandwidth", LEAST)
        keys = ("alpha", "delta", "reconfiguration_delay")
        self.alpha, self.hop, self.R = (number(data[key], key) for key in keys)
        if data.get("latency", "on") == "off":
            self.hop = 0
        self.circuit, self.table = data.get("delay_per_circuit") or 0, data.get("delay_by_ports") or []
        self.steps = [read_step(step, self.n) for step in data["steps"]]

    def delay(self, ports):
        """Return what the table says of a change of so many ports."""
        return next((seconds for most, seconds in self.table if most >= ports), 0)

    def replay(self, held):
        """Return the completion time: the doubles that the page names, added exactly and rounded once."""
        n, source = self.n, held.array("link_src", 0, self.n - 1)
        target = held.array("link_dst", 0, n - 1, (len(source),))
        count = held.array("link_count", 1, self.p, (len(source),))
        topologies = []
        for first, last in pairwise(held.starts("topology_start", len(source))):
            links = {(source[i], target[i]): count[i] for i in range(first, last)}
            distinct = len(links) == last - first and all(u != v for u, v in links)
            need(distinct, "link_src, link_dst: twice, or to itself")
            ports = Counter()
            for (u, v), times in links.items():
                ports.update({("out", u): times, ("in", v): times})
            need(max(ports.values(), default=0) <= self.p, f"link_count: more than {self.p} ports of a GPU")
            topologies.append(links)
        of_step = held.array("topology_of_step", 0, len(topologies) - 1, (len(self.steps),))
        pair = held.array("pair", 0, 2**31)
        cover(len(pair) <= MOST_TRANSFERS, f"{len(pair)} flows")
        hop, share = held.array("hop", 0, 2**31, (len(pair),)), held.shaped("share").values
        u, v = held.arrays("src dst", 0, n - 1, (len(pair),))
        begin = held.starts("flow_start", len(share), len(self.steps) + 1)
        good = len(share) == len(pair) and all(type(x) in (int, float) and 0 < x <= 1 + 1e-9 for x in share)
        need(good, "share: one a row, above 0 and at most 1")
        terms, before, rows = [], None, list(zip(pair, hop, u, v, share))
        for i, step in enumerate(self.steps):
            now = topologies[of_step[i]]
            terms += self.flows(i, step, now, rows[begin[i] : begin[i + 1]])
            if before is not None and now != before:
                terms.append(self.change(before, now, step.overlap))
            before = now
        return math.fsum(terms)

    def flows(self, i, step, links, rows):
        need(rows, f"step {i}: no flows")
        net, load, longest, pairs = defaultdict(Fraction), defaultdict(list), 0, list(step.volumes)
        for pair, hop, u, v, share in rows:
            need(pair < len(pairs) and hop <= len(rows), f"step {i}: pair {pair}, hop {hop}")
            need((u, v) in links, f"step {i}: {u} to {v} is no link of its topology")
            source, target = pairs[pair]
            need((hop or u == source) and u != target, f"step {i}: a flow of pair {pair} leaves {u}")
            net[pair, hop, u] += Fraction(share)
            if v != target:
                net[pair, hop + 1, v] -= Fraction(share)
            load[u, v].append(share * step.volumes[source, target])
            longest = max(longest, hop + 1)
        wrong = [Fraction(0)] * len(pairs)
        for k, (source, _) in enumerate(pairs):
            net[k, 0, source] -= 1
        for (pair, _, _), amount in net.items():
            wrong[pair] += abs(amount)
        worst = max(wrong)
        need(worst <= Fraction(1e-9), f"step {i}: a pair's flows are wrong by {float(worst):.3g}")
        most = max(math.fsum(loads) / links[link] for link, loads in load.items())
        most /= 1 - float(worst) if worst > Fraction(1e-14) else 1
        return [self.alpha, self.hop * longest, step.bytes * most / self.b]

    def change(self, before, after, overlap):
        up, ports = 0, defaultdict(lambda: [0, 0])  # of a GPU's leaving or entering links: lost, gained
        for link in before.keys() | after.keys():
            gain = after.get(link, 0) - before.get(link, 0)
            up += max(0, gain)
            for end in enumerate(link):
                ports[end][gain > 0] += abs(gain)
        moved = sum(map(max, ports.values()))
        return max(0, float(Fraction(self.R) + up * Fraction(self.circuit) + Fraction(self.delay(moved))) - overlap)

    # -- certificate: a step alone, intervals on one topology, all steps
    def certify(self, held, bound):
        self.unit = 1 / Fraction(2) ** held.whole("unit_exponent", -1000, 1000)
        self.patterns, self.of_step, least = [], [], {}
        for step in self.steps:
            pattern = {pair: Fraction(volume) for pair, volume in step.volumes.items()}
            if pattern not in self.patterns:
                self.patterns.append(pattern)
            self.of_step.append(self.patterns.index(pattern))
        self.facts = [self.alone(pattern) for pattern in self.patterns]
        for i, step in enumerate(self.steps):
            fact, s, h = self.facts[self.of_step[i]], Fraction(step.bytes) / Fraction(self.b), Fraction(self.hop)
            time = h * fact.longest + s * fact.d0 if fact.many else min(h + s * fact.U, 2 * h + s * fact.d0)
            least[i, i] = (Fraction(self.alpha) + time) // self.unit
        if intervals := held.list("intervals"):
            self.set_orbits(held)
            for entry in map(Held, intervals):
                last = entry.whole("last", 0, len(self.steps) - 1)
                first = entry.whole("first", 0, last)
                found = self.interval(range(first, last + 1), entry.list("rows")) // self.unit
                least[first, last] = max(found, least.get((first, last), 0))
        proven = (self.all_steps(least) if intervals else sum(least.values())) * self.unit
        need(bound <= proven, f"intervals: prove {float(proven)} s, not {float(bound)} s")

    def all_steps(self, least):
        """Return units: the least, over all ways to cut the steps into intervals, of changes and intervals."""
        best, up_to = {}, [0]
        change = Fraction(self.R) + Fraction(self.delay(2)) + (0 if self.table else Fraction(self.circuit))
        for c, _step in enumerate(self.steps):
            for a in range(c, -1, -1):
                best[a, c] = max([least.get((a, c), 0)] + [best[a, m] + best[m + 1, c] for m in range(a, c)])
            ways = []
            for a in range(c + 1):
                cost = max(0, change - Fraction(self.steps[a].overlap)) // self.unit if a else 0
                ways.append(up_to[a] + cost + best[a, c])
            up_to.append(min(ways))
        return up_to[-1]

    def alone(self, pattern):
        """Return what a pattern needs alone (page: A step alone)."""
        n, p, sides = self.n, self.p, [defaultdict(list), defaultdict(list)]
        for pair, volume in pattern.items():
            for side, gpu in zip(sides, pair):
                side[gpu].append(volume)
        lists = [volumes for side in sides for volumes in side.values()]
        partners, total = max(map(len, lists)), sum(pattern.values())

        def whole_links(volumes):
            """The least load of a link if each volume has links of its own."""
            loads = sorted({volume / k for volume in volumes for k in range(1, p + 1)})
            return loads[bisect_left(loads, True, key=lambda w: sum(math.ceil(x / w) for x in volumes) <= p)]

        def direct(volumes, u):
            """The most that p links of load u can bring in one hop: volumes cut into parts."""
            parts = [min(u, volume - k * u) for volume in volumes for k in range(min(p, math.ceil(volume / u)))]
            return sum(sorted(parts)[-p:])

        def refuted(u):
            return any(2 * total - sum(direct(volumes, u) for volumes in side.values()) > p * n * u for side in sides)

        d0 = max(map(sum, lists)) / p
        step, rounds = d0 / 2, 48 if refuted(d0) else 0
        for _ in range(rounds):
            d0, step = (d0 + step if refuted(d0 + step) else d0), step / 2
        longest, reach = 1, p
        while reach < partners:
            longest, reach = longest + 1, reach + p ** (longest + 1)
        return Alone(longest, None if partners > p else max(map(whole_links, lists)), d0, partners > p)

    def set_orbits(self, held):
        """Set the orbits of pairs under the certificate's permutations of GPUs, and their volumes in each pattern."""
        generators = held.permutations("generators", self.n)
        for g, pattern in product(generators, self.patterns):
            kept = all(pattern.get((g[u], g[v])) == volume for (u, v), volume in pattern.items())
            need(kept, "generators: change a pattern")
        cover(not held.list("bundles"), "bundles of prices")
        pairs = sorted({pair for pattern in self.patterns for pair in pattern})
        self.orbit = orbits_of(pairs, lambda pair: [(g[pair[0]], g[pair[1]]) for g in generators])
        self.sizes = [Counter() for _ in self.patterns]
        for sizes, pattern in zip(self.sizes, self.patterns):
            for pair, volume in pattern.items():
                sizes[self.orbit[pair]] += volume

    def interval(self, steps, rows):
        """Return the seconds that rows with multipliers prove for some steps on one topology."""
        mine, cost, left = {self.of_step[i] for i in steps}, defaultdict(Fraction), {}
        for i in steps:
            k = self.of_step[i]
            cost["L", k] += Fraction(self.hop)
            cost["u", k] += Fraction(self.steps[i].bytes) / Fraction(self.b)
            left |= {("L", k): self.facts[k].longest, ("u", k): self.facts[k].d0}
            left |= {("a", orbit): 1 for orbit in self.sizes[k]}
        proven, arcs = len(steps) * Fraction(self.alpha), {pair for k in mine for pair in self.patterns[k]}
        for row in map(Held, rows):
            multiplier = Fraction(number(row.get("multiplier"), "multiplier", 0))
            coefficients, right = self.row(row, mine, arcs, steps)
            for variable, coefficient in coefficients.items():
                cost[variable] -= multiplier * coefficient
            proven += multiplier * right
        for variable, rest in cost.items():
            need(rest >= 0, f"rows: they take more of {variable} than it costs")
            proven += rest * left[variable]
        return proven

    def row(self, row, mine, arcs, steps):
        """Return the coefficients of a row's variables and its right side (page: Intervals)."""
        kind = row.choose("row", {name: name for name in ("longest", "volume", "direct", "tree", "cycle")})
        if kind in ("tree", "cycle"):
            return self.tree_row(row, arcs) if kind == "tree" else self.cycle_row(row, arcs)
        k = one_of(row.whole("pattern", 0, len(self.patterns) - 1), mine, "pattern")
        if kind == "longest":
            return {("L", k): 1, ("a", one_of(row.whole("orbit", 0, 2**31), self.sizes[k], "orbit")): -1}, 0
        if kind == "volume":
            return {("u", k): self.p * self.n, **{("a", o): -size for o, size in self.sizes[k].items()}}, 0
        _, U, d0, many = self.facts[k]
        need(not many, "direct: a GPU has more partners than ports")
        need(len({self.steps[i].bytes for i in steps if self.of_step[i] == k}) == 1, "direct: steps of unlike bytes")
        return {("L", k): U - d0, ("u", k): 1}, 2 * U - d0

    def tree_row(self, row, arcs):
        nodes, inwards = row.distinct("nodes", self.n), row.get("inwards", False)
        need(type(inwards) in (bool, int) and inwards in (0, 1), "inwards: is no truth value")
        parents = row.array("parents", -(2**31), 2**31, (len(nodes),))
        coefficients, paths = Counter(), [Counter()]
        need(nodes, "tree: no nodes")
        for i in range(1, len(nodes)):
            need(0 <= parents[i] < i, "tree: a parent stands before its child")
            arc = (nodes[parents[i]], nodes[i])
            arc = arc[::-1] if inwards else arc
            need(arc in arcs, f"tree: {arc} is no pair of the interval")
            paths.append(paths[parents[i]] + Counter([("a", self.orbit[arc])]))
            coefficients.update(paths[i])
        right, hops, missing = 0, 1, len(nodes) - 1
        while missing > 0:  # p GPUs are a hop away, p^2 two hops, …
            right += hops * min(missing, self.p**hops)
            missing, hops = missing - self.p**hops, hops + 1
        return coefficients, right

    def cycle_row(self, row, arcs):
        nodes, beside = row.array("nodes", 0, self.n - 1), defaultdict(set)
        need(self.p == 1 and len(nodes) >= 2, "cycle: only with one port, at least two nodes")
        walk = list(zip(nodes, nodes[1:] + nodes[:1]))
        need(arcs.issuperset(walk), "cycle: not over pairs of the interval")
        for u, v in arcs:
            beside[u].add(v)
            beside[v].add(u)
        return Counter(("a", self.orbit[arc]) for arc in walk), len(closure(nodes[:1], lambda u: beside[u]))


# --- 8  mlfm: phases in which every rank sends and receives at most once ---


class Mlfm(Instance):
    """An mlfm instance: leaf (layer, column) is layer·(d + 1) + column, a spine is a pair of columns a < b."""

    def __init__(self, data, folder):
        d = whole(data["d"], 1, 2**12, "d")
        self.columns, self.leaves, self.arguments = d + 1, d * (d + 1), {"ranks": self.busiest, "links": self.weighted}
        self.pairs, self.detour = list(combinations(range(d + 1), 2)), data.get("routes", "minimal") == "detour"
        failed, block, demand = data.get("failed") or {}, data.get("block"), data.get("demand")

        def leaf(end):
            return end[0] * (d + 1) + end[1]

        dead_leaves = {leaf(end) for end in failed.get("leaves", ())}
        dead_servers = {tuple(server) for server in failed.get("servers", ())}
        dead_spines = {tuple(sorted(pair)) for pair in failed.get("spines", ())}
        cables = {(leaf(cable["leaf"]), tuple(sorted(cable["spine"]))) for cable in failed.get("links", ())}
        need(dead_spines | {pair for _, pair in cables} <= set(self.pairs), "failed: a spine that is none")
        self.works = {}  # (leaf, other column) → whether the cable from the leaf to that spine works
        for x, c in product(range(self.leaves), range(d + 1)):
            pair = (min(c, x % (d + 1)), max(c, x % (d + 1)))
            if c != x % (d + 1):
                self.works[x, c] = x not in dead_leaves and pair not in dead_spines and (x, pair) not in cables
        if block is None and data.get("subset") is not None:
            servers = [tuple(server) for server in data["subset"]]
        elif block is None and demand is not None:
            servers = sorted({tuple(row[end]) for row in demand for end in ("source", "target")})
        else:
            sides = (block["layers"], block["columns"], block["servers"]) if block else (d, d + 1, d)
            servers = product(*map(range, sides))
        servers = [s for s in servers if s not in dead_servers and leaf(s) not in dead_leaves]
        self.leaf, self.N = [leaf(server) for server in servers], len(servers)
        rank, self.demand = {server: x for x, server in enumerate(servers)}, demand if demand is None else Counter()
        for row in demand or ():
            ends = (rank.get(tuple(row["source"])), rank.get(tuple(row["target"])))
            if None not in ends:
                self.demand[ends] += whole(row.get("count", 1), 1, 2**40, "count")

    # -- replay
    def replay(self, held):
        """Return the number of phases of a table of destinations and routes, each split until no link is shared."""
        form = held.choose("form", {name: name for name in ("table", "product", "repaired", "columns")})
        cover(form == "table", f"form {form}")
        N, dest = self.N, held.array("dest", -1, self.N - 1, (None, self.N))
        shape, absent, routes, value, sent = (len(dest) // N, N), [-1] * len(dest), {}, 0, Counter()
        cover(len(dest) <= MOST_TRANSFERS, f"{len(dest)} transfers")
        spine = held.array("spine", -1, 2**20, shape)
        middle, second = (held.array(key, -1, 2**20, shape, absent) for key in ("middle", "second"))
        rows = list(zip(dest, spine, middle, second))
        for at in range(0, len(dest), N):
            load, detour, receives = Counter(), False, set()
            for x, (y, *route) in enumerate(rows[at : at + N]):
                if y < 0:
                    continue
                need(y not in receives, f"phase {at // N}: rank {y} receives twice")
                receives.add(y)
                sent[x, y] += 1
                key = (self.leaf[x], self.leaf[y], *route)
                if key not in routes:
                    routes[key] = self.route(*key)
                load.update(routes[key])
                detour = detour or len(routes[key]) > 2
            worst = max(load.values(), default=0)
            cover(worst <= 1 or not detour, "phases with detours that have to be split")
            value += max(1, worst)
        wanted = dict.fromkeys(product(range(N), repeat=2), 1) if self.demand is None else self.demand
        need(sent == wanted, "what is sent is not what is asked for")
        return value

    def route(self, P, Q, spine, middle, second):
        """Return the links (leaf, other column, way: 0 up, 1 down) of a route between leaves."""
        if P == Q:
            need(spine == middle == second == -1, "a route within a leaf crosses no spine")
            return ()
        if middle == -1:
            need(second == -1, "second: without a leaf in the middle")
            return self.crossing(P, Q, spine)
        third = middle % self.columns not in (P % self.columns, Q % self.columns)
        good = self.detour and 0 <= middle < self.leaves and third
        need(good, "middle: only where routes may detour, a leaf of neither the sender's nor the receiver's column")
        return self.crossing(P, middle, spine) + self.crossing(middle, Q, second)

    def crossing(self, P, Q, spine):
        need(0 <= spine < len(self.pairs), f"spine {spine}: is none")
        a, b, pair = P % self.columns, Q % self.columns, self.pairs[spine]
        need(a in pair and b in pair, f"spine {pair}: does not join leaves {P} and {Q}")
        up, down = (P, sum(pair) - a), (Q, sum(pair) - b)
        need(self.works[up] and self.works[down], f"spine {pair}: a failed link between leaves {P} and {Q}")
        return ((*up, 0), (*down, 1))

    # -- certificates
    def busiest(self, held):
        """Return the most transfers that one rank sends or receives."""
        ends = Counter()
        for (x, y), count in (self.demand or {}).items():
            ends.update({("out", x): count, ("in", y): count})
        return self.N if self.demand is None else max(ends.values(), default=0)

    def weighted(self, held):
        """What weights on links prove: every transfer pays the cheapest route."""
        rows, n = [tuple(row) for row in held.rows("links", 0, 2**20, 3)], self.columns
        weight = dict(zip(rows, held.array("weights", 0, 10**9, (len(rows),))))
        known = len(weight) == len(rows) and all((x, c) in self.works and way < 2 for x, c, way in weight)
        need(known, "links: twice, or none")
        cost = {(*key, way): weight.get((*key, way), 0) for key, works in self.works.items() for way in (0, 1) if works}
        need(sum(cost.values()) > 0, "weights: of all links that work are 0")

        def one(P, Q):
            a, b = P % n, Q % n
            ways = [(b, a)] if a != b else [(c, c) for c in range(n) if c != a]
            return min(cost.get((P, c, 0), INFINITE) + cost.get((Q, e, 1), INFINITE) for c, e in ways)

        of_leaf, wanted, needed = Counter(self.leaf), Counter(), 0
        if self.demand is None:
            wanted = {(P, Q): of_leaf[P] * of_leaf[Q] for P, Q in product(of_leaf, repeat=2)}
        for (x, y), count in (self.demand or {}).items():
            wanted[self.leaf[x], self.leaf[y]] += count
        table = {ends: one(*ends) for ends in product(range(self.leaves), repeat=2)} if self.detour else {}
        for (P, Q), count in wanted.items():
            if P != Q:
                over = (R for R in range(self.leaves if self.detour else 0) if R % n not in (P % n, Q % n))
                length = min([one(P, Q)] + [table[P, R] + table[R, Q] for R in over])
                need(length < INFINITE, f"leaves {P} and {Q}: no route joins them")
                needed += count * length
        return ceiling(needed, sum(cost.values()))


# --- 9  optree: steps of an allgather over optical rings and lines ---


class Optree(Instance):
    """An optree instance: dimensions (side, stride, whether a ring), wavelengths w, most hops H of a circuit."""

    def __init__(self, data, folder):
        self.N, self.w = whole(data["nodes"], 2, 2**31, "nodes"), whole(data["wavelengths"], 1, 2**31, "wavelengths")
        self.grid, self.dimensions, stride = data.get("grid") is not None, [], self.N
        grid = data["grid"] if self.grid else {"sides": [self.N], "kinds": ["ring"]}
        sides = [whole(side, 2, 2**31, "sides") for side in grid["sides"]]
        fits = math.prod(sides) == self.N and len(grid["kinds"]) == len(sides)
        need(fits, "grid: the product of its sides is not nodes")
        for side, kind in zip(sides, grid["kinds"]):
            stride //= side
            self.dimensions.append((side, stride, {"ring": True, "line": False}[kind]))
        self.longest, self.H = max(sides), max(sides) - 1
        cover(data.get("power") is None and data.get("crosstalk") is None, "budgets of power and crosstalk")
        on_grid = {"turns": lambda held: len(sides), "cut": self.cut, "reach": self.grid_reach}
        on_ring = {"receive": lambda held: ceiling(self.N - 1, 2 * self.w), "reach": self.ring_reach,
                   "leaps": lambda held: ceiling(2 * (self.N - 1), 2 * self.w + 2)}  # fmt: skip
        self.arguments = on_grid if self.grid else on_ring

    # -- replay
    def replay(self, held):
        """Return the number of steps of circuits that bring every item to every node."""
        cover("algorithm" not in held, "steps that a formula counts")
        steps, N = held.array("step", 1, 2**62), self.N
        cover(len(steps) <= MOST_TRANSFERS and N**2 <= MOST_CELLS, f"{len(steps)} circuits")
        source, target, origin = held.arrays("src dst origin", 0, N - 1, (len(steps),))
        direction = held.array("direction", 0, 2 * len(self.dimensions) - 1, (len(steps),))
        wavelength = held.array("wavelength", 0, self.w - 1, (len(steps),))
        rows, known = sorted(zip(steps, source, target, origin, direction, wavelength)), {}
        places = 2 * len(self.dimensions) * N  # numbers of links
        for step, circuits in groupby(rows, key=itemgetter(0)):
            used, count = set(), 0
            for _, u, v, _, way, colour in circuits:
                if (u, v, way) not in known:
                    known[u, v, way] = self.path(u, v, way)
                used.update([colour * places + link for link in known[u, v, way]])
                count += len(known[u, v, way])
            need(len(used) == count, f"step {step}: a wavelength is used twice on a link")
        have = [[int(u == v) for u in range(N)] for v in range(N)]
        replay_rounds(((step, u, v, (item,), 0) for step, u, v, item, _, _ in rows), have, 1)
        need(all(map(all, have)), "some node misses an item at the end")
        return max(steps, default=0)

    def path(self, u, v, way):
        """Return the links, each as one number, that a circuit passes."""
        side, stride, ring = self.dimensions[way // 2]
        a, b = u // stride % side, v // stride % side
        need(u != v and u - a * stride == v - b * stride, f"circuit {u} to {v}: not along dimension {way // 2}")
        hops = (b - a if way % 2 == 0 else a - b) % side
        need(ring or (b > a) == (way % 2 == 0), f"circuit {u} to {v}: leads off the line")
        need(hops <= self.H, f"circuit {u} to {v}: {hops} hops, at most {self.H}")
        first = a if way % 2 == 0 else a - hops
        return [(u + (x % side - a) * stride) * 2 * len(self.dimensions) + way for x in range(first, first + hops)]

    # -- certificates
    def weights(self, held, most_weights, most):
        weights = held.array("weights", 0, most)
        need(1 <= len(weights) <= most_weights and self.N <= 8192, f"weights: 1 to {most_weights}, at most 8192 nodes")
        return weights

    def ring_reach(self, held):
        """An item that gets round the ring in T steps takes that many weighted hops."""
        N, weights = self.N, self.weights(held, self.N - 1, 10**9)
        M, rest = min(N - 1, self.H), [0, 0] + [INFINITE] * (N - 1)
        need(any(weights), "weights: all are 0")
        cover(N * M * len(weights) <= 3 * 10**8, f"reach: {N} nodes, {len(weights)} steps")
        for weight in reversed(weights):
            one = [0]
            for x in range(1, M + 1):
                one.append(weight * x + min(one[y] + rest[x - y] for y in range(x)))
            top, new = min(2 * M, N), [0, 0]
            two = [min(one[a] + one[s - a] for a in range(max(0, s - M), min(s, M) + 1)) for s in range(top + 1)]
            for g in range(2, N + 1):
                new.append(min(two[s] + rest[g - s] for s in range(min(g - 1, top) + 1)))
            rest = new
        need(rest[N] > 2 * self.w * sum(weights), "reach: proves nothing")
        return len(weights) + 1

    def cut(self, held):
        inside, crossing = set(held.array("nodes", 0, self.N - 1)), 0
        need(0 < len(inside) < self.N, "nodes: all or none")
        for v, (side, stride, ring) in product(range(self.N), self.dimensions):
            place = v // stride % side
            if place + 1 < side or ring:
                crossing += (v in inside) != (v + ((place + 1) % side - place) * stride in inside)
        return ceiling(self.N - len(inside), crossing * self.w)

    def grid_reach(self, held):
        """What the holders of an item can reach in a step costs hops, a step later less."""
        N, T = self.N, held.whole("horizon", 1, self.N)
        weights, later = self.weights(held, min(T, 32), 10**6), held.whole("later", 0, 10**9)
        K = min(self.H, self.longest // 2)
        within = [[min(2 * k, side - 1) for side, _, _ in self.dimensions] for k in range(K + 1)]
        every, most, rest = [sum(x) for x in within], [max(x) for x in within], [sum(x) - min(x) for x in within]
        cost = [later * (N - h) for h in range(N + 1)]
        for t in range(len(weights), 0, -1):
            old, cost = cost, [0] * (N + 1)
            for h in range(1, N):
                limits = [[h * every[k] for k in range(K + 1)]]
                if t == 2:
                    spread = max(0, every[K] - (h - 1))
                    limits.append([min(spread, every[k] + (h - 1) * most[k]) + (h - 1) * rest[k] for k in range(K + 1)])
                cost[h] = least_growth(weights[t - 1], limits, old, h, N)
        links = sum(N // side * (side if ring else side - 1) for side, _, ring in self.dimensions) * 2
        need(N * cost[1] > links * self.w * (sum(weights) + (T - len(weights)) * later), "reach: proves nothing")
        return T + 1


def least_growth(weight, limits, old, h, N):
    """Return the least weight·max(sums) + old[h + m] over m; a sum adds the least k with limit[k] >= i, i = 1..m."""
    best, sums, at = old[h], [0] * len(limits), [1] * len(limits)
    for m in range(1, N - h + 1):
        for j, limit in enumerate(limits):
            while at[j] < len(limit) and limit[at[j]] < m:
                at[j] += 1
            if at[j] == len(limit):
                return best
            sums[j] += at[j]
        best = min(best, weight * max(sums) + old[h + m])
    return best


# --- 10  bine: bytes on global links ---


def labels(text, ranks=None):
    """Return the run-length coded labels of ranks, numbered by first appearance."""
    found = []
    for word in text.split():
        label, _, count = word.rpartition("x")
        need(label and count.isdecimal() and 1 <= int(count) <= 2**24, f"allocation: {short(word)}")
        found += [label] * int(count)
    need(found and ranks in (None, len(found)), "nodes: as many as the allocation has ranks")
    numbers = {label: number for number, label in enumerate(dict.fromkeys(found))}
    return [numbers[label] for label in found]


class Bine(Instance):
    """A bine instance: jobs are lists of (group, node) a rank, or one torus."""

    def __init__(self, data, folder):
        self.torus, self.collective, self.problem = data.get("torus"), data["collective"], data.get("problem", "any")
        self.costs = [Fraction(number(cost, "costs")) for cost in data.get("costs") or (0, 0, 1)]
        self.bytes, self.rounds = Fraction(number(data["bytes"], "bytes", LEAST)), data.get("rounds")
        self.root, self.jobs = data.get("root") or 0, []
        for job in data["jobs"] if self.torus is None else ():
            groups = labels(job["allocation"])
            nodes = labels(job["nodes"], len(groups)) if job.get("nodes") is not None else range(len(groups))
            self.jobs.append(list(zip(groups, nodes)))
        if self.torus is not None:
            self.jobs = [[(v, v) for v in range(math.prod(whole(side, 1, 2**20, "torus") for side in self.torus))]]
        need(all(0 <= self.root < len(job) for job in self.jobs), "root: is no rank")
        self.small = data.get("vector") == "small" and self.collective in ("broadcast", "reduce", "allreduce")
        self.arguments = dict.fromkeys(("receive", "isoperimetric", "prices"), self.proven)

    def blocks(self, p):
        """Return (number of blocks of a job of p ranks, bytes of one)."""
        count = p * p if self.collective == "alltoall" else 1 if self.small else p
        return count, self.bytes / (p if self.collective == "alltoall" else count)

    def crossings(self, job, u, v):
        total, stride = 0, len(job)
        for side in self.torus or ():
            stride //= side
            apart = abs(u // stride % side - v // stride % side)
            total += min(apart, side - apart)
        if self.torus is not None:
            return total
        return self.costs[2] if job[u][0] != job[v][0] else self.costs[1] if job[u][1] != job[v][1] else self.costs[0]

    # -- replay
    def replay(self, held):
        shares, of_job = held.whole("shares", 1, 2**31), held.array("job", 0, len(self.jobs) - 1)
        columns = held.arrays("round src dst first count", 0, 2**31, (len(of_job),))
        columns.append(held.array("adds", 0, 1, (len(of_job),)))
        need(of_job == sorted(of_job), "job: rows are not in the order of jobs")
        layout = held.array("layout", 0, 2**31)
        starts = held.starts("starts", len(layout), len(self.jobs) + 1)
        cover(sum(columns[4]) <= 20 * MOST_TRANSFERS, f"{sum(columns[4])} blocks in {len(of_job)} messages")
        rows, total = [[] for _ in self.jobs], Fraction(0)
        for j, *row in zip(of_job, *columns):
            rows[j].append(row)
        for j, job in enumerate(self.jobs):
            mine, (blocks, size) = layout[starts[j] : starts[j + 1]], self.blocks(len(job))
            whole_layout = sorted(mine) == list(range(shares * blocks))
            need(whole_layout, f"layout: of job {j} is no permutation of its {shares * blocks} blocks")
            self.replay_job(j, len(job), rows[j], mine)
            if self.problem == "tree":
                self.check_tree(len(job), rows[j])
            elif self.problem == "butterfly":
                self.check_butterfly(len(job), rows[j], shares)
            total += sum(count * self.crossings(job, u, v) for _, u, v, _, count, _ in rows[j]) * size / shares
        return float(total)

    def replay_job(self, j, p, rows, layout):
        collective, root, blocks, everybody = self.collective, self.root, len(layout), (1 << p) - 1
        sums = collective in ("reduce", "reduce_scatter", "allreduce")
        cover(blocks * p <= MOST_CELLS, f"{blocks} blocks on {p} ranks")
        for now, u, v, first, count, adds in rows:
            need(u < p and v < p and u != v, f"job {j}, round {now}: from rank {u} to rank {v}")
            need(count >= 1 and first + count <= blocks, f"job {j}, round {now}: blocks {first} to {first + count}")
            need(sums or not adds, "adds: nothing is added here")
        rounds = [row[0] for row in rows]
        need(rounds == sorted(rounds), f"job {j}: rounds are not in order")
        have = [[1 << v if sums else 0] * blocks for v in range(p)]
        for b in range(0 if sums else blocks):
            first = (
                root if collective in ("broadcast", "scatter") else b // p % p if collective == "alltoall" else b % p
            )
            have[first][b] = everybody
        moves = ((now, u, v, layout[first : first + count], adds) for now, u, v, first, count, adds in rows)
        replay_rounds(moves, have, everybody)
        for b in range(blocks):
            goals = range(p)
            if collective not in ("broadcast", "allgather", "allreduce"):
                goals = (root if collective in ("reduce", "gather") else b % p,)
            complete = all(have[v][b] == everybody for v in goals)
            need(complete, f"job {j}: block {b} is not (completely) where it should be")

    def most_rounds(self, p):
        return self.rounds if self.rounds is not None else (p - 1).bit_length()

    def check_tree(self, p, rows):
        """Check that messages form a tree: one into every rank but the root, one out of a rank a round."""
        back = self.collective in ("reduce", "gather")
        messages = {(now, v, u) if back else (now, u, v) for now, u, v, *_ in rows}
        need(all(now < self.most_rounds(p) for now, _, _ in messages), "tree: too many rounds")
        into = sorted(v for _, _, v in messages)
        need(into == [v for v in range(p) if v != self.root], "tree: not one message of every rank but the root")
        need(len({(now, u) for now, u, _ in messages}) == len(messages), "tree: a rank has two messages in a round")

    def volumes(self, p):
        """Return the blocks that a message of each round of a butterfly has."""
        q = p.bit_length() - 1
        need(p == 2**q, "butterfly: as many ranks as a power of two")
        falling = [p >> (i + 1) for i in range(q)]
        volumes = {"reduce_scatter": falling, "allgather": falling[::-1], "alltoall": [p // 2] * q,
                   "allreduce": [1] * q if self.small else falling + falling[::-1]}  # fmt: skip
        return volumes[one_of(self.collective, volumes, "butterfly")]

    def check_butterfly(self, p, rows, shares):
        """Check that in each round ranks are paired and send each other what a butterfly sends."""
        sent, pairings, volumes = defaultdict(Counter), [], self.volumes(p)
        for now, u, v, _, count, _ in rows:
            sent[now][u, v] += count
        need(set(sent) == set(range(len(volumes))), f"butterfly: {len(volumes)} rounds")
        for now, volume in enumerate(volumes):
            partner = dict(sent[now].keys())
            paired = len(partner) == len(sent[now]) == p and all(partner.get(partner[v]) == v for v in partner)
            need(paired, f"round {now}: ranks are not paired")
            need(set(sent[now].values()) == {volume * shares}, f"round {now}: not {volume * shares} blocks each")
            pairings.append(partner)
        mirrored = self.collective == "allreduce" and not self.small
        need(not mirrored or pairings == pairings[::-1], "butterfly: does not go back through its pairings")
        commute = (a[b[v]] == b[a[v]] for a, b in combinations(pairings, 2) for v in range(p))
        need(all(commute), "butterfly: pairings do not commute")

    # -- certificates
    def partitions(self, job):
        """Return (weight, part of every rank) of each way to part a job's ranks."""
        alone, cost = list(range(len(job))), self.costs
        if self.torus is not None:
            return [(1, alone)]
        groups, nodes = zip(*job)
        ways = [(cost[2] - cost[1], groups), (cost[1] - cost[0], nodes), (cost[0], alone)]
        return [(weight, part) for weight, part in ways if weight]

    def proven(self, held):
        cover(held["binding"] != "prices", "prices of rounds")
        total = Fraction(0)
        for job in self.jobs:
            for weight, part in self.partitions(job):
                if held["binding"] == "receive":
                    total += self.bytes * weight * self.received(part)
                else:
                    total += weight * self.isoperimetric(part) * self.blocks(len(job))[1]
        return Fraction(float(total))

    def received(self, part):
        """Return how often the vector has to cross between parts."""
        p, sizes = len(part), Counter(part)
        if self.collective in ("scatter", "gather"):
            return Fraction(p - sizes[part[self.root]], p)
        if self.collective == "alltoall":
            return Fraction(sum(n * (p - n) for n in sizes.values()), p)
        return (2 if self.collective == "allreduce" else 1) * (len(sizes) - 1)

    def isoperimetric(self, part):
        """Return the blocks that a butterfly sends between parts: a part of k ranks holds at most f(k) within it."""
        need(self.problem == "butterfly", "isoperimetric: only of butterflies")
        p, weights = len(part), self.volumes(len(part))
        if self.collective == "allreduce" and not self.small:
            weights = [2 * volume for volume in weights[: len(weights) // 2]]
        weights = sorted(weights, reverse=True)
        inside = [0, *accumulate(sum(w for j, w in enumerate(weights) if i >> j & 1) for i in range(p))]
        return p * sum(weights) - 2 * sum(inside[n] for n in Counter(part).values())


# --- 11  The command ---

FAMILIES = {"xtree": Xtree, "fabric": Fabric, "harvest": Harvest, "mlfm": Mlfm, "optree": Optree, "bine": Bine}


def records_of(paths):
    """Yield (name, folder, record or instance text) of everything below the paths, in order."""
    for path in paths:
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        files = [file for file in files if file.endswith((".json", ".jsonl"))]
        for file in files if os.path.isdir(path) else [path]:
            with open(file, encoding="utf-8-sig") as lines:
                text = lines.read()
            if not file.endswith(".jsonl"):
                yield file, os.path.dirname(file), text
            for number, line in enumerate(text.split("\n") if file.endswith(".jsonl") else (), 1):
                if line.strip():
                    yield f"{file}:{number}", os.path.dirname(file), line


class Checker:
    """Checks records one by one, and compares those of one instance with each other."""

    def __init__(self):
        self.open_arrays, self.places, self.best = cache(Arrays), set(), defaultdict(lambda: ([], []))

    def check(self, name, folder, text):
        """Return (family, accept, refuse or not covered, a message, the solution's and the certificate's kinds)."""
        family = "?"
        try:
            record = read_json(text)
            family = one_of(record["family"], FAMILIES, "family")
            if record["format"] == "synth-instance/1":
                read_instance(text, folder)
                return family, "accept", "an instance", []
            if "record_path" in record:
                place = record["record_path"]
                plain = re.fullmatch(r"[^/]+(/[^/]+)*\.json", place) and not {".", ".."} & set(place.split("/"))
                need(
                    plain and (folder, place) not in self.places,
                    f"record_path: {short(place)} is none, or stands twice",
                )
                self.places.add((folder, place))
            done, left, value, bound = check_record(record, folder, self.open_arrays)
            values, bounds = self.best[family, record["instance_sha256"]]
            values += [value] if value is not None else []
            bounds += [bound] if bound is not None else []
            apart = not values or not bounds or not exceeds(max(bounds), min(values))
            need(apart, "a bound of one record exceeds the value of another")
        except Fault as fault:
            return family, "refuse", str(fault), []
        except NotCovered as why:
            return family, "not covered", str(why), []
        except MISSHAPEN as wrong:
            return family, "refuse", f"not as the pages say: {wrong!r}", []
        message = "; ".join(left) or ", ".join(done) or "states neither value nor certificate"
        return family, "not covered" if left else "accept", message, done


def main(arguments):
    """Check what the arguments name; print a line a record and a summary; return the exit code."""
    verdicts, checker, counts, kinds = ("accept", "refuse", "not covered"), Checker(), Counter(), Counter()
    for name, folder, text in records_of([argument for argument in arguments if argument != "--faults"]):
        family, verdict, message, done = checker.check(name, folder, text)
        counts[family, verdict] += 1
        kinds.update((family, what) for what in done)
        if "--faults" not in arguments or verdict != "accept":
            print(f"{verdict:11} {name}: {message}", flush=True)
    for family in sorted({family for family, _ in counts}):
        numbers = [counts[family, verdict] for verdict in verdicts]
        print(f"{family:8} {sum(numbers):5} records: " + ", ".join(f"{n} {what}" for n, what in zip(numbers, verdicts)))
        mine = [f"{n} × {what}" for (other, what), n in sorted(kinds.items()) if other == family]
        print("         verified: " + ", ".join(mine))
    return int(any(verdict == "refuse" for _, verdict in counts))


if __name__ == "__main__":
    gc.disable()  # nothing here is cyclic, and looking for cycles among a million rows takes most of the time
    sys.exit(main(sys.argv[1:]))
