"""One sub-package per paper, each a family of :mod:`synth`."""
