"""Method ``hierarchical``: between boxes over all NICs at once."""
