"""One colour a number, for pictures that show whose data a transfer carries; the ink that is read on a colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgb

NAMED = 24  # colours up to which the bar beside a picture names each
INK = "#0a0a0a"  # on light cells, in either theme of a page (pure black would take the page's text colour)


def discrete(count: int) -> tuple[ListedColormap, BoundaryNorm]:
    """A colour for each of the numbers 0 … ``count`` - 1: well-known ones for up to 20, beyond them even steps."""
    count = max(count, 1)
    if count <= 10:
        found = [colormaps["tab10"](number) for number in range(count)]
    elif count <= 20:  # strong colours first, their pale partners behind
        found = [colormaps["tab20"](2 * number % 20 + number // 10) for number in range(count)]
    else:
        found = [tuple(colour) for colour in colormaps["turbo"](np.linspace(0.03, 0.97, count))]
    return ListedColormap(found), BoundaryNorm(np.arange(-0.5, count + 0.5), count)


def colour_bar(figure: Any, axes: Any, colours: tuple[Any, Any], label: str, names: Sequence[str] = ()) -> None:
    """The bar beside a picture: every colour by its name (default: its number), or some where they are many."""
    cmap, norm = colours
    count = cmap.N
    ticks = range(0, count, max(1, -(-count // NAMED)))
    bar = figure.colorbar(ScalarMappable(norm, cmap), ax=axes, label=label, shrink=0.8, ticks=list(ticks))
    bar.ax.minorticks_off()
    if names:
        bar.ax.set_yticks(list(ticks), [names[tick] for tick in ticks], parse_math=False)
    bar.ax.tick_params(labelsize="small", length=0)


def ink(colour: Any) -> str:
    """Black or white, whichever is read more easily on the colour."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour[:3])
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.053 else INK
