"""Method ``class_trees``: blocks with several holders and wanters in pieces, each over a tree of ranks."""
