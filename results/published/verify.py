#!/usr/bin/env python3
"""A second checker: replay published schedules and verify published lower bounds, trusting nothing of ours.

    python3 verify.py PATH…          records (.json), collections (records.jsonl), instances or folders of them
    python3 verify.py --faults PATH… prints only what is refused or not covered, and the summary

This file was written from the pages in models/formats alone, by somebody who has not read the toolkit's own checks.
It uses Python's standard library and nothing else. All arithmetic is exact: whole numbers, and fractions of them.
Every record is accepted, refused (with the first fault found) or not covered (with the reason); the exit code is 1
if a record is refused, else 0. Each class checks what the page of its name in models/formats says: read them together.

Not looked at: how a run went (seconds, options, progress, solver), plans, xtree's chunk_times. Not covered: texts of
more than 16 MiB, arrays of more than 256 MiB, 2^20 links or 2^20 transfers (fabric: 2^22); quotients; collectives
that wait for others; scenarios of what is no sum; traffic; boxes in part, links in groups; switches that store and
add, buffer, do not copy or limit streams; fabric's steps, near_goals, timed_prices, shares; xtree's relaxations;
harvest's delays by ports and chains; mlfm's forms but tables; optree's power and crosstalk, reach on large rings.
Harvest's bounds are checked in verify_harvest.py beside it, scenarios and several collectives in verify_several.py,
networks are made in verify_networks.py; verify_possession.py, verify_permutations.py and verify_placements.py are
parts of these.
"""

import ast
import copy
import gc
import hashlib
import heapq
import json
import math
import re
import sys
import zipfile
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict, namedtuple
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, combinations, islice, pairwise, permutations, product
from operator import le
from pathlib import Path
from reprlib import repr as short

sys.path.append(str(Path(__file__).parent))
import verify_harvest
import verify_several
from verify_base import INFINITE, Fault, NotCovered, ceiling, cover, need, number, one_of, whole
from verify_networks import LEAST, built_machine, links_of
from verify_placements import most_inside
from verify_possession import check_possession

MOST_TRANSFERS = 2**20  # larger solutions are not covered
MOST_CELLS = 40_000_000  # larger tables of possession are not covered
MOST_TEXT = 2**24  # bytes of a record, an instance or a file beside it: larger ones are not covered
MOST_ARCHIVE, MOST_LISTED, MOST_ARRAYS = 2**28, 2**22, 2**28  # bytes of an .npz, of its directory, of a record's arrays


# --- 1  Numbers, files, and arrays in JSON or in numpy's .npz files ---
def read_json(text):
    """Read JSON without doubled keys and without NaN or infinite numbers."""

    def once(pairs):
        need(len(dict(pairs)) == len(pairs), "JSON: a key stands twice in an object")
        return dict(pairs)

    need(not re.search("(?<![0-9])[0-9]{1001}", text), "JSON: a number of more than a thousand digits")
    floats = {"parse_float": lambda digits: number(float(digits), "JSON"), "parse_constant": int}  # int: refuses NaN
    return json.loads(text, object_pairs_hook=once, **floats)


TYPES = dict(zip(["|u1", "|i1", "|b1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f8"], "BbBHhIiQqd"))
Array = namedtuple("Array", "shape values")  # the numbers stand row after row


class Arrays:  # of one .npz file
    def __init__(self, path):
        name, data = Path(path).name, read_file(path, MOST_ARCHIVE)
        found, last = hashlib.sha256(data).hexdigest()[:12], data[-22:]
        need(name.split(".")[-2:] == [found, "npz"], f"{name}: its hash is {found}")
        need(last[:4] == b"PK\5\6" and data[-42:-38] != b"PK\6\7", f"{name}: not as numpy writes it")
        cover(int.from_bytes(last[12:16], "little") <= MOST_LISTED, f"{name}: a directory of so many bytes")
        self.zip, self.taken = zipfile.ZipFile(path), 0
        self.names = [member[:-4] for member in self.zip.namelist() if member.endswith(".npy")]
        need(len(set(self.names)) == len(self.names), f"{name}: a member stands twice")

    def read(self, name):
        """Return an array. Before it is unpacked its size is known; piece by piece no more than that comes out."""
        member = self.zip.getinfo(name + ".npy")
        self.taken += member.file_size
        cover(self.taken <= MOST_ARRAYS, f"arrays of more than {MOST_ARRAYS} bytes")
        need(member.compress_type in (0, 8, 14), f"array {name}: packed by other means than numpy's")
        with self.zip.open(member) as stream:
            data = b"".join(iter(lambda: stream.read1(4096), b""))
        need(data[:7] in (b"\x93NUMPY\x01", b"\x93NUMPY\x02"), f"array {name}: not in numpy's format")
        width = 2 * data[6]  # of the header's length
        start = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
        need(start <= 10_000, f"array {name}: a header of {start} bytes")
        header = ast.literal_eval(data[8 + width : start].decode("latin1").strip())
        need(header["descr"] in TYPES and header["fortran_order"] is False, f"array {name}: its type is none of ours")
        lengths = [whole(length, 0, 2**40, "shape") for length in header["shape"]]
        values = array(TYPES[header["descr"]], data[start:])
        need(len(values) == math.prod(lengths), f"array {name}: its size and shape differ")
        if sys.byteorder == "big":
            values.byteswap()
        return Array(tuple(header["shape"]), values)


class Held(dict):
    """A solution or a certificate: its plain values, and its arrays wherever they are stored."""

    def __init__(self, plain, file=None, prefix=""):
        need(type(plain) is dict, "a solution or certificate is an object")
        super().__init__((key, value) for key, value in plain.items() if value is not None)
        if file:
            file.taken = 0
        for name in file.names if file else ():
            key = name.removeprefix(prefix)
            if name.startswith(prefix) and "/" not in key:
                need(key not in self, f"{key}: stands in the record and in its arrays' file")
                self[key] = file.read(name)

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
            shape.append(len(values[0]))
            need(all(type(row) is list and len(row) == shape[-1] for row in values), f"{key}: rows of unlike lengths")
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

    def rows(self, **limits):
        """Return the rows of some arrays of one length, each with its range of numbers; absent ``adds`` are all 0."""
        self.setdefault("adds", [0] * len(self.shaped(next(iter(limits))).values))
        return list(zip(*(self.array(key, among[0], among[-1]) for key, among in limits.items()), strict=True))

    def starts(self, key, end, count=None):
        """Return where each of some runs of rows begins, and where the last one ends."""
        found = self.array(key, 0, 2**31, (count,))
        need(found == sorted(found) and found[0] == 0 and found[-1] == end, f"{key}: does not rise from 0 to {end}")
        return found


# --- 2  Records ---
UNITS = {"xtree": "timesteps", "mlfm": "phases", "optree": "steps", "bine": "bytes", "harvest": "s", "fabric": "s"}
OBJECTIVES = {"s": "completion time", "bytes": "bytes on global links"}  # by unit; the others are called as their units
EMPTY = ("unsupported", "killed", "out_of_memory")  # terminations of records that hold nothing
TERMINATIONS = ("finished", "optimal", "infeasible", "time_limit", "size_limit", "error", *EMPTY)


def check_statement(record):
    """Check that a record says what it is, and that its numbers are numbers; how the run went is not looked at."""
    one_of(record["format"], ("synth-record/1",), "format")
    one_of(record["kind"], ("program", "reference", "bound", "submitted"), "kind")
    one_of(record["termination"], TERMINATIONS, "termination")
    handed_in = (record["kind"] == "submitted", record["method"] == "submitted", "submitted" in record)
    one_of(handed_in, (3 * (True,), 3 * (False,)), "kind, method and submitted")
    texts = ("instance_file", "solution_file", "solver", "message", "instance_text", "bound_proof")
    need("message" in record and {type(record.get(key)) for key in texts} <= {str, type(None)}, "texts: texts or null")
    need((record["solver"] is None) == (record.get("solver_version") is None), "solver, solver_version: both or none")
    objective, verified, unit = record["objective"], record["verified"], UNITS[record["family"]]
    stated = [objective.get(key) for key in ("name", "unit", "sense")]
    need(stated == [OBJECTIVES.get(unit, unit), unit, "minimise"], f"objective: {short(objective)}")
    number(0 if objective["value"] is None else objective["value"], "objective.value")
    need(record["bound"] is None or float(number(record["bound"], "bound")) == record["bound"], "bound: is no double")
    need(verified.get("ok") is True and verified.get("faults") == [], f"verified: {short(verified)}")
    number(record["options"].get("relative_gap", 1e-4), "options.relative_gap", 0)


def exceeds(bound, value):
    """Return whether a lower bound is above a value by more than rounding."""
    bound, value = Fraction(bound), Fraction(value)
    return bound - value > Fraction(1e-6) * max(abs(value), abs(bound) / 1000)


def check_claims(record, value, bound, held, certified):
    """Check grade, termination and gap of a record whose value and certificate hold; ``held``: it has a solution."""
    termination, proof, both = record["termination"], record.get("bound_proof"), None not in (value, bound)
    need(value is None or held, "objective.value: stated without a solution")
    need(bound is not None or (not certified and (proof is None or termination == "infeasible")), "there is no bound")
    need(bound is None or certified or record["kind"] != "bound", "a bound of kind bound without a certificate")
    grade = None if bound is None else "certified" if certified else "solver" if record["solver"] else None
    one_of(record.get("bound_grade", grade), (grade,), "bound_grade")
    need(not both or not exceeds(bound, value), f"bound {bound} exceeds the replayed value {value}")
    if termination == "optimal":
        need(both, "optimal without value and bound")
        allowed = Fraction(record["options"].get("relative_gap", 1e-4)) + Fraction(1e-9)
        near = abs(Fraction(value) - Fraction(bound)) <= allowed * abs(Fraction(value))
        need(near or math.nextafter(value, bound) == bound, f"optimal, but value {value} and bound {bound} are apart")
    elif termination == "infeasible":
        need(not held and (bound is None or record["kind"] != "bound"), "infeasible with a solution or a bound")
        need(record["message"] or proof, "infeasible: neither message nor bound_proof says by what")
    need(termination != "finished" or held or bound is not None, "finished without a solution or a bound")
    need(termination not in EMPTY or (record["solution"] is None and bound is None), f"{termination}: holds something")


