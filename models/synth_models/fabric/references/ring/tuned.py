"""The tuned constants of method ``ring``. Of each: what it counts, what more of it brings, for what price."""

MOST_RUN_OUT = 16  # ranks where all sets of rings are tried in all numbers of chunks: a better one for time
MOST_OFFERED = 64  # ranks where all sets are offered, not the best two alone: a better one for time
MOST_IMPROVED = 600  # ranks of a cycle improved by local search: quicker hops for time
MOST_SEVERAL = 128  # ranks where several different cycles are looked for: bandwidth for time
MOST_CYCLES = 16  # cycles of a set: bandwidth for time
MOST_RINGS = 32  # rings that share no link: bandwidth for time
MOST_BESIDE = 32  # ranks where rings of whole links are looked for beside rings of parts: bandwidth for time
TRIES = 6  # times that several cycles are looked for from either beginning: bandwidth for time
PATIENCE = 3  # cycles in a row that add no bandwidth: more cycles looked for, for time
STEEP = 4.0  # power of hop times that a local search adds up: a quick slowest hop for slower ones on average
SHORT = 1  # bytes of a piece for which a cycle is looked for: hops of more bandwidth for more latency
MIDDLE = 2**16  # bytes of a piece for which another is: the same
LONG = 2**26  # bytes of a piece for which one more, and sets of cycles, are: the same
SHARE_PARTS = (4, 6, 8, 12, 16, 24, 32, 48, 64)  # parts of the data, shared by cycles: even links for latency
EDGE_TIMES = (1, 2, 4)  # times that an edge may count: bandwidth for time
EDGE_PARTS = (1, 2, 3, 4)  # edges of the slowest link, where rates have no common measure: bandwidth for time
ATTEMPTS = 20  # random assignments of pairs to cycles through boxes: closed cycles for time
