"""Published algorithms and ours."""
