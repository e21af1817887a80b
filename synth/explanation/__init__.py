"""Why a collective takes as long as a log says: what a library's algorithms should take on the machine, and which one
change of the machine, of the algorithm or of its costs explains the measurement."""

from synth.explanation.fit import Answer, Found, explain
from synth.explanation.ways import Library, libraries

__all__ = ["Answer", "Found", "Library", "explain", "libraries"]
