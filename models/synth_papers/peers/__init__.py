"""Figures that other tools print for their own machines, beside ours: `synth reproduce peers`."""
