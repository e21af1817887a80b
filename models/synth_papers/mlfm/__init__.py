"""The paper's printed numbers beside ours."""
