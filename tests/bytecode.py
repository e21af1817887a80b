"""Imported first: the tests' processes keep compiled modules as the command's do."""

from synth.cli.start import keep_bytecode

keep_bytecode()
