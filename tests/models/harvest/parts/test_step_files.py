"""Demand files: what is split into matchings adds up to the file, byte for byte."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from models.harvest.instances import stated

from synth.errors import InputError
from synth_models.harvest.parts.step_files import birkhoff_von_neumann, read_matrix, read_steps

LARGEST = 1 << 40


def random_matrix(seed: int) -> list[list[int]]:
    """2 to 8 GPUs; entries of 1 byte to 2^40, on one scale, on all scales at once or from a few values (ties); dense to
    nearly empty; row and column sums as they fall, or all equal."""
    random = np.random.default_rng([9, seed])
    size = int(random.integers(2, 9))
    kind = seed % 4
    if kind == 0:
        entries = random.integers(1, LARGEST, (size, size), endpoint=True)
    elif kind == 1:
        entries = np.minimum(2.0 ** random.uniform(0, 40, (size, size)), LARGEST).astype(np.int64)
    elif kind == 2:
        entries = random.choice([1, 2, 3, LARGEST - 1, LARGEST], (size, size))
    else:  # equal sums: shifts of any weights
        entries = np.zeros((size, size), dtype=np.int64)
        for shift in range(1, size):
            entries[np.arange(size), (np.arange(size) + shift) % size] = random.integers(0, LARGEST >> 8)
    entries[random.random((size, size)) < random.choice([0.0, 0.3, 0.8])] = 0
    np.fill_diagonal(entries, 0)
    if not entries.any():
        entries[0, 1] = 1
    return entries.tolist()


def served(steps: list[dict], size: int) -> list[list[Fraction]]:
    total = [[Fraction(0)] * size for _ in range(size)]
    for step in steps:
        sources, targets = zip(*step["pairs"], strict=True)
        assert len(set(sources)) == len(sources)
        assert len(set(targets)) == len(targets)
        assert step["bytes"] > 0
        for u, v in step["pairs"]:
            total[u][v] += Fraction(step["bytes"])
    return total


def every_byte_is_served(seed: int, folder: Path) -> None:
    matrix = random_matrix(seed)
    path = folder / "demand.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in matrix) + "\n")
    gpus, steps = read_steps(path)
    assert gpus == len(matrix)
    assert served(steps, gpus) == matrix
    longest = max(max(map(sum, matrix)), max(map(sum, zip(*matrix, strict=True))))
    assert sum(Fraction(step["bytes"]) for step in steps) <= longest
    assert len(steps) <= (2 * gpus) ** 2
    stated(gpus=gpus, ports=1, steps=steps)


@pytest.mark.parametrize("part", range(4))
def test_every_byte_of_a_demand_is_served(part, tmp_path):
    for seed in range(10 * part, 10 * part + 10):
        every_byte_is_served(seed, tmp_path)


@pytest.mark.slow
def test_every_byte_of_1000_demands_is_served(tmp_path):
    for seed in range(1000):
        every_byte_is_served(seed, tmp_path)


def test_small_entries_do_not_vanish(tmp_path):
    """1 byte beside 2^50, and a millionth of a byte beside that."""
    path = tmp_path / "demand.csv"
    path.write_text(f"0,{1 << 50},1\n1,0,{1 << 50}\n{1 << 50},1e-6,0\n")
    _, steps = read_steps(path)
    total = served(steps, 3)
    for found, wanted in ((total[0][2], 1), (total[1][0], 1), (total[2][1], Fraction(1, 10**6))):
        assert wanted <= found <= wanted * (1 + Fraction(1, 10**15))


def test_fractions_of_bytes_are_never_rounded_down(tmp_path):
    path = tmp_path / "demand.csv"
    texts = [["0", "0.1", "1e20"], ["1e-20", "0", "0.7"], ["33333.3", "0.3", "0"]]
    path.write_text("\n".join(",".join(row) for row in texts))
    total = served(read_steps(path)[1], 3)
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            assert Fraction(text) <= total[i][j] <= Fraction(text) * (1 + Fraction(1, 10**15))


def test_floats_and_their_sums_are_exact():
    demand = np.array([[0, 0.1, 0.2], [0.3, 0, 0.1], [0.2, 0.1, 0]])
    steps = [{"bytes": size, "pairs": pairs.tolist()} for size, pairs in birkhoff_von_neumann(demand)]
    total = served(steps, 3)
    for (i, j), number in np.ndenumerate(demand):
        assert total[i][j] >= Fraction(number)
        assert float(total[i][j]) == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e-301", "smaller than"),
        ("1e-400", "smaller than"),
        ("1e301", "larger than"),
        ("1e400", "larger than"),
        ("1/3", "finite number"),
        ("nan", "finite number"),
        ("-0.1", "finite number"),
    ],
)
def test_entries_out_of_range_are_named(text, message, tmp_path):
    path = tmp_path / "demand.csv"
    path.write_text(f"0,{text}\n1,0\n")
    with pytest.raises(InputError, match=message):
        read_matrix(path)


def test_a_byte_order_mark_is_no_part_of_the_first_number(tmp_path):
    path = tmp_path / "demand.csv"
    path.write_bytes(b"\xef\xbb\xbf0,3\n1,0\n")
    assert read_matrix(path).tolist() == [[0, 3], [1, 0]]
