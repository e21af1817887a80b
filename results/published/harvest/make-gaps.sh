#!/usr/bin/env bash
# Candidates against the bound on every shipped instance of 16 to 64 GPUs and on smaller ones of unequal volumes and with
# a delay per circuit, from the root of the checkout. Takes about a minute on two cores; every record is verified at the end.
set -uo pipefail
cd "$(dirname "$0")/../../.."
synth=.venv/bin/synth out=results/published
COLUMNS=140 $synth solve instances/harvest/*-16-*.json instances/harvest/*-31-*.json instances/harvest/*-64-*.json \
  instances/harvest/demand-6-bulk-p2.json instances/harvest/moe-8-p2.json instances/harvest/*-8-circuits-*.json \
  -m bound -m candidates --time-limit 60s --results $out --all --resume >$out/harvest/gaps.txt
$synth solve instances/harvest/swing-64-p2.json -m bound -O rates=off --results $out/harvest/trees-only
$synth pack $out/harvest
.venv/bin/python -m synth_papers.harvest.gaps_plot $out/harvest
$synth check $out/harvest | tail -1
