"""The open library: best-known values with their certificates, and what others hand in.

The package may be called: ``synth.library()`` is :func:`synth.library.known_frame.library`, the library as a frame.
"""

from __future__ import annotations

from synth import callable_package

callable_package.call(__name__, "synth.library.known_frame:library")
