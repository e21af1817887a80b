"""Method ``in_network``: sums and copies in switches."""
