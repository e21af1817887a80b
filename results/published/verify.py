#!/usr/bin/env python3
"""A second checker: replay published schedules and verify published lower bounds, trusting nothing of ours.

    python3 verify.py PATH…          records (.json), collections (records.jsonl), instances or folders of them
    python3 verify.py --faults PATH… prints only what is refused or not covered, and the summary

This file was written from the pages in models/formats alone, by somebody who has not read the toolkit's own checks.
It uses Python's standard library and nothing else. All arithmetic is exact: whole numbers, and fractions of them.
Every record is accepted, refused (with the first fault found) or not covered (with the reason); the exit code is 1
if a record is refused, else 0.

Order of this file: 1 numbers and files · 2 arrays · 3 records · 4 graphs · 5 xtree · 6 fabric: machine, replay,
certificates · 7 harvest · 8 mlfm · 9 optree · 10 bine · 11 the command.
"""

import ast
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
from collections import Counter, defaultdict, deque
from fractions import Fraction
from itertools import accumulate, combinations, islice, pairwise, product
from lzma import LZMAError
from operator import le

MOST_TRANSFERS = 2**20  # larger solutions are not covered
MOST_CELLS = 40_000_000  # larger tables of possession are not covered
INFINITE = float("inf")  # only ever compared with, never calculated with


class Fault(Exception):
    """What a record states is false, or is not stated as the pages demand."""


class NotCovered(Exception):
    """This checker does not do that."""


# ------------------------------------------------------------------------------------------------------------------
# 1  Numbers and files
# ------------------------------------------------------------------------------------------------------------------


def need(condition, message):
    """Raise a fault unless the condition holds."""
    if not condition:
        raise Fault(message)


def whole(value, least, most, name):
    """Return a whole number in a range (truth values are no numbers)."""
    need(type(value) is int and least <= value <= most, f"{name}: {short(value)} is no whole number in {least}..{most}")
    return value


def number(value, name):
    """Return a finite number as a JSON file holds it: int or float."""
    finite = (type(value) is int and abs(value) < 10**300) or (type(value) is float and math.isfinite(value))
    need(finite, f"{name}: {short(value)} is no finite number")
    return value


def above_zero(value, name):
    """Return a finite number greater than 0."""
    need(number(value, name) > 0, f"{name}: {value} must be above 0")
    return value


def short(value):
    """Return a value as a short text for a message."""
    if type(value) is int and value.bit_length() > 200:
        return "a whole number of more than 200 bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def decimal(value):
    """Return the shortest decimal that reads back as this number, as an exact fraction."""
    return Fraction(repr(value)) if type(value) is float else Fraction(value)


def ceiling(over, under):
    """Return over / under rounded up, for whole numbers."""
    return -(-over // under)


def rounded_up(exact):
    """Return the least double that is not below an exact number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, INFINITE)


def read_json(text, name):
    """Read JSON without doubled keys and without NaN or infinite numbers."""

    def once(pairs):
        keys = [key for key, _ in pairs]
        need(len(set(keys)) == len(keys), f"{name}: a key stands twice in an object")
        return dict(pairs)

    def finite(digits):
        value = float(digits)
        need(math.isfinite(value), f"{name}: {digits[:40]} is not finite")
        return value

    def refuse(constant):
        raise Fault(f"{name}: {constant} is no number")

    try:
        return json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=refuse)
    except (ValueError, RecursionError) as wrong:
        raise Fault(f"{name}: not readable as JSON ({wrong})") from None


# ------------------------------------------------------------------------------------------------------------------
# 2  Arrays, in JSON or in numpy's .npz files
# ------------------------------------------------------------------------------------------------------------------

TYPES = {
    "|u1": "B",
    "|i1": "b",
    "|b1": "B",
    "<u2": "H",
    "<i2": "h",
    "<u4": "I",
    "<i4": "i",
    "<u8": "Q",
    "<i8": "q",
    "<f8": "d",
}


class Array:
    """A rectangular array: its shape, and its numbers row after row."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), values


def array_of_lists(value, name):
    """Return the array that nested lists of numbers state."""
    shape = [len(value)]
    while value and type(value[0]) is list:
        length = len(value[0])
        need(all(type(row) is list and len(row) == length for row in value), f"{name}: rows of unlike lengths")
        shape.append(length)
        value = [entry for row in value for entry in row]
    return Array(shape, value)


class Arrays:
    """The arrays of one .npz file, each read when it is asked for."""

    def __init__(self, path):
        _stem, digits, suffix = (os.path.basename(path).rsplit(".", 2) + ["", ""])[:3]
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        need(suffix == "npz" and digits == found, f"{os.path.basename(path)}: its hash is {found}")
        try:
            self.zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError) as wrong:
            raise Fault(f"{os.path.basename(path)}: {wrong}") from None
        names = self.zip.namelist()
        need(len(set(names)) == len(names), f"{os.path.basename(path)}: a member stands twice")
        self.names = {name[:-4] for name in names if name.endswith(".npy")}

    def read(self, name):
        """Return one array."""
        try:
            data = self.zip.read(name + ".npy")
        except (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, ValueError, NotImplementedError) as wrong:
            raise Fault(f"array {name}: {wrong}") from None
        need(data[:6] == b"\x93NUMPY" and data[6:7] in (b"\x01", b"\x02"), f"array {name}: not in numpy's format")
        width = 2 if data[6] == 1 else 4
        start = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
        try:
            header = ast.literal_eval(data[8 + width : start].decode("latin1").strip())
            kind, shape, fortran = header["descr"], header["shape"], header["fortran_order"]
        except (ValueError, SyntaxError, KeyError, TypeError):
            raise Fault(f"array {name}: its header is not readable") from None
        need(kind in TYPES and fortran is False, f"array {name}: type {kind} is none of {sorted(TYPES)}")
        values = array(TYPES[kind])
        need(len(data) - start == math.prod(shape) * values.itemsize, f"array {name}: its size and shape differ")
        values.frombytes(data[start:])
        if sys.byteorder == "big":
            values.byteswap()
        return Array(shape, values.tolist())


class Held:
    """A solution or a certificate: its plain values, and its arrays wherever they are stored."""

    def __init__(self, plain, arrays=None, prefix=""):
        need(type(plain) is dict, "a solution or certificate is an object")
        self.plain, self.arrays, self.prefix = plain, arrays, prefix
        self.stored = set()
        if arrays:
            here = (name[len(prefix) :] for name in arrays.names if name.startswith(prefix))
            self.stored = {name for name in here if "/" not in name}

    def __contains__(self, key):
        return self.plain.get(key) is not None or key in self.stored

    def get(self, key, default=None):
        """Return a plain value."""
        value = self.plain.get(key)
        return default if value is None else value

    def text(self, key):
        """Return a text."""
        value = self.plain.get(key)
        need(type(value) is str, f"{key}: {short(value)} is no text")
        return value

    def whole(self, key, least, most, default=None):
        """Return a whole number in a range."""
        return whole(self.get(key, default), least, most, key)

    def flag(self, key):
        """Return a truth value (0 and 1 are allowed, nothing means false)."""
        value = self.get(key, False)
        need(type(value) in (bool, int) and value in (0, 1), f"{key}: {short(value)} is no truth value")
        return bool(value)

    def array(self, key, least, most, shape=None, default=None):
        """Return the numbers, row after row, of an array of whole numbers; None in a shape stands for any length."""
        found = self.shaped(key, default)
        if found is default and not isinstance(found, Array):
            return default
        values = found.values
        need(
            all(type(value) is int for value in values) if key in self.plain else True,
            f"{key}: holds what is no whole number",
        )
        if key in self.stored:
            need(not values or type(values[0]) is int, f"{key}: holds doubles, not whole numbers")
        need(not values or (least <= min(values) and max(values) <= most), f"{key}: a number is not in {least}..{most}")
        shape = (None,) if shape is None else shape
        fits = len(shape) == len(found.shape) and all(a in (None, b) for a, b in zip(shape, found.shape))
        fits = fits or (not values and found.shape[0] == 0 and shape[0] in (None, 0))
        need(fits, f"{key}: its shape is {found.shape}, not {shape}")
        return values

    def shaped(self, key, default=None):
        """Return an array as it is stored."""
        if self.plain.get(key) is not None:
            need(key not in self.stored, f"{key}: stands in the record and in its arrays' file")
            value = self.plain[key]
            need(type(value) is list, f"{key}: {short(value)} is no array")
            return array_of_lists(value, key)
        if key in self.stored:
            return self.arrays.read(self.prefix + key)
        need(default is not None, f"{key}: is missing")
        return default


# ------------------------------------------------------------------------------------------------------------------
# 3  Records
# ------------------------------------------------------------------------------------------------------------------

OBJECTIVES = {
    "xtree": ("timesteps", "timesteps"),
    "mlfm": ("phases", "phases"),
    "optree": ("steps", "steps"),
    "bine": ("bytes on global links", "bytes"),
    "harvest": ("completion time", "s"),
    "fabric": ("completion time", "s"),
}
TERMINATIONS = [
    "finished",
    "optimal",
    "infeasible",
    "time_limit",
    "size_limit",
    "unsupported",
    "error",
    "out_of_memory",
    "killed",
]
TEXT, MAYBE_TEXT, OBJECT, MAYBE_OBJECT, MAYBE_NUMBER = (
    (str,),
    (str, type(None)),
    (dict,),
    (dict, type(None)),
    (int, float, type(None)),
)
KEYS = {
    "format": TEXT, "family": TEXT, "instance": TEXT, "instance_file": MAYBE_TEXT, "instance_sha256": TEXT,
    "method": TEXT,
    "kind": TEXT, "solver": MAYBE_TEXT, "options": OBJECT, "termination": TEXT, "objective": OBJECT,
    "bound": MAYBE_NUMBER, "verified": OBJECT, "seconds": OBJECT, "solution": MAYBE_OBJECT, "solution_file": MAYBE_TEXT,
    "message": MAYBE_TEXT,
}  # fmt: skip
MAY_BE = {
    "instance_text": MAYBE_TEXT, "solver_version": MAYBE_TEXT, "bound_proof": MAYBE_TEXT, "bound_grade": MAYBE_TEXT,
    "progress": (list, type(None)), "certificate": MAYBE_OBJECT, "stopped_by": MAYBE_TEXT, "submitted": MAYBE_OBJECT,
}  # fmt: skip


def check_keys(record):
    """Check that a record has its keys, each of its type, and that what they say fits together."""
    for key, types in KEYS.items():
        need(key in record, f"{key}: is missing")
        need(type(record[key]) in types, f"{key}: {short(record[key])} has the wrong type")
    for key, types in MAY_BE.items():
        need(key not in record or type(record[key]) in types, f"{key}: {short(record.get(key))} has the wrong type")
    need(record["format"] == "synth-record/1", f"format: {short(record['format'])} is not synth-record/1")
    need(record["family"] in OBJECTIVES, f"family: {short(record['family'])} is unknown")
    need(record["kind"] in ("program", "reference", "bound", "submitted"), f"kind: {short(record['kind'])} is unknown")
    handed_in = {record["kind"] == "submitted", record["method"] == "submitted", record.get("submitted") is not None}
    need(len(handed_in) == 1, "kind, method, submitted: a record is handed in, or it is not")
    for key in ("by", "file", "file_sha256") if True in handed_in else ():
        need(type(record["submitted"].get(key)) is str, f"submitted.{key}: a text")
    need(record["termination"] in TERMINATIONS, f"termination: {short(record['termination'])} is unknown")
    need(
        (record["solver"] is None) == (record.get("solver_version") is None),
        "solver and solver_version: both or neither",
    )
    objective = record["objective"]
    stated = (objective.get("name"), objective.get("unit"))
    need(
        stated == OBJECTIVES[record["family"]] and objective.get("sense") == "minimise",
        f"objective: {short(objective)}",
    )
    need("value" in objective, "objective.value: is missing")
    for name, value in (("objective.value", objective["value"]), ("bound", record["bound"])):
        need(value is None or number(value, name) is value, name)
    verified = record["verified"]
    need(type(verified.get("ok")) is bool and type(verified.get("facts")) is dict, "verified: ok and facts")
    faults = verified.get("faults")
    need(type(faults) is list and all(type(fault) is str for fault in faults), "verified.faults: a list of texts")
    need(verified["ok"] and not faults, f"verified: the run itself found {short(faults)}")
    need(record.get("stopped_by") in (None, "clock"), "stopped_by: clock or null")
    for key in ("build", "solve", "check"):
        need(number(record["seconds"].get(key), f"seconds.{key}") >= 0, f"seconds.{key}: below 0")
    options = record["options"]
    need(
        options.get("time_limit_s") is None or above_zero(options["time_limit_s"], "options.time_limit_s"),
        "options.time_limit_s",
    )
    need(number(options.get("relative_gap", 1e-4), "options.relative_gap") >= 0, "options.relative_gap: below 0")
    whole(options.get("threads", 1), 1, 10**100, "options.threads")
    whole(options.get("seed", 0), 0, 10**100, "options.seed")
    need(type(options.get("method", {})) is dict, "options.method: an object")
    check_progress(record)


def check_progress(record):
    """Check that times never fall, values never rise, bounds never fall, and that the last row is the record's."""
    last_time, last_value, last_bound = 0, None, None
    for row in record.get("progress") or []:
        need(type(row) is list and len(row) == 3, f"progress: {short(row)} is no row of three")
        time, value, bound = (entry if entry is None else number(entry, "progress") for entry in row)
        need(time is not None and time >= last_time, "progress: times fall")
        need(last_value is None or (value is not None and value <= last_value), "progress: values rise")
        need(last_bound is None or (bound is not None and bound >= last_bound), "progress: bounds fall")
        last_time, last_value, last_bound = time, value, bound
    if record.get("progress"):
        for name, last, stated in (
            ("value", last_value, record["objective"]["value"]),
            ("bound", last_bound, record["bound"]),
        ):
            same = last == stated or (
                None not in (last, stated) and abs(last - stated) <= 1e-9 * max(abs(last), abs(stated))
            )
            need(same, f"progress: its last {name} {last} is not the record's {stated}")


def exceeds(bound, value):
    """Return whether a lower bound is above a value by more than rounding."""
    bound, value = Fraction(bound), Fraction(value)
    return bound - value > Fraction(1e-6) * max(abs(value), abs(bound) / 1000)


def check_claims(record, certificate):
    """Check grade, termination and gap of a record whose value and certificate hold."""
    value, bound, held = (
        record["objective"]["value"],
        record["bound"],
        record["kind"] != "bound" and record["solution"] is not None,
    )
    need(record["kind"] != "bound" or value is None, "objective.value: a record of kind bound states no value")
    need(value is None or held, "objective.value: stated without a solution")
    need(bound is not None or certificate is None, "certificate: there is no bound that it proves")
    grade, infeasible = None, record["termination"] == "infeasible"
    need(bound is not None or infeasible or record.get("bound_proof") is None, "bound_proof: there is no bound")
    if bound is not None:
        grade = "certified" if certificate is not None else "solver" if record["solver"] else None
        need(record["kind"] != "bound" or certificate is not None, "a bound of kind bound without a certificate")
    need(record.get("bound_grade", grade) == grade, f"bound_grade: is {record.get('bound_grade')}, should be {grade}")
    if bound is not None and value is not None:
        need(not exceeds(bound, value), f"bound {bound} exceeds the replayed value {value}")
    termination = record["termination"]
    if termination == "optimal":
        need(value is not None and bound is not None, "optimal without value and bound")
        allowed = record["options"].get("relative_gap", 1e-4)
        equal = value == bound or math.nextafter(value, bound) == bound
        gap = 0 if equal else abs(Fraction(value) - Fraction(bound)) / abs(Fraction(value)) if value else INFINITE
        need(gap <= Fraction(allowed) + Fraction(1e-9), f"optimal, but the gap is {float(gap):.3g}")
    elif termination == "infeasible":
        need(not held and (record["kind"] != "bound" or bound is None), "infeasible with a solution or a bound")
        need(record["message"] or record.get("bound_proof"), "infeasible: neither message nor bound_proof says by what")
    elif termination == "finished":
        need(held or bound is not None, "finished without a solution or a bound")
    elif termination in ("unsupported", "killed", "out_of_memory"):
        need(record["solution"] is None and bound is None, f"{termination} with a solution or a bound")


def find_instance(record, folder):
    """Return the text of a record's instance: from the record itself, or from a file below a folder above it."""
    text = record.get("instance_text")
    if text is not None:
        need(
            hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == record["instance_sha256"],
            "instance_text: its hash differs",
        )
        return text
    file = record["instance_file"]
    need(file is not None, "instance_file: null, and no instance_text")
    for above in folders_above(folder):
        path = os.path.join(above, file)
        if os.path.isfile(path):
            with open(path, "rb") as content:
                data = content.read()
            if hashlib.sha256(data).hexdigest() == record["instance_sha256"]:
                return data.decode("utf-8-sig")
    raise Fault(f"instance_file: no {short(file)} with that hash")


def folders_above(folder):
    """Yield a folder and those above it, then those above this file: one of them is the repository's root."""
    for start in (os.path.abspath(folder), os.path.dirname(os.path.abspath(__file__))):
        before = None
        while start != before:
            yield start
            start, before = os.path.dirname(start), start


INSTANCES = {}


def read_instance(text, folder):
    """Return the instance that a text states; the same text is read once."""
    if text not in INSTANCES:
        data = read_json(text.removeprefix("\ufeff"), "instance")
        need(
            type(data) is dict and data.get("format") == "synth-instance/1", "instance: format is not synth-instance/1"
        )
        need(data.get("family") in FAMILIES, f"instance: family {short(data.get('family'))} is unknown")
        name = data.get("name")
        need(
            type(name) is str and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name),
            f"instance: name {short(name)}",
        )
        try:
            INSTANCES[text] = FAMILIES[data["family"]](data, folder)
        except (KeyError, TypeError, IndexError, AttributeError) as wrong:
            raise Fault(f"instance: not as the pages say ({wrong!r})") from None
    return INSTANCES[text]


