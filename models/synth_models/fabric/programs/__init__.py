"""The mathematical programs, each beside its method."""
