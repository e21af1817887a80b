#!/usr/bin/env bash
# Candidates against the bound on every shipped instance of 16 to 64 GPUs, from the root of the checkout.
# Takes about six minutes on two cores; every record is verified at the end.
set -uo pipefail
cd "$(dirname "$0")/../../.."
synth=.venv/bin/synth out=results/published
COLUMNS=140 $synth solve instances/harvest/*-16-*.json instances/harvest/*-31-*.json instances/harvest/*-64-*.json \
  -m bound -m candidates --time-limit 60s --results $out >$out/harvest/gaps.txt
$synth solve instances/harvest/swing-64-p2.json -m bound -O rates=off --results $out/harvest/trees-only >$out/harvest/trees-only.txt
$synth pack $out/harvest
$synth check $out/harvest | tail -1
