"""Imported first: the tests' processes keep compiled modules, also where ``PYTHONDONTWRITEBYTECODE`` is set: beside the
sources if the installer has compiled all packages there, which in the command's own cache each fresh environment would
do anew, 6 s of processor time a worker; else in that cache."""

import os
import sys
from importlib.util import cache_from_source, find_spec

from synth.cli.start import keep_bytecode

numpy = find_spec("numpy")
if numpy is None or numpy.origin is None or not os.path.exists(cache_from_source(numpy.origin)):
    keep_bytecode()
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
