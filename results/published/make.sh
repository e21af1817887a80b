#!/usr/bin/env bash
# Makes everything in this folder again, from the root of the checkout, with the environment of the README (dev extra).
# Takes about half an hour on two cores. Every record is replayed at the end.
set -uo pipefail
cd "$(dirname "$0")/../.."
synth=.venv/bin/synth out=results/published x=instances/xtree

# every shipped instance by the default methods, and by all the others that apply
$synth solve $x --time-limit 120s --results $out --resume >$out/xtree-gaps.txt
$synth solve $x -m symmetric -m mesh2d_rings -m multitree -m tacos -m tto -m tidalmesh --results $out --resume >$out/xtree-references.txt

# a bound that only the folded LP relaxation proves, with its certificate
$synth solve $x/kautz-9x2-c1.json -m relaxation --time-limit 10m \
  --results $out >$out/xtree-relaxation.txt

# the programs alone: no reference, no relaxation, only the solver
alone="-O warm_start=off -O relaxation=off --results $out/alone"
questions="$x/equimesh-3x3-c2.json $x/equimesh-4x4-c1.json $x/equimesh-5x5-c1.json $x/equimesh-5x5-c2.json"
$synth solve $x/equimesh-2x3-c4.json $questions $x/equimesh-5x11-c1.json -m ilp --solver highs $alone --time-limit 5m >$out/xtree-alone-highs.txt
$synth solve $x/equimesh-2x3-c4.json $questions -m cpsat $alone --time-limit 5m >$out/xtree-alone-cpsat.txt
$synth solve $x/equimesh-2x3-c4.json $x/equimesh-3x3-c2.json -m ilp --solver scip $alone --time-limit 5m >$out/xtree-alone-scip.txt
$synth solve $x/equimesh-2x3-c4.json -m ilp --solver gurobi $alone >$out/xtree-alone-gurobi.txt

# 2x3 with C = 4: four timesteps proven infeasible by every solver (exit code 3)
for solver in highs scip gurobi; do
  $synth solve $x/equimesh-2x3-c4.json -m ilp --solver $solver -O horizon=4 --results $out/four-steps >$out/xtree-four-steps-$solver.txt
done
$synth solve $x/equimesh-2x3-c4.json -m cpsat -O horizon=4 --results $out/four-steps >$out/xtree-four-steps-cpsat.txt

$synth check $out >$out/check.txt && tail -1 $out/check.txt
