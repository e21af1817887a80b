"""Numbers as a person reads them: 9.00 MiB, 12.1 us, 24.1 GB/s, 1,024. Exact values are in records and CSV files.

Times and rates take SI prefixes, sizes binary ones, three significant digits each (by QuantiPhy); counts are whole
numbers with separators.
"""

from __future__ import annotations

from quantiphy import Quantity

NOTHING = "–"
DIGITS = 2  # after the first significant one
SECONDS, BYTES = "s", "bytes"
LEAST_PERCENT = 5e-5  # relative: below it two digits of a percent are 0.00
_LONG_S = 120.0  # from here on minutes
SCALES = {
    "bytes": ((1, "B"), (1024, "KiB"), (1024**2, "MiB"), (1024**3, "GiB"), (1024**4, "TiB")),
    "s": ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1, "s")),
    "bytes/s": ((1, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")),
}  # what an axis may count in
GAP = "gap = (value − bound) / value; no schedule can be better by a larger part of the value"


def shown(value: float | None, unit: str = "") -> str:
    """The number with its unit; a dash for None. Units of records: ``s``, ``bytes``, ``bytes/s``; others count
    things (``timesteps``), whose names stand elsewhere."""
    if value is None:
        return NOTHING
    match unit:
        case "s" if value == 0:
            return "0 s"
        case "s" if abs(value) >= _LONG_S:
            return f"{value / 3600:.1f} h" if abs(value) >= 2 * 3600 else f"{value / 60:.1f} min"
        case "s":
            return Quantity(value, "s").render(prec=DIGITS, strip_zeros=False)
        case "bytes":
            whole = abs(value) < 1024 and value == int(value)
            return f"{int(value)} B" if whole else Quantity(value, "B").binary(prec=DIGITS, strip_zeros=False)
        case "bytes/s":
            return Quantity(value, "B/s").render(prec=DIGITS, strip_zeros=False)
    return count(value)


def named(value: float | None, unit: str) -> str:
    """The number with its unit or with the name of what it counts, for places where that name stands nowhere else."""
    alone = value is None or not unit or unit in SCALES
    return shown(value, unit) if alone else f"{shown(value, unit)} {unit}"


def scaled(unit: str, highest: float) -> tuple[float, str]:
    """What an axis up to ``highest`` of the unit counts in: the factor and its name."""
    steps = SCALES.get(unit, ((1, unit),))
    return next(((factor, name) for factor, name in reversed(steps) if factor <= highest), steps[0])


def count(value: float) -> str:
    """A count with separators; six digits where it is no whole number."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


def counted(number: int, what: str) -> str:
    """``1 step``, ``1,000 steps``, ``2 switches``."""
    return f"{number:,} {what}" + ("" if number == 1 else "es" if what.endswith("ch") else "s")


def with_unit(value: float | None, unit: str) -> str:
    """The same where no heading names what is counted: ``4 timesteps``."""
    return NOTHING if value is None else shown(value, unit) + ("" if unit in SCALES or not unit else f" {unit}")


def percent(value: float | None) -> str:
    """A relative gap: ``0`` only where it is 0, ``3e-11`` (of 1) where two digits of a percent would not show it."""
    if value is None:
        return NOTHING
    if abs(value) < LEAST_PERCENT:
        return "0" if value == 0 else f"{value:.0e}"
    return f"{100 * value:.2f} %" if abs(value) < 0.995 else f"{100 * value:,.0f} %"


def times(value: float | None) -> str:
    """A ratio."""
    return NOTHING if value is None else f"{value:.3g}×"
