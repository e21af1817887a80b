"""Logs as benchmarks print them, of times that are given: written from the programs' sources, not from our readers."""

from __future__ import annotations

import json
from collections.abc import Sequence

CALLED = {"allreduce": "all_reduce", "allgather": "all_gather", "sendrecv": "sendrecv"}
AT_AMD = {"allreduce": "AllReduce", "allgather": "AllGather", "sendrecv": "SendRecv"}
AT_INTEL = {"allreduce": "Allreduce", "allgather": "Allgather", "latency": "PingPong", "sendrecv": "Sendrecv"}
AT_OSU = {"allreduce": "Allreduce Latency", "allgather": "Allgather Latency", "latency": "Latency"}
Times = Sequence[tuple[int, float]]  # a size in bytes as nccl-tests count it, and seconds


def bus_factor(test: str, ranks: int) -> float:
    """Bus over algorithm bandwidth."""
    return {"allreduce": 2.0, "allgather": 1.0}.get(test, 0.0) * (ranks - 1) / ranks or 1.0


def nccl_text(test: str, ranks: int, out: Times, inside: Times) -> str:
    """What ``all_reduce_perf`` prints."""
    lines = [f"# Collective test starting: {CALLED[test]}_perf"]
    lines += [f"#  Rank {r:2} Group  0 Pid 7 on host device {r} [0000:00:00] GPU" for r in range(ranks)]
    lines.append("#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong")
    for (size, a), (_, b) in zip(out, inside, strict=True):
        cells = " ".join(f"{s * 1e6:.2f} {size / s / 1e9:.2f} {size / s / 1e9:.2f} 0" for s in (a, b))
        lines.append(f"{size:12} {size // 4:10} float sum -1 {cells}")
    return "\n".join(lines) + "\n"


def nccl_json(test: str, ranks: int, out: Times, inside: Times) -> str:
    """What ``-J`` writes, version 3, of ranks that are threads of one process."""

    def part(size: int, seconds: float) -> dict[str, object]:
        rate = size / seconds / 1e9
        return {"time": seconds * 1e6, "alg_bw": rate, "bus_bw": rate * bus_factor(test, ranks), "nwrong": None}

    results = [
        {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1",
         "out_of_place": part(size, a), "in_place": part(size, b), "actual_iterations": 20, "experiment_name": ""}
        for (size, a), (_, b) in zip(out, inside, strict=True)
    ]  # fmt: skip
    config = {"nthreads": 1, "ngpus": ranks, "devices": [{"rank": 0, "group": 0, "device": 0}]}
    args = [f"./build/{CALLED[test]}_perf", "-J", "run.json"]
    return json.dumps({"version": 3, "args": args, "env": ["A=1"], "config": config, "results": results, "errors": []})


