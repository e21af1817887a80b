"""Graph algorithms on arrays, each once for every family: shortest paths, maximum flow, symmetry, edge colouring."""
