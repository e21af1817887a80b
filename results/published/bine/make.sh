#!/usr/bin/env bash
# Makes everything in this folder again, from the root of the checkout, with the environment of the README (dev extra).
# The trace lies outside the repository: ../shared/data/leonardo-jobs.csv.gz. About three minutes on two cores.
set -uo pipefail
cd "$(dirname "$0")/../../.."
out=results/published
.venv/bin/python -m synth_models.bine.study ../shared/data/leonardo-jobs.csv.gz $out/bine
.venv/bin/synth solve instances/bine --time-limit 20s --results $out >$out/bine/gaps.txt
.venv/bin/synth check $out/bine
