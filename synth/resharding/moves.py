"""What a plan moves, by bytes of tensors: two tables that say where each transfer's bytes lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from synth.resharding.classes import Class
from synth.resharding.tensors import Tensor

if TYPE_CHECKING:
    import pandas as pd

RANGES = "block,offset,bytes,tensor,entries"


def ranges(classes: Sequence[Class], tensors: Sequence[Tensor]) -> Iterator[str]:
    """Lines of a CSV file: which entries of which tensor (``begin:end`` of every dimension, joined by x, the last
    dimension fastest) the bytes of a block are, from ``offset`` on."""
    yield RANGES
    for block, one in enumerate(classes):
        offset = 0
        for number, cell in one.parts:
            entries = "x".join(f"{begin}:{end}" for begin, end in cell.box)
            name = tensors[number].name
            quoted = '"' + name.replace('"', '""') + '"' if set(name) & set(',"\n') else name
            yield f"{block},{offset},{cell.bytes},{quoted},{entries}"
            offset += cell.bytes


def with_offsets(table: pd.DataFrame) -> pd.DataFrame:
    """The transfers of a plan's flat table: ``start_s,block,offset,bytes,src,dst``, where ``offset`` counts from the
    beginning of the block. Pieces of a block lie one behind the other in the order of their numbers."""
    pieces = table.drop_duplicates("piece").sort_values("piece")
    offset = pieces.groupby("block")["bytes"].cumsum() - pieces["bytes"]
    by_piece = dict(zip(pieces["piece"].tolist(), offset.tolist(), strict=True))
    found = table.assign(offset=[by_piece[piece] for piece in table["piece"].tolist()])
    return found[["start_s", "block", "offset", "bytes", "src", "dst"]]
