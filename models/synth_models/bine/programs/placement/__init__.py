"""Hypercube placement as a quadratic assignment."""
