"""The tuned constants of method ``flow``. Of each: what it counts, what more of it brings, for what price.

Most bound time and memory, or end a search near its bound. Those with brackets decide: without, a stored value got so
much worse; at half and at double none changed by more than 0.06 %. Budgets were not tried.
"""

from fractions import Fraction

from synth_models.fabric.plans.block_trees import Habit
from synth_models.fabric.programs.flow.orders import Busiest, Rule

NEAR = Fraction(1, 6)  # of the incumbent's seconds above a bound: no flow of many small blocks, time for a gap

MOST_STATES = 20_000  # states of split switches: links of a group counted exactly for time
INTERIOR_FROM = 60_000  # columns: the simplex method's sure basis for the interior point method's speed
WHOLE_UP_TO = 8_000  # columns of a program solved at once: no rounds of pricing for time
NEARER_UP_TO = 20_000  # columns of the flow over routes of least latency: shorter routes for time
DETOURS_UP_TO = 8_000  # columns of flows with short detours: shorter routes for time
DETOURS = (0.25, 1.5, 3.0)  # largest latencies that a path is longer than the shortest: shorter for time [7 rows]
SHARE_OF_TIME = 0.4  # of the time left, for every program: a proven flow for time to order pieces

MOST_TRANSFERS = 3_000_000  # transfers of a schedule: smaller pieces for memory and time
MOST_TIMED = 2_000  # transfers that are also ordered by time, not only inserted: another order for time [0.01 %]
MOST_SHARE_OF_TIME = 0.4  # of the time left, for all tries: better orders for time
MOST_SECONDS = 20.0  # seconds for all tries: better orders for time
FIRST_SHARE = 0.6  # of these, for first schedules: more of them for less improvement
SHARE_OF_LOOKS = 0.1  # of the time left, for one order of busiest links: larger ones for fewer
LOOKS_PER_S = 1e7  # looks at a link a second, until measured: such orders begun for time
AS_LONG = 1.2  # times the last draft's seconds that the next may take: fewer cut short for fewer begun
CLOSE = 1.0002  # times a bound's seconds: an earlier end for a gap
CLOSE_OF_MANY = 1.0025  # times a bound's seconds, for many hops: the same
MANY = 10_000  # hops of pieces: smaller gaps for time
GAIN = 1e-3  # of the seconds, by which more pieces must be faster: fewer pieces for a gap [0.04 %]
WORSE = 2  # sizes of pieces in a row without gain: smaller ones tried for time [0.1 %]
IDLE = 40  # tries in a row without gain: better orders for time [1 %]

RULES = (  # pace (turns), weight of hops left, whether phases are random: more orders for time [7 %]
    Rule("paced", 1.0, 0.0),
    Rule("furthest first", 1e-6, 1.0),
    Rule("paced, ahead for hops left", 1.0, 0.1),
    Rule("paced at random phases", 1.0, 0.0, True),
)
BUSIEST = (  # power of a link's share of the fullest's load, weight of hops left: more orders for time
    Busiest(16.0),
    Busiest(16.0, backwards=True),
    Busiest(4.0),
    Busiest(4.0, backwards=True),
    Busiest(16.0, 0.3),
)

HABITS = (Habit(1.0, 0.0), Habit(1.0, 1.0), Habit(3.0, 0.3))  # crowd, depth of trees of several holders: more for time
OFF = 4.0  # times its seconds that a route costs more which the flow leaves alone: its loads for shorter trees
UNUSED = 1e-6  # crossings of a byte: fewer links that count as used for exactness
SHARE_OF_FLOW = 0.5  # of the time, for the program of several holders: a bound for time to make schedules
LONGEST_S = 600.0  # seconds for it where there is no limit: larger ones for time
