"""Turn a pytest-benchmark JSON file into a Markdown table: ``python tests/benchmarks/report.py RUN.json > TABLE.md``.

Ratios are against the slowest case of the same group in the same run; seconds are this machine's and noisy.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict


def main(path: str) -> None:
    """Print the table of one run."""
    with open(path) as stream:
        run = json.load(stream)
    groups = defaultdict(list)
    for case in run["benchmarks"]:
        groups[case["group"]].append(case)
    cpu = run["machine_info"].get("cpu", {})
    print("# Benchmarks\n")
    print("The cases of a group do the same work in different ways; read the ratio between them. Seconds are those of")
    print("one machine beside other work.\n")
    files = " ".join(dict.fromkeys(case["fullname"].split("::")[0] for case in run["benchmarks"]))
    print(f"Command: `pytest {files} --benchmark-only --benchmark-json=RUN.json` and")
    print("`python tests/benchmarks/report.py RUN.json`.")
    print(f"Machine: {cpu.get('brand_raw', 'unknown CPU')}, {cpu.get('count', '?')} cores; {run['datetime'][:10]}.\n")
    print("| group | case | seconds (mean) | seconds (median) | times faster than the slowest of its group | facts |")
    print("|---|---|---:|---:|---:|---|")
    for group, cases in groups.items():
        slowest = max(case["stats"]["median"] for case in cases)
        for case in cases:
            mean = case["stats"]["mean"]
            facts = ", ".join(f"{key} {value}" for key, value in case["extra_info"].items())
            median = case["stats"]["median"]
            print(f"| {group} | {case['name']} | {mean:.3g} | {median:.3g} | {slowest / median:.3g} | {facts} |")


if __name__ == "__main__":
    main(sys.argv[1])
