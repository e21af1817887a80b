"""Time-expanded link allocation as an integer program."""
