"""What time-expanded programs are made of: windows of variables, orbits under symmetry, sums over both.

Such a program has a variable an item (a chunk, an origin, a commodity), place (an arc, link or node) and time (a
timestep, an epoch, a step). Checks of certificates share none of this.
"""