def check_record(record, folder, open_arrays):
    """Check one record. Return (what was done, value, bound): facts for the summary and for comparing records."""
    need(type(record) is dict, "a record is an object")
    check_keys(record)
    instance = read_instance(find_instance(record, folder), folder)
    need(instance.data["family"] == record["family"], "family: is not the instance's")
    need(instance.data["name"] == record["instance"], "instance: is not the name in the instance's file")
    arrays, prefix = None, record["record_path"] + "/" if "record_path" in record else ""
    if record["solution_file"] is not None:
        need(re.fullmatch(r"[^/\\]+", record["solution_file"]), "solution_file: is no plain file name")
        arrays = open_arrays(os.path.join(folder, record["solution_file"]))
    solution = certificate = None
    if record["kind"] == "bound":
        need(not record.get("certificate"), "certificate: in a record of kind bound it is the solution")
        certificate = None if record["solution"] is None else Held(record["solution"], arrays, prefix)
    else:
        solution = None if record["solution"] is None else Held(record["solution"], arrays, prefix)
        stated = record.get("certificate")
        certificate = None if stated is None else Held(stated, arrays, prefix + "certificate/")
    done, left = [], []
    value = record["objective"]["value"]
    if solution is not None:
        try:
            found = instance.replay(solution)
            need(value is not None and value == found, f"objective.value is {value}, the replay says {found}")
            done.append("replay")
        except NotCovered as why:
            left.append(f"replay: {why}")
    stated = record["verified"]["facts"].get("replayed")
    counted = solution is not None and "algorithm" in solution
    need(stated in (None, solution is not None and not counted), f"verified.facts.replayed: is {stated}")
    bound = record["bound"]
    need(certificate is None or bound is not None, "certificate: there is no bound that it proves")
    if certificate is not None:
        kind = certificate.get("argument", certificate.get("binding", "intervals"))
        try:
            instance.certify(certificate, Fraction(bound))
            done.append(f"certificate {kind}")
        except NotCovered as why:
            left.append(f"certificate {kind}: {why}")
    check_claims(record, certificate)
    return done, left, value, bound if certificate is not None else None


# ------------------------------------------------------------------------------------------------------------------
# 4  Graphs
# ------------------------------------------------------------------------------------------------------------------


def grid_links(sides, wrapped):
    """Return the links (tail, head) of a grid in their order: axis by axis, node by node, there and back."""
    links, nodes, stride = [], math.prod(sides), math.prod(sides)
    for side in sides:
        stride //= side
        for node in range(nodes):
            place = node // stride % side
            if place + 1 < side:
                links += [(node, node + stride), (node + stride, node)]
            elif wrapped and side > 2:
                first = node - place * stride
                links += [(node, first), (first, node)]
    return links


def simple_network(network):
    """Return (nodes, links) of the kinds of networks that xtree and fabric share, or nothing."""
    kind = network["kind"]
    size = lambda key, default=None: whole(network.get(key, default), 1, 10**6, f"network.{key}")  # noqa: E731
    if kind == "line":
        return size("nodes"), grid_links((size("nodes"),), False)
    if kind == "ring":
        nodes = size("nodes")
        if network.get("bidirectional", True):
            return nodes, grid_links((nodes,), True)
        return nodes, [(v, (v + 1) % nodes) for v in range(nodes)]
    if kind in ("mesh", "torus", "equimesh"):
        sides = [size("rows"), size("cols")] + ([size("layers")] if network.get("layers") is not None else [])
        links = grid_links(sides, kind == "torus")
        return math.prod(sides), links + (
            equimesh_rings(sides, network.get("rings") or {}) if kind == "equimesh" else []
        )
    if kind == "hypercube":
        dimension = whole(network["dimension"], 1, 20, "network.dimension")
        return 2**dimension, grid_links((2,) * dimension, False)
    if kind == "kautz":
        nodes, degree = size("nodes"), size("degree")
        links = ((u, -(degree * u + j) % nodes) for u in range(nodes) for j in range(1, degree + 1))
        return nodes, [(u, v) for u, v in links if u != v]
    if kind == "full":
        nodes = size("nodes")
        return nodes, [link for u in range(nodes) for v in range(u + 1, nodes) for link in ((u, v), (v, u))]
    return None


def equimesh_rings(sides, rings):
    """Return the links of the four rings along the edges of an EquiMesh."""
    rows, cols = sides
    edges = {
        "top": list(range(cols)),
        "bottom": [(rows - 1) * cols + c for c in range(cols)],
        "left": [r * cols for r in range(rows)],
        "right": [r * cols + cols - 1 for r in range(rows)],
    }
    links = []
    for edge, nodes in edges.items():
        order = rings.get(edge, "even_up")
        need(order in ("even_up", "odd_up"), f"network.rings.{edge}: {short(order)}")
        up = 0 if order == "even_up" else 1
        ring = nodes[up::2] + nodes[1 - up :: 2][::-1]
        links += list(zip(ring, ring[1:] + ring[:1]))
    return links


def hops_from(start, nodes, out):
    """Return the number of links of a shortest path from a node to every node; out[v] are the heads of v's links."""
    hops, front, distance = [None] * nodes, [start], 0
    hops[start] = 0
    while front:
        distance, after = distance + 1, []
        for u in front:
            for v in out[u]:
                if hops[v] is None:
                    hops[v] = distance
                    after.append(v)
        front = after
    return hops


def cheapest(starts, out, costs, passes=None):
    """Return a dict node → least cost of a path from any start (a dict node → cost so far); absent: not reachable.

    ``out[v]`` are (link, head) of the links out of v, ``costs`` one number a link. With ``passes`` only nodes for which
    it is true are inner nodes of a path (a start may be left in any case).
    """
    best, queue = dict(starts), []

    def leave(u, cost):
        for link, v in out[u]:
            there = cost + costs[link]
            if v not in best or there < best[v]:
                best[v] = there
                heapq.heappush(queue, (there, v))

    for node, cost in starts.items():
        leave(node, cost)
    while queue:
        cost, u = heapq.heappop(queue)
        if cost == best[u] and (passes is None or passes[u]):
            leave(u, cost)
    return best


def check_permutation(row, nodes, name):
    """Check that a row is a permutation of 0..nodes - 1."""
    need(len(row) == nodes and sorted(row) == list(range(nodes)), f"{name}: is no permutation of the nodes")


def rows_of(values, width):
    """Return the rows of an array that is stored row after row."""
    return [values[at : at + width] for at in range(0, len(values), width)] if width else []


def commuting_group(generators, nodes, orders=None):
    """Check that permutations commute."""
    for a in generators:
        for b in generators:
            need(all(a[b[v]] == b[a[v]] for v in range(nodes)), "generators: do not commute")


def moved_links(links, permutation, numbers, like):
    """Return a dict link → the link that a permutation of the nodes carries it to: of parallel links of one kind the
    i-th goes to the i-th. ``links[e]`` is (tail, head, …), ``like(e)`` what has to stay the same."""
    places = defaultdict(list)
    for e in sorted(numbers):
        places[links[e][0], links[e][1], like(e)].append(e)
    moved = {}
    for (tail, head, kind), group in places.items():
        there = places.get((permutation[tail], permutation[head], kind), ())
        need(len(there) == len(group), "generators: a link is not carried to a link of its kind")
        moved.update(zip(group, there))
    return moved


class Groups:
    """Union-find over whole numbers."""

    def __init__(self, size):
        self.above = list(range(size))

    def find(self, x):
        """Return the group's first member."""
        while self.above[x] != x:
            self.above[x] = self.above[self.above[x]]
            x = self.above[x]
        return x

    def join(self, x, y):
        """Make two groups one; return whether they were two."""
        x, y = self.find(x), self.find(y)
        self.above[max(x, y)] = min(x, y)
        return x != y


# ------------------------------------------------------------------------------------------------------------------
# 5  xtree: timesteps of a collective on a network of equal links
# ------------------------------------------------------------------------------------------------------------------


class Xtree:
    """An xtree instance. Chunk k belongs to node k // chunks; links are (tail, head, bandwidth, latency)."""

    def __init__(self, data, folder):
        self.data, network = data, data["network"]
        self.collective = data.get("collective", "allgather")
        need(self.collective in ("allgather", "reduce_scatter", "allreduce"), f"collective: {short(self.collective)}")
        self.chunks = whole(data["chunks"], 1, 2**31, "chunks")
        bandwidth, latency = network.get("bandwidth", 128e9), network.get("latency", 20e-9)
        simple = simple_network(network)
        if simple:
            self.nodes, ends = simple
            self.links = [(u, v, bandwidth, latency) for u, v in ends]
        else:
            need(network["kind"] == "links", f"network.kind: {short(network['kind'])}")
            self.nodes = whole(network["nodes"], 1, 10**6, "network.nodes")
            self.links = [
                (whole(link["src"], 0, self.nodes - 1, "src"), whole(link["dst"], 0, self.nodes - 1, "dst"),
                 link.get("bandwidth", bandwidth), link.get("latency", latency))
                for link in network["links"]
            ]  # fmt: skip
        self.out = [[] for _ in range(self.nodes)]
        for u, v, *_ in self.links:
            need(u != v, "network: a link from a node to itself")
            self.out[u].append(v)
        self.into = [[] for _ in range(self.nodes)]
        for u, v, *_ in self.links:
            self.into[v].append(u)
        for heads in (self.out, self.into):
            need(None not in hops_from(0, self.nodes, heads), "network: is not strongly connected")

    def replay(self, held):
        """Return the greatest timestep of a schedule that does what is asked."""
        steps = held.array("step", 1, 2**62)
        size = (len(steps),)
        links = held.array("link", 0, len(self.links) - 1, size)
        quotient = "generators" in held
        chunks = held.array("chunk", 0, (1 if quotient else self.nodes) * self.chunks - 1, size)
        adds = held.array("adds", 0, 1, size, default=())
        need(self.collective != "allgather" or not any(adds), "adds: nothing is added in an allgather")
        owners = [0] if quotient else range(self.nodes)
        cells = len(owners) * self.chunks * self.nodes
        if len(steps) > MOST_TRANSFERS or cells > MOST_CELLS:
            raise NotCovered(f"{len(steps)} transfers, {cells} places")
        if quotient:
            self.check_quotient(held, steps, links)
        else:
            used = [step * len(self.links) + link for step, link in zip(steps, links)]
            need(len(set(used)) == len(used), "two transfers use one link in one timestep")
        if self.collective == "allgather":
            self.replay_copies(steps, links, chunks, owners)
        else:
            self.replay_sums(steps, links, chunks, adds or [0] * len(steps), owners)
        return max(steps, default=0)

    def replay_copies(self, steps, links, chunks, owners):
        """Check an allgather. The least step at which a chunk comes to a node is what counts: by induction over steps,
        it is there if every transfer's chunk came to its tail in an earlier step."""
        nodes = self.nodes
        here = [INFINITE] * (len(owners) * self.chunks * nodes)
        for owner in owners:
            for chunk in range(owner * self.chunks, (owner + 1) * self.chunks):
                here[chunk * nodes + owner] = 0
        heads = [v for _, v, *_ in self.links]
        for step, link, chunk in zip(steps, links, chunks):
            place = chunk * nodes + heads[link]
            if step < here[place]:
                here[place] = step
        for step, link, chunk in zip(steps, links, chunks):
            if here[chunk * nodes + self.links[link][0]] >= step:
                raise Fault(f"step {step}: link {link} sends chunk {chunk}, which is not at its tail")
        need(INFINITE not in here, "some node misses a chunk at the end")

    def replay_sums(self, steps, links, chunks, adds, owners):
        """Check a reduction: sets of contributions are bits of whole numbers."""
        everybody = (1 << self.nodes) - 1
        sets = [1 << v for _ in owners for _ in range(self.chunks) for v in range(self.nodes)]
        order = sorted(range(len(steps)), key=lambda i: (steps[i], adds[i]))
        at = 0
        while at < len(order):
            step, now = steps[order[at]], []
            while at < len(order) and steps[order[at]] == step:
                i = order[at]
                tail, head, *_ = self.links[links[i]]
                now.append((sets[chunks[i] * self.nodes + tail], chunks[i] * self.nodes + head, adds[i]))
                at += 1
            for carried, place, add in now:
                if not add:
                    need(carried == everybody, f"step {step}: a sum that is not complete is copied")
                    sets[place] = everybody
                else:
                    need(not carried & sets[place], f"step {step}: a contribution is added twice")
                    sets[place] |= carried
        for owner in owners:
            for chunk in range(owner * self.chunks, (owner + 1) * self.chunks):
                ends = range(self.nodes) if self.collective == "allreduce" else (owner,)
                need(
                    all(sets[chunk * self.nodes + v] == everybody for v in ends),
                    f"the sum of chunk {chunk} is not complete",
                )

    def check_quotient(self, held, steps, links):
        """Check that symmetries make a schedule of everybody's chunks from that of node 0's.

        Commuting permutations that carry node 0 everywhere form a group with exactly one element for each node. The
        whole schedule uses a link twice in a step exactly if two of the part's transfers use links of one orbit."""
        need(self.collective != "allreduce", "generators: not in an allreduce")
        generators = rows_of(held.array("generators", 0, self.nodes - 1, (None, self.nodes)), self.nodes)
        for row in generators:
            check_permutation(row, self.nodes, "generators")
        commuting_group(generators, self.nodes)
        reached = hops_from(0, self.nodes, list(zip(*generators)) or [()] * self.nodes)
        need(None not in reached, "generators: do not carry node 0 to every node")
        moving = held.array("within", 0, len(self.links) - 1, default=range(len(self.links)))
        need(len(set(moving)) == len(moving) and set(links) <= set(moving), "within: holds every used link, none twice")
        orbits = Groups(len(self.links))
        for row in generators:
            for link, image in moved_links(self.links, row, moving, lambda e: self.links[e][2:]).items():
                orbits.join(link, image)
        used = [(step, orbits.find(link)) for step, link in zip(steps, links)]
        need(len(set(used)) == len(used), "two transfers of one timestep use links of one orbit")

    def certify(self, held, bound):
        """Check that a certificate proves a number of timesteps that is at least the bound."""
        binding = held.text("binding")
        prove = {
            "cut": self.cut,
            "late arrivals": self.late,
            "diameter": self.diameter,
            "volume": self.volume,
            "relaxation": self.relaxation,
        }
        need(binding in prove, f"binding: {short(binding)} is unknown")
        proven = prove[binding](held)
        need(bound <= proven, f"{binding}: proves {proven} timesteps, not {float(bound)}")

    def cut(self, held):
        """What crosses a set of nodes."""
        inside = set(held.array("inside", 0, self.nodes - 1))
        need(0 < len(inside) < self.nodes, "inside: all nodes or none")
        enters = sum(u not in inside and v in inside for u, v, *_ in self.links)
        leaves = sum(u in inside and v not in inside for u, v, *_ in self.links)
        if self.collective == "allreduce":
            return ceiling(self.nodes * self.chunks, min(enters, leaves))
        outside = self.chunks * (self.nodes - len(inside))
        return ceiling(outside, enters if self.collective == "allgather" else leaves)

    def late(self, held):
        """What comes to (or leaves) a node from far away, and when its first chunk can be there."""
        node, hops, side = held.whole("node", 0, self.nodes - 1), held.whole("hops", 1, 2**31), held.get("side")
        allowed = {"allgather": ("in",), "reduce_scatter": ("out",), "allreduce": ("in", "out")}[self.collective]
        need(side in allowed, f"side: {short(side)} is none of {allowed}")
        distances = hops_from(node, self.nodes, self.into if side == "in" else self.out)
        far = sum(distance >= hops for distance in distances)
        degree = len((self.into if side == "in" else self.out)[node])
        chunks = (self.nodes * bool(far) if self.collective == "allreduce" else far) * self.chunks
        return hops - 1 + ceiling(chunks, degree) if chunks else 0

    def diameter(self, held):
        """The distance of two nodes."""
        u, v = held.array("pair", 0, self.nodes - 1, (2,))
        return hops_from(u, self.nodes, self.out)[v]

    def volume(self, held):
        """All that has to cross links, over all links."""
        return ceiling(
            (2 if self.collective == "allreduce" else 1) * (self.nodes - 1) * self.nodes * self.chunks, len(self.links)
        )

    def relaxation(self, held):
        """Multipliers with which the linear program of all schedules in ``horizon`` steps contradicts itself."""
        need(self.collective != "allreduce", "relaxation: not of an allreduce")
        turned = self.collective == "reduce_scatter"
        parallel = Counter((v, u) if turned else (u, v) for u, v, *_ in self.links)
        arcs, nodes, out = sorted(parallel), range(self.nodes), self.into if turned else self.out
        T = held.whole("horizon", 1, 2**20)
        capacity = held.array("capacity", 0, 2**40, (len(arcs), T))
        conservation = held.array("conservation", -(2**40), 2**40, (self.nodes, self.nodes, T))
        causality = held.array("causality", 0, 2**40, (self.nodes, len(arcs), T))
        row = lambda values, i: values[i * T : i * T + T]  # noqa: E731
        right = sum(sum(row(capacity, a)) * parallel[arc] for a, arc in enumerate(arcs))
        least = 0
        for root in nodes:
            hops = hops_from(root, self.nodes, out)
            q = [[0] * T if v == root else row(conservation, root * self.nodes + v) for v in nodes]
            leaving = [[0] * T for _ in nodes]  # Σ of p over the arcs out of a node
            right += sum(row[T - 1] for row in q)
            for a, (u, v) in enumerate(arcs):
                p = [0] * T if u == root else row(causality, root * len(arcs) + a)
                leaving[u] = [x + y for x, y in zip(leaving[u], p)]
                if v != root:
                    for t in range(hops[u], T):  # timestep t + 1 > hops
                        least += min(0, self.chunks * capacity[a * T + t] + q[v][t] + p[t])
            for v in nodes:
                if v != root:
                    for t in range(max(hops[v], 1), T):  # timestep t, in place t - 1
                        least += min(0, q[v][t] - q[v][t - 1] - leaving[v][t])
        need(least > right, f"relaxation: {least} is not above {right}, so nothing is proven")
        return T + 1


# ------------------------------------------------------------------------------------------------------------------
# 6  fabric: seconds of a collective on any machine
# ------------------------------------------------------------------------------------------------------------------


class Link:
    """A link: its ends, bandwidth (bytes/s) and latency (s) as exact fractions, and its group (or None)."""

    def __init__(self, tail, head, bandwidth, latency, group=None):
        self.tail, self.head, self.group = tail, head, group
        self.written = above_zero(bandwidth, "bandwidth")
        self.bandwidth, self.latency = decimal(bandwidth), decimal(number(latency, "latency"))
        need(self.latency >= 0, f"latency: {latency} must not be below 0")


