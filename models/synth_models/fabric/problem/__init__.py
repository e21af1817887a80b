"""The problem: the machine and its failures, the blocks to be moved, ticks of time."""
