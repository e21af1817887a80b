"""Steps for people."""
