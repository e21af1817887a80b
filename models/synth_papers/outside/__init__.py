"""Simulators of others beside our replay: `synth reproduce outside`."""
