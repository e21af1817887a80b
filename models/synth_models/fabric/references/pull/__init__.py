"""Method ``pull``: trees of pieces over idle links, searched."""