def machine_file(name, folder):
    """Return the machine that a data file describes; with ``like`` all else is another file's."""
    need(type(name) is str and re.fullmatch(r"[A-Za-z0-9._-]+", name), f"network.name: {short(name)}")
    places = (
        os.path.join(above, "models/synth_models/fabric/machines", name + ".json") for above in folders_above(folder)
    )
    path = next(filter(os.path.isfile, places), None)
    need(path is not None, f"network.name: no machine file {name}.json")
    with open(path, encoding="utf-8") as file:
        machine = read_json(file.read(), name)
    return {**machine_file(machine["like"], folder), **machine} if "like" in machine else machine


def built_machine(network, folder):
    """Return (node names, number of ranks, links, abilities by name) of a machine of one or more boxes."""
    file = machine_file(network["name"], folder)
    boxes = whole(network.get("boxes", 1), 1, file.get("most_boxes", 2**20), "network.boxes")
    several = boxes > 1
    ranks = network.get("gpus") or [file["gpus"]] * boxes
    need(len(ranks) == boxes and all(type(n) is int and 1 <= n <= file["gpus"] for n in ranks), "network.gpus")
    inner = file.get("switches", []) + (file.get("box_switches", []) if several else [])
    shared = file.get("shared_switches", []) if several else []
    uplinks = file.get("uplinks", []) if several else []
    own = file.get("links", []) + uplinks
    there = []  # of every box, the names that are there
    for count in ranks:
        names, frontier = {f"gpu{i}" for i in range(count)}, [f"gpu{i}" for i in range(count)]
        if count == file["gpus"]:
            names, frontier = names | set(inner), []
        while frontier:
            name = frontier.pop()
            for link in own:
                for a, b in ((link["src"], link["dst"]), (link["dst"], link["src"])):
                    if a == name and b in inner and b not in names:
                        names.add(b)
                        frontier.append(b)
        there.append(names)
    nodes = [(b, f"gpu{i}") for b in range(boxes) for i in range(ranks[b])]
    nodes += [(b, name) for b in range(boxes) for name in inner if name in there[b]]
    leaf = network.get("leaf")
    spines = []
    if leaf is None:
        nodes += [("", name) for name in shared]
        leaf_of = lambda b, name: ("", name)  # noqa: E731
    else:
        rails = network.get("rails", True)
        leaves = shared if rails else ["leaf"]
        groups = range(ceiling(boxes, whole(leaf, 1, 2**20, "network.leaf")))
        nodes += [("leaf", f"{name}.{g}") for g in groups for name in leaves]
        ports = [
            link for link in uplinks if link["dst"] in shared or (link.get("both", True) and link["src"] in shared)
        ]
        over = above_zero(network.get("oversubscription", 1), "network.oversubscription")
        count = network.get("spines") or max(1, round(boxes * len(ports) / over / 64))
        spines = [("spine", f"spine{i}") for i in range(count)]
        nodes += spines
        leaf_of = lambda b, name: ("leaf", f"{name if rails else 'leaf'}.{b // leaf}")  # noqa: E731
    at = {name: number for number, name in enumerate(nodes)}
    links = []

    def add(source, target, link, group=None):
        pair = (at[source], at[target])
        for tail, head in (pair, pair[::-1])[: 2 if link.get("both", True) else 1]:
            links.append(Link(tail, head, link["bandwidth"], link.get("latency", 0), group))

    for b in range(boxes):
        for link in own:
            ends = [leaf_of(b, name) if name in shared else (b, name) for name in (link["src"], link["dst"])]
            if ends[0] in at and ends[1] in at:
                add(*ends, link, (b, link["group"]) if link.get("group") is not None else None)
    for link in file.get("joins", []) if several else []:
        for b in range(1 if boxes == 2 and link.get("both", True) else boxes):
            add((b, link["src"]), ((b + 1) % boxes, link["dst"]), link)
    if leaf is not None:
        for g in groups:
            for name in leaves:
                mine = [p for p in ports if not rails or name in (p["src"], p["dst"])]
                bandwidth = leaf * sum(p["bandwidth"] for p in mine) / over / len(spines)
                latency = max(p.get("latency", 0) for p in mine)
                for spine in spines:
                    add(("leaf", f"{name}.{g}"), spine, {"bandwidth": bandwidth, "latency": latency})
    return [name for _, name in nodes], sum(ranks), links, file.get("abilities", {})


