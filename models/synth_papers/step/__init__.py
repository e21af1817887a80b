"""Training steps that others have published or generated: `synth reproduce step`."""
