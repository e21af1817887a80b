"""A paper's printed numbers beside ours."""
