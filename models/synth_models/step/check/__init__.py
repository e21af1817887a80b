"""Replay of steps and of bounds on them."""
