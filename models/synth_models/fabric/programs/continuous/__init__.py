"""``continuous``: an exact model in continuous time, and large-neighbourhood search with it."""
