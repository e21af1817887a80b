"""Bounds on the end of a step."""