def nccl_by_size(test: str, ranks: int, out: Times, inside: Times) -> str:
    """What the option ``--json`` of a pull request prints, below what NCCL says itself."""
    rows = {}
    for (size, a), (_, b) in zip(out, inside, strict=True):
        rows[str(size)] = {"count": size // 4, "type": "float", "redop": "none", "root": "-1"}
        for key, s in (("oop", a), ("ip", b)):
            rate = size / s / 1e9
            rows[str(size)] |= {f"{key}_time": s * 1e6, f"{key}_algbw": rate,
                                f"{key}_busbw": rate * bus_factor(test, ranks), f"{key}_error": "N/A"}  # fmt: skip
    whole = {"identifier": "nccl-tests structured output", "version": "2.26.6", "benchmark": [rows]}
    return f"[host:1] a warning\nNCCL version 2.26.6+cuda12.8\n{json.dumps(whole)}\n"


def rccl_json(test: str, ranks: int, out: Times, inside: Times) -> str:
    """What ``-Z json`` of rccl-tests writes where processes have several GPUs."""
    lines = []
    for (size, a), (_, b) in zip(out, inside, strict=True):
        for place, s in ((0, a), (1, b)):
            row = {"numCycle": 0, "name": AT_AMD[test], "nodes": 1, "ranks": ranks // 2, "ranksPerNode": ranks // 2,
                   "gpusPerRank": 2, "size": size, "type": "float", "redop": "sum", "inPlace": place, "time": s * 1e6,
                   "algBw": size / s / 1e9, "busBw": size / s / 1e9 * bus_factor(test, ranks)}  # fmt: skip
            lines.append(json.dumps(row))
    return "\n".join(lines) + "\n"


def rccl_csv(test: str, ranks: int, out: Times, inside: Times) -> str:
    """What ``-Z csv`` of rccl-tests writes."""
    lines = ["name,gpus,size,type,redop,inPlace,time,algBw,busBw,#wrong"]
    for (size, a), (_, b) in zip(out, inside, strict=True):
        lines += [f"{AT_AMD[test]},{ranks},{size},float,sum,{p},{s * 1e6!r},{size / s / 1e9!r},0,0"
                  for p, s in ((0, a), (1, b))]  # fmt: skip
    return "\n".join(lines) + "\n"


def imb(test: str, ranks: int, times: Times) -> str:
    """What IMB-MPI1 prints of one benchmark."""
    part = ranks if test == "allgather" else 1
    bare = test == "latency"
    names = "t[usec]   Mbytes/sec" if bare else "t_min[usec]  t_max[usec]  t_avg[usec]"
    rule = f"#{'-' * 40}"
    head = [
        rule,
        f"# Benchmarking {AT_INTEL[test]} ",
        f"# #processes = {ranks} ",
        rule,
        f"  #bytes #repetitions {names}",
    ]
    rows = [f"{0:13} {1000:12} {0.03:12.2f} {0.03:12.2f}" + ("" if bare else f" {0.03:12.2f}")]
    for size, s in times:
        us = s * 1e6
        cells = (us, size / us) if bare else (us * 0.9, us * 1.2, us)
        rows.append(f"{size // part:13} {1000:12} " + " ".join(f"{cell:12.2f}" for cell in cells))
    return "\n".join([*head, *rows, "", "", "# All processes entering MPI_Finalize", ""])


def osu(test: str, ranks: int, times: Times) -> str:
    """What an OSU benchmark prints, of collectives with ``-f``."""
    part = ranks if test == "allgather" else 1
    full = test != "latency"
    head = (
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
        if full
        else "# Size Latency (us)"
    )
    rows = [f"{size // part:<10} {s * 1e6:20.2f}" + (f" {s * 9e5:18.2f} {s * 1.1e6:18.2f} 1000" if full else "")
            for size, s in times]  # fmt: skip
    return "\n".join([f"# OSU MPI-CUDA {AT_OSU[test]} Test v7.4", "# Datatype: MPI_CHAR.", head, *rows, ""])


def perftest(title: str, times: Times, bits: bool = False) -> str:
    """What a program of perftest prints; of bandwidths ``times`` are seconds a message of a stream."""
    rule = "-" * 80
    lines = [rule, f"                    {title} Test", " Dual-port : OFF   Device : mlx5_0", rule]
    if title.endswith("BW"):
        unit, scale = ("Gb/sec", 8e-9) if bits else ("MB/sec", 2.0**-20)
        lines.append(f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]")
        lines += [f" {size:<10} 5000 0.00 {size / s * scale:.6f} {1e-6 / s:.6f}" for size, s in times]
    else:
        names = ("t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]")
        lines.append(f" #bytes #iterations   {'  '.join(names)}   99% percentile[usec]   99.9% percentile[usec] ")
        lines.append("Conflicting CPU frequency values detected: 2200.000000 != 1040.353000. CPU Frequency is not max.")
        lines += [f" {size:<8} 1000 {s * 9e5:.2f} {s * 9e6:.2f} {s * 1e6:.3f} {s * 1.1e6:.2f} 0.1 {s * 2e6:.2f} 9.9"
                  for size, s in times]  # fmt: skip
    return "\n".join([*lines, rule, ""])
