"""Tables of tensors as CSV: ``name,shape,dtype,from,to``, a row a tensor.

``shape``: sizes joined by x (``7168x2048``); ``from``, ``to``: how it lies on either mesh
(:mod:`synth.resharding.layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synth.resharding.layout import Layout, layout_of
from synth.resharding.mesh import Mesh
from synth.text.csv import typed_rows
from synth.text.input_file import InputFile

DTYPES = {
    **dict.fromkeys(("i8", "u8", "int8", "uint8", "bool", "f8", "fp8", "f8e4m3", "f8e5m2", "float8"), 1),
    **dict.fromkeys(("f16", "fp16", "float16", "bf16", "bfloat16", "i16", "int16"), 2),
    **dict.fromkeys(("f32", "fp32", "float32", "i32", "int32"), 4),
    **dict.fromkeys(("f64", "fp64", "float64", "i64", "int64"), 8),
}
MOST_TENSORS, MOST_ENTRIES, MOST_DIMENSIONS = 1_000_000, 2**48, 8
SIDES = ("from", "to")


@dataclass(frozen=True)
class Tensor:
    """``entry_bytes``: of an entry; ``held``, ``wanted``: its layouts on the two meshes."""

    name: str
    shape: tuple[int, ...]
    entry_bytes: int
    held: Layout
    wanted: Layout


def read_tensors(file: InputFile, source: Mesh | None, target: Mesh | None) -> list[Tensor]:
    """The tensors of a table, on a mesh that is not known without layout. Raises :class:`InputError` with every fault
    by its line and column."""
    columns: dict[str, Callable[[str], Any]] = {
        "name": str, "shape": _shape, "dtype": _dtype, "from": str, "to": str,
    }  # fmt: skip
    known: dict[tuple[Any, ...], Layout | str] = {}
    names: dict[str, int] = {}

    def layouts(row: Mapping[str, Any]) -> list[Layout | str]:
        return [
            _layout(row["shape"], row.get(side, ""), mesh, known)
            for side, mesh in zip(SIDES, (source, target), strict=True)
        ]

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        first = names.setdefault(row.get("name", f"line {row['line']}"), row["line"])
        if first != row["line"]:
            yield "name", f"stands on line {first} too"
        if "shape" not in row:
            return
        held, wanted = found = layouts(row)
        yield from ((side, words) for side, words in zip(SIDES, found, strict=True) if isinstance(words, str))
        if isinstance(held, Layout) and held.nowhere and not (isinstance(wanted, Layout) and wanted.nowhere):
            yield "from", f"nobody holds tensor {row.get('name')}"

    rows = typed_rows(file, columns, ("name", "shape", "dtype"), "tensor", wrong, "line", MOST_TENSORS)
    return [Tensor(row["name"], row["shape"], row["dtype"], *_both(layouts(row))) for row in rows]


def _both(found: list[Layout | str]) -> tuple[Layout, Layout]:
    held, wanted = (layout for layout in found if isinstance(layout, Layout))
    return held, wanted


def _layout(
    shape: tuple[int, ...], text: str, mesh: Mesh | None, known: dict[tuple[Any, ...], Layout | str]
) -> Layout | str:
    """The layout, or what is wrong with it; read once for all tensors alike."""
    if mesh is None:
        return Layout({}, ())
    key = (id(mesh), shape, text)
    if key not in known:
        try:
            known[key] = layout_of(text, shape, mesh.axes)
        except ValueError as error:
            known[key] = str(error)
    return known[key]


def _shape(text: str) -> tuple[int, ...]:
    words = text.strip().split("x")
    if not all(word.isascii() and word.isdecimal() and len(word) <= 15 for word in words):
        raise ValueError("must be sizes joined by x, such as 7168x2048")
    sizes, entries = tuple(map(int, words)), 1
    for size in sizes:
        entries *= size
    if not 1 <= entries <= MOST_ENTRIES or len(sizes) > MOST_DIMENSIONS:
        raise ValueError(f"must have 1 to {MOST_DIMENSIONS} dimensions and 1 to {MOST_ENTRIES} entries")
    return sizes


def _dtype(text: str) -> int:
    size = DTYPES.get(text.strip().lower())
    if size is None:
        raise ValueError(f"must be one of {', '.join(sorted(DTYPES))}")
    return size