def read_file(path, most=MOST_TEXT):
    """Return a file's bytes, of at most so many."""
    with open(path, "rb") as stream:
        data = stream.read(most + 1)
    cover(len(data) <= most, f"{Path(path).name}: more than {most} bytes")
    return data


def find_file(place, folder):
    """Yield what files of a place hold, below a folder, one above it, or one above this file: one is the repository."""
    for start in (Path(folder).absolute(), Path(__file__).absolute().parent):
        for above in (start, *start.parents):
            if (above / place).is_file():
                yield read_file(above / place)


def find_instance(record, folder):
    """Return the text of a record's instance: from the record itself, or from a file below a folder above it."""
    text, file = record.get("instance_text"), record["instance_file"]
    need(text is not None or file is not None, "instance_file: null, and no instance_text")
    for data in find_file(file, folder) if text is None else [text.encode("utf-8", "surrogatepass")]:
        if hashlib.sha256(data).hexdigest() == record["instance_sha256"]:
            return data.decode("utf-8-sig") if text is None else text
    raise Fault(f"instance_file: no {short(file)}, or instance_text, with that hash")


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


# --- 3  Networks ---
class Instance:
    """An instance whose certificates name their argument in ``binding``: a dict of functions that return a bound."""

    def certify(self, held, bound):
        name, self.bound = one_of(held.get("binding"), self.arguments, "binding"), bound
        proven = self.arguments[name](held)
        need(bound <= proven, f"{name}: proves {float(proven)}, not {float(bound)}")


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

    def distances(self, starts, costs=None, passes=None, back=False):
        """Return a dict node → least cost (or hops) of a path from any start (with ``back``: to any of them).

        Starts may have costs of their own. Inner nodes of a path are starts, or ``passes`` is true for them."""
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


# --- 4  Collectives: what has to go where, and whether it does ---
def ends_of(collective, root, u, v):
    """Return (origin, goal) of what a collective brings from rank u to rank v; None: from, or to, all members."""
    ends = {"allgather": (u, None), "reduce_scatter": (None, v), "allreduce": (None, None), "alltoall": (u, v)}
    ends |= {"broadcast": (root, None), "reduce": (None, root), "gather": (u, root), "scatter": (root, v)}
    ends["demand"] = (u, v)
    return ends[one_of(collective, ends, "collective")]


