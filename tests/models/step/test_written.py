"""Steps that a person writes in TOML: closed cases, and the faults of all keys."""

from __future__ import annotations

from pathlib import Path

import pytest

import synth
from synth.errors import InputError
from synth_models.step.bounds.strongest import strongest
from synth_models.step.instance import Operation, StepInstance, size
from synth_models.step.parts.lists import scheduled, tails
from synth_models.step.parts.order import ordered
from synth_models.step.parts.prices import quickest

LINKS = '[links]\nfast = { bandwidth = "1GB/s", latency = "1us" }\nslow = { bandwidth = "100MB/s", latency = "10us" }\n'


def written(folder: Path, lines: str, links: str = LINKS) -> StepInstance:
    file = folder / "my.toml"
    file.write_text(lines + "\n" + links)
    made = synth.make("step", file=file)
    assert isinstance(made, StepInstance)
    return made


def end(instance: StepInstance) -> float:
    """By the longest tail, in seconds."""
    long = quickest(instance)
    order = ordered(instance.before, [0.0] * len(long))
    start = scheduled(instance, long, tails(instance, long, order))
    return max(at + duration for at, duration in zip(start, long, strict=True)) / 1e12


def test_what_stands_between_layers_is_added(tmp_path: Path) -> None:
    """Of two layers of 1 ms and back 2 ms, 6 ms compute; four allreduces a layer of 1 MB by two ranks, 1 ms + 2 us
    each. The gradients of a layer, 2 MB / 2 by two ranks, take 10 ms + 20 us: those of the second layer begin when its
    way back has computed, those of the first follow them."""
    rows = 'layers = 2\nactivation = "1MB"\nparameters = "2MB"\nforward = "1ms"\nparallel = { tp = 2, dp = 2 }'
    made = written(tmp_path, rows)
    assert size(made) == 4
    gradients_may_begin = 2 * (1e-3 + 2 * 1.002e-3) + 2e-3 + 1.002e-3
    assert end(made) == pytest.approx(gradients_may_begin + 2 * 10.02e-3)


@pytest.mark.parametrize(("stages", "many"), [(2, 4), (4, 8)])
def test_a_pipeline_has_its_bubble(tmp_path: Path, stages: int, many: int) -> None:
    """Without bytes to move and latency: (m + p - 1) passes there and back of two layers, by value and by bound."""
    rows = f'layers = {2 * stages}\nmicrobatches = {many}\nforward = "1ms"\nactivation = 1e-9\nparameters = 1e-9'
    made = written(tmp_path, f"{rows}\nparallel = {{ pp = {stages} }}", '[links]\nfree = { bandwidth = "1GB/s" }\n')
    assert end(made) == pytest.approx(6e-3 * (many + stages - 1))
    assert strongest(made)[0] / 1e12 == pytest.approx(6e-3 * (many + stages - 1))


def test_sizes_follow_from_the_model(tmp_path: Path) -> None:
    """hidden 64, sequence 128, 2 bytes: 16384 bytes a microbatch, 12 * 64^2 * 2 / 2 bytes of gradients, and
    128 * (24 * 64^2 + 4 * 128 * 64) / 1e9 / 2 seconds forward."""
    rows = "layers = 1\nhidden = 64\nsequence = 128\nflops = 1e9\nexperts = 3\nparallel = { tp = 2, dp = 4, ep = 2 }"
    made = written(tmp_path, rows)
    of = {(node.collective, node.size, node.link): node.bytes for node in made.nodes if isinstance(node, Operation)}
    assert of == {
        ("allreduce", 2, "fast"): 16384,
        ("alltoall", 2, "slow"): 3 * 16384,
        ("allreduce", 4, "slow"): 49152,
    }
    forward = sum(node.seconds or 0 for node in made.nodes if node.name.startswith("f0.0.0.part"))
    assert forward == pytest.approx(128 * (24 * 64**2 + 4 * 128 * 64) / 1e9 / 2)


def test_faults_of_all_keys_are_told_together(tmp_path: Path) -> None:
    rows = (
        'layers = 30\nhidden = -1\nmicrobatches = "many"\ncolour = 3\nparallel = { pp = 4, dp = 32, ep = 3 }\n'
        'over = { tp = "nvlonk" }'
    )
    with pytest.raises(InputError) as raised:
        written(tmp_path, rows, LINKS.replace("10us", "1parsec"))
    told = str(raised.value)
    for words in (
        "layers = 30", "hidden = -1", "microbatches = 'many'", "colour", "activation: is missing",
        "forward: is missing",
        "parallel.ep = 3", "over.tp = 'nvlonk'", "links.slow.latency = '1parsec'",
    ):  # fmt: skip
        assert words in told


def test_what_an_instance_cannot_hold_is_told_by_its_key(tmp_path: Path) -> None:
    rows = "layers = 1\nhidden = 65536\nsequence = 1073741824\nbatch = 65536\nflops = 1.0"
    with pytest.raises(InputError) as raised:
        written(tmp_path, rows)
    assert "activation: comes to" in str(raised.value)
    assert "forward: comes to" in str(raised.value)


@pytest.mark.parametrize(("text", "words"), [("layers = ", "not valid TOML"), ("", "layers: is missing")])
def test_what_is_no_step(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "my.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        synth.make("step", file=tmp_path / "my.toml")


def test_1024_ranks_by_classes(tmp_path: Path) -> None:
    """tp 8 x pp 4 x dp 32 in four classes of alike ranks: four ranks of nodes, and the bound within 5 %."""
    rows = (
        "layers = 16\nhidden = 4096\nsequence = 4096\nflops = 400e12\nmicrobatches = 8\n"
        "parallel = { tp = 8, pp = 4, dp = 32 }"
    )
    made = written(tmp_path, rows, LINKS.replace('"1GB/s"', '"450GB/s"').replace('"100MB/s"', '"50GB/s"'))
    assert size(made) == 1024
    assert len(made.nodes) == 16 * 8 * 8 + 16 + 2 * 3 * 8
    least = strongest(made)[0] / 1e12
    assert least <= end(made) <= 1.05 * least
