"""The tuned constants of method ``steiner``. Of each: what it counts, what more of it brings, for what price."""

MOST_MEMBERS = 64  # ranks: larger machines for time
MOST_TRANSFERS = 400_000  # transfers of a schedule: finer chunks for memory and time
MOST_CHUNKS = 1024  # chunks a block: finer chunks for time
MOST_ROUNDS = 400  # rounds of pricing: a better packing for time
MOST_EXACT = 12  # terminals of trees that are surely the cheapest: a proven bound for time
MOST_CELLS = 2_000_000  # subsets of terminals times nodes for such trees: a proven bound for memory and time
