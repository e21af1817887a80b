"""The NVLinks of a DGX-1 with V100 (hybrid cube mesh), which TACCL's and TE-CCL's files mean by a name."""

from __future__ import annotations

DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))  # pairs of GPUs with two NVLinks
SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))  # with one
GPUS = 8
