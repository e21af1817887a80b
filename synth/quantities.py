"""Numbers as a person reads them: 9.00 MiB, 12.1 us, 24.1 GB/s, 1,024. Exact values are in records and CSV files.

Times and rates take SI prefixes, sizes binary ones, three significant digits each (by QuantiPhy); counts are whole
numbers with separators.
"""

from __future__ import annotations

from quantiphy import Quantity

NOTHING = "–"
DIGITS = 2  # after the first significant one
SI_UNITS = ("s", "bytes", "bytes/s")  # that a text of :func:`shown` names itself
_LONG_S = 120.0  # from here on minutes


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


def count(value: float) -> str:
    """A count with separators; six digits where it is no whole number."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


def percent(value: float | None) -> str:
    """A relative gap."""
    if value is None:
        return NOTHING
    return "0" if value == 0 else f"{100 * value:.2f} %" if abs(value) < 0.995 else f"{100 * value:,.0f} %"


def times(value: float | None) -> str:
    """A ratio."""
    return NOTHING if value is None else f"{value:.3g}×"
