"""Figures of ``synth reshard``: two models' weights from a trainer's mesh to a generator's, every plan replayed.

``python tests/benchmarks/reshard_figures.py [ds] [qwen] [many]`` prints a row a model: seconds of every rule, gap of
the one kept, processor time of plan and bound of ``trees`` the first time (kernels loaded) and again. Machine: NVL72
domains of 4-GPU boxes, 18 boxes a domain, rails not joined; the trainer's and the generator's ranks are in domains of
their own. ``many``: 1,024 to 1,024 ranks of ``dgx-h100``, 10,164 tensors of no published model, ``trees`` alone.

Shapes are those of the published configurations in BF16. Assumed: stages of the pipeline as even as they can be,
embedding on the first and head on the last; each expert a tensor of its own (DeepSeek-V3) or stacked (Qwen3); what is
not sharded is on all ranks of its stage; no multi-token-prediction layer. NCCL's M2N prints 1447 and 3838 ms
(DeepSeek-V3, hierarchical and direct), 989 and 2175 ms (Qwen3-235B): sums over tensors one after the other, on its own
machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from synth.cli.main import app

Row = tuple[str, tuple[int, ...], str, str]
MESHES = {  # axes and ranks of trainer and generator, machine
    "ds": (("pp = 4, dp = 2, ep = 16", "0-63,72-135"), ("dp = 16, tp = 8", "144-207,216-279"), "gb200-nvl72 boxes=72"),
    "qwen": (("pp = 4, dp = 4, cp = 2, tp = 2", "0-63"), ("dp = 8, tp = 8", "72-135"), "gb200-nvl72 boxes=36"),
    "many": (("pp = 4, dp = 4, ep = 64", "0-1023"), ("dp = 128, tp = 8", "1024-2047"), "dgx-h100 boxes=256"),
}


def deepseek() -> Iterator[Row]:
    """DeepSeek-V3: 61 layers, 3 of them dense; TP1 EP16 DP2 PP4 to TP8 DP16."""
    hidden, query, latent, rope, heads, head, vocabulary, dense, expert, experts = (
        7168, 1536, 512, 64, 128, 128, 129280, 18432, 2048, 256,
    )  # fmt: skip
    yield "embed", (vocabulary, hidden), "pp=0", "tp:0"
    yield "head", (vocabulary, hidden), "pp=3", "tp:0"
    yield "norm", (hidden,), "pp=3", ""
    for layer in range(61):
        stage, name = f"pp={_stage(layer, 61)}", f"layers.{layer}."
        for part, size in (("ln1", hidden), ("ln2", hidden), ("q_a_norm", query), ("kv_a_norm", latent)):
            yield name + part, (size,), stage, ""
        yield name + "q_a", (query, hidden), stage, ""
        yield name + "q_b", (heads * (head + rope), query), stage, "tp:0"
        yield name + "kv_a", (latent + rope, hidden), stage, ""
        yield name + "kv_b", (heads * 2 * head, latent), stage, "tp:0"
        yield name + "o", (hidden, heads * head), stage, "tp:1"
        if layer < 3:
            yield from _two(name, hidden, dense, stage)
            continue
        yield name + "router", (experts, hidden), stage, ""
        yield name + "bias", (experts,), stage, ""
        yield from _two(f"{name}shared.", hidden, expert, stage)
        for k in range(experts):
            yield from _two(f"{name}experts.{k}.", hidden, expert, f"{stage} ep={k // 16}")


def qwen() -> Iterator[Row]:
    """Qwen3-235B-A22B: 94 layers; TP2 CP2 EP16 PP4 (experts over all ranks of a stage) to TP8 DP8."""
    hidden, heads, groups, head, experts, expert, vocabulary = 4096, 64, 4, 128, 128, 1536, 151936
    yield "embed", (vocabulary, hidden), "pp=0 tp:0", "tp:0"
    yield "head", (vocabulary, hidden), "pp=3 tp:0", "tp:0"
    yield "norm", (hidden,), "pp=3", ""
    q, kv = heads * head, groups * head
    for layer in range(94):
        stage, name = f"pp={_stage(layer, 94)}", f"layers.{layer}."
        for part, shape in (("ln1", (hidden,)), ("ln2", (hidden,)), ("qn", (head,)), ("kn", (head,))):
            yield name + part, shape, stage, ""
        yield name + "router", (experts, hidden), stage, ""
        fused = f"{stage} tp:0[{q},{kv},{kv}]", f"tp:0[{q},{kv}*2,{kv}*2]"
        yield name + "qkv", (q + 2 * kv, hidden), *fused
        yield name + "o", (hidden, q), f"{stage} tp:1", "tp:1"
        spread = f"{stage} dp:0 cp:0 tp:0"
        yield name + "experts.gate_up", (experts, 2 * expert, hidden), spread, f"tp:1[{expert},{expert}]"
        yield name + "experts.down", (experts, hidden, expert), spread, "tp:2"


def many() -> Iterator[Row]:
    """61 layers of 64 experts, wide as DeepSeek-V3's; in 33 of them each has a bias."""
    hidden, expert, experts = 7168, 2048, 64
    for layer in range(61):
        stage, name = f"pp={layer * 4 // 61}", f"layers.{layer}."
        yield name + "norm", (hidden,), stage, ""
        yield name + "q", (hidden, hidden), stage, "tp:0"
        yield name + "o", (hidden, hidden), stage, "tp:1"
        yield name + "router", (experts, hidden), stage, ""
        for k in range(experts):
            yield from _two(f"{name}experts.{k}.", hidden, expert, f"{stage} ep={k}")
            if layer < 33:
                yield f"{name}experts.{k}.bias", (expert,), f"{stage} ep={k}", ""


