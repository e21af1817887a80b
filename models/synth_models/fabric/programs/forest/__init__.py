"""Throughput-optimal trees: rate, splitting, packing, then pieces and times."""
