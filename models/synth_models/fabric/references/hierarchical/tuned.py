"""The tuned constants of method ``hierarchical``. Of each: what it counts, what more of it brings, for what price.

Those of the first part bound time and memory, or say where a search begins. Those of the second were tried at half, at
double and without on stored values; in brackets the most that one got worse.
"""

from synth_models.fabric.plans.block_trees import Habit

MOST_TRANSFERS = 6_000_000  # transfers of a schedule: finer chunks for memory and time
QUICK = 300_000  # transfers of a schedule: more orders and earlier starts tried for time
MOST_CHUNKS = 4096  # chunks a share: finer chunks for time
MOST_MEMBERS = 2048  # ranks: larger machines for memory and time
MOST_EXCHANGED = 4  # chunks of a first schedule: exchanges and plans from one rank tried for time
SEVERAL = 32  # latencies that a first chunk takes on the slowest link: a start below the best number for time
SEVERAL_PIECES = 64  # pieces a share in a first schedule of unequal shares: a finer start for time
MOST_PIECES = 256  # pieces a share in any such schedule: finer shares for time to place them
DEALT_TWICE = 1_000_000  # transfers of such a schedule: two dealings that are equally good tried for time
PROBED_BYTES = 2**16  # bytes of a chunk by which the shares' use of links is counted: rounding for slow exact times
MOST_PROBED = 64  # chunks a share by which it is counted: an exact count for time
ROUND_PARTS = 1000  # parts a round by which a link's order is told: finer orders for smaller numbers
MOST_TURNS = 840  # turns of rails that serve equally well: evener ones for memory
KEPT = 6  # routes, groups and places kept from schedule to schedule: time for memory

SHORT = 10  # latencies that a message takes on a link: fewer plans, straight to all, for a congested link [11 %]
LAGS = (32, 16, 8, 2)  # parts of all turns that the way down comes later, where links are slow: orders for time [2 %]
IDLE = 3  # times what no allreduce can use of a link: later ends of lagging orders for unused links [1 %]
LEAD = 16  # rounds by which the root's box prefers what leaves it: other boxes sooner for its own ranks [9 %]
BEHIND = 16  # parts of all turns: sums at home earlier, one part of so many, for what other boxes wait for [0.7 %]
ALONE = 0.1  # of the two ways together: the busiest link of one way evened out for that of both [7 %]
HELP = 0.01  # of the busiest link's time: shares without help for evener links [3 %]
MOST_SHARES = 4  # shares a rank, where boxes are unequal: evener sums for smaller pieces [2 %]
BUSIEST = 8  # links compared when a piece is dealt out: evener ones for time [1 %]
PIECES_BESIDE = 8  # pieces of a block in a first schedule over idle rails: a finer share of these for time [0.4 %]
EXCHANGES_A_PASS = 12  # of places in trees, in a group and pass: evener links for time [40 %]

ENTERED_ONCE = (Habit(1.0, 1.0, True), Habit(1.0, 0.4, True), Habit(3.0, 0.2, True))  # crowd, depth: trees for time
