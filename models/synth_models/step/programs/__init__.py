"""Exact programs."""
