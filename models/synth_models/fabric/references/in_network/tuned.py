"""The tuned constants of method ``in_network``. Of each: what it counts, what more of it brings, for what price."""

MOST_TRANSFERS = 1_000_000  # transfers of an allreduce: finer chunks for memory and time
MOST_CHUNKS = 256  # chunks of one: finer chunks for time
MOST_TREE_MEMBERS = 128  # ranks with a tree each: larger machines for time
MOST_TREE_TRANSFERS = 100_000  # transfers over such trees: finer chunks for memory and time
MOST_TREE_CHUNKS = 64  # chunks a block over such trees: finer chunks for time
