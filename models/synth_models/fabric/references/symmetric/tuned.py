"""The tuned constants of method ``symmetric``. Of each: what it counts, what more of it brings, for what price."""

MOST_MEMBERS = 2048  # ranks: larger machines for memory and time
MOST_TRANSFERS = 7_000_000  # transfers of a schedule: finer chunks for memory and time
MOST_CHUNKS = 4096  # chunks a block: finer chunks for time
SEVERAL = 4  # latencies that a first chunk takes on the slowest link: a start below the best number for time
MOST_IN_QUOTIENTS = 65_536  # ranks of a quotient: larger machines for memory and time
MOST_OF_ORIGIN = 4_000_000  # transfers of one origin in a quotient: finer chunks for memory and time
MOST_LOOKED_AT = 2**28  # squared chunks times ranks of one on a torus: finer chunks for time
SAVES = 1 / 2000  # of the time, that twice the chunks must save in a quotient: fewer numbers tried for a longer end