class Xtree(Network):
    """5  xtree: timesteps of a collective on a network of equal links. Chunk k belongs to node k // chunks."""

    def __init__(self, data, folder):
        network, self.collective = data["network"], data.get("collective", "allgather")
        one_of(self.collective, ("allgather", "reduce_scatter", "allreduce"), "collective")
        self.chunks = whole(data["chunks"], 1, 2**31, "chunks")
        nodes, _, links = links_of(network, network.get("bandwidth", 128e9), network.get("latency", 20e-9))
        self.connect(nodes, links)
        need(all(len(self.distances([0], back=x)) == nodes for x in (False, True)), "network: not strongly connected")
        self.arguments = {"cut": self.cut, "late arrivals": self.late, "diameter": self.diameter,
                          "volume": self.volume, "relaxation": lambda held: cover(False, "relaxations")}  # fmt: skip

    def replay(self, held):
        cover("generators" not in held, "a quotient")
        N, wanted, adds = self.nodes, range(self.nodes * self.chunks), range(1 if self.collective == "allgather" else 2)
        rows = held.rows(step=range(1, 2**62), link=range(len(self.links)), chunk=wanted, adds=adds)
        cover(len(rows) <= MOST_TRANSFERS and len(wanted) * N <= MOST_CELLS, f"{len(rows)} transfers on {N} nodes")
        need(len({row[:2] for row in rows}) == len(rows), "two transfers of a timestep use one link")
        moves, ways = [[] for _ in wanted], [(((link.tail, 0),), ((link.head, 1),)) for link in self.links]
        for step, e, chunk, add in rows:
            moves[chunk].append((step, ways[e], add))
        homes = (k // self.chunks for k in wanted)
        check_possession([ends_of(self.collective, None, v, v) for v in homes], moves, range(N))
        return max((row[0] for row in rows), default=0)

    def cut(self, held):
        inside = set(held.array("inside", 0, self.nodes - 1))
        need(0 < len(inside) < self.nodes, "inside: all nodes or none")
        enters = sum(link.tail not in inside and link.head in inside for link in self.links)
        leaves = sum(link.tail in inside and link.head not in inside for link in self.links)
        arrive = self.nodes - (len(inside) if self.collective != "allreduce" else 0)
        over = {"allgather": enters, "reduce_scatter": leaves, "allreduce": min(enters, leaves)}[self.collective]
        return ceiling(self.chunks * arrive, over)

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
        once = (self.nodes - 1) * self.nodes * self.chunks
        return ceiling(2 * once if self.collective == "allreduce" else once, len(self.links))


def machine_file(name, folder):
    """Return the machine that a data file describes; with ``like`` all else is another file's."""
    need(re.fullmatch(r"[A-Za-z0-9._-]+", name), f"network.name: {short(name)}")
    machine = read_json(next(find_file(f"models/synth_models/fabric/machines/{name}.json", folder), b"").decode())
    return {**machine_file(machine["like"], folder), **machine} if "like" in machine else machine


Schedule = namedtuple("Schedule", "ticks_per_s blocks sizes starts pieces routes adds")


class Fabric(Network):
    """6  fabric: seconds on any machine. Links in use are numbered anew; blocks: origin, goal (None: all), bytes."""

    def __init__(self, data, folder):
        network, failed, abilities = data["network"], data.get("failed") or {}, {}
        if network["kind"] == "machine":
            ranks, switches, links, abilities = built_machine(network, machine_file(network["name"], folder))
        else:
            ranks, switches, links = links_of(network)
            abilities = {ability["switch"]: ability for ability in network.get("abilities") or ()}
        nodes, named = range(ranks + switches), network.get("switches") or ()
        self.is_switch = [v >= ranks or v in named for v in nodes]
        self.ranks = [v for v in nodes if not self.is_switch[v]]
        dead, cut = set(failed.get("nodes", ())), {tuple(pair) for pair in failed.get("links", ())}
        working = set(self.ranks) - dead
        self.members = members = sorted(working) if data.get("ranks") is None else list(data["ranks"])
        need(0 < len(working.intersection(members)) == len(members), "ranks: each works, none stands twice")
        idle = dead | (set() if data.get("relay") else set(self.ranks) - set(members))
        ends = [(x.tail, x.head) for x in links]
        self.places = [i for i, pair in enumerate(ends) if pair not in cut and idle.isdisjoint(pair)]
        in_use = [links[i] for i in self.places]
        slower = {(u, v): Fraction(part) for u, v, part in failed.get("reduced") or ()}
        need(len(slower) == len(failed.get("reduced") or ()), "failed.reduced: a pair twice")
        for i, x in enumerate(in_use):
            if (x.tail, x.head) in slower:  # the product's double, and its decimal
                in_use[i] = x._replace(bandwidth=Fraction(repr(float(x.bandwidth * slower[x.tail, x.head]))))
        self.connect(len(nodes), in_use)
        switching, abilities = data.get("switching") or {}, [abilities.get(v) or {} for v in nodes]
        mode = one_of(switching.get("mode", "cut_through"), ("cut_through", "store_and_forward"), "switching.mode")
        self.stores, self.multicast = mode == "store_and_forward", bool(switching.get("multicast"))
        plain = switching.get("copies", True) and not switching.get("buffer") and not switching.get("adds")
        cover(plain or not self.stores, "switches that store and buffer, add or do not copy")
        self.copies = [self.is_switch[v] and bool(self.multicast or abilities[v].get("copies")) for v in nodes]
        self.adds = [self.is_switch[v] and bool(switching.get("adds") or abilities[v].get("adds")) for v in nodes]
        self.limited = any(ability.get(key) for ability in [*abilities, switching] for key in ("streams", "add_rate"))
        linked = [v for v in nodes if self.is_switch[v] and (self.out[v] or self.into[v])]
        self.able = [v for v in linked if self.copies[v] or self.adds[v]]  # where switches cut through
        self.pay_alone = not linked or not (self.stores or self.multicast or self.able)
        collective, M = data["collective"], whole(data["bytes"], 1, 2**62, "bytes")
        self.ready = {v: Fraction(repr(number(moment, "ready", 0))) for v, moment in data.get("ready") or ()}
        need(len(self.ready) == len(data.get("ready") or ()) and set(members) >= {*self.ready}, "ready: not a member")
        N, root = len(members), members[0] if data.get("root") is None else data["root"]
        need(root in members, "root: is no member")
        if collective == "demand":
            blocks = [(u, v, whole(n, 1, 2**62, "demand")) for u, v, n in data.get("demand") or ()]
        elif collective in ("broadcast", "reduce", "allreduce"):
            blocks = [(*ends_of(collective, root, root, root), M)]
        else:
            need(M % N == 0, f"bytes: {M} is not divisible by {N} members")
            pairs = product(members, repeat=2) if collective == "alltoall" else zip(members, members)
            blocks = [(*ends_of(collective, root, u, v), M // N) for u, v in pairs]
            blocks = [block for block in blocks if block[0] != block[1]]  # nothing goes from a rank to itself
        self.blocks = blocks if N > 1 or collective == "demand" else []
        need({v for block in self.blocks for v in block[:2]} <= {None, *members}, "demand: not between members")
        self.bytes, self.sums, self.collective = M, any(origin is None for origin, _, _ in self.blocks), collective
        cover(not (self.sums and self.stores), "sums over switches that store")

    def schedule(self, held):
        """Read a schedule: what pieces there are, and of every transfer start, piece, links and whether it adds."""
        T = held.whole("ticks_per_s", 1, 2**62)
        starts = list(accumulate(held.array("start_steps", -(2**63), 2**63)))
        size = (len(starts),)
        cover(len(starts) <= 4 * MOST_TRANSFERS, f"{len(starts)} transfers")
        blocks = held.array("piece_block", 0, len(self.blocks) - 1)
        sizes = held.array("piece_bytes", 1, 2**48, (len(blocks),))
        pieces = list(accumulate(held.array("piece_steps", -(2**63), 2**63, size)))
        links = held.array("link", 0, len(self.links) - 1)
        lengths = held.array("route_lengths", 1, 2**62, size, default=[1] * len(starts))
        adds = held.array("adds", 0, 1, size, default=[0] * len(starts))
        need(not starts or 0 <= min(starts) <= max(starts) <= 2**62, "start_steps: a start is not in 0..2^62")
        need(not pieces or 0 <= min(pieces) <= max(pieces) < len(blocks), "piece_steps: a piece that is none")
        need(sum(lengths) == len(links), "route_lengths: do not add up to the length of link")
        need(self.sums or 1 not in adds, "adds: nothing is added in this collective")
        total = [0] * len(self.blocks)
        for block, n in zip(blocks, sizes):
            total[block] += n
        need(total == [n for _, _, n in self.blocks], "piece_bytes: a block's pieces do not add up to its bytes")
        routes, same = (tuple(links[end - length : end]) for length, end in zip(lengths, accumulate(lengths))), {}
        routes = [same.setdefault(route, route) for route in routes]
        return Schedule(T, blocks, sizes, starts, pieces, routes, adds)

    def possession(self, ends, moves, ready):
        switches = {v for v in range(self.nodes) if self.is_switch[v]} if self.stores else ()
        check_possession(ends, moves, self.members, switches, ready=ready)

    def replay(self, held):
        """Return the last arrival in seconds, rounded up to a double."""
        cover("quotient_generators" not in held, "a quotient")
        T, blocks, sizes, *rows = self.schedule(held)
        known, moves, last, busy = {}, [[] for _ in blocks], 0, defaultdict(list)
        for start, piece, route, add in zip(*rows):
            key = (route, sizes[piece])
            if key not in known:  # transfers of equal routes and sizes share what ``route`` returns
                known[key] = *self.route(T, *key), array("q")
            moves[piece].append((start, known[key][1], add))
            known[key][3].append(start)
        for used, _, takes, starts in known.values():
            last = max(last, max(starts) + takes)
            for e, (begin, until) in used:
                busy[e].append((begin, until, starts))
        for e, mine in busy.items():  # one transfer at a time: the next begins when one more has ended
            begins = sorted(start + begin for begin, _, starts in mine for start in starts)
            ends = sorted(start + until for _, until, starts in mine for start in starts)
            need(all(map(le, ends, islice(begins, 1, None))), f"link {e}: two transfers at a time")
        ready = {v: math.ceil(moment * T) for v, moment in self.ready.items()}
        self.possession([self.blocks[block][:2] for block in blocks], moves, ready)
        goals = {goal for origin, goal, _ in self.blocks if origin is None}
        last = max([last] + [ticks for v, ticks in ready.items() if goals & {None, v}])  # a sum holds its own part
        return verify_several.upwards(Fraction(last, T))

    def route(self, T, route, size):
        """Return links in use (link, (from, to)), a way, and its last arrival: in ticks from the start."""
        links = [self.links[e] for e in route]
        ticks = {e: (math.ceil(x.latency * T), math.ceil(size * T / x.bandwidth)) for e, x in zip(route, links)}
        sources, first = {x.tail for x in links if not self.is_switch[x.tail]}, links[0].tail
        used, arrivals, left = {}, {}, set()
        leaving, reached, rest = {first: 0}, {first: (0, 0)}, route
        need(not self.stores or len(route) == 1, "route_lengths: where switches store, a route is one link")
        need(self.stores or not self.is_switch[first], f"route {route}: begins at a switch")
        if len(sources) > 1:
            leaving, used, arrivals, reached, rest = self.in_tree(route, ticks, sources)
        for e in rest:
            u, v, where, (alpha, duration) = *self.links[e][:2], f"route {route}, link {e}", ticks[e]
            need(u in reached, f"{where}: goes on from no node that it reached")
            need(u not in left or self.multicast or self.copies[u], f"{where}: node {u} does not copy")
            need(v not in reached and e not in used, f"{where}: comes to node {v} twice, or is used twice")
            cover(u not in left or not self.limited, "switches that copy a limited number of streams")
            left.add(u)
            begin, slow = reached[u]
            used[e] = (begin, begin + duration)
            reached[v] = (begin + alpha, max(slow, duration))
            if self.stores or not self.is_switch[v]:
                arrivals[v] = sum(reached[v])
        ends = [v for v in reached if v not in left and self.is_switch[v] and not self.stores]
        need(not ends, f"route {route}: ends at switches {ends}")
        return used.items(), (tuple(leaving.items()), tuple(arrivals.items())), max(arrivals.values())

    def in_tree(self, route, ticks, sources):
        """Return the same of the links on which streams of several sources become one; then where, and what is left."""
        cover(not self.limited, "switches that add a limited number of streams")
        left, streams, rest = {}, set(), list(route)  # left: by which link; streams: the nodes at which they are
        while rest:
            e, together = rest[0], len(streams) == 1 and left.keys() >= sources
            u, v, where = *self.links[e][:2], f"route {route}, link {e}"
            if together and len({self.links[f].tail for f in rest}) < len(rest):
                break  # from here, the hub, the sum parts
            need(u in streams or u in sources, f"{where}: nothing comes to node {u}")
            need(not {u, v} & left.keys() and v not in sources, f"{where}: at a node that was left before")
            need(v not in streams or self.adds[v], f"{where}: node {v} does not add")
            left[u], streams = e, streams - {u} | {v}
            rest.pop(0)
        need(len(streams) == 1, f"route {route}: its streams do not meet")
        (hub,) = streams
        behind = {hub: (0, 0)}  # of a node: the latency from it to the hub, and the slowest link on the way there
        for u, e in reversed(left.items()):
            (alpha, duration), (far, slow) = ticks[e], behind[self.links[e].head]
            behind[u] = far + alpha, max(slow, duration)
        end, least = max(sum(behind[u]) for u in sources), min(behind[u][1] for u in sources)
        used = {e: (end - behind[u][0] - ticks[e][1], end - behind[u][0]) for u, e in left.items()}
        arrivals = {} if self.is_switch[hub] else {hub: end}
        return {u: end - sum(behind[u]) for u in sources}, used, arrivals, {hub: (end - least, least)}, rest

    def certify(self, held, bound):
        """Check that a certificate proves a bound in seconds: by then the links carry no more than what is needed."""
        cover(
            held.get("argument") not in ("steps", "near_goals", "timed_prices"),
            "steps, near goals, timed prices",
        )
        proofs = {"nothing": lambda me, held: need(bound <= 0, "nothing: proves 0"), "deliveries": Fabric.windows}
        proofs |= {"sums": Fabric.windows, "moments": Fabric.moments, "orbit_moments": Fabric.moments}
        proofs |= {"own_part": Fabric.own_part, "senders": Fabric.senders, "sum_rates": Fabric.sum_rates}
        proofs |= {"cut": Fabric.cut, "prices": Fabric.prices, "gossip": Fabric.gossip, "partition": Fabric.partition}
        name = one_of(held.get("argument"), proofs, "argument")
        need(bound >= 0, "bound: below 0")
        of_allreduce = self.collective == "allreduce" and self.blocks
        need(
            name not in ("gossip", "partition", "sums", "senders", "sum_rates") or of_allreduce,
            f"{name}: only of an allreduce",
        )
        self.keep_time()
        self.bound, me = bound, self
        fits = type(held.get("backwards", 0)) in (bool, int) and held.get("backwards", 0) in (0, 1)
        need(name != "orbit_moments" or fits, "backwards: neither 0 nor 1")
        if held.get("backwards") and name in ("deliveries", "sums", "orbit_moments"):  # turned round, ends exchanged
            me = copy.copy(self)
            me.connect(self.nodes, [link._replace(tail=link.head, head=link.tail) for link in self.links])
            me.blocks = [(goal, origin, n) for origin, goal, n in self.blocks]
        proofs[name](me, held)

    def keep_time(self):
        """Find P, ticks a second, and the links' latencies in ticks."""
        moments = [*(link.latency for link in self.links), *self.ready.values()]
        greatest = max(moments, default=Fraction(0))
        self.P = math.lcm(*(moment.denominator for moment in moments))
        if self.P > 10**18 or self.P * greatest * self.nodes > 2**61:
            self.P = max(1, min(10**18, 2**61 // max(Fraction(1), greatest * self.nodes)))
        self.latencies = [int(link.latency * self.P) for link in self.links]

    def enough(self, needed, *windows):
        """Check that links carry no more than is needed: link e from tick begin[e] until left[e] before the bound."""
        capacity, end = Fraction(0), self.bound * self.P
        for link, price, begin, left in (row for window in windows for row in zip(self.links, *window)):
            if price > 0 and begin is not None and left is not None:
                capacity += price * link.bandwidth * max(0, end - begin - left)
        need(needed > 0 and capacity <= needed * self.P, f"needed is {needed}: nothing, or links carry more by then")

    def starts(self, sources):
        return {u: int(self.ready.get(u, 0) * self.P) for u in sources}

    def own_part(self, held):
        rank, goals = held.whole("rank", 0, self.nodes - 1), {goal for origin, goal, _ in self.blocks if origin is None}
        need(rank in self.members and goals & {None, rank}, "own_part: of no member that wants a sum")
        need(self.bound <= self.ready.get(rank, 0), "own_part: proves when the rank is ready")

    def senders(self, held):
        length, switch, links = held.array("length", 0, 2**40, (len(self.links),)), self.is_switch, self.links
        outside = any(self.out[v] or self.into[v] for v in set(self.ranks) - set(self.members))
        need(self.pay_alone and not outside, "senders: transfers pay for several, or other ranks have links")
        sent, ready = {}, self.starts(self.members)
        for e, x in enumerate(links):
            if switch[x.head] and not switch[x.tail]:
                sent[x.head] = min(sent.get(x.head, INFINITE), ready[x.tail] + self.latencies[e])
        sent = self.distances(sent, self.latencies, switch)
        begin = [sent.get(x.tail) if switch[x.tail] else ready[x.tail] for x in links]
        apart = (self.distances([u], length, switch) for u in self.members)
        worth = min(far.get(v, INFINITE) for u, far in zip(self.members, apart) for v in self.members if u != v)
        need(worth < INFINITE, "senders: no two members are joined over switches")
        left = self.between(self.members, self.members)[1]
        self.enough(2 * (len(self.members) - 1) * self.bytes * worth, (length, begin, left))

    def between(self, sources, goals, behind_passes=None):
        """Return of every link the ticks from the nearest source through its head, split at its tail, to a goal."""
        before = self.distances(self.starts(sources), self.latencies)
        behind = self.distances(goals, self.latencies, behind_passes, back=True)
        left = [self.latencies[e] + behind[x.head] if x.head in behind else None for e, x in enumerate(self.links)]
        return [before.get(link.tail) for link in self.links], left

    def cut(self, held):
        lists = [held.array(key, 0, self.nodes - 1) for key in ("inside", "origins", "goals")]
        inside, origins, goals = map(set, lists)
        need(all(len(set(nodes)) == len(nodes) for nodes in lists), "inside, origins, goals: one stands twice")
        need(origins and origins <= inside.intersection(self.members), "origins: members inside")
        need(goals and goals <= set(self.members) - inside, "goals: members not inside")
        price = [int(link.tail in inside and link.head not in inside) for link in self.links]
        needed = sum(n for origin, goal, n in self.blocks if origin in {None, *origins} and goal in {None, *goals})
        self.enough(needed, (price, *self.between(origins, goals)))

    def prices(self, held):
        need(all(None not in block[:2] for block in self.blocks), "prices: every block leads from one rank to one")
        length = held.array("length", 0, 2**40, (len(self.links),))
        away = Fraction(held.whole("away_ticks", 0, 2**62), held.whole("ticks_per_s", 1, 2**62)) * self.P
        far = cache(lambda u: (self.distances([u], self.latencies), self.distances([u], length)))
        need(all(v in far(u)[0] for u, v, _ in self.blocks), "prices: a goal cannot be reached")
        paying = [(u, v, n * far(u)[1][v]) for u, v, n in self.blocks if far(u)[0][v] >= away]
        sources, goals, payments = zip(*paying) if paying else ((), (), ())
        self.enough(sum(payments), (length, *self.between(sources, goals)))

    def gossip(self, held):
        outside = any(self.out[v] or self.into[v] for v in set(self.ranks) - set(self.members))
        need(not outside, "gossip: a rank that is no member has links in use")
        able, members = [] if self.stores else self.able, self.members
        length = held.array("length", 0, 2**40, (len(self.links),))
        need(self.pay_alone or any(self.adds[v] for v in able) or (able and not self.multicast), "may pay for several")
        ends = members + able
        ahead, tree, group = [self.distances([u], length) for u in ends], 0, list(range(len(ends)))
        pairs = combinations(group, 2)
        edges = [(min(ahead[i].get(ends[j], INFINITE), ahead[j].get(ends[i], INFINITE)), i, j) for i, j in pairs]
        for cost, i, j in sorted(edges):  # members come first, so a group with a member has a member for its number
            a, b = sorted((group[i], group[j]))
            if a != b:
                group = [a if x == b else x for x in group]
                tree += cost if b < len(members) else 0
        need(tree < INFINITE, "gossip: members are not joined")
        self.enough(2 * self.bytes * tree, (length, *self.between(members, members)))

    def partition(self, held):
        part = held.array("part", 0, self.nodes - 1, (self.nodes,))
        need(set(part) == {part[v] for v in self.members}, "part: every part has a member")
        late = held.array("late", 0, self.nodes - 1, default=list(self.members))
        need(late and len(set(late)) == len(late) and set(late) <= set(self.members), "late: members, once each")
        price = [int(part[link.tail] != part[link.head]) for link in self.links]
        crossings = len(set(part)) + len({part[v] for v in late}) - 2
        self.enough(crossings * self.bytes, (price, *self.between(late, self.members)))

    def sum_rates(self, held):
        """Every member but one receives all of an allreduce as often as it sends; what adds is as slow as it adds."""
        length, members = held.array("length", 0, 2**40, (len(self.links),)), self.members
        outside = any(self.out[v] or self.into[v] for v in set(self.ranks) - set(members))
        need(not self.stores and not outside, "sum_rates: switches store, or a rank that is no member has links")
        cover(not self.limited, "switches that add at a rate")
        need(all(self.into[v] for v in members), "sum_rates: no link leads into a member")
        least = [min(length[e] for e, _ in self.into[v]) for v in members]
        adding = any(self.adds[x.tail] for x in self.links)
        more = 0 if adding else (len(members) - 2) * min(least)
        self.enough(self.bytes * (sum(least) + more), (length, *self.between(members, members)))

    def windows(self, held):
        """Deliveries or sums pay prices that begin at moments: what comes from its origin, or what is passed on."""
        members, switch, latencies = self.members, self.is_switch, self.latencies
        need(self.pay_alone, "transfers may pay for several: switches in use copy or add")
        need(type(held.get("backwards")) is bool, "backwards: true or false")
        need(held.whole("ticks_per_s", 1, 2**62) == self.P, f"ticks_per_s: should be {self.P}")
        windows, size = [Held(window) for window in held.list("windows")], (len(self.links),)
        need(1 <= len(windows) <= 4, "windows: 1 to 4 of them")
        rows = [(x.array("length", 0, 2**38, size), x.array("after", 0, 2**61, size)) for x in windows]
        groups, begins = [(members, self.bytes)], Counter()  # bytes of which ranks have the same, or parts of a sum
        if held["argument"] == "deliveries":
            for origin, goal, n in self.blocks:
                need(origin is not None and goal is None, "deliveries: a block that is not from one to all")
                begins[origin] += n
            groups = [([u], n) for u, n in begins.items()]

        def paid(starts):
            """What each link costs at the moment when it can first be reached from some ranks over switches."""
            moments = self.distances(starts, latencies, switch)
            at = [moments.get(link.tail, -1) for link in self.links]
            return [sum(x[e] for x, after in rows if moment >= after[e]) for e, moment in enumerate(at)]

        starts, needed = [u for group, _ in groups for u in group], 0
        alone = {u: self.distances([u], paid([u]), switch) for u in starts}  # least payment over switches alone
        for group, n in groups:
            known = {}  # the moment when a rank knows something
            for u in group:
                for w, ticks in self.distances([u], latencies).items():
                    if w != u and not switch[w]:
                        known[w] = min(known.get(w, INFINITE), ticks)
            costs = paid(known)  # of what is passed on over at least one link, and switches
            least = self.distances(list(known), costs, switch)
            near = {u for u in least if u in known or switch[u]}
            on = {v: [least[u] + costs[e] for e, u in self.into[v] if u in near] for v in members}
            needed += n * sum(min(sum(alone[u].get(v, INFINITE) for u in group if u != v), *on[v]) for v in members)
        need(needed < INFINITE, "a member cannot be reached")
        begin, left = self.between(starts, members, switch)
        before = self.distances(starts, latencies)  # whoever is ready later sends later: the page leaves it out
        begin = [before.get(link.tail) for link in self.links]
        shift = [ticks * held["backwards"] for ticks in latencies]  # a latency turned round passes before, not behind
        left = [None if x is None else x - y for x, y in zip(left, shift)]
        late = [[None if x is None else max(x, y) + z for x, y, z in zip(begin, after, shift)] for _, after in rows]
        self.enough(needed, *((length, after, left) for (length, _), after in zip(rows, late)))

    def moments(self, held):
        """Ranks know a demand's block only from some moments on: what is open at a link in time has to cross it."""
        orbital, switch, links = held["argument"] == "orbit_moments", self.is_switch, self.links
        need(self.pay_alone or (orbital and not self.stores), "transfers may pay for several: switches copy or add")
        share, finer = held.array("share", 0, 1024, (len(links),)), held.whole("finer", 1, 2**40)
        ticks = [finer * latency for latency in self.latencies]
        multiply = closure(self.able, lambda v: {w for _, w in self.out[v] + self.into[v] if switch[w]})
        unpaid = [not multiply.isdisjoint(link[:2]) for link in links]
        need(not any(free and n for free, n in zip(unpaid, share)), "share: of a link at switches that copy or add")
        prices = [INFINITE if free else n for free, n in zip(unpaid, share)]
        costs = [self.distances([u], prices, switch) for u in self.ranks]
        worth = min(x[v] for u, x in zip(self.ranks, costs) for v in x if v != u and not switch[v])
        need(0 < worth < INFINITE, "share: a path from rank to rank costs nothing")
        demands, needed, blocks = self.demands(held, orbital), -Fraction(1, 10**12), set()
        for block, weight, known, target in demands:
            need(self.bound * self.P * finer <= known[target], "since: a target's moment is before the bound")
            needed, blocks = needed + worth * weight * self.blocks[block][2], blocks | {block}
        for u in self.ranks if any(unpaid) else ():
            free = self.distances([u], [t if x else INFINITE for t, x in zip(ticks, unpaid)], switch)
            for v, known in ((v, known) for v in free if not switch[v] for _, _, known, _ in demands):
                need(known[v] <= known[u] + free[v], "since: over links that are not paid for a block comes earlier")
        images, pairs, opened = self.images(held) if orbital else [], permutations(self.ranks, 2), defaultdict(Counter)
        orbit_of, pairs_of = orbits(pairs, lambda pair: {(g[pair[0]], g[pair[1]]) for g, _ in images})
        for (block, weight, known, _), ((u, v), orbit) in product(demands, orbit_of.items()):
            opened[block, orbit][known[u], known[v]] += weight
        toll_of, tolls = self.tolls(held, share, worth) if orbital and "toll_at" in held else ([0] * len(links), [[]])

        def most_open(e):
            """Return the integral over time of the greatest sum of weights that are open at link e for one pair."""
            tail, head, bandwidth, _ = links[e]
            before, after = self.distances([tail], ticks, switch, back=True), self.distances([head], ticks, switch)
            behind = [(v, ticks[e] + after[v]) for v in (self.ranks if switch[head] else [head]) if v in after]
            ahead = set() if switch[tail] else {(tail, 0, 0)}
            for f, (u, v, other, _) in enumerate(links):
                if switch[tail] and switch[v] and not switch[u] and v in before:
                    slower = bandwidth >= other if held.get("backwards") else bandwidth <= other
                    ahead.add((u, ticks[f] + before[v], toll_of[f] * slower))
            groups = {(b, orbit_of[u, v], *x, y) for b in blocks for u, *x in ahead for v, y in behind if u != v}
            sums, sizes, events, total, now = [0] * len(groups), [], [], 0, 0
            for i, (block, orbit, x, toll, y) in enumerate(groups):
                sizes.append(len(pairs_of[orbit]))
                windows = [(b + x, c - y, n) for (b, c), n in opened[block, orbit].items() if b + x < c - y]
                events += [event for b, c, n in windows for event in ((b, i, n), (c, i, -n))]
                if all(b >= t + x for b, _, _ in windows for t, _ in tolls[toll][:1]):
                    events += [(t + x, i, -n * sizes[i]) for t, n in tolls[toll]]
            for time, i, n in sorted(events):
                if time > now:
                    total += (time - now) * max(0, *map(ceiling, sums, sizes))
                now, sums[i] = time, sums[i] + n
            return total

        capacity = Fraction(0)
        for mine in orbits(range(len(links)), lambda e: {moved[e] for _, moved in images})[1]:
            need(len({(share[e], toll_of[e]) for e in mine}) == 1, "images: move links to others' shares or tolls")
            if share[mine[0]] > 0:
                capacity += sum(links[e].bandwidth * share[e] for e in mine) * most_open(mine[0])
        capacity += sum(links[e].bandwidth * -sum(t * n for t, n in tolls[k]) for e, k in enumerate(toll_of))
        need(needed > 0 and capacity <= needed * self.P * finer, f"needed is {float(needed)}: links carry more by then")

    def demands(self, held, orbital):
        """Return (block, weight, since when ranks may know it, target) of every row."""
        nodes, weights, demands = range(self.nodes), range(1, 2**30 + 1), []
        if orbital:
            need(len(self.blocks) == 1, "orbit_moments: only of one block")
            pairs, n = [(0, *pair) for pair in held.rows(source=nodes, target=nodes)], len(self.ranks)
            classes = held.array("classes", 0, 2**31, (len(pairs) * n,))
            rows = held.rows(of=range(len(pairs)), weight=weights)
            rows = [(*pairs[d], weight, classes[d * n : d * n + n]) for d, weight in rows]
        else:
            classes = range(len(self.ranks))
            rows = held.rows(block=range(len(self.blocks)), source=nodes, target=nodes, weight=weights)
            rows, pairs = [(*row, classes) for row in rows], [row[:3] for row in rows]
        for block, source, target in pairs:
            origins, goals = ([end] if end is not None else self.members for end in self.blocks[block][:2])
            need(source in origins and target in goals and source != target, "source, target: not of the block")
        cover(len(rows) * len(self.ranks) ** 2 <= MOST_CELLS, f"{len(rows)} demands among {len(self.ranks)} ranks")
        since = iter(held.array("since", 0, 2**62, (len(rows) * (1 + max(classes)),)))
        for block, source, target, weight, of_rank in rows:
            moments = [*islice(since, 1 + max(classes))]
            known = {u: moments[number] for u, number in zip(self.ranks, of_rank)}
            need(known[source] == 0, "since: is not 0 at the source")
            demands.append((block, weight, known, target))
        return demands

    def images(self, held):
        """Return permutations of the nodes that change nothing, each with that of the links: alike, in their order."""
        flat, nodes, images = held.array("images", 0, self.nodes - 1), range(self.nodes), []
        keep = [nodes, self.ranks, self.members, *([end] for end in self.blocks[0][:2] if end is not None)]
        links = sorted((x.latency, x.bandwidth, x.head, x.tail, e) for e, x in enumerate(self.links))
        for at in range(0, len(flat), self.nodes):
            g = flat[at : at + self.nodes]
            need(all({g[v] for v in group} == set(group) for group in keep), "images: move a member, origin or goal")
            moved = sorted((x.latency, x.bandwidth, g[x.head], g[x.tail], e) for e, x in enumerate(self.links))
            need([x[:4] for x in moved] == [x[:4] for x in links], "images: change links")
            images.append((g, {x[4]: y[4] for x, y in zip(moved, links)}))
        return images

    def tolls(self, held, share, worth):
        """Return of every link the number of its toll, and of every toll when it changes by how much."""
        at, flat, tolls = held.array("toll_at", 0, 2**62), held.array("toll", 0, 2**62), [[]]
        need(len(at) >= 2 and at == sorted(set(at)), "toll_at: two moments at least, ascending")
        for k in range(0, len(flat), len(at) - 1):
            heights = pairwise([0, *flat[k : k + len(at) - 1], 0])
            tolls.append([(t, y - x) for t, (x, y) in zip(at, heights, strict=True) if x != y])
            need(all(n < 0 for _, n in tolls[-1][1:]), "toll: rises again")
        toll_of = held.array("toll_of", 0, len(tolls) - 1, (len(self.links),))
        wrong = any(k and (n or self.is_switch[x.tail]) for k, n, x in zip(toll_of, share, self.links))
        need(set(share) <= {0, 1} and worth == 1 and not wrong, "toll: at switches, or where shares are not 0 or 1")
        return toll_of, tolls


class OnePlan(verify_several.Scenarios, Fabric):
    """A schedule that keeps its order whichever scenario comes."""


class SeveralCollectives(verify_several.Several, Fabric):
    """Collectives that share a machine."""

    one = Fabric


def fabric_of(data, folder):
    """Return an instance of one collective, of several, or of one plan for several scenarios."""
    several = data.get("collective") == "several"
    cover(not (several and data.get("scenarios")), "scenarios of several collectives")
    return (SeveralCollectives if several else OnePlan if data.get("scenarios") else Fabric)(data, folder)


Step = namedtuple("Step", "bytes overlap volumes")  # volumes: of the pairs (source, destination), in order


def read_step(data, gpus):
    volumes, shift, pairs, sizes = Counter(), data.get("shift"), data.get("pairs") or (), data.get("volumes")
    if shift is not None:
        pairs, sizes = [(u, (u + whole(shift, 1, gpus - 1, "shift")) % gpus) for u in range(gpus)], None
    for (u, v), volume in zip(pairs, sizes or [1] * len(pairs), strict=True):
        need(whole(u, 0, gpus - 1, "pairs") != whole(v, 0, gpus - 1, "pairs"), "pairs: between different GPUs")
        volumes[u, v] += number(volume, "volumes", LEAST)
    need(volumes, "pairs: none")
    return Step(number(data["bytes"], "bytes", LEAST), number(data.get("overlap", 0), "overlap"), volumes)


def closure(starts, leads_to):
    """Return all that can be reached from some starts."""
    found, front = set(starts), list(starts)
    while front:
        found |= (new := leads_to(front.pop()) - found)
        front += new
    return found


def orbits(items, moved):
    """Return a dict item → number of its orbit, and the orbits as lists; moved(item): its images, a set."""
    orbit, members = {}, []
    for item in items:
        if item not in orbit:
            members.append([*closure([item], moved)])
            orbit.update(dict.fromkeys(members[-1], len(members) - 1))
    return orbit, members


class Harvest:
    """7  harvest: seconds of a collective on a network whose links are set up between its steps."""

    def __init__(self, data, folder):
        self.n, self.p = whole(data["gpus"], 2, 2**20, "gpus"), whole(data["ports"], 1, 2**20, "ports")
        self.b = number(data["port_bandwidth"], "port_bandwidth", LEAST)
        self.alpha, delta, self.R = (number(data[key], key, 0) for key in ("alpha", "delta", "reconfiguration_delay"))
        self.hop, self.circuit = 0 if data.get("latency", "on") == "off" else delta, data.get("delay_per_circuit") or 0
        cover(not data.get("delay_by_ports"), "delays by the number of ports that change")
        self.steps = [read_step(step, self.n) for step in data["steps"]]

    def replay(self, held):
        """Return the completion time: the doubles that the page names, added exactly and rounded once."""
        gpus, many, topologies, terms = range(self.n), range(2**31), [], []
        rows = held.rows(link_src=gpus, link_dst=gpus, link_count=range(1, self.p + 1))
        for first, last in pairwise(held.starts("topology_start", len(rows))):
            links, ports = {(u, v): count for u, v, count in rows[first:last]}, Counter()
            need(len(links) == last - first and all(u != v for u, v in links), "links: one twice, or to itself")
            for (u, v), times in links.items():
                ports.update({("out", u): times, ("in", v): times})
            need(max(ports.values(), default=0) <= self.p, f"link_count: more than {self.p} ports of a GPU")
            topologies.append(links)
        of_step = held.array("topology_of_step", 0, len(topologies) - 1, (len(self.steps),))
        rows, share = held.rows(pair=many, hop=many, src=gpus, dst=gpus), held.shaped("share").values
        cover(len(rows) <= MOST_TRANSFERS, f"{len(rows)} flows")
        begin = held.starts("flow_start", len(rows), len(self.steps) + 1)
        need({*map(type, share)} <= {int, float} and all(0 < x <= 1 + 1e-9 for x in share), "share: not in 0..1")
        rows = [(*row, x) for row, x in zip(rows, share, strict=True)]
        for i, step in enumerate(self.steps):
            now, before = topologies[of_step[i]], topologies[of_step[max(i - 1, 0)]]
            terms += self.flows(i, step, now, rows[begin[i] : begin[i + 1]])
            if now != before:
                up = sum(max(0, times - before.get(link, 0)) for link, times in now.items())
                terms.append(max(0, float(Fraction(self.R) + up * Fraction(self.circuit)) - step.overlap))
        return math.fsum(terms)

    def flows(self, i, step, links, rows):
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
        wrong = [abs(net.pop((k, 0, source), 0) - 1) for k, (source, _) in enumerate(pairs)]
        for (pair, _, _), amount in net.items():
            wrong[pair] += abs(amount)
        worst = max(wrong)
        need(rows and worst <= Fraction(1e-9), f"step {i}: a pair's flows are wrong by {float(worst):.3g}")
        most = max(math.fsum(loads) / links[link] for link, loads in load.items())
        most /= 1 - float(worst) if worst > Fraction(1e-14) else 1
        return [self.alpha, self.hop * longest, step.bytes * most / self.b]

    def certify(self, held, bound):
        """Check what steps are proven to take, alone and on one topology (in a file of its own)."""
        cover("chains" not in held, "chains")
        try:
            verify_harvest.certify(self, held, bound)
        except verify_harvest.Wrong as wrong:
            raise Fault(str(wrong)) from None


class Mlfm(Instance):
    """8  mlfm: phases of a rank's one transfer. Leaf (layer, column) is layer·(d + 1) + column, a spine two columns."""

    def __init__(self, data, folder):
        d = whole(data["d"], 1, 2**12, "d")
        self.columns, self.leaves, self.arguments = d + 1, d * (d + 1), {"ranks": self.busiest, "links": self.weighted}
        self.pairs, self.detour = list(combinations(range(d + 1), 2)), data.get("routes", "minimal") == "detour"
        failed, block, demand = defaultdict(list, data.get("failed") or {}), data.get("block"), data.get("demand")
        leaf = {place: number for number, place in enumerate(product(range(d), range(d + 1)))}
        dead_leaves = {leaf[tuple(end)] for end in failed["leaves"]}
        dead_servers = {tuple(server) for server in failed["servers"]}
        dead_spines = {tuple(sorted(pair)) for pair in failed["spines"]}
        cables = {(leaf[tuple(cable["leaf"])], tuple(sorted(cable["spine"]))) for cable in failed["links"]}
        need(dead_spines | {pair for _, pair in cables} <= set(self.pairs), "failed: a spine that is none")
        self.works = {}  # (leaf, other column) → whether the cable from the leaf to that spine works
        for x, pair in product(range(self.leaves), self.pairs):
            if x % (d + 1) in pair:
                works = x not in dead_leaves and pair not in dead_spines and (x, pair) not in cables
                self.works[x, sum(pair) - x % (d + 1)] = works
        sides = (block["layers"], block["columns"], block["servers"]) if block else (d, d + 1, d)
        servers = product(*map(range, sides))
        if block is None and data.get("subset") is not None:
            servers = map(tuple, data["subset"])
        elif block is None and demand is not None:
            servers = sorted({tuple(row[end]) for row in demand for end in ("source", "target")})
        servers = [s for s in servers if s not in dead_servers and leaf[s[:2]] not in dead_leaves]
        self.leaf, self.N = [leaf[server[:2]] for server in servers], len(servers)
        rank, self.demand = {server: x for x, server in enumerate(servers)}, None if demand is None else Counter()
        for row in demand or ():
            ends = (rank.get(tuple(row["source"])), rank.get(tuple(row["target"])))
            if None not in ends:
                self.demand[ends] += whole(row.get("count", 1), 1, 2**40, "count")

    def wanted(self, of):
        """Return a counter (of[x], of[y]) → how often ranks x have to send to ranks y."""
        wanted, many = Counter(), Counter(of)
        for (x, y), count in (self.demand or {}).items():
            wanted[of[x], of[y]] += count
        return Counter({(a, b): many[a] * many[b] for a, b in product(many, many)}) if self.demand is None else wanted

    def replay(self, held):
        """Return the number of phases of a table of destinations and routes, each split until no link is shared."""
        form = one_of(held.get("form"), ("table", "product", "repaired", "columns", "leaves"), "form")
        cover(form == "table", f"form {form}")
        N, dest = self.N, held.array("dest", -1, self.N - 1, (None, self.N))
        shape, absent, route, value, sent = (len(dest) // N, N), [-1] * len(dest), cache(self.route), 0, Counter()
        cover(len(dest) <= MOST_TRANSFERS, f"{len(dest)} transfers")
        more = (held.array(key, -1, 2**20, shape, absent) for key in ("middle", "second"))
        rows = list(zip(dest, held.array("spine", -1, 2**20, shape), *more))
        for at in range(0, len(dest), N):
            phase = [(x, *row) for x, row in enumerate(rows[at : at + N]) if row[0] >= 0]
            need(len({y for _, y, *_ in phase}) == len(phase), f"phase {at // N}: a rank receives twice")
            used = [route(self.leaf[x], self.leaf[y], *over) for x, y, *over in phase]
            worst, taken = max([1, *Counter(link for links in used for link in links).values()]), defaultdict(set)
            for links in sorted(used, key=len, reverse=True) if worst > 1 and max(map(len, used)) > 2 else ():
                part = next((part for part in range(worst) if not any(part in taken[link] for link in links)), None)
                cover(part is not None, "phases with detours that do not split into as many as the worst link's load")
                for link in links:
                    taken[link].add(part)
            value += worst
            sent.update(row[:2] for row in phase)
        need(sent == self.wanted(range(N)), "what is sent is not what is asked for")
        return value

    def route(self, P, Q, spine, middle, second):
        """Return the links (leaf, other column, way: 0 up, 1 down) of a route between leaves."""
        n = self.columns
        hops, links = [(P, Q, spine)] if middle == -1 else [(P, middle, spine), (middle, Q, second)], []
        if P == Q:
            need(spine == middle == second == -1, "a route within a leaf crosses no spine")
            return links
        third = 0 <= middle < self.leaves and middle % n not in (P % n, Q % n)
        need(middle != -1 or second == -1, "second: without a leaf in the middle")
        need(middle == -1 or (self.detour and third), "middle: only of a detour, a leaf of a third column")
        for x, y, over in hops:
            need(0 <= over < len(self.pairs), f"spine {over}: is none")
            a, b, pair = x % n, y % n, self.pairs[over]
            need(a in pair and b in pair, f"spine {pair}: does not join leaves {x} and {y}")
            up, down = (x, sum(pair) - a), (y, sum(pair) - b)
            need(self.works[up] and self.works[down], f"spine {pair}: a failed link between leaves {x} and {y}")
            links += [(*up, 0), (*down, 1)]
        return links

    def busiest(self, held):
        ends = Counter()
        for (x, y), count in (self.demand or {}).items():
            ends.update({("out", x): count, ("in", y): count})
        return self.N if self.demand is None else max(ends.values(), default=0)

    def weighted(self, held):
        """What weights on links prove: every transfer pays the cheapest route."""
        links, n = held.array("links", 0, 2**20, (None, 3)), self.columns
        rows = list(zip(links[::3], links[1::3], links[2::3]))
        weight = dict(zip(rows, held.array("weights", 0, 10**9, (len(rows),))))
        known = len(weight) == len(rows) and all((x, c) in self.works and way < 2 for x, c, way in weight)
        need(known, "links: twice, or none")
        cost = {(*key, way): weight.get((*key, way), 0) for key, works in self.works.items() for way in (0, 1) if works}
        need(sum(cost.values()) > 0, "weights: of all links that work are 0")

        @cache
        def one(P, Q):
            ways = [(Q % n, P % n)] if P % n != Q % n else [(c, c) for c in range(n)]
            return min(cost.get((P, c, 0), INFINITE) + cost.get((Q, e, 1), INFINITE) for c, e in ways)

        needed = 0
        for (P, Q), count in self.wanted(self.leaf).items():
            if P != Q:
                over = (R for R in range(self.leaves if self.detour else 0) if R % n not in (P % n, Q % n))
                length = min([one(P, Q)] + [one(P, R) + one(R, Q) for R in over])
                need(length < INFINITE, f"leaves {P} and {Q}: no route joins them")
                needed += count * length
        return ceiling(needed, sum(cost.values()))


class Optree(Instance):
    """9  optree: steps of an allgather. Dimensions (side, stride, whether a ring), w wavelengths, most hops H."""

    def __init__(self, data, folder):
        self.N, self.w = whole(data["nodes"], 2, 2**31, "nodes"), whole(data["wavelengths"], 1, 2**31, "wavelengths")
        self.grid, self.dimensions, stride = data.get("grid"), [], self.N
        sides, kinds = (self.grid["sides"], self.grid["kinds"]) if self.grid else ([self.N], ["ring"])
        need(math.prod(whole(side, 2, 2**31, "sides") for side in sides) == self.N, "grid: product of sides not nodes")
        for side, kind in zip(sides, kinds, strict=True):
            stride //= side
            self.dimensions.append((side, stride, {"ring": True, "line": False}[kind]))
        self.H = max(sides) - 1
        cover(data.get("power") is None and data.get("crosstalk") is None, "budgets of power and crosstalk")
        on_ring = {"receive": lambda held: ceiling(self.N - 1, 2 * self.w), "reach": self.ring_reach,
                   "leaps": lambda held: ceiling(2 * (self.N - 1), 2 * self.w + 2)}  # fmt: skip
        on_grid = {"turns": lambda held: len(sides), "cut": self.cut, "reach": self.grid_reach}
        self.arguments = on_grid if self.grid else on_ring

    def replay(self, held):
        if "algorithm" in held:
            return self.counted(held)
        N, nodes, ways, colours = self.N, range(self.N), range(2 * len(self.dimensions)), range(self.w)
        rows = held.rows(step=range(1, 2**62), src=nodes, dst=nodes, direction=ways, wavelength=colours, origin=nodes)
        cover(len(rows) <= MOST_TRANSFERS and N**2 <= MOST_CELLS, f"{len(rows)} circuits")
        path, moves, used = cache(self.path), [[] for _ in range(N)], defaultdict(list)
        for step, u, v, way, colour, item in rows:
            links, move = path(u, v, way)
            moves[item].append((step, move, 0))
            used[step, colour] += links
        for (step, colour), links in used.items():
            need(len(set(links)) == len(links), f"step {step}: wavelength {colour} is used twice on a link")
        check_possession([(v, None) for v in nodes], moves, nodes)
        return max((row[0] for row in rows), default=0)

    def path(self, u, v, way):
        """Return the links (way, lower node) that a circuit passes, and what it does to an item."""
        side, stride, ring = self.dimensions[way // 2]
        a, b = u // stride % side, v // stride % side
        need(u != v and u - a * stride == v - b * stride, f"circuit {u} to {v}: not along dimension {way // 2}")
        hops = (b - a if way % 2 == 0 else a - b) % side
        need(ring or (b > a) == (way % 2 == 0), f"circuit {u} to {v}: leads off the line")
        need(hops <= self.H, f"circuit {u} to {v}: {hops} hops, at most {self.H}")
        first = a if way % 2 == 0 else a - hops
        return [(way, u + (x % side - a) * stride) for x in range(first, first + hops)], (((u, 0),), ((v, 1),))

    def counted(self, held):
        """Return the steps of an algorithm that a formula counts, if its longest circuit is allowed."""
        need(not self.grid, "algorithm: only on one ring")
        numbers, N, w, name = held.array("numbers", 1, 2**31), self.N, self.w, held["algorithm"]
        many, k = {"formula": 1, "wrht": 1, "stages": max(1, len(numbers))}.get(name, 0), numbers[0] if numbers else 0
        need(len(numbers) == many, f"numbers: {len(numbers)}, not {many}")
        need(k <= {"formula": 64, "wrht": 2}.get(name, k), f"{name}: {k}")
        need(name != "neighbor_exchange" or N % 2 == 0, "neighbor_exchange: of an odd number of nodes")
        if name in ("ring", "neighbor_exchange"):
            steps, longest = N - 1 if name == "ring" else 1 + (N // 2 - 1) * ceiling(2, w), 1
        elif name == "one_stage" or (name == "formula" and k == 1):
            steps, longest = ceiling(ceiling(N * N, 8), w), N // 2
        elif name == "formula":
            steps = bisect_left(range(2**62), True, key=lambda S: (8 * w * S) ** k >= (2 * k - 1) ** k * N ** (k + 1))
            longest = N + 1 - bisect_left(range(N + 1), True, key=lambda r: r**k > N ** (k - 1))
        elif name == "wrht":
            M = 2 * w + 1
            t = next(t for t in range(1, N) if M**t >= N)
            before = M ** (t - 1)
            steps = 1 + ceiling(M**t - M, M - 1) + (t - 2 + k) * before
            longest = min(N // 2, max(w * (before // M), ceiling(N, before) // 2 * before, 1))
        else:
            one_of(name, ("stages",), "algorithm")
            size = math.prod(numbers[1:])  # of groups of positions, which are split again and again
            need(size < N and ceiling(N, size) == k, "numbers: do not split the ring")
            cover(size <= MOST_TRANSFERS, f"stages: groups of {size}")
            steps, longest = ceiling(ceiling(size * (k**2 // 4), 2), w), min(N - 1, k // 2 * size)
            for r in numbers[1:]:
                part, most = size // r, 0
                held = [N // size + (position < N % size) for position in range(size)]
                for items in (held, held[::-1]):  # circuits to the one side, and to the other
                    more, ended = [], [0] * part  # how many more circuits cross the link behind a position than before
                    for position, count in enumerate(items):
                        more.append(count * (r - 1 - position // part) - ended[position % part])
                        ended[position % part] += count
                    most = max(most, *accumulate(more))
                steps, longest, size = steps + ceiling(most, w), max(longest, (r - 1) * part), part
        need(longest <= self.H, f"algorithm: circuits of {longest} hops, at most {self.H}")
        return steps

    def ring_reach(self, held):
        """An item that gets round the ring in T steps takes that many weighted hops."""
        N, weights = self.N, held.array("weights", 0, 10**9)
        M, rest = min(N - 1, self.H), [0, 0] + [INFINITE] * (N - 1)
        need(0 < len(weights) < N <= 8192 and any(weights), "weights: all are 0, or none, or too many")
        cover(N * M * len(weights) <= 3 * 10**8, f"reach: {N} nodes, {len(weights)} steps")
        for weight in reversed(weights):
            one, top = [0], min(2 * M, N)
            for x in range(1, M + 1):
                one.append(weight * x + min(one[y] + rest[x - y] for y in range(x)))
            two = [min(one[a] + one[s - a] for a in range(max(0, s - M), min(s, M) + 1)) for s in range(top + 1)]
            rest = [0, 0] + [min(two[s] + rest[g - s] for s in range(min(g - 1, top) + 1)) for g in range(2, N + 1)]
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
        weights, later = held.array("weights", 0, 10**6), held.whole("later", 0, 10**9)
        need(0 < len(weights) <= min(T, 32) and N <= 8192, "weights: none, or too many")
        hops, sides = range(min(self.H, (self.H + 1) // 2) + 1), [side for side, _, _ in self.dimensions]
        within = [[min(2 * k, side - 1) for side in sides] for k in hops]
        every, most, rest = [sum(x) for x in within], [max(x) for x in within], [sum(x) - min(x) for x in within]
        cost = [later * (N - h) for h in range(N + 1)]
        for t in range(len(weights), 0, -1):
            old, cost = cost, [0] * (N + 1)
            for h in range(1, N):
                limits, spread = [[h * x for x in every]], max(0, every[-1] - (h - 1))
                if t == 2:
                    limits.append([min(spread, every[k] + (h - 1) * most[k]) + (h - 1) * rest[k] for k in hops])
                nodes = [range(1, min(limit[-1], N - h) + 1) for limit in limits]  # the hops of each, the nearest first
                sums = [[0, *accumulate(bisect_left(x, i, 1) for i in more)] for x, more in zip(limits, nodes)]
                cost[h] = min(weights[t - 1] * max(x) + old[h + m] for m, x in enumerate(zip(*sums)))
        links = sum(N // side * (side if ring else side - 1) for side, _, ring in self.dimensions) * 2
        need(N * cost[1] > links * self.w * (sum(weights) + (T - len(weights)) * later), "reach: proves nothing")
        return T + 1


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
    """10  bine: bytes on global links. Jobs are lists of (group, node) a rank, or one torus."""

    def __init__(self, data, folder):
        self.torus, self.collective, self.problem = data.get("torus"), data["collective"], data.get("problem", "any")
        costs = data.get("costs") or (0, 0, 1)
        self.costs = [Fraction(number(cost, "costs")) for cost in (costs if self.torus is None else (1, 1, 1))]
        self.bytes, self.rounds = Fraction(number(data["bytes"], "bytes", LEAST)), data.get("rounds")
        self.root, self.jobs = data.get("root") or 0, []  # on a torus each rank is a group of its own
        alone = range(math.prod(whole(side, 1, 2**20, "torus") for side in self.torus or ()))
        for job in data["jobs"] if self.torus is None else [{"allocation": " ".join(f"{v}x1" for v in alone)}]:
            groups = labels(job["allocation"])
            nodes = labels(job["nodes"], len(groups)) if job.get("nodes") is not None else range(len(groups))
            self.jobs.append(list(zip(groups, nodes)))
        need(all(0 <= self.root < len(job) for job in self.jobs), "root: is no rank")
        self.small = data.get("vector") == "small" and self.collective in ("broadcast", "reduce", "allreduce")
        self.arguments = {"receive": self.proven, "prices": self.priced}
        self.arguments |= {"isoperimetric": self.apart, "positions": self.apart}

    def crossings(self, job, u, v):
        """Return what a byte from rank u to rank v counts."""
        if self.torus is None:
            return self.costs[2 if job[u][0] != job[v][0] else int(job[u][1] != job[v][1])]
        total, stride = 0, len(job)
        for side in self.torus:
            stride //= side
            apart = abs(u // stride % side - v // stride % side)
            total += min(apart, side - apart)
        return total

    def replay(self, held):
        shares, many, jobs = held.whole("shares", 1, 2**31), range(2**31), range(len(self.jobs))
        table = held.rows(job=jobs, round=many, src=many, dst=many, first=many, count=many, adds=range(2))
        need([row[0] for row in table] == sorted(row[0] for row in table), "job: rows are not in the order of jobs")
        layout = held.array("layout", 0, 2**31)
        cover(sum(row[5] for row in table) <= MOST_TRANSFERS, f"blocks in {len(table)} messages")
        starts = pairwise(held.starts("starts", len(layout), len(self.jobs) + 1))
        rows, layouts = [[] for _ in self.jobs], [layout[first:last] for first, last in starts]
        for j, *row in table:
            rows[j].append(row)
        return float(sum(self.replay_job(*job, shares) for job in zip(self.jobs, rows, layouts)))

    def replay_job(self, job, rows, layout, shares):
        p, ways, alltoall = len(job), cache(lambda u, v: (((u, 0),), ((v, 1),))), self.collective == "alltoall"
        blocks, moves = p * p if alltoall else 1 if self.small else p, [[] for _ in layout]
        cover(len(layout) * p <= MOST_CELLS, f"{len(layout)} blocks on {p} ranks")
        need(len(layout) == shares * blocks == len(set(layout)) > max(layout), "layout: no permutation of the blocks")
        for now, u, v, first, count, adds in rows:
            need(u < p and v < p and u != v, f"round {now}: from rank {u} to rank {v}")
            need(count >= 1 and first + count <= len(layout), f"round {now}: blocks {first} to {first + count}")
            need(not adds or "reduce" in self.collective, "adds: nothing is added here")
            for block in layout[first : first + count]:
                moves[block].append((now, ways(u, v), adds))
        need(all(now <= after for (now, *_), (after, *_) in pairwise(rows)), "round: rounds are not in order")
        sources = (b // p % p if alltoall else b % p for b in range(len(layout)))
        ends = [ends_of(self.collective, self.root, source, b % p) for b, source in enumerate(sources)]
        check_possession(ends, moves, range(p), ordered=True)
        if self.problem == "tree":  # one message into every rank but the root, one out of a rank a round
            back = self.collective in ("reduce", "gather")
            messages = {(now, v, u) if back else (now, u, v) for now, u, v, *_ in rows}
            most = self.rounds if self.rounds is not None else (p - 1).bit_length()
            need(all(now < most for now, _, _ in messages), "tree: too many rounds")
            into, others = sorted(v for _, _, v in messages), [v for v in range(p) if v != self.root]
            need(into == others, "tree: not one message of every rank but the root")
            need(len({(now, u) for now, u, _ in messages}) == len(messages), "tree: a rank has two messages in a round")
        if self.problem == "butterfly":
            self.check_pairings(p, rows, shares)
        crossing = sum(count * self.crossings(job, u, v) for _, u, v, _, count, _ in rows)
        return crossing * self.bytes / (p if alltoall else blocks) / shares

    def volumes(self, p):
        """Return how many blocks a message of each round of a butterfly has."""
        halves = [p >> i for i in range(1, p.bit_length())]
        need(p == 1 << len(halves), "butterfly: of a number of ranks that is no power of two")
        rounds = {"reduce_scatter": halves, "allgather": halves[::-1], "alltoall": [p // 2] * len(halves)}
        rounds["allreduce"] = [1] * len(halves) if self.small else halves + halves[::-1]
        return rounds[one_of(self.collective, rounds, "butterfly")]

    def check_pairings(self, p, rows, shares):
        volumes, sent = self.volumes(p), Counter()
        for now, u, v, _, count, _ in rows:
            sent[now, u, v] += count
        need(all(now < len(volumes) for now, _, _ in sent), "butterfly: too many rounds")
        pairings = [{u: v for now, u, v in sent if now == t} for t in range(len(volumes))]
        paired = all(len(one) == p and all(one[v] == u for u, v in one.items()) for one in pairings)
        need(paired and len(sent) == p * len(volumes), "butterfly: the ranks of a round are not paired")
        need(all(n == volumes[now] * shares for (now, _, _), n in sent.items()), "butterfly: other volumes")
        need(all(x[y[u]] == y[x[u]] for x, y in combinations(pairings, 2) for u in x), "butterfly: pairings differ")
        back = self.collective == "allreduce" and not self.small
        need(not back or pairings == pairings[::-1], "butterfly: does not go back as it came")

    def partitions(self, job):
        """Yield (weight, part of every rank), those of weight 0 left out."""
        (groups, nodes), cost = zip(*job), self.costs
        ways = (cost[2] - cost[1], groups), (cost[1] - cost[0], nodes), (cost[0], range(len(groups)))
        yield from ((weight, part) for weight, part in ways if weight)

    def proven(self, held):
        """Return the bytes that have to cross between parts of the jobs' ranks, rounded to the nearest double."""
        total = sum(w * self.received(part) for job in self.jobs for w, part in self.partitions(job))
        return Fraction(float(total))

    def apart(self, held):
        """Return what a hypercube's edges between parts carry at least; ``positions`` proves no less, perhaps more."""
        need(self.problem == "butterfly", "binding: only of a butterfly")
        total = Fraction(0)
        for job in self.jobs:
            p, mirrored = len(job), self.collective == "allreduce" and not self.small
            once = self.volumes(p)[: p.bit_length() - 1]  # of two rounds that mirror each other only the first
            weights = sorted((2 * n if mirrored else n for n in once), reverse=True)
            f = [0, *accumulate(sum(w for j, w in enumerate(weights) if i >> j & 1) for i in range(p))]
            size = self.bytes / (p if self.collective == "alltoall" or not self.small else 1)
            ways = [*self.partitions(job)]
            inside = sum(weight * sum(f[n] for n in Counter(part).values()) for weight, part in ways)
            if held["binding"] == "positions" and p <= 16:
                inside = most_inside(tuple((weight, tuple(part)) for weight, part in ways), tuple(weights))
            total += size * (sum(weight for weight, _ in ways) * p * sum(weights) - 2 * inside)
        return Fraction(float(total))

    def priced(self, held):
        """Return what prices of the rounds of a tree prove."""
        right = self.problem == "tree" and self.collective in ("broadcast", "reduce") and self.torus is None
        need(right, "prices: only of a tree's broadcast or reduce")
        z, prices, total = held.whole("scale", 1, 2**24), held.array("prices", 1 - 2**31, 2**31 - 1), Fraction(0)
        left = iter(prices)
        for job in self.jobs:
            p = len(job)
            rounds = self.rounds if self.rounds is not None else (p - 1).bit_length()
            for weight, part in self.partitions(job):
                mine, sizes = [*islice(left, rounds)], Counter(part)
                need(len(mine) == rounds, "prices: too few")
                need(p == 1 << rounds or all(price >= 0 for price in mine), "prices: below 0")
                most, least = len(sizes) - 1, 0
                if any(mine):
                    need(max(sizes.values()) <= 4096 and rounds <= 64, "prices: not 0 of so large a part")
                    cover(max(sizes.values()) ** 2 * rounds <= 4 * MOST_CELLS, f"parts of {max(sizes.values())} ranks")
                    of = [self.rows_of_part(mine, z, first, max(sizes.values())) for first in (0, 1)]
                    least = sum(of[name == part[self.root]][n] for name, n in sizes.items())
                total += weight * max(most, ceiling(least, z))
        need(next(left, None) is None, "prices: too many")
        return Fraction(float(self.bytes * total))

    def rows_of_part(self, prices, z, first, most):
        """Return by the number of ranks that a part has in the end the least cost of all numbers before."""
        best = [0 if x == first else INFINITE for x in range(most + 1)]
        for price in prices:
            cost = [price * d + z * max(0, d) for d in range(-most, most + 1)]
            best = [min(best[x] + cost[y - 2 * x + most] for x in range(y + 1)) for y in range(most + 1)]
        return best

    def received(self, part):
        p, sizes = len(part), Counter(part)
        if self.collective in ("scatter", "gather"):
            return self.bytes * (p - sizes[part[self.root]]) / p
        if self.collective == "alltoall":
            return self.bytes * sum(n * (p - n) for n in sizes.values()) / p
        return self.bytes * (2 if self.collective == "allreduce" else 1) * (len(sizes) - 1)


# --- 11  The command ---
FAMILIES = {"xtree": Xtree, "fabric": fabric_of, "harvest": Harvest, "mlfm": Mlfm, "optree": Optree, "bine": Bine}
VERDICTS = ("accept", "refuse", "not covered")


def records_of(paths):
    """Yield (name, folder, record or instance text) of everything below the paths, in order.

    In place of a text that cannot be read: what says so, a Fault or NotCovered."""
    for path in map(Path, paths):
        files = sorted(file for file in path.rglob("*.json*") if file.suffix in (".json", ".jsonl"))
        for file in [file for file in files if not file.is_dir()] if path.is_dir() else [path]:
            try:
                with file.open("rb") as stream:
                    for number, line in enumerate(pieces_of(stream, file.suffix == ".jsonl"), 1):
                        if type(line) is not str or line.strip() or file.suffix != ".jsonl":
                            yield f"{file}:{number}", str(file.parent), line
            except OSError as wrong:
                yield f"{file}:1", str(file.parent), Fault(f"cannot be read: {wrong.strerror}")


def pieces_of(stream, in_lines):
    """Yield the lines of a file, or all of it, as texts; what is too long, or no UTF-8, as what says so."""
    longest = MOST_TEXT + 1
    for line in iter(lambda: stream.readline(longest), b"") if in_lines else [stream.read(longest)]:
        try:
            yield line.decode("utf-8-sig") if len(line) < longest else NotCovered(f"a text of over {MOST_TEXT} bytes")
        except UnicodeDecodeError as wrong:
            yield Fault(f"not in UTF-8: {wrong.reason} at byte {wrong.start}")
        while in_lines and len(line) == longest and not line.endswith(b"\n"):
            line = stream.readline(longest)


class Checker:  # of records one by one, and of those of one instance against each other
    def __init__(self):
        self.open_arrays, self.places, self.best = lru_cache(16)(Arrays), set(), defaultdict(lambda: ([], []))

    def check(self, name, folder, text):
        """Return (family, accept, refuse or not covered, a message, the kinds of what was verified)."""
        family, done, left = "?", [], []
        try:
            if type(text) is not str:
                raise text
            record = read_json(text)
            family = one_of(record["family"], FAMILIES, "family")
            if record["format"] == "synth-instance/1":
                read_instance(text, folder)
            else:
                self.check_record(record, folder, done, left)
        except NotCovered as why:
            left.append(str(why))
        except Fault as fault:
            return family, "refuse", str(fault), []
        except Exception as wrong:  # what reading something else than the pages describe leads to
            return family, "refuse", f"not as the pages say: {wrong!r}", []
        message = "; ".join(left) or ", ".join(done) or "states neither value nor certificate"
        return family, "not covered" if left else "accept", message, done

    def check_record(self, record, folder, done, left):
        """Check one record; add what was verified, and what could not be, to two lists."""
        check_statement(record)
        file, prefix = None, ""
        if "record_path" in record:
            place, prefix = (folder, record["record_path"]), record["record_path"] + "/"
            plain = re.fullmatch(r"[^/]+(/[^/]+)*\.json", place[1]) and not {".", ".."} & set(place[1].split("/"))
            need(plain and place not in self.places, f"record_path: {short(place[1])} is none, or stands twice")
            self.places.add(place)
        if record["solution_file"] is not None:
            need(re.fullmatch(r"[^/\\]+", record["solution_file"]), "solution_file: is no plain file name")
            file = self.open_arrays(f"{folder}/{record['solution_file']}")
        instance = read_instance(find_instance(record, folder), folder)
        names = (instance.data["family"], instance.data["name"])
        need(names == (record["family"], record["instance"]), f"family, instance: the instance's file says {names}")
        value, bound, stated = record["objective"]["value"], record["bound"], record.get("certificate")
        solution = None if record["solution"] is None else Held(record["solution"], file, prefix)
        certificate = None if stated is None else Held(stated, file, prefix + "certificate/")
        if record["kind"] == "bound":
            need(stated in (None, {}), "certificate: in a record of kind bound it is the solution")
            solution, certificate = None, solution
        replayed = solution is not None and "algorithm" not in solution
        one_of(record["verified"]["facts"].get("replayed"), (None, replayed), "verified.facts.replayed")
        check_claims(record, value, bound, solution is not None, certificate is not None)
        name = next((certificate[key] for key in ("argument", "binding") if key in (certificate or {})), "intervals")
        parts = (("replay" if replayed else "count", solution), (f"certificate {name}", certificate))
        for kind, held in (part for part in parts if part[1] is not None):
            try:
                if held is solution:
                    found = instance.replay(solution)
                    need(value is not None and value == found, f"objective.value is {value}, the replay says {found}")
                else:
                    instance.certify(certificate, Fraction(bound))
                done.append(kind)
            except NotCovered as why:
                left.append(f"{kind}: {why}")
        values, bounds = self.best[record["family"], record["instance_sha256"]]
        values += [value] if "replay" in done else []
        bounds += [bound] if certificate is not None else []
        crossed = values and bounds and exceeds(max(bounds), min(values))
        need(not crossed, "a bound of one record exceeds the value of another")


def in_view(text):
    """Return the text in one line of at most 2,000 characters; what no terminal shows, or obeys, is escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:2000])


def main(arguments):
    """Check what the arguments name; print a line a record and a summary; return the exit code."""
    checker, counts, kinds = Checker(), Counter(), Counter()
    for name, folder, text in records_of([argument for argument in arguments if argument != "--faults"]):
        family, verdict, message, done = checker.check(name, folder, text)
        counts[family, verdict] += 1
        kinds.update((family, what) for what in done)
        if "--faults" not in arguments or verdict != "accept":
            print(in_view(f"{verdict:11} {name}: {message}"), flush=True)
    for family in sorted({family for family, _ in counts}):
        numbers = [counts[family, verdict] for verdict in VERDICTS]
        print(f"{family:8} {sum(numbers):5} records: " + ", ".join(f"{n} {what}" for n, what in zip(numbers, VERDICTS)))
        print("         verified:", ", ".join(f"{n} × {what}" for (x, what), n in sorted(kinds.items()) if x == family))
    return int(any(verdict == "refuse" for _, verdict in counts))


if __name__ == "__main__":
    gc.disable()  # nothing here is cyclic, and looking for cycles among a million rows takes most of the time
    sys.exit(main(sys.argv[1:]))
