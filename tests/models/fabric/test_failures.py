"""Files of failures: which directions fail, what is left, what is said; sizes that do not divide."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import synth
from synth.errors import InputError
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import SHARED_OUT

BOX = {"machine": "dgx-a100", "boxes": 2, "bytes": "1MiB"}


def made(folder: Path, text: str, **keys: object) -> FabricInstance:
    (folder / "broken.txt").write_text(text)
    instance = synth.make("fabric", **BOX | keys, failed=folder / "broken.txt")
    assert isinstance(instance, FabricInstance)
    return instance


def ends(instance: FabricInstance) -> dict[tuple[str, str], float]:
    net, names = instance.machine.network, instance.machine.names
    triples = zip(net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), strict=True)
    return {(names[u], names[v]): rate for u, v, rate in triples}


GPU, NIC = "0/gpu1", "0/nic1"


def test_a_link_fails_in_both_directions_an_arrow_in_one(tmp_path: Path) -> None:
    whole = ends(synth.make("fabric", **BOX))  # type: ignore[arg-type]
    both = made(tmp_path, f"link {GPU} {NIC}\n")
    assert whole.keys() - ends(both).keys() == {(GPU, NIC), (NIC, GPU)}
    one = made(tmp_path, f"link {GPU} -> {NIC}\n")
    assert whole.keys() - ends(one).keys() == {(GPU, NIC)}
    assert whole.keys() - ends(made(tmp_path, f"link {NIC}->{GPU}")).keys() == {(NIC, GPU)}
    assert both.failed.links == made(tmp_path, f"link {GPU} {NIC}\nlink {NIC} {GPU} # and back\n").failed.links


def test_a_share_is_left(tmp_path: Path) -> None:
    """11/12 of 300 GB/s are 275 GB/s, both ways; half of 25 GB/s one way; the time follows."""
    slow = made(tmp_path, f"link {GPU} 0/nvswitch 11/12\nlink {GPU} -> {NIC} 50%\n")
    found, whole = ends(slow), ends(synth.make("fabric", **BOX))  # type: ignore[arg-type]
    wanted = {(GPU, "0/nvswitch"): 275e9, ("0/nvswitch", GPU): 275e9, (GPU, NIC): 12.5e9}
    assert found == whole | wanted
    assert slow.failed.reduced is not None
    assert slow.failed.shares == {
        (1, 16): Fraction(11, 12), (16, 1): Fraction(11, 12), (1, 18): Fraction(1, 2),
    }  # fmt: skip
    again = synth.instance.from_bytes(slow.to_json().encode(), "x")
    assert ends(again) == found  # type: ignore[arg-type]
    ring = {"network": "ring", "nodes": 2, "bandwidth": "1GB/s", "latency": 0, "bytes": 2 * 10**6}
    (tmp_path / "b.txt").write_text("link 0 1 1/2")
    slowed = synth.make("fabric", **ring, failed=tmp_path / "b.txt")
    assert synth.solve(slowed, "bound").bound == 2 * synth.solve(synth.make("fabric", **ring), "bound").bound  # type: ignore[operator]


def test_what_failed_is_said_in_the_instance_and_on_the_screen(tmp_path: Path) -> None:
    text = f"link {GPU} {NIC}\nlink 0/gpu2 -> 0/nic2\nnode ib1\nlink 0/gpu3 0/nic3 3/4\n"
    instance = made(tmp_path, text)
    words = (
        f"failed: links {GPU} <-> {NIC} (both directions), 0/gpu2 -> 0/nic2 (one direction); nodes ib1; "
        "3/4 of the bandwidth left on 0/gpu3 <-> 0/nic3 (both directions)"
    )
    assert instance.notes == (words,)
    assert instance.source.endswith(words)
    assert words in synth.solve(instance, "direct", time_limit=20).describe()


def test_older_instances_keep_their_meaning() -> None:
    """What was stored as one direction stays one; no key appears."""
    plain = synth.make("fabric", **BOX)
    old = plain.model_copy(update={"failed": {"links": [[1, 18]], "nodes": []}})
    assert isinstance(old, FabricInstance)
    assert (NIC, GPU) in ends(old)
    assert (GPU, NIC) not in ends(old)
    assert "reduced" not in plain.to_json() + old.to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("link 0", "line 1 = 'link 0': must be 'link A B' (both directions), 'link A -> B'"),
        ("link 0/gpu1 -> 0/nic1 0/gpu2 3", "must be 'link A B'"),
        ("link 0/gpu1 ->", "must be 'link A B'"),
        ("node ->", "must be 'link A B'"),
        ("link 0/gpu1 0/nic1 12/11", "must be a share between 0 and 1"),
        ("link 0/gpu1 0/nic1 nan", "must be a share between 0 and 1"),
        ("link 0/gpu1 0/gpu2", "line 1: there is no link from 0/gpu1 to 0/gpu2 in either direction"),
        ("link 0/gpu1 0/nic1\nlink 0/nic1 0/gpu1 1/2", "line 2: the link 18 -> 1 was said to fail otherwise"),
        ("node ²", "line 1 = '²': no such node"),
        ("link 0/gpu1 0/nic1 1e-300", "must be a share between 0 and 1"),
    ],
)
def test_wrong_lines(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        made(tmp_path, text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 18, "1/2"], [1, 18, "1/3"]], "failed.reduced[1]: the link from 1 to 18 stands twice"),
        ([[1, 18, "3/2"]], "failed.reduced[0] = '3/2': the share that is left must be less than 1"),
        ([[1, 2, "1/2"]], "failed.reduced[0]: there is no link from 1 to 2"),
        ([[1, 18, "0/2"]], "failed.reduced[0]"),
        ([[1, 18, 0.5]], "failed.reduced[0]"),
        ([[16, 1, "1/2"]], "failed.reduced[0]: the link from 16 to 1 stands twice"),
    ],
)
def test_forged_shares_in_an_instance_file(rows: list[object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        synth.make("fabric", **BOX).model_copy(update={"failed": {"links": [[16, 1]], "nodes": [], "reduced": rows}})
    assert message in str(caught.value)


def test_64_kib_on_5_ranks_are_what_nccl_tests_runs() -> None:
    """16384 floats: 3276 a rank, a multiple of 4, so 5 * 3276 * 4 = 65520 bytes; a gather's elements 3276 too; what
    divides stays, also where nccl-tests would round."""
    five = {"network": "ring", "nodes": 5}
    instance = synth.make("fabric", **five, bytes="64KiB")
    assert isinstance(instance, FabricInstance)
    assert instance.bytes == 65520
    words = "bytes=65536 does not divide among 5 ranks: rounded down to 65520, as nccl-tests does"
    assert instance.notes == (words,)
    assert instance.source.endswith(words)
    sizes = {1000: 1000, 1001: 960, 15: 15, 21: 20, 65540: 65540}
    for asked, taken in sizes.items():
        assert synth.make("fabric", **five, bytes=asked).bytes == taken  # type: ignore[attr-defined]
    assert synth.make("fabric", **five, bytes=1001, collective="gather").bytes == 1000  # type: ignore[attr-defined]
    assert synth.make("fabric", **five, bytes=1001, collective="allreduce").bytes == 1001  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="bytes = 3: does not divide among 5 ranks"):
        synth.make("fabric", **five, bytes=3)


@given(st.sampled_from(SHARED_OUT), st.integers(2, 9), st.integers(1, 10**6))
def test_every_size_is_taken(collective: str, ranks: int, size: int) -> None:
    """At most the size, a multiple of the ranks; by nccl-tests' arithmetic on floats where that leaves something."""
    root = {"root": 0} if collective in ("gather", "scatter") else {}
    keys = {"network": "full", "nodes": ranks, "collective": collective, "bytes": size, **root}
    assume(size >= ranks)  # less is refused: no rank has a byte
    instance = synth.make("fabric", **keys)
    assert isinstance(instance, FabricInstance)
    taken, elements = instance.bytes, size // 4 // ranks
    part = elements if collective in ("gather", "scatter") else elements & -4
    expected = size if size % ranks == 0 else part * ranks * 4 or size // ranks * ranks
    assert taken == expected
    assert bool(instance.notes) == (taken != size)
