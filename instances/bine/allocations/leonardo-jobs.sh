#!/usr/bin/env bash
# Collectives on seven real jobs of Leonardo (instances/bine/allocations/leonardo-jobs.csv, which states its licence), from the
# root of the checkout. Takes less than a minute on two cores; every record is verified at the end.
set -euo pipefail
cd "$(dirname "$0")/../../.."
synth=$PWD/.venv/bin/synth python=$PWD/.venv/bin/python jobs=$PWD/instances/bine/allocations/leonardo-jobs.csv
out=$PWD/results/published/jobs work=$(mktemp -d)
cd "$work"
make() { "$synth" make bine "jobs=$jobs" "only=$1" "collective=$2" "${@:3}"; }
for job in 14343356 14649949 14800226 14593321 14719296 14486598 14320838; do make $job broadcast; done
for job in 14343356 14593321; do make $job allreduce vector=large problem=butterfly; done
for job in 14800226 14719296; do
  make $job allreduce vector=large
  make $job allgather
done
make 14649949 scatter
make 14486598 alltoall
"$synth" solve ./*.json -m bound -m bine -m recursive -m binomial_halving -m leaders -m tree_ilp -m placement_greedy \
  --time-limit 20s --results records
"$synth" solve leonardo-jobs-14486598-alltoall.json -m ring --results records
"$python" - <<'END'
"""Drop the runs that a method does not support, and put every instance's text into its records."""
import json
from pathlib import Path

for path in Path("records/bine").glob("*/*.json"):
    record = json.loads(path.read_text())
    record |= {"instance_text": Path(record["instance_file"]).read_text(), "instance_file": None}
    path.unlink() if record["termination"] == "unsupported" else path.write_text(json.dumps(record))
END
rm -f "$out"/records.*
cp -r records/bine/. "$out"
"$synth" pack "$out"
"$synth" check "$out" | tail -1
