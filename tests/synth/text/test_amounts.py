"""One parser of quantities: whatever way a quantity is written, through whatever door, it is the same number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import synth
from synth.errors import InputError
from synth.instance import Instance
from synth.options import as_text
from synth.text import amounts

HARVEST = {"algorithm": "recursive_doubling", "gpus": 4, "ports": 1, "alpha": 0, "delta": 0}
HARVEST |= {"message_bytes": 4096, "port_bandwidth": 1e9, "reconfiguration_delay": 0}
XTREE = {"network": "ring", "nodes": 3}
MLFM = {"d": 2, "layers": 1, "columns": 2, "servers": 1}
SIZES = (("1MiB", 2**20), ("64KB", 64000), ("1e6", 10**6), ("1.5KiB", 1536), ("4096", 4096), ("0.001GB", 10**6))
RATES = (("25GB/s", 25 * 10**9), ("200Gbit/s", 25 * 10**9), ("25e9", 25 * 10**9), ("1GiB/s", 2**30), ("8Mbps", 10**6))
TIMES = (("1us", "1e-6"), ("0.7us", "7e-7"), ("350ns", "0.35e-6"), ("2ms", "0.002"), ("0", "0"), ("1e-6", "1e-6"))
DOORS = [  # family, key, the other keys, what is read of the instance
    ("fabric", "bytes", "size", XTREE | {"nodes": 4}),
    ("fabric", "bandwidth", "rate", XTREE | {"bytes": 3}),
    ("fabric", "latency", "time", XTREE | {"bytes": 3}),
    ("fabric", "uplink_bandwidth", "rate", {"network": "fat_tree", "leaves": 2, "hosts": 1, "spines": 1, "bytes": 2}),
    ("fabric", "global_bandwidth", "rate", {"network": "dragonfly", "groups": 2, "routers": 1, "hosts": 1, "bytes": 2}),
    ("xtree", "bandwidth", "rate", XTREE),
    ("xtree", "latency", "time", XTREE),
    ("xtree", "chunk_bytes", "size", XTREE),
    ("harvest", "message_bytes", "size", HARVEST),
    ("harvest", "port_bandwidth", "rate", HARVEST),
    ("harvest", "alpha", "time", HARVEST),
    ("harvest", "delta", "time", HARVEST),
    ("harvest", "reconfiguration_delay", "time", HARVEST),
    ("harvest", "delay_per_circuit", "time", HARVEST),
    ("harvest", "overlap", "time", HARVEST),
    ("mlfm", "bandwidth", "rate", MLFM),
    ("mlfm", "message_bytes", "size", MLFM),
    ("mlfm", "latency", "time", MLFM),
    ("optree", "item_bytes", "size", {"nodes": 4, "wavelengths": 1}),
    ("optree", "wavelength_bandwidth", "rate", {"nodes": 4, "wavelengths": 1}),
    ("optree", "step_overhead", "time", {"nodes": 4, "wavelengths": 1}),
    ("bine", "bytes", "size", {"groups": "2,2"}),
]
WRITTEN = {"size": SIZES, "rate": RATES, "time": TIMES}


def sourceless(instance: Instance) -> str:
    """The instance's hash but for how it was typed."""
    return instance.model_copy(update={"source": "x", "name": "x"}).sha256


@pytest.mark.parametrize(("family", "key", "kind", "others"), DOORS)
def test_every_key_of_every_family_takes_units(family: str, key: str, kind: str, others: dict[str, object]) -> None:
    """The instance from a text with a unit is that of the plain number: typed, as text, and as a study passes it."""
    for text, plain in WRITTEN[kind]:
        made = [
            synth.make(family, **others | {key: value})
            for value in (text, str(plain), float(plain), as_text(float(plain)))
        ]
        assert len({sourceless(one) for one in made}) == 1, text


@pytest.mark.parametrize(("family", "key", "kind", "others"), DOORS)
@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "-1", "9" * 5000, "1 apple", "1__0", "0x10", "", "1e", "٣"])
def test_hostile_quantities_are_refused_by_name(
    family: str, key: str, kind: str, others: dict[str, object], text: str
) -> None:
    with pytest.raises(InputError) as caught:
        synth.make(family, **others | {key: text})
    assert any(key in fault.path or key in fault.message for fault in caught.value.faults), str(caught.value)[:300]


FACTORS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@given(st.integers(0, 10**12), st.integers(0, 9), st.sampled_from(sorted(FACTORS)), st.booleans())
def test_quantities_are_exact(digits: int, places: int, prefix: str, bits: bool) -> None:
    """By arithmetic on fractions: digits / 10^places times the prefix, bits an eighth."""
    written = f"{digits // 10**places}.{digits % 10**places:0{places}d}" if places else str(digits)
    value = Fraction(digits, 10**places) * FACTORS[prefix]
    assert amounts.amount(f"{written}{prefix}B", "size") == value
    assert amounts.amount(f" {written} {prefix}{'bit' if bits else 'B'}/s ", "rate") == value / (8 if bits else 1)
    for unit, scale in {"s": 0, "ms": 3, "us": 6, "µs": 6, "ns": 9, "ps": 12}.items():
        assert amounts.amount(f"{written}{unit}", "time") == Fraction(digits, 10 ** (places + scale))


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [("500M", 500), ("4G", 4000), ("1.5GB", 1500), ("4GiB", 4294.967296), ("1GiB", 1073.741824), ("300", 300)],
)
def test_memory_has_the_units_of_every_size(text: str, megabytes: float) -> None:
    """4 GiB are 2^32 bytes for a limit of memory as for a message; a bare number is megabytes."""
    assert amounts.megabytes(text) == megabytes


def test_limits_take_short_and_long_units() -> None:
    assert [amounts.wall_time(text) for text in ("90", "60s", "1.5m", "2h", "500ms")] == [90, 60, 90, 7200, 0.5]
    for text in ("0", "-1s", "1d", "1e999", "nan", "1" + " " * 500 + "s"):
        with pytest.raises(ValueError, match=r"duration > 0|beyond"):
            amounts.wall_time(text)


def test_shares() -> None:
    assert [amounts.share(text) for text in ("11/12", "0.5", "75%", "22 / 24")] == [
        Fraction(11, 12), Fraction(1, 2), Fraction(3, 4), Fraction(11, 12),
    ]  # fmt: skip
    for text in ("0", "1", "12/12", "13/12", "1/0", "-1/2", "nan", "100%", "x"):
        with pytest.raises(ValueError, match="share between 0 and 1"):
            amounts.share(text)


def test_cells_of_tables_take_units(tmp_path: Path) -> None:
    """A demand's sizes and a matrix of bytes, beside the same in plain bytes."""
    rest = {"ports": 1, "port_bandwidth": "1GB/s", "alpha": 0, "delta": 0, "reconfiguration_delay": 0, "name": "x"}
    made = []
    for rows, cells in (
        ("0,1,64KB\n1,0,1MiB\n", "0,64KB\n1MiB,0\n"),
        ("0,1,64000\n1,0,1048576\n", "0,6.4e4\n1048576,0\n"),
    ):
        (tmp_path / "demand.csv").write_text("src,dst,bytes\n" + rows)
        (tmp_path / "matrix.csv").write_text(cells)
        made.append(
            (
                synth.make("fabric", network="ring", nodes=3, collective="demand", demand=tmp_path / "demand.csv"),
                synth.make("harvest", steps=tmp_path / "matrix.csv", **rest),
            )
        )
    assert [*map(sourceless, made[0])] == [*map(sourceless, made[1])]
