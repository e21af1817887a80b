"""The tuned constants of method ``continuous``. Of each: what it counts, what more of it brings, for what price."""

from fractions import Fraction

NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)  # chunks a block, a program each: finer chunks for time
OF_SUMS = (2, 4, 8, 1, 3, 6)  # the same of an allreduce, whose programs take long: the promising first, for time
MOST_MOVES = 6_000  # transfers that a program may choose: larger instances for time to build it
WORSE = Fraction(3, 2)  # times the incumbent, that a program's first schedule takes: one surely found for time
NEAR = Fraction(21, 20)  # times the incumbent, the same of an allreduce: the same
IMPROVE = 0.4  # of the time left, for each step that improves the incumbent: a better start for time of programs
KEPT = 0.25  # of the time for an allreduce's numbers, left for the last search: finer chunks of the best for numbers
EACH = 0.2  # of the time left, for each number's program: proofs for numbers tried
UNLIMITED_S = 600.0  # seconds of all steps where no limit is set: a better schedule for time

MOST_ROWS = 500  # transfers of a schedule that is searched on: a better schedule for time
MOST_CUT = 4_000  # transfers of one after pieces are cut in two: finer chunks for time
CHOICES = (300, 2400)  # transfers to choose from in a step, at first and at most: wider steps for time
WORK = 1.0  # deterministic seconds of CP-SAT in a step: wider steps for time
PATIENCE = 6  # steps in a row without success: a better schedule for time
WORTH = Fraction(1, 2000)  # of the time, that cutting in two must gain: an earlier end for a longer schedule
MOST_PATHS = 64  # paths from one rank: quicker routes for larger programs
MOST_TREES = 400  # trees of switch copies from one rank: quicker routes for larger programs
SUM_PARTS = 16  # units of an allreduce in the coarsest exact one: overlapping sums for larger numbers

MOST_RANKS = 10  # ranks for timed trees: larger machines for time
PACKING_SHARE = 0.3  # of the time left, for the packing of one number of latencies: a proven one for time
UNLIMITED_PACKING_S = 120.0  # seconds for it where no limit is set: the same
MOST_ITERATIONS = 200  # rounds of pricing of it: a better packing for time
MOST_BINS = 20_000  # two a latency, of trees over time: longer ends for memory and time
MOST_STATES = 2**24  # bins, ranks and sets of goals that the pricing keeps: longer ends for 25 bytes of memory each
PACKED_ROUNDS = (1, 2, 4, 8, 16, 32, 64)  # rounds of a packing's trees: finer chunks for time
LACK = 1e3  # latencies of the largest block, that a byte which no tree carries costs: a whole packing for exact prices
