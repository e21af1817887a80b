"""Allreduce as one joint program."""
