#!/usr/bin/env bash
# Makes the records and the table of the exact program again, from the root of the checkout, with the dev environment.
# Up to five minutes a run; on two quiet cores about half an hour.
set -uo pipefail
cd "$(dirname "$0")/../../.."
out=results/published
many="instances/harvest/[brs]*-8-p?.json instances/harvest/*-8-static-p?.json instances/harvest/*-8-reduce-scatter-*.json"
for solver in highs scip; do
  .venv/bin/synth solve $many instances/harvest/recursive-doubling-4-p1.json -m misocp --solver $solver \
    --time-limit 5m --threads 2 --results $out --resume
done
.venv/bin/synth solve instances/harvest/demand-6-*.json instances/harvest/recursive-doubling-8-overlap-p2.json -m misocp \
  --solver highs --time-limit 5m --threads 2 --results $out --resume
.venv/bin/synth solve instances/harvest/recursive-doubling-8-circuits-p1.json \
  instances/harvest/binomial-broadcast-16-circuits-p2.json -m misocp --solver highs --time-limit 5m --threads 2 --results $out --resume
.venv/bin/synth solve instances/harvest/recursive-doubling-4-p1.json -m misocp --solver gurobi --results $out --resume
.venv/bin/synth pack $out/harvest
.venv/bin/synth check $out/harvest
.venv/bin/python -m synth_papers.harvest.exact_table $out/harvest