def _stage(layer: int, layers: int) -> int:
    """The stage of a layer: the first ones have one more."""
    long = layers % 4
    most = layers // 4 + 1
    return layer // most if layer < long * most else long + (layer - long * most) // (most - 1)


def _two(name: str, hidden: int, size: int, held: str) -> Iterator[Row]:
    """The two tensors of a feed-forward part."""
    yield name + "gate_up", (2 * size, hidden), held, f"tp:0[{size},{size}]"
    yield name + "down", (hidden, size), held, "tp:1"


def words(model: str, folder: Path) -> list[str]:
    """The command's words for a model, whose files are written to the folder."""
    source, target, machine = MESHES[model]
    found = ["reshard", *machine.split(), "--json"]
    for option, (axes, ranks) in (("--from", source), ("--to", target)):
        file = folder / f"{model}{option}.toml"
        file.write_text(f'axes = {{ {axes} }}\nranks = "{ranks}"\n')
        found += [option, str(file)]
    table = folder / f"{model}.csv"
    rows = {"ds": deepseek, "qwen": qwen, "many": many}[model]()
    lines = [f'{name},{"x".join(map(str, shape))},bf16,"{held}","{wanted}"' for name, shape, held, wanted in rows]
    table.write_text("\n".join(["name,shape,dtype,from,to", *lines]) + "\n")
    return [*found, "--tensors", str(table)]


def main(models: list[str]) -> None:
    """Print the table."""
    print(
        "| model | trees, ms | box_copy | balanced | direct | gather | bound | least gap, % | plan, s: first, again |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            asked = [*words(model, Path(folder)), *(["--no-references"] if model == "many" else [])]
            first = json.loads(CliRunner().invoke(app, [*asked, "--no-references"], catch_exceptions=False).stdout)
            found = json.loads(CliRunner().invoke(app, asked, catch_exceptions=False).stdout)
            plans = {row["rule"]: row for row in found["plans"]}
            names = ("trees", "box_copy", "balanced", "direct", "gather")
            times = " | ".join(f"{plans[name]['seconds'] * 1e3:.1f}" if name in plans else "" for name in names)
            best = plans[found["kept"]]
            spent = f"{first['plans'][0]['plan_s']:.2f}, {plans['trees']['plan_s']:.2f}"
            print(f"| {model} | {times} | {best['bound'] * 1e3:.1f} | {best['gap'] * 100:.2f} | {spent} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["ds", "qwen"])
