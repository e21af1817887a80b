"""Rates of InfiniBand links: bytes/s of data by width and generation.

A lane's signalling rate and its data rate after line coding, Gbit/s (InfiniBand Architecture Specification, volume 2;
FDR and EDR code 64 bits as 66, what EDR and later ones are sold as is the data rate).
"""

from __future__ import annotations

from fractions import Fraction

from synth.text.amounts import scaled_rate

LANES = (1, 2, 4, 8, 12)
_DATA_GBPS = {
    "SDR": Fraction(2), "DDR": Fraction(4), "QDR": Fraction(8), "FDR10": Fraction(10), "FDR": Fraction(150, 11),
    "EDR": Fraction(25), "HDR": Fraction(50), "NDR": Fraction(100), "XDR": Fraction(200),
}  # fmt: skip
_BY_SPEED = {
    "2.5": "SDR", "5": "DDR", "10": "QDR", "10.3125": "FDR10", "14.0625": "FDR", "14": "FDR", "25.78125": "EDR",
    "25.78": "EDR", "25": "EDR", "53.125": "HDR", "50": "HDR", "106.25": "NDR", "100": "NDR", "212.5": "XDR",
    "200": "XDR",
}  # fmt: skip
SOURCE = "data rates of InfiniBand after line coding (IBA volume 2), such as 25 GB/s for 4xHDR"


def rate(width: str, speed: str) -> float:
    """Bytes/s of a link of ``width`` lanes (``4`` or ``4x``) of a generation (``HDR``) or a speed in Gbit/s a lane
    (``53.125``). Raises ``ValueError``."""
    lanes = width.lower().removesuffix("x")
    if not lanes.isascii() or not lanes.isdigit() or len(lanes) > 2 or int(lanes) not in LANES:
        raise ValueError(f"width must be one of {', '.join(f'{one}x' for one in LANES)}")
    short = speed.rstrip("0").rstrip(".") if "." in speed else speed
    gbps = _DATA_GBPS.get(_BY_SPEED.get(short, speed.upper()))
    if gbps is None:
        raise ValueError(f"speed must be one of {', '.join(_DATA_GBPS)}, or that of a lane such as 53.125")
    return scaled_rate(float(int(lanes) * gbps), Fraction(10**9, 8))
