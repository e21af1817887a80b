"""The tuned constants of method ``forest``. Of each: what it counts, what more of it brings, for what price.

Those of the first part bound time and memory, or are reached only where rounds do not fit. Those of the second were
tried at half, at double and without on stored values, `EQUAL` on 14 questions of few transfers, `MOST_PACKED` on 34;
in brackets the most that one got worse.
"""

from fractions import Fraction

MOST_TRANSFERS = 600_000  # transfers of a schedule: more rounds, nearer the fluid, for memory and time
MORE_TRANSFERS = 1_500_000  # transfers of a schedule where the best so far is far from the fluid: the same
FAR = Fraction(1, 120)  # of the best so far above the fluid: large schedules later for time
ENOUGH = Fraction(1, 2000)  # gain over half as many rounds: fewer rounds tried for a longer end
MOST_VARIABLES = 60_000  # variables of the program that balances switches: a greater rate for time
STRETCHES = (  # times the busiest link's seconds that a round may take: rounds that fit for idle links
    1.0, 1.01, 1.02, 1.04, 1.07, 1.11, 1.16, 1.23, 1.32, 1.45, 1.6, 1.8, 2.1
)  # fmt: skip
LEAST_SHARE = Fraction(1, 4)  # of the greatest share of equal trees: fewer sizes looked at for none that fits

GRAIN = 2520  # units of a unit of capacity before rounding: less lost for larger numbers [one row has none without]
LISTED = 4_000  # transfers that are also list scheduled in one piece: short messages for time [six rows are its own]
FINER = 12  # parts of a unit of capacity where a switch leaves some over: less lost for larger numbers [6 %]
PARTS = 64  # of a link's capacity, trimmed by bisection: less of it in long routes for time [1 %]
MOST_GATHERED = 32  # ranks where switches are split off in a second way: a greater rate for time [27 %]
SWEEPS = 20  # passes of exchanges between trees: shallower trees for time [0.3 %]

EQUAL = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # trees a root, where transfers are to be few: rate for time [23 %]
MOST_PACKED = 3  # numbers of equal trees packed: a better one for time [10 %]
