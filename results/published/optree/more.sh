#!/usr/bin/env bash
# Records of shipped rings that the paper's page does not need. Run from the top folder, then `synth reproduce optree`.
set -euo pipefail
out=results/published
synth solve instances/optree/ring-1000-w64.json -m bound -m formula -m relay --results "$out" --time-limit 60s
synth solve instances/optree/ring-512-w64.json -m optree --results "$out" --time-limit 60s
synth solve instances/optree/ring-64-w8-loss.json -m bound -m relay --results "$out" --time-limit 60s
synth pack "$out/optree"
