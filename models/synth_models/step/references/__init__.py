"""Orders of issue, list scheduling, search."""
