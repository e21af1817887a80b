"""The printed numbers of each paper beside ours: pages, figures and findings of `synth reproduce`. Not in the wheel."""
