"""Solutions for people."""
