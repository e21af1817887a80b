"""What all parts of the second checker share: faults, and numbers in a range. Python's standard library alone."""

import math
from reprlib import repr as short

INFINITE = float("inf")  # compared with, or a cost that nobody pays


class Fault(Exception):
    """What a record states is false, or is not stated as the pages demand."""


class NotCovered(Exception):
    """This checker does not do that."""


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


def ceiling(over, under):
    return -(-over // under)
