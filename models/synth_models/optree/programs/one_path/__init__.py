"""One item's path round the ring, counted by gaps (CP-SAT)."""