class Fabric:
    """A fabric instance: the links in use (numbered anew), who takes part, and the blocks (origin, goal, bytes) to be
    moved; an origin or goal None stands for all members."""

    def __init__(self, data, folder):
        self.data = data
        names, abilities = None, {}
        network = data["network"]
        if network["kind"] == "machine":
            names, ranks, links, abilities = built_machine(network, folder)
            self.nodes, is_rank = len(names), [v < ranks for v in range(len(names))]
            abilities = {v: abilities[name] for v, name in enumerate(names) if name in abilities}
        elif network["kind"] == "links":
            self.nodes = whole(network["nodes"], 1, 2**20, "network.nodes")
            switches = set(network.get("switches") or ())
            is_rank = [v not in switches for v in range(self.nodes)]
            links = [
                Link(whole(link["src"], 0, self.nodes - 1, "src"), whole(link["dst"], 0, self.nodes - 1, "dst"),
                     link["bandwidth"], link.get("latency", 0), link.get("group")) for link in network["links"]
            ]  # fmt: skip
            abilities = {ability["switch"]: ability for ability in network.get("abilities") or ()}
        else:
            links, is_rank = self.simple(network)
            self.nodes = len(is_rank)
        self.is_switch = [not rank for rank in is_rank]
        self.ranks = [v for v in range(self.nodes) if is_rank[v]]
        failed = data.get("failed") or {}
        dead, cut = set(failed.get("nodes", ())), {tuple(pair) for pair in failed.get("links", ())}
        members = data.get("ranks")
        self.members = [v for v in self.ranks if v not in dead] if members is None else list(members)
        need(all(is_rank[v] and v not in dead for v in self.members) and self.members, "ranks: each a rank that works")
        need(len(set(self.members)) == len(self.members), "ranks: one stands twice")
        idle = dead | (set() if data.get("relay") else set(self.ranks) - set(self.members))
        for u, v, factor in failed.get("reduced", ()):
            for link in links:
                if (link.tail, link.head) == (u, v):
                    link.bandwidth = decimal(float(link.bandwidth * Fraction(factor)))
        self.links = [x for x in links if (x.tail, x.head) not in cut and not {x.tail, x.head} & idle]
        self.out = [[] for _ in range(self.nodes)]
        self.into = [[] for _ in range(self.nodes)]
        for e, link in enumerate(self.links):
            self.out[link.tail].append((e, link.head))
            self.into[link.head].append((e, link.tail))
        self.set_switching(data.get("switching") or {}, abilities)
        self.set_blocks(data)

    def simple(self, network):
        """Return the links and which nodes are ranks, of the kinds of networks that a few numbers describe."""
        bandwidth, latency = network.get("bandwidth", 128e9), network.get("latency", 20e-9)
        kind, size = network["kind"], lambda key, default=None: whole(network.get(key, default), 1, 10**6, key)
        both, found = lambda u, v: [(u, v), (v, u)], simple_network(network)
        if found:
            return [Link(u, v, bandwidth, latency) for u, v in found[1]], [True] * found[0]
        if kind == "star":
            ranks = size("nodes")
            ends = [end for v in range(ranks) for end in both(v, ranks)]
            return [Link(u, v, bandwidth, latency) for u, v in ends], [True] * ranks + [False]
        if kind == "fat_tree":
            leaves, hosts, spines = size("leaves"), size("hosts"), size("spines", 1)
            ranks, up = leaves * hosts, network.get("uplink_bandwidth", bandwidth)
            links = [Link(*end, bandwidth, latency) for v in range(ranks) for end in both(v, ranks + v // hosts)]
            for leaf in range(leaves):
                for spine in range(spines):
                    links += [Link(*end, up, latency) for end in both(ranks + leaf, ranks + leaves + spine)]
            return links, [True] * ranks + [False] * (leaves + spines)
        need(kind == "dragonfly", f"network.kind: {short(kind)} is unknown")
        groups, routers, hosts = size("groups"), size("routers"), size("hosts")
        ranks, far = groups * routers * hosts, network.get("global_bandwidth", bandwidth)
        links = [Link(*end, bandwidth, latency) for v in range(ranks) for end in both(v, ranks + v // hosts)]
        for g in range(groups):
            for a in range(routers):
                for b in range(a + 1, routers):
                    links += [
                        Link(*end, bandwidth, latency) for end in both(ranks + g * routers + a, ranks + g * routers + b)
                    ]
        for g in range(groups):
            for h in range(g + 1, groups):
                ends = both(ranks + g * routers + (h - 1) % routers, ranks + h * routers + g % routers)
                links += [Link(*end, far, latency) for end in ends]
        return links, [True] * ranks + [False] * (groups * routers)

    def set_switching(self, switching, abilities):
        """Set what switches can do."""
        mode = switching.get("mode", "cut_through")
        need(mode in ("cut_through", "store_and_forward"), f"switching.mode: {short(mode)}")
        self.stores, self.multicast = mode == "store_and_forward", bool(switching.get("multicast"))
        self.buffer = bool(switching.get("buffer"))
        self.store_copies, self.store_adds = switching.get("copies", True), bool(switching.get("adds"))
        every = range(self.nodes)
        ability = [abilities.get(v) or {} for v in every]
        self.copies = [self.is_switch[v] and (self.multicast or bool(ability[v].get("copies"))) for v in every]
        self.adds = [self.is_switch[v] and (self.store_adds or bool(ability[v].get("adds"))) for v in every]
        self.streams = any(a.get("streams") for a in ability) or bool(switching.get("streams"))
        linked = [v for v in every if self.is_switch[v] and (self.out[v] or self.into[v])]
        multiply = (
            self.store_copies or self.store_adds
            if self.stores
            else self.multicast or any(self.copies[v] or self.adds[v] for v in linked)
        )
        self.pay_alone = not (linked and multiply)
        self.linked_switches = linked

    def set_blocks(self, data):
        """Set the blocks (origin, goal, bytes)."""
        collective, members, M = data["collective"], self.members, whole(data["bytes"], 1, 2**62, "bytes")
        N, root = len(members), data.get("root")
        root = members[0] if root is None else root
        need(root in members, "root: is no member")
        if collective in ("allgather", "reduce_scatter", "alltoall", "gather", "scatter"):
            need(M % N == 0, f"bytes: {M} is not divisible by {N} members")
        part, others = M // N, [v for v in members if v != root]
        demand = data.get("demand") or ()
        blocks = {
            "allgather": lambda: [(v, None, part) for v in members],
            "reduce_scatter": lambda: [(None, v, part) for v in members],
            "allreduce": lambda: [(None, None, M)],
            "alltoall": lambda: [(u, v, part) for u in members for v in members if u != v],
            "broadcast": lambda: [(root, None, M)],
            "reduce": lambda: [(None, root, M)],
            "gather": lambda: [(v, root, part) for v in others],
            "scatter": lambda: [(root, v, part) for v in others],
            "demand": lambda: [(u, v, whole(n, 1, 2**62, "demand")) for u, v, n in demand],
        }
        need(collective in blocks, f"collective: {short(collective)} is unknown")
        self.blocks = blocks[collective]() if N > 1 or collective == "demand" else []
        need(all(v is None or v in members for block in self.blocks for v in block[:2]), "demand: not between members")
        self.bytes, self.sums, self.collective = M, any(origin is None for origin, _, _ in self.blocks), collective

    # -- replay ----------------------------------------------------------------------------------------------------

    def replay(self, held):
        """Return the last arrival in seconds, rounded up to a double."""
        if "quotient_generators" in held:
            raise NotCovered("a quotient of a fabric schedule")
        T = held.whole("ticks_per_s", 1, 2**62)
        starts = list(accumulate(held.array("start_steps", -(2**63), 2**63)))
        size = (len(starts),)
        if len(starts) > MOST_TRANSFERS:
            raise NotCovered(f"{len(starts)} transfers")
        blocks = held.array("piece_block", 0, len(self.blocks) - 1)
        sizes = held.array("piece_bytes", 1, 2**48, (len(blocks),))
        pieces = list(accumulate(held.array("piece_steps", -(2**63), 2**63, size)))
        links = held.array("link", 0, len(self.links) - 1)
        lengths = held.array("route_lengths", 1, 2**62, size, default=()) or [1] * len(starts)
        adds = held.array("adds", 0, 1, size, default=()) or [0] * len(starts)
        need(not starts or (min(starts) >= 0 and max(starts) <= 2**62), "start_steps: a start is not in 0..2^62")
        need(not pieces or (min(pieces) >= 0 and max(pieces) < len(blocks)), "piece_steps: a piece that is none")
        need(sum(lengths) == len(links), "route_lengths: do not add up to the length of link")
        need(self.sums or 1 not in adds, "adds: nothing is added in this collective")
        total = [0] * len(self.blocks)
        for block, n in zip(blocks, sizes):
            total[block] += n
        need(total == [n for _, _, n in self.blocks], "piece_bytes: a block's pieces do not add up to its bytes")
        if len(blocks) * self.nodes > MOST_CELLS:
            raise NotCovered(f"{len(blocks)} pieces on {self.nodes} nodes")
        uses = self.uses(T, sizes, pieces, links, lengths)
        self.check_exclusion(starts, uses)
        if self.sums:
            last = self.replay_sums(starts, pieces, blocks, adds, uses)
        else:
            last = self.replay_copies(starts, pieces, blocks, uses)
        return rounded_up(Fraction(last, T)) if starts else 0

    def uses(self, T, sizes, pieces, links, lengths):
        """Return of every transfer (source, [(link, from, to)], [(node, arrival)]), in ticks after its start. Transfers
        of equal routes and sizes share one such object."""
        known, uses, at, occupied = {}, [], 0, {}
        if set(lengths) <= {1}:
            routes = links
        else:
            routes, ends = [], list(accumulate(lengths))
            for end in ends:
                routes.append(tuple(links[at:end]))
                at = end
        for piece, route in zip(pieces, routes):
            key = (route, sizes[piece])
            use = known.get(key)
            if use is None:
                route = (route,) if type(route) is int else route
                for e in route:
                    if (e, sizes[piece]) not in occupied:
                        bandwidth = self.links[e].bandwidth
                        over, under = sizes[piece] * T * bandwidth.denominator, bandwidth.numerator
                        occupied[e, sizes[piece]] = ceiling(over, under)
                use = known[key] = self.route(T, route, [occupied[e, sizes[piece]] for e in route])
            uses.append(use)
        return uses

    def route(self, T, route, durations):
        """Return (source, [(link, from, to)], [(rank or storing switch, arrival)]) of one route."""
        first = self.links[route[0]]
        source = first.tail
        latency = [ceiling(self.links[e].latency.numerator * T, self.links[e].latency.denominator) for e in route]
        if self.stores:
            need(len(route) == 1, "route_lengths: where switches store, a route is one link")
            return source, [(route[0], 0, durations[0])], [(first.head, latency[0] + durations[0])]
        need(not self.is_switch[source], f"route {route}: begins at a switch")
        reached, left, used, arrivals = {source: (0, 0)}, Counter(), [], []
        for e, alpha, duration in zip(route, latency, durations):
            u, v = self.links[e].tail, self.links[e].head
            if u != source and not self.is_switch[u] and any(self.adds):
                raise NotCovered("a route of several sources, or over a rank")
            need(
                u in reached and (u == source or self.is_switch[u]),
                f"route {route}: link {e} goes on from no switch that it reached",
            )
            need(
                not left[u] or self.multicast or self.copies[u],
                f"route {route}: parts at node {u}, which does not copy",
            )
            need(v not in reached, f"route {route}: comes to node {v} twice")
            if left[u] and self.streams and self.is_switch[u]:
                raise NotCovered("switches that copy a limited number of streams")
            left[u] += 1
            begin, slow = reached[u]
            used.append((e, begin, begin + duration))
            reached[v] = (begin + alpha, max(slow, duration))
            if not self.is_switch[v]:
                arrivals.append((v, sum(reached[v])))
        for v in reached:
            need(not self.is_switch[v] or left[v], f"route {route}: ends at switch {v}")
        return source, used, arrivals

    def check_exclusion(self, starts, uses):
        """Check that no two transfers use a link, or links of one group, at the same time."""
        begins, ends = [[] for _ in self.links], [[] for _ in self.links]
        grouped = defaultdict(list)
        for i, (start, (_, used, _)) in enumerate(zip(starts, uses)):
            for e, begin, end in used:
                begins[e].append(start + begin)
                ends[e].append(start + end)
                if self.links[e].group is not None:
                    grouped[self.links[e].group].append((start + begin, start + end, i))
        for e, (begin, end) in enumerate(zip(begins, ends)):
            if not all(map(le, end, islice(begin, 1, None))):  # not in the order of time
                order = sorted(range(len(begin)), key=begin.__getitem__)
                for a, b in zip(order, islice(order, 1, None)):
                    need(end[a] <= begin[b], f"link {e}: two transfers at tick {begin[b]}")
        for group, intervals in grouped.items():
            intervals.sort()
            last, until, others_until = None, 0, 0  # the latest transfer, its end, and the latest end of another
            for begin, end, i in intervals:
                need(begin >= (others_until if i == last else until), f"group {group}: two transfers at tick {begin}")
                last, until, others_until = (i, max(until, end), others_until) if i == last else (i, end, until)

    def replay_copies(self, starts, pieces, blocks, uses):
        """Check possession where nothing is added; return the last arrival.

        The earliest arrival of a piece at a node is what counts: transfers take time, so by induction over ticks it is
        there if each started where it was."""
        nodes = self.nodes
        here = [INFINITE] * (len(blocks) * nodes)
        for piece, block in enumerate(blocks):
            here[piece * nodes + self.blocks[block][0]] = 0
        last, at_switches = 0, defaultdict(list)
        for start, piece, (_, _, arrivals) in zip(starts, pieces, uses):
            for v, after in arrivals:
                arrival, place = start + after, piece * nodes + v
                if arrival < here[place]:
                    here[place] = arrival
                if arrival > last:
                    last = arrival
                if self.is_switch[v]:
                    at_switches[place].append(arrival)
        leaving = defaultdict(list)
        for start, piece, (source, _, _) in zip(starts, pieces, uses):
            if here[piece * nodes + source] > start:
                raise Fault(f"tick {start}: piece {piece} leaves node {source}, where it is not")
            if self.is_switch[source]:
                leaving[piece * nodes + source].append(start)
        for place, ticks in leaving.items():
            self.check_storing(place, sorted(ticks), sorted(at_switches[place]))
        for piece, block in enumerate(blocks):
            goal = self.blocks[block][1]
            for v in self.members if goal is None else (goal,):
                need(here[piece * nodes + v] < INFINITE, f"piece {piece} does not come to rank {v}")
        return last

    def check_storing(self, place, leaves, arrivals):
        """Check what leaves a switch that stores: at the tick of an arrival, or later if it has a buffer; once an
        arrival unless it copies."""
        where = f"piece {place // self.nodes} leaves switch {place % self.nodes}"
        if not self.buffer:
            arrived, left = Counter(arrivals), Counter(leaves)
            for tick, times in left.items():
                need(arrived[tick], f"tick {tick}: {where} when it does not arrive")
                need(self.store_copies or times <= arrived[tick], f"tick {tick}: {where} more often than it came")
        elif not self.store_copies:
            for i, tick in enumerate(leaves):
                need(i < len(arrivals) and arrivals[i] <= tick, f"tick {tick}: {where} more often than it came")

    def replay_sums(self, starts, pieces, blocks, adds, uses):
        """Check contributions, piece by piece; return the last arrival. Sets of contributions are bits."""
        of_piece = [[] for _ in blocks]
        for i, piece in enumerate(pieces):
            of_piece[piece].append(i)
        bit = {v: 1 << i for i, v in enumerate(self.members)}
        everybody, last = (1 << len(self.members)) - 1, 0
        for piece, mine in enumerate(of_piece):
            origin, goal, _ = self.blocks[blocks[piece]]
            sets = dict(bit) if origin is None else {origin: everybody}
            count, events, feeding = len(starts), [], {}
            latest = {}  # (at a switch that stores no sums) the transfer listed last that brings the piece there
            for i in mine:
                start, (source, _, arrivals) = starts[i], uses[i]
                if self.is_switch[source] and not self.store_adds:
                    need(
                        source in latest,
                        f"transfer {i}: nothing listed before it brings piece {piece} to switch {source}",
                    )
                    feeding[i] = latest[source]
                events.append(((start * 2 + 1) * 2 * count + i, None))
                for v, after in arrivals:
                    arrival = start + after
                    last = max(last, arrival)
                    events.append(((arrival * 4 + adds[i]) * count + i, v))
                    if self.is_switch[v] and not self.store_adds:
                        latest[v] = (i, arrival)
            events.sort(key=lambda event: event[0])
            carried, sent_on = {}, set()
            for code, v in events:
                i = code % count
                if v is None:
                    source = uses[i][0]
                    if i in feeding:
                        other, arrival = feeding[i]
                        need(
                            arrival == starts[i] or (self.buffer and arrival < starts[i]),
                            f"transfer {i}: its piece is not at switch {source}",
                        )
                        need(
                            self.store_copies or other not in sent_on,
                            f"transfer {i}: switch {source} sends it on twice",
                        )
                        sent_on.add(other)
                        carried[i] = carried[other]
                    else:
                        need(sets.get(source), f"transfer {i}: node {source} has nothing of piece {piece}")
                        carried[i] = sets[source]
                    need(
                        adds[i] or carried[i] == everybody,
                        f"transfer {i}: copies a sum of piece {piece} that is not complete",
                    )
                elif self.is_switch[v] and not self.store_adds:
                    pass
                elif adds[i]:
                    before = sets.get(v, 0)
                    need(not before & carried[i], f"transfer {i}: adds a contribution to piece {piece} twice")
                    sets[v] = before | carried[i]
                else:
                    sets[v] = everybody
            for v in self.members if goal is None else (goal,):
                need(sets.get(v) == everybody, f"piece {piece} is not complete at rank {v}")
        return last

    # -- certificates ----------------------------------------------------------------------------------------------

    def certify(self, held, bound):
        """Check that a certificate proves a bound in seconds: by then the links carry no more than what is needed."""
        argument = held.text("argument")
        prove = {
            "nothing": lambda held: need(bound <= 0, "nothing: proves 0"), "cut": self.cut, "prices": self.prices,
            "gossip": self.gossip,
            "partition": self.partition, "deliveries": self.windows, "sums": self.windows, "moments": self.moments,
            "orbit_moments": self.orbit_moments, "steps": self.steps,
        }  # fmt: skip
        need(argument in prove, f"argument: {short(argument)} is unknown")
        self.set_clock()
        self.bound, self.ticks = bound, bound * self.P
        prove[argument](held)

    def set_clock(self):
        """Set the certificates' ticks a second P, and all latencies in these ticks."""
        P, greatest = 1, max([link.latency for link in self.links], default=Fraction(0))
        for link in self.links:
            P = math.lcm(P, link.latency.denominator)
        if P > 10**18 or P * greatest * self.nodes > 2**61:
            P = max(1, min(10**18, 2**61 // max(Fraction(1), greatest * self.nodes)))
        self.P, self.latencies = P, [int(link.latency * P) for link in self.links]

    def distances(self, starts, costs, passes=None, back=False):
        """Return a dict node → least cost from any of the starts (with ``back``: to any of them)."""
        return cheapest(dict.fromkeys(starts, 0), self.into if back else self.out, costs, passes)

    def enough(self, needed, capacity):
        """Check the inequality that every argument ends with."""
        need(needed > 0, f"nothing has to move ({needed})")
        need(
            capacity <= needed,
            f"the links carry {float(capacity):.6g} in {float(self.bound)} s, only {float(needed):.6g} is needed",
        )

    def capacity(self, price, begin, left, sharing, turned=False):
        """Return what links carry by the bound, at their prices, if link e is of use only from ``begin[e]`` ticks on
        and until ``left[e]`` ticks before the end (None: never)."""
        total, grouped = Fraction(0), defaultdict(list)
        for e, link in enumerate(self.links):
            if price[e] > 0 and begin[e] is not None and left[e] is not None:
                if link.group is None:
                    total += price[e] * link.bandwidth * max(0, self.ticks - begin[e] - left[e])
                else:
                    grouped[link.group].append(e)
        for group in grouped.values():
            for part in self.parts(group, sharing, turned):
                rate = max(price[e] * self.links[e].bandwidth for e in part)
                lost = min(begin[e] for e in part) + min(left[e] for e in part)
                total += rate * max(0, self.ticks - lost)
        return total / self.P

    def parts(self, group, sharing, turned):
        """Cut the links of a group into parts that cannot carry one byte together."""
        if sharing == "once" or self.stores or len(group) == 1:
            return [group]
        if sharing == "each":
            return [[e] for e in group]
        ends = {e: (self.links[e].tail, self.links[e].head) for e in group}
        if turned:
            ends = {e: (v, u) for e, (u, v) in ends.items()}
        on_one_route = False
        for e in group:
            if self.is_switch[ends[e][1]]:
                joined = self.distances([ends[e][1]], self.latencies, self.is_switch, turned)
                on_one_route |= any(
                    f != e and self.is_switch[ends[f][0]] and ends[f][0] in joined and ends[f][1] != ends[e][0]
                    for f in group
                )
        if not on_one_route:
            return [group]
        leaving = [e for e in group if not self.is_switch[ends[e][0]]]
        entering = [e for e in group if self.is_switch[ends[e][0]] and not self.is_switch[ends[e][1]]]
        rest = [[e] for e in group if self.is_switch[ends[e][0]] and self.is_switch[ends[e][1]]]
        return [part for part in (leaving, entering) if part] + rest

    def along_routes(self):
        """Return how links of a group share what is paid for along a route."""
        return "each" if self.multicast or any(self.copies[v] or self.adds[v] for v in self.linked_switches) else "path"

    def between(self, sources, goals):
        """Return of every link the ticks from the nearest source through its head, split at its tail, to a goal."""
        before = self.distances(sources, self.latencies)
        behind = self.distances(goals, self.latencies, back=True)
        begin = [before.get(link.tail) for link in self.links]
        left = [
            None if link.head not in behind else self.latencies[e] + behind[link.head]
            for e, link in enumerate(self.links)
        ]
        return begin, left

    def cut(self, held):
        """What has to leave a set of nodes."""
        inside, origins, goals = (held.array(key, 0, self.nodes - 1) for key in ("inside", "origins", "goals"))
        for key, nodes in (("inside", inside), ("origins", origins), ("goals", goals)):
            need(len(set(nodes)) == len(nodes), f"{key}: a node stands twice")
        within, members = set(inside), set(self.members)
        need(origins and set(origins) <= members & within, "origins: members inside")
        need(goals and set(goals) <= members - within, "goals: members not inside")
        price = [int(link.tail in within and link.head not in within) for link in self.links]
        a, b = {None, *origins}, {None, *goals}
        needed = sum(n for origin, goal, n in self.blocks if origin in a and goal in b)
        self.enough(needed, self.capacity(price, *self.between(origins, goals), "once"))

    def lengths(self, held, key="length", most=2**40):
        """Return a price of every link."""
        return held.array(key, 0, most, (len(self.links),))

    def prices(self, held):
        """Every block pays the shortest distance at prices."""
        need(all(None not in block[:2] for block in self.blocks), "prices: every block leads from one rank to one")
        length, away = (
            self.lengths(held),
            Fraction(held.whole("away_ticks", 0, 2**62), held.whole("ticks_per_s", 1, 2**62)) * self.P,
        )
        sources, goals, needed = set(), set(), 0
        by_origin = defaultdict(list)
        for origin, goal, n in self.blocks:
            by_origin[origin].append((goal, n))
        for origin, mine in by_origin.items():
            ticks, costs = self.distances([origin], self.latencies), self.distances([origin], length)
            for goal, n in mine:
                need(goal in ticks, f"rank {goal} cannot be reached from rank {origin}")
                if ticks[goal] >= away:
                    sources.add(origin)
                    goals.add(goal)
                    needed += n * costs[goal]
        self.enough(needed, self.capacity(length, *self.between(sources, goals), "path"))

    def only_members(self):
        """Check that no rank outside the group forwards."""
        members = set(self.members)
        outside = [v for v in self.ranks if v not in members and (self.out[v] or self.into[v])]
        need(not outside, f"rank {outside[:1]} is no member and has links in use")

    def gossip(self, held):
        """An allreduce pays twice a minimum spanning tree a byte."""
        need(self.collective == "allreduce" and self.blocks, "gossip: only of an allreduce")
        self.only_members()
        linked = self.linked_switches
        in_switches = not self.stores and (
            any(self.adds[v] for v in linked) or (not self.multicast and any(self.copies[v] for v in linked))
        )
        need(self.pay_alone or in_switches, "gossip: a transfer may pay for several")
        length = self.lengths(held)
        able = [v for v in linked if not self.stores and (self.copies[v] or self.adds[v])]
        ends, edges = self.members + able, []
        ahead = [self.distances([u], length) for u in ends]
        for i, u in enumerate(ends):
            for j in range(i + 1, len(ends)):
                edges.append((min(ahead[i].get(ends[j], INFINITE), ahead[j].get(u, INFINITE)), i, j))
        tree, groups, N = 0, Groups(len(ends)), len(self.members)
        for cost, i, j in sorted(edges):  # members come first, so a group with a member has a member for its first
            a, b = groups.find(i), groups.find(j)
            if a != b:
                groups.join(a, b)
                tree += cost if a < N and b < N else 0
        need(tree < INFINITE, "gossip: members are not joined")
        begin_left = self.between(self.members, self.members)
        self.enough(2 * self.bytes * tree, self.capacity(length, *begin_left, self.along_routes()))

    def partition(self, held):
        """An allreduce sends every byte at least 2 (parts - 1) times between parts."""
        need(self.collective == "allreduce" and self.blocks, "partition: only of an allreduce")
        part = held.array("part", 0, self.nodes - 1, (self.nodes,))
        need(set(part) == {part[v] for v in self.members}, "part: every part has a member")
        price = [int(part[link.tail] != part[link.head]) for link in self.links]
        needed = 2 * (len(set(part)) - 1) * self.bytes
        self.enough(needed, self.capacity(price, *self.between(self.members, self.members), self.along_routes()))

    def windows(self, held):
        """Deliveries or sums pay prices that begin at moments: what comes from its origin, or what is passed on."""
        sums = held.text("argument") == "sums"
        need(self.pay_alone, "transfers may pay for several: switches in use copy or add")
        turned = held.get("backwards")
        need(type(turned) is bool, "backwards: true or false")
        need(
            held.whole("ticks_per_s", 1, 2**62) == self.P,
            f"ticks_per_s: is {held.get('ticks_per_s')}, should be {self.P}",
        )
        objects = held.get("windows")
        need(type(objects) is list and 1 <= len(objects) <= 4, "windows: 1 to 4 of them")
        size, rows = (len(self.links),), []
        for window in map(Held, objects):
            rows.append((window.array("length", 0, 2**38, size), window.array("after", 0, 2**61, size)))
        out, into = (self.into, self.out) if turned else (self.out, self.into)
        tails = [link.head if turned else link.tail for link in self.links]
        heads = [link.tail if turned else link.head for link in self.links]
        bytes_at = Counter()
        if sums:
            need(self.collective == "allreduce" and self.blocks, "sums: only of an allreduce")
            bytes_at = dict.fromkeys(self.members, self.bytes)
        else:
            for block in self.blocks:
                begin, end = (block[1], block[0]) if turned else block[:2]
                need(
                    begin is not None and end is None, "deliveries: every block goes to all (backwards: comes from all)"
                )
                bytes_at[begin] += block[2]

        def paid(moments):
            """What each link costs at its moment, to be reached over switches."""
            moment = [moments.get(tail) for tail in tails]
            return [
                0 if t is None else sum(length[e] for length, after in rows if t >= after[e])
                for e, t in enumerate(moment)
            ]

        def direct(u):
            """Least payment from u over switches alone to every node."""
            moments = cheapest({u: 0}, out, self.latencies, self.is_switch)
            return cheapest({u: 0}, out, paid(moments), self.is_switch)

        def passed(known):
            """Least payment from any rank that knows something, over at least one link and switches, to every node."""
            costs, ends = paid(cheapest(known, out, self.latencies, self.is_switch)), {}
            for w in known:
                for e, v in out[w]:
                    ends[v] = min(costs[e], ends.get(v, INFINITE))
            entered = {v: cost for v, cost in ends.items() if self.is_switch[v]}
            for v, cost in cheapest(entered, out, costs, self.is_switch).items():
                ends[v] = min(cost, ends.get(v, INFINITE))
            return ends

        needed = 0
        if sums:
            ahead = {u: cheapest({u: 0}, out, self.latencies) for u in self.members}
            known = {}
            for w in self.ranks:
                ticks = [ahead[u][w] for u in self.members if u != w and w in ahead[u]]
                if ticks:
                    known[w] = min(ticks)
            on, alone = passed(known), {u: direct(u) for u in self.members}
            for v in self.members:
                needed += self.bytes * min(
                    sum(alone[u].get(v, INFINITE) for u in self.members if u != v), on.get(v, INFINITE)
                )
        else:
            for u, n in bytes_at.items():
                ahead = cheapest({u: 0}, out, self.latencies)
                on, alone = passed({w: ahead[w] for w in self.ranks if w != u and w in ahead}), direct(u)
                needed += n * sum(min(alone.get(v, INFINITE), on.get(v, INFINITE)) for v in self.members if v != u)
        need(needed < INFINITE, "a member cannot be reached")
        before = cheapest(dict.fromkeys(bytes_at, 0), out, self.latencies)
        behind = cheapest(dict.fromkeys(self.members, 0), into, self.latencies, self.is_switch)
        capacity, every = Fraction(0), range(len(self.links))
        for length, after in rows:
            begin = [
                None if tails[e] not in before else max(before[tails[e]], after[e]) + self.latencies[e] * turned
                for e in every
            ]
            left = [
                None if heads[e] not in behind else behind[heads[e]] + self.latencies[e] * (not turned) for e in every
            ]
            capacity += self.capacity(length, begin, left, self.along_routes(), turned)
        self.enough(needed, capacity)

    def moments(self, held):
        """Cuts that move with time: at a moment, ranks v with since[d, v] not after it may have demand d's data."""
        need(self.pay_alone, "transfers may pay for several: switches in use copy or add")
        finer, share = held.whole("finer", 1, 2**40), self.lengths(held, "share", 1024)
        block = held.array("block", 0, len(self.blocks) - 1)
        D = len(block)
        need(0 < D <= 10000, f"moments: {D} demands")
        source, target = (held.array(key, 0, self.nodes - 1, (D,)) for key in ("source", "target"))
        weight = held.array("weight", 1, 2**30, (D,))
        since = rows_of(self.flat(held, "since", 2**62, len(self.ranks), D), len(self.ranks))
        since = [dict(zip(self.ranks, row)) for row in since]
        for d in range(D):
            origin, goal, _ = self.blocks[block[d]]
            need(
                source[d] == origin or (origin is None and source[d] in self.members), "source: not the block's origin"
            )
            need(target[d] == goal or (goal is None and target[d] in self.members), "target: not the block's goal")
            need(source[d] != target[d] and since[d][source[d]] == 0, "since: a demand's source has it from 0 on")
        F, latency = self.P * finer, [ticks * finer for ticks in self.latencies]
        worth = self.worth(share)
        needed = worth * sum(w * self.blocks[b][2] for w, b in zip(weight, block)) - Fraction(1, 10**12)
        need(self.bound * F <= min(since[d][target[d]] for d in range(D)), "the bound is after a target's moment")
        capacity = Fraction(0)
        for e, link in enumerate(self.links):
            if share[e]:
                before, behind = self.ends_of(e, latency)
                changes = []
                for d in range(D):
                    for u, first in before.items():
                        for v, rest in behind.items():
                            begin, end = since[d][u] + first, since[d][v] - rest - latency[e]
                            if u != v and begin < end:
                                changes += [(begin, (block[d], u, v), weight[d]), (end, (block[d], u, v), -weight[d])]
                capacity += link.bandwidth * share[e] * area_of_greatest(changes)
        self.enough(needed, capacity / F)

    def worth(self, share):
        """Return the least Σ share over a path from a rank over switches to another rank."""
        least = INFINITE
        for u in self.ranks:
            ends = self.distances([u], share, self.is_switch)
            least = min([least] + [cost for v, cost in ends.items() if v != u and not self.is_switch[v]])
        need(0 < least < INFINITE, "share: some path between ranks is worth nothing")
        return least

    def ends_of(self, e, latency):
        """Return the ranks from and to which transfers over link e may lead, with the ticks to and from it."""
        link, ends = self.links[e], []
        for node, back in ((link.tail, True), (link.head, False)):
            if not self.is_switch[node]:
                ends.append({node: 0})
            else:
                reach = self.distances([node], latency, self.is_switch, back)
                ends.append({v: ticks for v, ticks in reach.items() if not self.is_switch[v]})
        return ends

    def orbit_moments(self, held):
        """Moments of one block's demands and all their images under symmetries, one link of each orbit for all."""
        need(self.pay_alone, "transfers may pay for several: switches in use copy or add")
        need(len(self.blocks) == 1, "orbit_moments: of one block")
        turned, count, nodes, R = held.flag("backwards"), len(self.links), self.nodes, len(self.ranks)
        origin, goal, bytes_ = self.blocks[0]
        origin, goal = (goal, origin) if turned else (origin, goal)
        finer, share = held.whole("finer", 1, 2**40), self.lengths(held, "share", 1024)
        images = rows_of(self.flat(held, "images", nodes - 1, nodes), nodes)
        orbits = self.link_orbits(images, {origin, goal} - {None})
        source = held.array("source", 0, nodes - 1)
        target = held.array("target", 0, nodes - 1, (len(source),))
        classes = rows_of(self.flat(held, "classes", 2**31, R, len(source)), R)
        of = held.array("of", 0, len(source) - 1)
        weight = held.array("weight", 1, 2**30, (len(of),))
        width = max((max(row) for row in classes), default=0) + 1
        since = rows_of(self.flat(held, "since", 2**62, width, len(of)), width)
        need(0 < len(of) <= 10000, f"orbit_moments: {len(of)} rows")
        classes = [dict(zip(self.ranks, row)) for row in classes]
        for u, v in zip(source, target):
            need(u == origin or (origin is None and u in self.members), "source: not the block's origin")
            need(v == goal or (goal is None and v in self.members), "target: not the block's goal")
            need(u != v, "target: is the source")
        need(all(row[classes[d][source[d]]] == 0 for d, row in zip(of, since)), "since: a source has it from 0 on")
        F, latency = self.P * finer, [ticks * finer for ticks in self.latencies]
        first = min(row[classes[d][target[d]]] for d, row in zip(of, since))
        need(self.bound * F <= first, "the bound is after a target's moment")
        at, tolls, toll_of = self.read_tolls(held, share, turned)
        for marks in (share, toll_of):
            need(all(marks[e] == marks[orbits.find(e)] for e in range(count)), "share, toll_of: differ within an orbit")
        worth = 1 if tolls else self.worth(share)
        capacity, standing = Fraction(0), defaultdict(int)
        for e, link in enumerate(self.links):
            standing[orbits.find(e)] += link.bandwidth * share[e]
            if toll_of[e]:
                spans = zip(tolls[toll_of[e] - 1], at, at[1:])
                capacity += link.bandwidth * sum(toll * (end - begin) for toll, begin, end in spans)
        for e, rate in standing.items():
            if rate:
                ways, changes = self.ways(e, latency, turned, toll_of, images), []
                for key, (pairs, before, behind, toll) in enumerate(ways):
                    moved = []
                    for d, row, w in zip(of, since, weight):
                        kinds = Counter((classes[d][u], classes[d][v]) for u, v in pairs)
                        for (a, b), times in kinds.items():
                            if row[a] + before < row[b] - behind:
                                moved += [(row[a] + before, w * times), (row[b] - behind, -w * times)]
                    steps = [(time + before, x) for time, x in zip(at, tolls[toll - 1] + [0])] if toll else []
                    changes += per_pair(moved, steps, len(pairs), key)
                capacity += rate * area_of_greatest(changes)
        self.enough(worth * sum(weight) * bytes_ - Fraction(1, 10**12), capacity / F)

    def flat(self, held, key, most, width, rows=None):
        """Return an array of rows that may be stored row after row."""
        flat = len(held.shaped(key).shape) == 1
        values = held.array(key, 0, most, None if flat else (rows, width))
        need(width and len(values) % width == 0 and rows in (None, len(values) // width), f"{key}: not rows of {width}")
        return values

    def link_orbits(self, images, fixed):
        """Check symmetries; return the orbits of links: the i-th goes to the i-th, in the order of (latency, bandwidth,
        head, tail, number), ends being moved on the one side."""
        ends = [(link.latency, link.bandwidth, link.head, link.tail) for link in self.links]
        after, orbits, members = sorted((end, e) for e, end in enumerate(ends)), Groups(len(ends)), set(self.members)
        for g in images:
            check_permutation(g, self.nodes, "images")
            need(
                all(self.is_switch[g[v]] == self.is_switch[v] for v in range(self.nodes)),
                "images: move a rank to a switch",
            )
            need(
                {g[v] for v in members} == members and all(g[v] == v for v in fixed),
                "images: move members, origin or goal",
            )
            before = sorted(((x, b, g[head], g[tail]), e) for e, (x, b, head, tail) in enumerate(ends))
            need([end for end, _ in before] == [end for end, _ in after], "images: do not keep the links")
            for (_, e), (_, f) in zip(before, after):
                orbits.join(e, f)
        return orbits

    def read_tolls(self, held, share, turned):
        """Return (moments, tolls between them, of every link the number of its toll + 1 or 0)."""
        if "toll_of" not in held:
            need("toll" not in held and "toll_at" not in held, "toll_of: is missing")
            return [], [], [0] * len(share)
        at = held.array("toll_at", 0, 2**62)
        need(len(at) >= 2 and all(a < b for a, b in pairwise(at)), "toll_at: at least two moments, ascending")
        tolls = rows_of(self.flat(held, "toll", 2**62, len(at) - 1), len(at) - 1)
        need(all(row == sorted(row, reverse=True) for row in tolls), "toll: rises")
        toll_of = held.array("toll_of", 0, len(tolls), (len(share),))
        need(max(share) <= 1, "share: with tolls 0 or 1")
        for link, toll, bears in zip(self.links, toll_of, share):
            tail = link.head if turned else link.tail
            need(
                not toll or (not bears and not self.is_switch[tail]),
                "toll_of: a link that leaves a rank and bears no share",
            )
        return at, tolls, toll_of

    def ways(self, e, latency, turned, toll_of, images):
        """Return (pairs of an orbit, ticks before, ticks behind, toll) of each kind of way over link e."""
        link, out, into = self.links[e], self.into if turned else self.out, self.out if turned else self.into
        tail, head = (link.head, link.tail) if turned else (link.tail, link.head)
        begins = {(tail, 0): 0}  # (rank, toll) → least ticks
        if self.is_switch[tail]:
            begins, reach = {}, cheapest({tail: 0}, into, latency, self.is_switch)
            for u in self.ranks:
                for f, v in out[u]:
                    if v in reach and self.is_switch[v]:
                        a, b = self.links[f].bandwidth, link.bandwidth
                        key = (u, toll_of[f] if (b >= a if turned else b <= a) else 0)
                        begins[key] = min(begins.get(key, INFINITE), latency[f] + reach[v])
        ends = {head: 0}
        if self.is_switch[head]:
            ends = {
                v: ticks
                for v, ticks in cheapest({head: 0}, out, latency, self.is_switch).items()
                if not self.is_switch[v]
            }
        orbit_of, ways = {}, {}
        for (u, toll), before in begins.items():
            for v, behind in ends.items():
                if u != v:
                    if (u, v) not in orbit_of:
                        orbit, front = {(u, v)}, [(u, v)]
                        while front:
                            a, b = front.pop()
                            new = {(g[a], g[b]) for g in images} - orbit
                            orbit |= new
                            front += new
                        orbit_of.update(dict.fromkeys(orbit, (u, v)))
                        ways[u, v] = sorted(orbit)
                    ways.setdefault((orbit_of[u, v], before, behind + latency[e], toll))
        return [(ways[way[0]], *way[1:]) for way in ways if len(way) == 4]

    def steps(self, held):
        """No schedule has so many steps, rounds and chunks (a question of its own: it bounds no seconds)."""
        need(self.bound <= 0, "steps: says nothing of seconds")
        S, R, C = (held.whole(key, 1, 2**31) for key in ("steps", "rounds", "chunks"))
        need(
            not self.linked_switches and all(link.group is None for link in self.links),
            "steps: switches or groups in use",
        )
        unit = Fraction(
            math.gcd(*(x.bandwidth.numerator * (10**30 // x.bandwidth.denominator) for x in self.links)), 10**30
        )
        rates, members, N = [link.bandwidth / unit for link in self.links], self.members, len(self.members)
        q = C // N if self.collective == "alltoall" else C
        need(self.collective != "alltoall" or C % N == 0, "chunks: not divisible by the members")
        if R < S:
            return
        by, every, ones = held.text("by"), range(len(self.links)), [1] * len(self.links)
        ends = [(members if a is None else [a], members if b is None else [b]) for a, b, _ in self.blocks]
        if by == "hops":
            hops = {u: self.distances([u], ones) for block in ends for u in block[0]}
            need(
                any(hops[u].get(v, INFINITE) > S for a, b in ends for u in a for v in b),
                "hops: every goal is near enough",
            )
        elif by in ("paths", "parts"):
            if by == "paths":
                price = self.lengths(held)
                far = {u: self.distances([u], price) for block in ends for u in block[0]}
                pays = [max(far[u].get(v, INFINITE) for u in a for v in b) for a, b in ends]
            else:
                part = held.array("part", 0, self.nodes - 1, (self.nodes,))
                k = len(set(part))
                need(set(part) == {part[v] for v in members}, "part: every part has a member")
                price = [int(part[link.tail] != part[link.head]) for link in self.links]
                pays = [
                    2 * (k - 1) if a is None and b is None else k - 1 if None in (a, b) else int(part[a] != part[b])
                    for a, b, _ in self.blocks
                ]
            paying = [block for block, pay in zip(ends, pays) if pay]
            near = self.distances({u for a, _ in paying for u in a}, ones)
            after = self.distances({v for _, b in paying for v in b}, ones, back=True)
            wait = [near.get(link.tail, INFINITE) + after.get(link.head, INFINITE) for link in self.links]
            need(
                q * sum(pays) > sum(price[e] * rates[e] * (R - wait[e]) for e in every if wait[e] < S),
                f"{by}: refutes nothing",
            )
        else:
            self.timed_steps(held, by, S, R, q, rates, ends)

    def timed_steps(self, held, by, S, R, q, rates, ends):
        """Prices of links by step: every delivery pays its shortest way in S steps, waiting being free."""
        need(by in ("timed", "lengths"), f"by: {short(by)} is unknown")
        ways = [None]
        if by == "lengths":
            need(math.comb(R - 1, S - 1) <= 1000, "lengths: more than 1000 ways")
            ways = [[b - a for a, b in zip((0, *cut), (*cut, R))] for cut in combinations(range(1, R), S - 1)]
        links, deliveries = (
            len(self.links),
            [(i, u, v) for i, (a, b) in enumerate(ends) for u in a for v in b if u != v],
        )
        price = rows_of(held.array("price", 0, 2**40, (None, links, S)), links * S)
        need(price and len(price) % len(ways) == 0, "price: not as many tables for each way")
        tables = len(price) // len(ways)
        of = held.array("of", 0, tables - 1, (len(deliveries),))
        for number, lengths in enumerate(ways):
            mine, pays, by_block = price[number * tables :][:tables], 0, [[0] * (links * S) for _ in ends]
            for table, (block, u, v) in zip(of, deliveries):
                by_block[block] = [x + y for x, y in zip(by_block[block], mine[table])]
                cost = {u: 0}
                for s in range(S):
                    before = dict(cost)
                    for e, link in enumerate(self.links):
                        if link.tail in before:
                            there = before[link.tail] + mine[table][e * S + s]
                            cost[link.head] = min(there, cost.get(link.head, there))
                pays += cost.get(v, INFINITE)
            K = [sum(rates[e] * max(sums[e * S + s] for sums in by_block) for e in range(links)) for s in range(S)]
            have = sum(K) + (R - S) * max(K) if lengths is None else sum(n * x for n, x in zip(lengths, K))
            need(q * pays > have, f"{by}: refutes nothing")


def per_pair(moved, steps, pairs, key):
    """Return the changes in time of ⌈sum / pairs⌉ - toll, from changes of the sum and tolls that begin at moments."""
    events = sorted([(time, 0, change) for time, change in moved] + [(time, 1, toll) for time, toll in steps])
    changes, total, toll, last = [], 0, 0, 0
    for time, is_toll, x in events:
        total, toll = (total, x) if is_toll else (total + x, toll)
        changes.append((time, key, ceiling(total, pairs) - toll - last))
        last += changes[-1][2]
    return changes


def area_of_greatest(changes):
    """Integrate over time the greatest of several sums; a change is (time, which sum, what is added to it)."""
    sums, heap, area, last = defaultdict(int), [], 0, 0
    changes.sort(key=lambda change: change[0])
    for time, key, weight in changes:
        while heap and sums[heap[0][1]] != -heap[0][0]:
            heapq.heappop(heap)
        if heap:
            area += max(0, -heap[0][0]) * (time - last)
        last = time
        sums[key] += weight
        heapq.heappush(heap, (-sums[key], key))
    return area


# ------------------------------------------------------------------------------------------------------------------
# 7  harvest: seconds of a collective on a network whose links are set up between its steps
# ------------------------------------------------------------------------------------------------------------------


class Step:
    """A step: bytes, alpha's seconds hidden, and its pairs (source, destination) with volumes, in order."""

    def __init__(self, data, gpus):
        self.bytes, self.overlap = above_zero(data["bytes"], "bytes"), number(data.get("overlap", 0), "overlap")
        volumes = {}
        if data.get("shift") is not None:
            shift = whole(data["shift"], 1, gpus - 1, "shift")
            volumes = {(u, (u + shift) % gpus): 1 for u in range(gpus)}
        else:
            pairs = data["pairs"]
            each = data.get("volumes") or [1] * len(pairs)
            need(len(each) == len(pairs), "volumes: one a pair")
            for (u, v), volume in zip(pairs, each):
                whole(u, 0, gpus - 1, "pairs"), whole(v, 0, gpus - 1, "pairs")
                volumes[u, v] = volumes.get((u, v), 0) + above_zero(volume, "volumes")
        need(volumes and all(u != v for u, v in volumes), "pairs: between different GPUs")
        self.pairs, self.volumes = list(volumes), volumes


class Harvest:
    """A harvest instance."""

    def __init__(self, data, folder):
        self.data = data
        self.n, self.p = whole(data["gpus"], 2, 2**20, "gpus"), whole(data["ports"], 1, 2**20, "ports")
        self.b, self.alpha = above_zero(data["port_bandwidth"], "port_bandwidth"), number(data["alpha"], "alpha")
        self.hop = 0 if data.get("latency", "on") == "off" else number(data["delta"], "delta")
        self.R, self.circuit = (
            number(data["reconfiguration_delay"], "reconfiguration_delay"),
            data.get("delay_per_circuit") or 0,
        )
        self.table = data.get("delay_by_ports") or []
        self.steps = [Step(step, self.n) for step in data["steps"]]

    def delay(self, ports):
        """Return what the table says of a change of so many ports."""
        return next((seconds for most, seconds in self.table if most >= ports), 0)

    def replay(self, held):
        """Return the completion time: the doubles that the page names, added exactly and rounded once."""
        n, steps = self.n, len(self.steps)
        start = held.array("topology_start", 0, 2**31)
        source = held.array("link_src", 0, n - 1)
        target = held.array("link_dst", 0, n - 1, (len(source),))
        count = held.array("link_count", 1, self.p, (len(source),))
        need(
            start and start[0] == 0 and start[-1] == len(source) and start == sorted(start),
            "topology_start: not rising from 0 to the end",
        )
        topologies = []
        for first, last in pairwise(start):
            links = {(source[i], target[i]): count[i] for i in range(first, last)}
            need(
                len(links) == last - first and all(u != v for u, v in links), "link_src, link_dst: twice, or to itself"
            )
            for end in (0, 1):
                degree = Counter()
                for pair, times in links.items():
                    degree[pair[end]] += times
                need(max(degree.values(), default=0) <= self.p, f"link_count: more than {self.p} ports of a GPU")
            topologies.append(links)
        of_step = held.array("topology_of_step", 0, len(topologies) - 1, (steps,))
        begin = held.array("flow_start", 0, 2**31, (steps + 1,))
        pair = held.array("pair", 0, 2**31)
        rows = (len(pair),)
        if len(pair) > MOST_TRANSFERS:
            raise NotCovered(f"{len(pair)} flows")
        hop, u, v = (
            held.array("hop", 0, 2**31, rows),
            held.array("src", 0, n - 1, rows),
            held.array("dst", 0, n - 1, rows),
        )
        share = held.shaped("share").values
        need(
            begin[0] == 0 and begin[-1] == len(pair) == len(share) and begin == sorted(begin),
            "flow_start: not rising from 0 to the end",
        )
        need(all(type(x) in (int, float) and 0 < x <= 1 + 1e-9 for x in share), "share: not above 0 and at most 1")
        terms, before = [], None
        for i, step in enumerate(self.steps):
            now = topologies[of_step[i]]
            rows = range(begin[i], begin[i + 1])
            terms += self.flows(i, step, now, [(pair[r], hop[r], u[r], v[r], share[r]) for r in rows])
            if before is not None and now != before:
                terms.append(self.change(before, now, step.overlap))
            before = now
        return math.fsum(terms)

    def flows(self, i, step, links, rows):
        """Check the flows of a step; return its times."""
        need(rows, f"step {i}: no flows")
        net, load, longest = defaultdict(Fraction), defaultdict(list), 0
        for pair, hop, u, v, share in rows:
            need(pair < len(step.pairs) and hop <= len(rows), f"step {i}: pair {pair}, hop {hop}")
            need((u, v) in links, f"step {i}: {u} to {v} is no link of its topology")
            source, target = step.pairs[pair]
            need((hop or u == source) and u != target, f"step {i}: a flow of pair {pair} leaves {u}")
            exact = Fraction(share)
            net[pair, hop, u] += exact
            if v != target:
                net[pair, hop + 1, v] -= exact
            load[u, v].append(share * step.volumes[source, target])
            longest = max(longest, hop + 1)
        wrong = [Fraction(0)] * len(step.pairs)
        for k, (source, _) in enumerate(step.pairs):
            net[k, 0, source] -= 1
        for (pair, _, _), amount in net.items():
            wrong[pair] += abs(amount)
        worst = max(wrong)
        need(worst <= Fraction(1e-9), f"step {i}: a pair's flows are wrong by {float(worst):.3g}")
        most = max(math.fsum(loads) / links[link] for link, loads in load.items())
        if worst > Fraction(1e-14):
            most /= 1 - float(worst)
        return [self.alpha, self.hop * longest, step.bytes * most / self.b]

    def change(self, before, after, overlap):
        """Return what a change of topology costs."""
        up, ports = 0, Counter()
        for link in before.keys() | after.keys():
            gain = after.get(link, 0) - before.get(link, 0)
            up += max(0, gain)
            for end in (0, 1):
                ports[end, link[end], gain > 0] += abs(gain)
        nodes = {key[:2] for key in ports}
        moved = sum(max(ports[(*node, True)], ports[(*node, False)]) for node in nodes)
        total = Fraction(self.R) + up * Fraction(self.circuit) + Fraction(self.delay(moved))
        return max(0, float(total) - overlap)

    # -- certificate -----------------------------------------------------------------------------------------------

    def certify(self, held, bound):
        """Check that a certificate proves the bound: a step alone, intervals on one topology, all steps."""
        exponent = held.whole("unit_exponent", -1000, 1000)
        self.unit = Fraction(1, 2**exponent) if exponent >= 0 else Fraction(2**-exponent)
        self.exact = {key: Fraction(getattr(self, key)) for key in ("b", "alpha", "hop", "R")}
        self.patterns, self.of_step = [], []
        for step in self.steps:
            pattern = {pair: Fraction(volume) for pair, volume in step.volumes.items()}
            if pattern not in self.patterns:
                self.patterns.append(pattern)
            self.of_step.append(self.patterns.index(pattern))
        self.facts = [self.alone(pattern) for pattern in self.patterns]
        count, least = len(self.steps), {}
        for i, step in enumerate(self.steps):
            longest, U, d0, many = self.facts[self.of_step[i]]
            s, h = Fraction(step.bytes) / self.exact["b"], self.exact["hop"]
            time = self.exact["alpha"] + (h * longest + s * d0 if many else min(h + s * U, 2 * h + s * d0))
            least[i, i] = math.floor(time / self.unit)
        intervals = held.get("intervals")
        need(type(intervals) is list, "intervals: a list")
        if not intervals:
            proven = sum(least.values()) * self.unit
        else:
            self.set_orbits(held)
            for entry in map(Held, intervals):
                first = entry.whole("first", 0, count - 1)
                last = entry.whole("last", first, count - 1)
                found = math.floor(self.interval(first, last, entry.get("rows")) / self.unit)
                least[first, last] = max(found, least.get((first, last), 0))
            proven = self.all_steps(count, least) * self.unit
        need(bound <= proven, f"intervals: prove {float(proven)} s, not {float(bound)} s")

    def all_steps(self, count, least):
        """Return units: the least, over all ways to cut the steps into intervals, of changes and intervals."""
        best, free = {}, Fraction(self.circuit) if not self.table else 0
        for length in range(count):
            for a in range(count - length):
                c = a + length
                best[a, c] = max([least.get((a, c), 0)] + [best[a, m] + best[m + 1, c] for m in range(a, c)])
        up_to = [0]
        for c in range(count):
            ways = []
            for a in range(c + 1):
                cost = self.exact["R"] + Fraction(self.delay(2)) + free - Fraction(self.steps[a].overlap) if a else 0
                ways.append(up_to[a] + math.floor(max(0, cost) / self.unit) + best[a, c])
            up_to.append(min(ways))
        return up_to[count]

    def alone(self, pattern):
        """Return (least hops, U, d0, whether one GPU has more partners than ports) of a pattern alone."""
        n, p = self.n, self.p
        sides = [defaultdict(list), defaultdict(list)]
        for pair, volume in pattern.items():
            sides[0][pair[0]].append(volume)
            sides[1][pair[1]].append(volume)
        lists = [volumes for side in sides for volumes in side.values()]
        partners, total = max(map(len, lists)), sum(pattern.values())

        def whole_links(volumes):
            """The least load of a link if each volume has links of its own."""
            loads = sorted({volume / k for volume in volumes for k in range(1, p + 1)})
            fits = lambda w: sum(math.ceil(volume / w) for volume in volumes) <= p  # noqa: E731
            return loads[bisect_left(loads, True, key=fits)]

        def direct(volumes, u):
            """The most that p links of load u can bring in one hop: volumes cut into parts."""
            parts = []
            for volume in volumes:
                full = min(p, volume // u)
                parts += [u] * full + ([volume - full * u] if full < p else [])
            return sum(sorted(parts)[-p:])

        def refuted(u):
            return any(2 * total - sum(direct(volumes, u) for volumes in side.values()) > p * n * u for side in sides)

        d0 = max(map(sum, lists)) / p
        if refuted(d0):
            step = d0 / 2
            for _ in range(48):
                d0, step = (d0 + step if refuted(d0 + step) else d0), step / 2
        longest, reach = 1, p
        while reach < partners:
            longest, reach = longest + 1, reach + p ** (longest + 1)
        many = partners > p
        return longest, None if many else max(map(whole_links, lists)), d0, many

    def set_orbits(self, held):
        """Set the orbits of pairs under the certificate's permutations of GPUs, and read its bundles' prices."""
        n = self.n
        generators = rows_of(held.array("generators", 0, n - 1, (None, n)), n)
        for g in generators:
            check_permutation(g, n, "generators")
            for pattern in self.patterns:
                need(
                    all(pattern.get((g[u], g[v])) == volume for (u, v), volume in pattern.items()),
                    "generators: change a pattern",
                )
        self.orbit = number_orbits(sorted({pair for pattern in self.patterns for pair in pattern}), generators)
        self.sizes = []
        for pattern in self.patterns:
            sizes = defaultdict(Fraction)
            for pair, volume in pattern.items():
                sizes[self.orbit[pair]] += volume
            self.sizes.append(sizes)
        self.bundles = []
        bundles = held.get("bundles")
        need(type(bundles) is list, "bundles: a list")
        if bundles:
            need(n <= 512, "bundles: of at most 512 GPUs")
            label = number_orbits([(u, v) for u in range(n) for v in range(n)], generators)
            for bundle in map(Held, bundles):
                self.bundles.append(self.bundle(bundle, label))

    def bundle(self, held, label):
        """Check a bundle's prices; return (its patterns, D of each, its budget)."""
        n = self.n
        patterns = held.array("patterns", 0, len(self.patterns) - 1)
        need(patterns and len(set(patterns)) == len(patterns), "bundles: a pattern stands twice")
        labels = max(label.values()) + 1
        prices = rows_of(held.array("prices", 0, 2**40, (len(patterns), labels)), labels)
        r, c = (held.array(key, 0, 2**40, (n,)) for key in ("of_source", "of_destination"))
        total = [sum(column) for column in zip(*prices)]
        need(
            all(total[label[u, v]] <= r[u] + c[v] for u in range(n) for v in range(n) if u != v),
            "bundles: a link's prices are above its budget",
        )
        volumes = {}
        for k, price in zip(patterns, prices):
            by_source, volumes[k] = defaultdict(list), 0
            for (u, v), volume in self.patterns[k].items():
                by_source[u].append((v, volume))
            for u, mine in by_source.items():
                far = self.dense_distances(
                    u, [[price[label[a, b]] for b in range(n)] for a in range(n)] if u == min(by_source) else None
                )
                volumes[k] += sum(volume * far[v] for v, volume in mine)
        return patterns, volumes, self.p * (sum(r) + sum(c))

    def dense_distances(self, source, matrix=None):
        """Return cheapest paths from a GPU over all ordered pairs (a matrix is kept for the next GPUs)."""
        self.matrix = matrix or self.matrix
        far, left = list(self.matrix[source]), set(range(self.n)) - {source}
        far[source] = 0
        while left:
            u = min(left, key=far.__getitem__)
            left.remove(u)
            here = far[u]
            far = [x if x <= here + y else here + y for x, y in zip(far, self.matrix[u])]
        return far

    def interval(self, first, last, rows):
        """Return the seconds that rows with multipliers prove for some steps on one topology."""
        need(type(rows) is list, "rows: a list")
        steps = range(first, last + 1)
        mine = {self.of_step[i] for i in steps}
        cost, left = defaultdict(Fraction), {}
        for i in steps:
            k = self.of_step[i]
            cost["L", k] += self.exact["hop"]
            cost["u", k] += Fraction(self.steps[i].bytes) / self.exact["b"]
            left["L", k], left["u", k] = self.facts[k][0], self.facts[k][2]
            left.update((("a", o), 1) for o in self.sizes[k])
        proven = len(steps) * self.exact["alpha"]
        arcs = {pair for k in mine for pair in self.patterns[k]}
        for row in map(Held, rows):
            multiplier = Fraction(number(row.get("multiplier"), "multiplier"))
            need(multiplier >= 0, "multiplier: below 0")
            kinds = {"longest": self.longest_row, "volume": self.volume_row, "tree": self.tree_row,
                     "cycle": self.cycle_row, "rate": self.rate_row, "direct": self.direct_row}  # fmt: skip
            need(row.text("row") in kinds, f"row: {short(row.get('row'))} is unknown")
            coefficients, right = kinds[row.get("row")](row, mine, arcs, steps)
            for variable, coefficient in coefficients.items():
                cost[variable] -= multiplier * coefficient
            proven += multiplier * right
        for variable, rest in cost.items():
            need(rest >= 0, f"rows: they take more of {variable} than it costs")
            proven += rest * left[variable]
        return proven

    def pattern_of(self, row, mine):
        """Return the pattern of a row; it must be one of the interval's."""
        k = row.whole("pattern", 0, len(self.patterns) - 1)
        need(k in mine, f"pattern {k}: is none of the interval's")
        return k

    def longest_row(self, row, mine, arcs, steps):
        """The greatest number of hops is not below that of an orbit."""
        k = self.pattern_of(row, mine)
        o = row.whole("orbit", 0, 2**31)
        need(o in self.sizes[k], f"orbit {o}: not in pattern {k}")
        return {("L", k): 1, ("a", o): -1}, 0

    def volume_row(self, row, mine, arcs, steps):
        """All links of load u carry all volumes, once a hop."""
        k = self.pattern_of(row, mine)
        return {("u", k): self.p * self.n, **{("a", o): -size for o, size in self.sizes[k].items()}}, 0

    def tree_row(self, row, mine, arcs, steps):
        """GPUs are not all near one GPU: only p are a hop away, p^2 two hops, …"""
        nodes = row.array("nodes", 0, self.n - 1)
        parents = row.array("parents", -(2**31), 2**31, (len(nodes),))
        inwards, coefficients, paths = row.flag("inwards"), Counter(), [Counter()]
        need(nodes and len(set(nodes)) == len(nodes), "tree: nodes must be distinct")
        for i in range(1, len(nodes)):
            need(0 <= parents[i] < i, "tree: a parent stands before its child")
            arc = (nodes[parents[i]], nodes[i])
            arc = arc[::-1] if inwards else arc
            need(arc in arcs, f"tree: {arc} is no pair of the interval")
            paths.append(paths[parents[i]] + Counter([("a", self.orbit[arc])]))
            coefficients.update(paths[i])
        right, hops, missing = 0, 1, len(nodes) - 1
        while missing > 0:
            right += hops * min(missing, self.p**hops)
            missing, hops = missing - self.p**hops, hops + 1
        return coefficients, right

    def cycle_row(self, row, mine, arcs, steps):
        """With one port a GPU, a closed walk goes round a whole component."""
        need(self.p == 1, "cycle: only with one port")
        nodes, coefficients = row.array("nodes", 0, self.n - 1), Counter()
        need(len(nodes) >= 2, "cycle: at least two nodes")
        for arc in zip(nodes, nodes[1:] + nodes[:1]):
            need(arc in arcs, f"cycle: {arc} is no pair of the interval")
            coefficients["a", self.orbit[arc]] += 1
        beside = [[] for _ in range(self.n)]
        for u, v in arcs:
            beside[u].append(v)
            beside[v].append(u)
        return coefficients, sum(hops is not None for hops in hops_from(nodes[0], self.n, beside))

    def rate_row(self, row, mine, arcs, steps):
        """A bundle's prices pay for every unit of volume; (x - 1)^2 >= 0 makes the product of rate and time linear."""
        patterns, D, budget = self.bundles[row.whole("bundle", 0, len(self.bundles) - 1)]
        rates, coefficients, right = row.get("rates"), {}, -(2**40) * budget
        need(type(rates) is list and rates, "rates: a list")
        for rate in rates:
            need(type(rate) is list and len(rate) == 2, "rates: rows of two")
            k, r = whole(rate[0], 0, len(self.patterns) - 1, "rates"), whole(rate[1], 1, 2**62, "rates")
            need(
                k in mine and k in patterns and ("u", k) not in coefficients,
                "rates: patterns of the interval and bundle, once",
            )
            rho = Fraction(r) / max(self.patterns[k].values())
            coefficients["u", k] = D[k] * rho**2
            right += 2 * 2**20 * D[k] * rho
        return coefficients, right

    def direct_row(self, row, mine, arcs, steps):
        """A pattern goes over whole links in one hop, or takes two hops."""
        k = self.pattern_of(row, mine)
        _, U, d0, many = self.facts[k]
        need(not many, "direct: a GPU has more partners than ports")
        need(len({self.steps[i].bytes for i in steps if self.of_step[i] == k}) == 1, "direct: steps of unlike bytes")
        return {("L", k): U - d0, ("u", k): 1}, 2 * U - d0


def number_orbits(pairs, generators):
    """Return a dict pair → number of its orbit, numbered in the order of their least pairs; ``pairs`` are sorted."""
    numbers, count = {}, 0
    for pair in pairs:
        if pair not in numbers:
            numbers[pair], front = count, [pair]
            while front:
                u, v = front.pop()
                for g in generators:
                    image = (g[u], g[v])
                    if image not in numbers:
                        numbers[image] = count
                        front.append(image)
            count += 1
    return numbers


# ------------------------------------------------------------------------------------------------------------------
# 8  mlfm: phases in which every rank sends and receives at most once
# ------------------------------------------------------------------------------------------------------------------


class Mlfm:
    """An mlfm instance: leaf (layer, column) is layer·(d + 1) + column, a spine is a pair of columns a < b."""

    def __init__(self, data, folder):
        self.data, d = data, whole(data["d"], 1, 2**12, "d")
        self.d, self.columns = d, d + 1
        self.pairs = [(a, b) for a in range(d + 1) for b in range(a + 1, d + 1)]
        self.spine = {pair: s for s, pair in enumerate(self.pairs)}
        self.detour = data.get("routes", "minimal") == "detour"
        failed = data.get("failed") or {}
        leaf = lambda end: end[0] * (d + 1) + end[1]  # noqa: E731
        dead_leaves = {leaf(end) for end in failed.get("leaves", ())}
        dead_servers = {tuple(server) for server in failed.get("servers", ())}
        dead_spines = {self.spine[tuple(sorted(pair))] for pair in failed.get("spines", ())}
        cables = {(leaf(cut["leaf"]), self.spine[tuple(sorted(cut["spine"]))]) for cut in failed.get("links", ())}
        self.leaves = d * (d + 1)
        self.works = {}  # (leaf, other column) → whether the cable from the leaf to that spine works
        for x in range(self.leaves):
            for c in range(d + 1):
                if c != x % (d + 1):
                    s = self.spine[min(c, x % (d + 1)), max(c, x % (d + 1))]
                    self.works[x, c] = x not in dead_leaves and s not in dead_spines and (x, s) not in cables
        block, demand = data.get("block"), data.get("demand")
        if block is not None:
            sides = [block[key] for key in ("layers", "columns", "servers")]
            servers = list(product(*map(range, sides)))
        elif data.get("subset") is not None:
            servers = [tuple(server) for server in data["subset"]]
        elif demand is not None:
            servers = sorted({tuple(row[end]) for row in demand for end in ("source", "target")})
        else:
            servers = list(product(range(d), range(d + 1), range(d)))
        whole_machine = {"layers": d, "columns": d + 1, "servers": d}
        self.block = [(block or whole_machine)[key] for key in ("layers", "columns", "servers")]
        self.servers = [s for s in servers if s not in dead_servers and leaf(s) not in dead_leaves]
        self.leaf = [leaf(server) for server in self.servers]
        self.N, rank = len(self.servers), {server: x for x, server in enumerate(self.servers)}
        self.demand = None
        if demand is not None:
            self.demand = Counter()
            for row in demand:
                ends = (rank.get(tuple(row["source"])), rank.get(tuple(row["target"])))
                if None not in ends:
                    self.demand[ends] += whole(row.get("count", 1), 1, 2**40, "count")

    # -- the forms in which a schedule is stored: all become phases of (source, target, spine, middle, second) ---------

    def replay(self, held):
        """Return the number of congestion-free phases."""
        form, _most = held.text("form"), 2**20
        forms = {"table": self.table, "product": self.product, "repaired": self.repaired, "columns": self.column_flows}
        need(form in forms, f"form: {short(form)} is unknown")
        routes, value, sent, _most = {}, 0, Counter(), 0
        for f, phase in enumerate(forms[form](held)):
            used, receivers, load = [], set(), Counter()
            for x, y, spine, middle, second in phase:
                need(0 <= x < self.N and 0 <= y < self.N, f"phase {f}: {y} is no rank")
                need(y not in receivers, f"phase {f}: rank {y} receives twice")
                receivers.add(y)
                sent[x, y] += 1
                key = (self.leaf[x], self.leaf[y], spine, middle, second)
                if key not in routes:
                    routes[key] = self.route(*key)
                used.append(routes[key])
                load.update(routes[key])
            need(len({transfer[0] for transfer in phase}) == len(phase), f"phase {f}: a rank sends twice")
            value += self.split(used, load)
        if self.demand is None:
            need(len(sent) == self.N**2 == sum(sent.values()), "not every ordered pair of ranks is sent once")
        else:
            need(sent == self.demand, "what is sent is not what is asked for")
        return value

    def whole_array(self, held, key, shape, default=None):
        """Return an array of numbers in -1..2^20."""
        return held.array(key, -1, 2**20, shape, default)

    def table(self, held):
        """Yield phases that are stored as tables."""
        N = self.N
        dest = self.whole_array(held, "dest", (None, N))
        shape = (len(dest) // N, N)
        if len(dest) > MOST_TRANSFERS:
            raise NotCovered(f"{len(dest)} transfers")
        spine = self.whole_array(held, "spine", shape)
        middle, second = (self.whole_array(held, key, shape, ()) or [-1] * len(dest) for key in ("middle", "second"))
        for at in range(0, len(dest), N):
            yield [
                (x, dest[at + x], spine[at + x], middle[at + x], second[at + x]) for x in range(N) if dest[at + x] >= 0
            ]

    def product(self, held):
        """Yield phases that shifts of layers and slots make of patterns."""
        n, l, m = self.block  # noqa: E741
        need(n * l * m == self.N and held.whole("layers", 1, 2**20) == n, "form product: the ranks are not a block")
        pattern = self.whole_array(held, "pattern", (None,))
        layer, slot = (self.whole_array(held, key, (len(pattern),)) for key in ("layer_shift", "slot_shift"))
        column = self.whole_array(held, "column", (None, l, m))
        spine = self.whole_array(held, "spine", (len(column) // (l * m), l, m))
        if len(pattern) * self.N > MOST_TRANSFERS:
            raise NotCovered(f"{len(pattern) * self.N} transfers")
        need(not pattern or (min(pattern) >= 0 and max(pattern) < len(column) // (l * m)), "pattern: one that is none")
        need(all(0 <= c < l for c in column), "column: one that is none")
        for t, a, b in zip(pattern, layer, slot):
            phase = []
            for i, j, k in product(range(n), range(l), range(m)):
                to, at = column[(t * l + j) * m + k], (t * l + j) * m + k
                layer_to = (i + a) % n
                same = layer_to == i and to == j
                phase.append(
                    ((i * l + j) * m + k, (layer_to * l + to) * m + (k + b) % m, -1 if same else spine[at], -1, -1)
                )
            yield phase

    def repaired(self, held):
        """Yield the phases of a product in which some flows are moved to other groups of phases."""
        s, G = held.whole("slots", 1, 2**20), held.whole("groups", 1, 2**20)
        group = self.whole_array(held, "moved_group", (None,))
        rows = [
            self.whole_array(held, "moved_" + key, (len(group),))
            for key in ("source", "dest", "spine", "middle", "second")
        ]
        flows, gone = defaultdict(list), set()
        for g, x, y, *route in zip(group, *rows):
            need(0 <= g < G and 0 <= x < self.N and 0 <= y < self.N, "moved: a group or rank that is none")
            flows[g].append((x, y, *route))
            gone.add((x, y // s))
        phases = list(self.product(held))
        need(G * s >= len(phases), "groups: fewer than the product's")
        if G * s * self.N > MOST_TRANSFERS:
            raise NotCovered(f"{G * s * self.N} transfers")
        for f in range(G * s):
            phase = [row for row in (phases[f] if f < len(phases) else ()) if (row[0], row[1] // s) not in gone]
            moved = {x: (x, y // s * s + (y % s + f % s) % s, *route) for x, y, *route in flows[f // s]}
            need(len(moved) == len(flows[f // s]), "moved: two flows of one rank in a group")
            yield [row for row in phase if row[0] not in moved] + list(moved.values())

    def column_flows(self, held):
        """Yield phases that are stored as flows of columns, the same for every layer."""
        n, l, m = (held.whole(key, 1, 2**20) for key in ("layers", "columns", "slots"))  # noqa: E741
        c, G, stride = held.whole("length", 1, 2**20), held.whole("groups", 0, 2**20), held.whole("stride", 1, 2**20)
        need(
            n * l * m == self.N and m % c == 0 and stride == self.columns,
            "layers, columns, slots, length, stride: do not fit",
        )
        need(self.block == [n, l, m], "layers, columns, slots: not the block's")
        group = self.whole_array(held, "group", (None,))
        keys = ("source", "slot", "target", "first", "shift", "spine", "middle", "second")
        rows = [self.whole_array(held, key, (len(group),)) for key in keys]
        if len(group) * c * n > MOST_TRANSFERS:
            raise NotCovered(f"{len(group) * c * n} transfers")
        flows, seen = defaultdict(list), set()
        for g, *row in zip(group, *rows):
            source, slot, target, first, shift, spine, middle, second = row
            need(
                0 <= g < G and 0 <= source < l and 0 <= slot < m and 0 <= target < l and 0 <= first < m,
                "a flow out of range",
            )
            need(
                0 <= shift < n and (g, source, slot) not in seen,
                "two flows of a server in a group, or a shift that is none",
            )
            seen.add((g, source, slot))
            flows[g].append(row)
        for f in range(G * c):
            phase, t = [], f % c
            for source, slot, target, first, shift, spine, middle, second in flows[f // c]:
                to = c * (first // c) + (first % c + t) % c
                for i in range(n):
                    by = middle if middle < 0 else i * stride + middle
                    phase.append(
                        ((i * l + source) * m + slot, ((i + shift) % n * l + target) * m + to, spine, by, second)
                    )
            yield phase

    # -- replay ----------------------------------------------------------------------------------------------------

    def route(self, P, Q, spine, middle, second):
        """Return the links (leaf, other column, way: 0 up, 1 down) of a route between leaves."""
        if P == Q:
            need(spine == middle == second == -1, "a route within a leaf crosses no spine")
            return ()
        need(0 <= spine < len(self.pairs), f"spine {spine}: is none")
        if middle == -1:
            need(second == -1, "second: without a leaf in the middle")
            return self.crossing(P, Q, spine)
        need(
            self.detour and 0 <= middle < self.leaves and 0 <= second < len(self.pairs),
            "a route over a leaf in the middle",
        )
        need(
            middle % self.columns not in (P % self.columns, Q % self.columns),
            "middle: a leaf of the sender's or receiver's column",
        )
        return self.crossing(P, middle, spine) + self.crossing(middle, Q, second)

    def crossing(self, P, Q, spine):
        """Return the two links from leaf to leaf over a spine."""
        a, b, pair = P % self.columns, Q % self.columns, self.pairs[spine]
        need(a in pair and b in pair, f"spine {pair}: does not join leaves {P} and {Q}")
        up, down = (P, sum(pair) - a), (Q, sum(pair) - b)
        need(self.works[up] and self.works[down], f"spine {pair}: a failed link between leaves {P} and {Q}")
        return ((*up, 0), (*down, 1))

    def split(self, used, load):
        """Return the fewest congestion-free phases into which transfers split, given the links of each."""
        worst = max(load.values(), default=0)
        if worst <= 1 or all(len(links) <= 2 for links in used):
            return max(1, worst)
        on = defaultdict(list)
        for i, links in enumerate(used):
            for link in links:
                on[link].append(i)
        joined = {i: {j for link in links for j in on[link]} - {i} for i, links in enumerate(used)}
        joined = {i: others for i, others in joined.items() if others}
        colours = worst
        while not colourable(joined, colours):
            colours += 1
        return colours

    def certify(self, held, bound):
        """Check that a certificate proves a number of phases that is at least the bound."""
        binding = held.text("binding")
        need(binding in ("ranks", "links"), f"binding: {short(binding)} is unknown")
        if binding == "ranks":
            ends = [Counter(), Counter()]
            for pair, count in (self.demand or {}).items():
                ends[0][pair[0]] += count
                ends[1][pair[1]] += count
            proven = self.N if self.demand is None else max([*ends[0].values(), *ends[1].values()], default=0)
        else:
            proven = self.links(held)
        need(bound <= proven, f"{binding}: proves {proven} phases, not {float(bound)}")

    def links(self, held):
        """Return what weights on links prove: every transfer pays the cheapest route."""
        rows = rows_of(held.array("links", 0, 2**20, (None, 3)), 3)
        weights = held.array("weights", 0, 10**9, (len(rows),))
        weight = dict(zip(map(tuple, rows), weights))
        need(
            len(weight) == len(rows) and all((x, c) in self.works and way < 2 for x, c, way in weight),
            "links: twice, or none",
        )
        cost = {(*key, way): weight.get((*key, way), 0) for key, works in self.works.items() for way in (0, 1) if works}
        total, n = sum(cost.values()), self.columns
        need(total > 0, "weights: of all links that work are 0")

        def one(P, Q):
            a, b = P % n, Q % n
            ways = [(b, a)] if a != b else [(c, c) for c in range(n) if c != a]
            return min(
                (cost.get((P, c, 0), INFINITE) + cost.get((Q, e, 1), INFINITE) for c, e in ways), default=INFINITE
            )

        wanted = Counter()
        if self.demand is None:
            of_leaf = Counter(self.leaf)
            for P, p in of_leaf.items():
                for Q, q in of_leaf.items():
                    wanted[P, Q] = p * q
        else:
            for (x, y), count in self.demand.items():
                wanted[self.leaf[x], self.leaf[y]] += count
        table = {(P, Q): one(P, Q) for P in range(self.leaves) for Q in range(self.leaves)} if self.detour else None
        needed = 0
        for (P, Q), count in wanted.items():
            if P != Q:
                length = one(P, Q)
                if self.detour:
                    over = (R for R in range(self.leaves) if R % n not in (P % n, Q % n))
                    length = min([length] + [table[P, R] + table[R, Q] for R in over])
                need(length < INFINITE, f"leaves {P} and {Q}: no route joins them")
                needed += count * length
        return ceiling(needed, total)


def colourable(joined, colours):
    """Return whether a graph (node → neighbours) can be coloured with so many colours, by search."""
    if len(joined) > 1000:
        raise NotCovered(f"{len(joined)} transfers that share links with detours")
    given, left = {}, [200_000]

    def search():
        if len(given) == len(joined):
            return True
        left[0] -= 1
        if left[0] < 0:
            raise NotCovered("splitting a phase with detours takes too long")
        free = {i: {given[j] for j in joined[i] if j in given} for i in joined if i not in given}
        i = max(free, key=lambda i: (len(free[i]), len(joined[i])))
        for colour in range(min(colours, len(set(given.values())) + 1)):
            if colour not in free[i]:
                given[i] = colour
                if search():
                    return True
                del given[i]
        return False

    sys.setrecursionlimit(10_000)
    return search()


# ------------------------------------------------------------------------------------------------------------------
# 9  optree: steps of an allgather over optical rings and lines
# ------------------------------------------------------------------------------------------------------------------


class Optree:
    """An optree instance: dimensions (side, stride, whether a ring), wavelengths w, and the most hops of a circuit."""

    def __init__(self, data, folder):
        self.data, grid = data, data.get("grid")
        self.N, self.w = whole(data["nodes"], 2, 2**31, "nodes"), whole(data["wavelengths"], 1, 2**31, "wavelengths")
        sides = [self.N] if grid is None else [whole(side, 2, 2**31, "sides") for side in grid["sides"]]
        kinds = ["ring"] if grid is None else grid["kinds"]
        need(math.prod(sides) == self.N and len(kinds) == len(sides), "grid: the product of its sides is not nodes")
        self.grid, self.dimensions, stride = grid is not None, [], self.N
        for side, kind in zip(sides, kinds):
            stride //= side
            self.dimensions.append((side, stride, {"ring": True, "line": False}[kind]))
        self.longest = max(sides)
        self.H = self.longest - 1
        power, crosstalk = data.get("power"), data.get("crosstalk")
        if power is not None or crosstalk is not None:
            self.H = max((h for h in range(self.longest) if self.allowed(h + 1, power, crosstalk)), default=0)

    @staticmethod
    def allowed(L, power, noise):
        """Return whether a circuit may pass L interfaces under the budgets of power and crosstalk."""
        if power is not None:
            loss = power["modulator_loss_db"] + L * power["pass_loss_db"] + power["penalty_db"] - 1e-9
            if power["laser_dbm"] < loss:
                return False
        if noise is None:
            return True
        total = L * noise["rx_noise_mw"] + noise["tx_noise_mw"] + noise["other_noise_mw"]
        signal = 10 * math.log10(noise["signal_mw"] / total) if total else INFINITE
        return 0.5 * math.exp(-signal / 4) < noise["max_ber"]

    def replay(self, held):
        """Return the number of steps of circuits that bring every item to every node, or of a counted algorithm."""
        if "algorithm" in held:
            return self.counted(held)
        steps = held.array("step", 1, 2**62)
        rows = (len(steps),)
        if len(steps) > MOST_TRANSFERS or self.N**2 > MOST_CELLS:
            raise NotCovered(f"{len(steps)} circuits")
        source, target, origin = (held.array(key, 0, self.N - 1, rows) for key in ("src", "dst", "origin"))
        direction = held.array("direction", 0, 2 * len(self.dimensions) - 1, rows)
        wavelength = held.array("wavelength", 0, self.w - 1, rows)
        here = [INFINITE] * self.N**2  # the earliest step at which an item comes to a node
        for v in range(self.N):
            here[v * self.N + v] = 0
        for item, v, step in zip(origin, target, steps):
            here[item * self.N + v] = min(step, here[item * self.N + v])
        used, known, now = set(), {}, 0
        places = 2 * len(self.dimensions) * self.N
        for i in sorted(range(len(steps)), key=steps.__getitem__):
            step, key, item = steps[i], (source[i], target[i], direction[i]), origin[i]
            if step != now:
                used, now = set(), step
            if key not in known:
                known[key] = self.path(*key)
            size = len(used)
            used.update([wavelength[i] * places + link for link in known[key]])
            if len(used) != size + len(known[key]):
                raise Fault(f"step {step}: wavelength {wavelength[i]} is used twice between {key[0]} and {key[1]}")
            if here[item * self.N + source[i]] >= step:
                raise Fault(f"step {step}: node {source[i]} sends item {item}, which it has not")
        need(INFINITE not in here, "some node misses an item at the end")
        return max(steps, default=0)

    def path(self, u, v, way):
        """Return the links, each as one number, that a circuit passes."""
        need(u != v, f"circuit from {u} to itself")
        side, stride, ring = self.dimensions[way // 2]
        a, b = u // stride % side, v // stride % side
        need(u - a * stride == v - b * stride, f"circuit {u} to {v}: not along dimension {way // 2}")
        hops = (b - a if way % 2 == 0 else a - b) % side
        need(ring or (b > a) == (way % 2 == 0), f"circuit {u} to {v}: leads off the line")
        need(hops <= self.H, f"circuit {u} to {v}: {hops} hops, at most {self.H}")
        places = range(a, a + hops) if way % 2 == 0 else range(a - hops, a)
        return [(u + (x % side - a) * stride) * 2 * len(self.dimensions) + way for x in places]

    def counted(self, held):
        """Return the steps of an algorithm that is stated as a formula."""
        N, w = self.N, self.w
        need(not self.grid, "algorithm: only counted on one ring")
        name, numbers = held.text("algorithm"), held.array("numbers", 1, 2**31)
        if name == "ring":
            need(not numbers, "numbers: none")
            steps, longest = N - 1, 1
        elif name == "neighbor_exchange":
            need(not numbers and N % 2 == 0, "neighbor_exchange: an even number of nodes")
            steps, longest = 1 + (N // 2 - 1) * ceiling(2, w), 1
        elif name == "one_stage" or (name == "formula" and numbers == [1]):
            need(name == "formula" or not numbers, "numbers: none")
            steps, longest = ceiling(ceiling(N * N, 8), w), N // 2
        elif name == "formula":
            need(len(numbers) == 1 and numbers[0] <= 64, "numbers: one k up to 64")
            k = numbers[0]
            right = (2 * k - 1) ** k * N ** (k + 1)
            steps = least_with(lambda S: (8 * w * S) ** k >= right)
            longest = N - (least_with(lambda x: x**k > N ** (k - 1)) - 1)  # N - ⌊N^(1 - 1/k)⌋
        elif name == "wrht":
            need(len(numbers) == 1 and numbers[0] <= 2, "numbers: 1 or 2")
            M = 2 * w + 1
            t = least_with(lambda t: M**t >= N)
            steps = 1 + ceiling(M**t - M, M - 1) + (t - 2 + numbers[0]) * M ** (t - 1)
            last = M ** (t - 1)
            longest = min(N // 2, max(w * (last // M), ceiling(N, last) // 2 * last, 1))
        else:
            need(name == "stages" and numbers, f"algorithm: {short(name)} is unknown")
            steps, longest = self.stages(numbers)
        need(longest <= self.H, f"{name}: needs circuits of {longest} hops, at most {self.H}")
        return steps

    def stages(self, radices):
        """Return (steps, longest hops) of the algorithm of several stages."""
        N, w, r, g = self.N, self.w, radices[0], math.prod(radices[1:])
        need(g < N and ceiling(N, g) == r, f"stages: {radices} do not fit {N} nodes")
        steps, longest = ceiling(ceiling(g * (r * r // 4), 2), w), min(N - 1, r // 2 * g)
        for r in radices[1:]:
            s = g // r
            rightwards, leftwards = [0] * (r * s), [0] * (r * s)
            for i in range(r):
                for q in range(s):
                    items = N // (r * s) + (i * s + q < N % (r * s))
                    for other in range(r):
                        a, b = i * s + q, other * s + q
                        for x in range(a, b):
                            rightwards[x] += items
                        for x in range(b, a):
                            leftwards[x] += items
            steps += ceiling(max(rightwards + leftwards), w)
            longest, g = max(longest, (r - 1) * s), s
        return steps, longest

    def certify(self, held, bound):
        """Check that a certificate proves a number of steps that is at least the bound."""
        binding = held.text("binding")
        ring = {
            "receive": lambda held: ceiling(self.N - 1, 2 * self.w),
            "leaps": lambda held: ceiling(2 * (self.N - 1), 2 * self.w + 2),
            "reach": self.ring_reach,
        }
        grid = {"turns": lambda held: len(self.dimensions), "cut": self.cut, "reach": self.grid_reach}
        prove = grid if self.grid else ring
        need(binding in prove, f"binding: {short(binding)} is unknown")
        proven = prove[binding](held)
        need(bound <= proven, f"{binding}: proves {proven} steps, not {float(bound)}")

    def weights(self, held, most_weights, most):
        """Return the weights of the steps."""
        weights = held.array("weights", 0, most)
        need(1 <= len(weights) <= most_weights and self.N <= 8192, f"weights: 1 to {most_weights}, at most 8192 nodes")
        return weights

    def ring_reach(self, held):
        """An item that gets round the ring in T steps takes that many weighted hops."""
        N, weights = self.N, self.weights(held, self.N - 1, 10**9)
        need(any(weights), "weights: all are 0")
        M, rest = min(N - 1, self.H), [0, 0] + [INFINITE] * (N - 1)
        if N * M * len(weights) > 3 * 10**8:
            raise NotCovered(f"reach: {N} nodes, {len(weights)} steps")
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
        """What has to enter a set of nodes."""
        inside, crossing = set(held.array("nodes", 0, self.N - 1)), 0
        need(0 < len(inside) < self.N, "nodes: all or none")
        for v in range(self.N):
            for side, stride, ring in self.dimensions:
                place = v // stride % side
                if place + 1 < side or ring:
                    crossing += (v in inside) != (v + ((place + 1) % side - place) * stride in inside)
        return ceiling(self.N - len(inside), crossing * self.w)

    def grid_reach(self, held):
        """What the holders of an item can reach in a step costs hops, a step later less."""
        N, T = self.N, held.whole("horizon", 1, self.N)
        weights, later = self.weights(held, min(T, 32), 10**6), held.whole("later", 0, 10**9)
        K, rings = min(self.H, self.longest // 2), [side for side, _, _ in self.dimensions]
        within = [[min(2 * k, side - 1) for side in rings] for k in range(K + 1)]
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
        links = sum(self.N // side * (side if ring else side - 1) for side, _, ring in self.dimensions) * 2
        capacity = links * self.w * (sum(weights) + (T - len(weights)) * later)
        need(N * cost[1] > capacity, "reach: proves nothing")
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


def least_with(holds):
    """Return the least whole number from 1 on for which something holds that holds from there on."""
    high = 1
    while not holds(high):
        high *= 2
    return bisect_left(range(high + 1), True, lo=1, key=holds)


# ------------------------------------------------------------------------------------------------------------------
# 10  bine: bytes on global links
# ------------------------------------------------------------------------------------------------------------------


def labels(text, ranks=None):
    """Return the run-length coded labels of ranks, numbered by first appearance."""
    found = []
    for word in text.split():
        label, _, count = word.rpartition("x")
        need(label and count.isdecimal() and 1 <= int(count) <= 2**24, f"allocation: {short(word)}")
        found += [label] * int(count)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(found))}
    need(found and (ranks is None or len(found) == ranks), "nodes: as many as the allocation has ranks")
    return [numbers[label] for label in found]


class Bine:
    """A bine instance: jobs are lists of (group, node) a rank, or one torus."""

    def __init__(self, data, folder):
        self.data, self.torus, self.collective = data, data.get("torus"), data["collective"]
        self.problem, self.root = data.get("problem", "any"), data.get("root") or 0
        self.costs = [Fraction(number(cost, "costs")) for cost in data.get("costs") or (0, 0, 1)]
        self.bytes, self.rounds = Fraction(above_zero(data["bytes"], "bytes")), data.get("rounds")
        if self.torus is not None:
            self.sides = [whole(side, 1, 2**20, "torus") for side in self.torus]
            self.jobs = [[(v, v) for v in range(math.prod(self.sides))]]
        else:
            self.jobs = []
            for job in data["jobs"]:
                groups = labels(job["allocation"])
                nodes = labels(job["nodes"], len(groups)) if job.get("nodes") is not None else range(len(groups))
                self.jobs.append(list(zip(groups, nodes)))
        small = data.get("vector") == "small" and self.collective in ("broadcast", "reduce", "allreduce")
        self.blocks = [
            len(job) ** 2 if self.collective == "alltoall" else 1 if small else len(job) for job in self.jobs
        ]
        self.small = small
        need(all(0 <= self.root < len(job) for job in self.jobs), "root: is no rank")

    def crossings(self, job, u, v):
        """Return what a byte from rank u to rank v counts."""
        if self.torus is not None:
            total, stride = 0, len(job)
            for side in self.sides:
                stride //= side
                apart = abs(u // stride % side - v // stride % side)
                total += min(apart, side - apart)
            return total
        return self.costs[2] if job[u][0] != job[v][0] else self.costs[1] if job[u][1] != job[v][1] else self.costs[0]

    def block_bytes(self, j, shares):
        """Return the bytes of a block of job j."""
        parts = len(self.jobs[j]) if self.collective == "alltoall" else self.blocks[j]
        return self.bytes / (shares * parts)

    def replay(self, held):
        """Return the weighted bytes of a schedule of all jobs."""
        shares = held.whole("shares", 1, 2**31)
        of_job = held.array("job", 0, len(self.jobs) - 1)
        keys = ("round", "src", "dst", "first", "count", "adds")
        columns = [held.array(key, 0, 2**31, (len(of_job),)) for key in keys]
        need(of_job == sorted(of_job), "job: rows are not in the order of jobs")
        layout, starts = held.array("layout", 0, 2**31), held.array("starts", 0, 2**31, (len(self.jobs) + 1,))
        rows = [[] for _ in self.jobs]
        for j, *row in zip(of_job, *columns):
            rows[j].append(row)
        carried = sum(row[4] for mine in rows for row in mine)
        if carried > 20 * MOST_TRANSFERS:
            raise NotCovered(f"{carried} blocks in {len(of_job)} messages")
        need(
            starts[0] == 0 and starts[-1] == len(layout) and starts == sorted(starts),
            "starts: not rising from 0 to the end",
        )
        total = Fraction(0)
        for j, job in enumerate(self.jobs):
            mine, blocks = layout[starts[j] : starts[j + 1]], shares * self.blocks[j]
            need(sorted(mine) == list(range(blocks)), f"layout: of job {j} is no permutation of its {blocks} blocks")
            self.replay_job(j, job, rows[j], mine, blocks)
            if self.problem == "tree":
                self.check_tree(job, rows[j])
            elif self.problem == "butterfly":
                self.check_butterfly(job, rows[j], shares)
            counted = sum(row[4] * self.crossings(job, row[1], row[2]) for row in rows[j])
            total += counted * self.block_bytes(j, shares)
        return float(total)

    def replay_job(self, j, job, rows, layout, blocks):
        """Check possession and contributions of one job; sets of contributions are bits."""
        p, collective, root = len(job), self.collective, self.root
        everybody, sums = (1 << p) - 1, collective in ("reduce", "reduce_scatter", "allreduce")
        if blocks * p > MOST_CELLS:
            raise NotCovered(f"{blocks} blocks on {p} ranks")
        sets = [[1 << v] * blocks if sums else [0] * blocks for v in range(p)]
        for b in range(blocks):
            if collective in ("broadcast", "scatter"):
                sets[root][b] = everybody
            elif collective in ("gather", "allgather", "alltoall"):
                sets[(b // p if collective == "alltoall" else b) % p][b] = everybody
        at, last = 0, 0
        while at < len(rows):
            now, moved = rows[at][0], []
            need(now >= last, f"job {j}: rounds are not in order")
            last = now
            while at < len(rows) and rows[at][0] == now:
                _, u, v, first, count, adds = rows[at]
                need(u < p and v < p and u != v, f"job {j}, round {now}: from rank {u} to rank {v}")
                need(count >= 1 and first + count <= blocks, f"job {j}, round {now}: blocks {first} to {first + count}")
                need(adds in (0, 1) and (sums or not adds), "adds: 0 or 1, and nothing is added here")
                mine = layout[first : first + count]
                moved.append((v, mine, [sets[u][b] for b in mine], adds))
                at += 1
            for v, mine, carried, adds in moved:
                have = sets[v]
                for b, what in zip(mine, carried):
                    if adds:
                        need(not have[b] & what, f"job {j}, round {now}: rank {v} adds to block {b} what it has")
                        have[b] |= what
                    else:
                        need(
                            what == everybody,
                            f"job {j}, round {now}: rank {v} is sent block {b}, which is not there (or not complete)",
                        )
                        have[b] = everybody
        for b in range(blocks):
            if collective in ("broadcast", "allgather", "allreduce"):
                ends = range(p)
            else:
                ends = (root if collective in ("reduce", "gather") else b % p,)
            need(
                all(sets[v][b] == everybody for v in ends), f"job {j}: block {b} is not (completely) where it should be"
            )

    def most_rounds(self, p):
        """Return how many rounds a tree may take."""
        return self.rounds if self.rounds is not None else (p - 1).bit_length()

    def check_tree(self, job, rows):
        """Check that messages form a tree: one into every rank but the root, one out of a rank a round."""
        back = self.collective in ("reduce", "gather")
        messages = {(now, v, u) if back else (now, u, v) for now, u, v, *_ in rows}
        need(all(now < self.most_rounds(len(job)) for now, _, _ in messages), "tree: too many rounds")
        into = Counter(v for _, _, v in messages)
        need(
            into == Counter(v for v in range(len(job)) if v != self.root),
            "tree: not one message of every rank but the root",
        )
        need(len({(now, u) for now, u, _ in messages}) == len(messages), "tree: a rank has two messages in a round")

    def volumes(self, p):
        """Return the blocks that a message of each round of a butterfly has."""
        q = p.bit_length() - 1
        need(p == 2**q, "butterfly: as many ranks as a power of two")
        falling = [p >> (i + 1) for i in range(q)]
        if self.collective == "allreduce":
            return [1] * q if self.small else falling + falling[::-1]
        volumes = {"reduce_scatter": falling, "allgather": falling[::-1], "alltoall": [p // 2] * q}
        need(self.collective in volumes, f"butterfly: not of {self.collective}")
        return volumes[self.collective]

    def check_butterfly(self, job, rows, shares):
        """Check that in each round ranks are paired and send each other what a butterfly sends."""
        p, sent, pairings = len(job), defaultdict(Counter), []
        volumes = self.volumes(p)
        for now, u, v, _, count, _ in rows:
            sent[now][u, v] += count
        need(set(sent) == set(range(len(volumes))), f"butterfly: {len(volumes)} rounds")
        for now, volume in enumerate(volumes):
            partner = dict(sent[now].keys())
            need(len(partner) == len(sent[now]) == p, f"round {now}: not one message of every rank")
            need(all(partner.get(partner[v]) == v for v in partner), f"round {now}: ranks are not paired")
            need(
                set(sent[now].values()) == {volume * shares},
                f"round {now}: messages are not of {volume * shares} blocks",
            )
            pairings.append(partner)
        if self.collective == "allreduce" and not self.small:
            need(pairings == pairings[::-1], "butterfly: does not go back through its pairings")
        for a in pairings:
            need(all(a[b[v]] == b[a[v]] for b in pairings for v in range(p)), "butterfly: pairings do not commute")

    # -- certificates ----------------------------------------------------------------------------------------------

    def partitions(self, job):
        """Return (weight, part of every rank) of each way to part a job's ranks."""
        alone = list(range(len(job)))
        if self.torus is not None:
            return [(1, alone)]
        cost = self.costs
        ways = [
            (cost[2] - cost[1], [group for group, _ in job]),
            (cost[1] - cost[0], [node for _, node in job]),
            (cost[0], alone),
        ]
        return [(weight, part) for weight, part in ways if weight]

    def certify(self, held, bound):
        """Check that a certificate proves bytes that are at least the bound."""
        binding, total, at = held.text("binding"), Fraction(0), 0
        need(binding in ("receive", "isoperimetric", "prices"), f"binding: {short(binding)} is unknown")
        if binding == "prices":
            need(
                self.problem == "tree" and self.collective in ("broadcast", "reduce") and self.torus is None,
                "prices: of a tree of broadcast or reduce",
            )
            scale, prices = held.whole("scale", 1, 2**24), held.array("prices", -(2**31) + 1, 2**31 - 1)
        for j, job in enumerate(self.jobs):
            for weight, part in self.partitions(job):
                if binding == "receive":
                    total += self.bytes * weight * self.received(part)
                elif binding == "isoperimetric":
                    total += weight * self.isoperimetric(part) * self.block_bytes(j, 1)
                else:
                    rounds = self.most_rounds(len(job))
                    mine, at = prices[at : at + rounds], at + rounds
                    need(len(mine) == rounds, "prices: too few")
                    total += self.bytes * weight * self.priced(part, mine, scale)
        need(binding != "prices" or at == len(prices), "prices: too many")
        proven = Fraction(float(total))
        need(bound <= proven, f"{binding}: proves {float(proven)} bytes, not {float(bound)}")

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
        p = len(part)
        weights = self.volumes(p)
        if self.collective == "allreduce" and not self.small:
            weights = [2 * volume for volume in weights[: len(weights) // 2]]
        weights = sorted(weights, reverse=True)
        inside = [0, *accumulate(sum(w for j, w in enumerate(weights) if i >> j & 1) for i in range(p))]
        return p * sum(weights) - 2 * sum(inside[n] for n in Counter(part).values())

    def priced(self, part, prices, scale):
        """Return the messages between parts that prices of rounds prove."""
        rounds, sizes = len(prices), Counter(part)
        if max(sizes.values()) > 4096 or rounds > 64:
            need(not any(prices), "prices: of parts of more than 4096 ranks must be 0")
            return len(sizes) - 1
        need(min(prices, default=0) >= 0 or len(part) == 2**rounds, "prices: below 0")
        total, known = 0, {}
        for name, size in sizes.items():
            root = int(name == part[self.root])
            if (size, root) not in known:
                known[size, root] = least_priced(size, root, prices, scale)
            total += known[size, root]
        return max(len(sizes) - 1, ceiling(total, scale))


def least_priced(size, root, prices, scale):
    """Return the least Σ price·d + scale·max(0, d) over rows of ranks from ``root`` to ``size`` that never fall.

    d is what a round gains beyond a doubling; it costs ``price + scale`` above 0 and ``price`` below."""
    costs = [INFINITE] * (size + 1)
    costs[root] = 0
    for price in prices:
        after, above, behind = [INFINITE] * (size + 1), INFINITE, deque()
        for y in range(size + 1):
            # from x to y >= 2x: costs[x] + (price + scale)·(y - 2x); from x to y < 2x: costs[x] + price·(y - 2x)
            if y % 2 == 0:
                above = min(above, costs[y // 2] - (price + scale) * y)
            here = costs[y] - 2 * price * y
            while behind and behind[-1][0] >= here:
                behind.pop()
            behind.append((here, y))
            while behind and 2 * behind[0][1] <= y:
                behind.popleft()
            after[y] = above + (price + scale) * y
            if behind:
                after[y] = min(after[y], behind[0][0] + price * y)
        costs = after
    return costs[size]


# ------------------------------------------------------------------------------------------------------------------
# 11  The command
# ------------------------------------------------------------------------------------------------------------------

FAMILIES = {"xtree": Xtree, "fabric": Fabric, "harvest": Harvest, "mlfm": Mlfm, "optree": Optree, "bine": Bine}


def records_of(paths):
    """Yield (name, folder, record or instance text) of everything below the paths, in order."""
    for path in paths:
        files = [path]
        if os.path.isdir(path):
            files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
            files = [file for file in files if file.endswith((".json", ".jsonl"))]
        for file in files:
            with open(file, encoding="utf-8-sig") as lines:
                text = lines.read()
            if file.endswith(".jsonl"):
                for number, line in enumerate(text.split("\n"), 1):
                    if line.strip():
                        yield f"{file}:{number}", os.path.dirname(file), line
            else:
                yield file, os.path.dirname(file), text


class Checker:
    """Checks records one by one, and compares those of one instance with each other."""

    def __init__(self):
        self.files, self.places, self.best = {}, set(), {}

    def open_arrays(self, path):
        """Return the arrays of a file, opened once."""
        if path not in self.files:
            need(os.path.isfile(path), f"solution_file: there is no {os.path.basename(path)}")
            self.files[path] = Arrays(path)
        return self.files[path]

    def check(self, name, folder, text):
        """Return (family, accept, refuse or not covered, a message, the solution's and the certificate's kinds)."""
        family = "?"
        try:
            record = read_json(text, "record")
            need(type(record) is dict, "neither a record nor an instance")
            family = record.get("family") if type(record.get("family")) is str else "?"
            if record.get("format") == "synth-instance/1":
                read_instance(text, folder)
                return family, "accept", "an instance", []
            place = record.get("record_path")
            if place is not None:
                need(
                    type(place) is str and place.endswith(".json") and not place.startswith("/"),
                    f"record_path: {short(place)}",
                )
                need(not {"", ".", ".."} & set(place.split("/")), f"record_path: {short(place)}")
                need((folder, place) not in self.places, f"record_path: {place} stands twice")
                self.places.add((folder, place))
            done, left, value, bound = check_record(record, folder, self.open_arrays)
            self.compare(family, record["instance_sha256"], value if "replay" in done else None, bound)
        except Fault as fault:
            return family, "refuse", str(fault), []
        except NotCovered as why:
            return family, "not covered", str(why), []
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, OSError) as wrong:
            return family, "refuse", f"not as the pages say: {wrong!r}", []
        if left:
            return family, "not covered", "; ".join(left), done
        return family, "accept", ", ".join(done) or "states neither value nor certificate", done

    def compare(self, family, sha, value, bound):
        """Check that no replayed value of any record is below a certified bound of any on the same instance."""
        values, bounds = self.best.setdefault((family, sha), ([], []))
        values += [value] if value is not None else []
        bounds += [bound] if bound is not None else []
        if values and bounds:
            need(
                not exceeds(max(bounds), min(values)),
                f"bound {max(bounds)} of one record exceeds value {min(values)} of another",
            )


def main(arguments):
    """Check what the arguments name; print a line a record and a summary; return the exit code."""
    quiet = "--faults" in arguments
    checker, counts, kinds = Checker(), Counter(), Counter()
    for name, folder, text in records_of([argument for argument in arguments if argument != "--faults"]):
        family, verdict, message, done = checker.check(name, folder, text)
        counts[family, verdict] += 1
        kinds.update((family, what) for what in done)
        if not quiet or verdict != "accept":
            print(f"{verdict:11} {name}: {message}", flush=True)
    for family in sorted({family for family, _ in counts}):
        total = sum(n for (other, _), n in counts.items() if other == family)
        print(
            f"{family:8} {total:5} records: "
            + ", ".join(f"{counts[family, verdict]} {verdict}" for verdict in ("accept", "refuse", "not covered"))
        )
        print(
            "         verified: "
            + ", ".join(f"{n} × {what}" for (other, what), n in sorted(kinds.items()) if other == family)
        )
    return int(any(verdict == "refuse" and n for (_, verdict), n in counts.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
