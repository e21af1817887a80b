"""The tuned constants of method ``pull``. Of each: what it counts, what more of it brings, for what price.

Those of the first part bound time and memory. Those of the second were tried at half, at double and without on stored
values; in brackets the most that one got worse.
"""

from synth_models.fabric.plans.block_trees import Habit

MOST_CHUNKS = 128  # pieces a block: a finer pipeline for time
MOST_TRANSFERS = 16_000  # transfers of a schedule of several pieces a block: a finer pipeline for time
MOST_SEARCHED = 8_000  # transfers of a schedule that is searched on: better routes for time
MOST_PUSHED = 400_000  # transfers of a schedule that is pushed together: a shorter end for time
MOST_PULLED = 20_000_000  # pieces times ranks of the event-driven greedy: a better start for time
MOST_GUIDED = 1200  # ranks between which distances are known: quicker growth for memory
MOST_ROUTES = 1_200_000  # direct routes in all: more of them a pair for memory and time
MOST_ENTRIES = 4  # links by which routes enter a rank: fewer looks for memory and time at every look
MANY_BLOCKED = 64  # routes that wait for a link: arrivals noticed sooner for looks
WORK = 4e6  # looks at a route that one search takes: better routes for time
SLICE = 100  # rounds between looks at the clock: less overhead for a later end
MOST_COPIED_CHUNKS = 64  # pieces a block, copied in switches: a finer pipeline for time
MOST_COPIES = 60_000  # hops of such a schedule: a finer pipeline for time
COPYING_WORK = 4e8  # looks at a link that the trees of such a schedule take: larger machines for time

RUIN = 4  # pieces taken out at once: a wider neighbourhood for slower rounds [0.2 %, at two others 0.6 % better]
PATIENCE = (1.0, 0.0, 0.5, 3.0)  # of a restart, in missing pieces: rarer blocks first for idle links [3 %]
LADDERS = 24  # nestings of groups in which sums are exchanged: a better one for time [34 %]
WORTH = 0.995  # of the seconds before: more pieces tried for time [0.7 %]
THRIFT = (1e4, 30.0, 0.0)  # weights of links used against time, in copying trees: more kinds of trees for time [42 %]

HABITS = (  # crowd, depth of the trees of blocks of several holders: more kinds for time
    Habit(1.0, 1.0),
    Habit(1.0, 0.5),
    Habit(1.0, 0.0),
    Habit(0.3, 0.8),
    Habit(3.0, 0.2),
)
MOST_TREES = 2000  # pieces of all blocks of several holders: a finer pipeline for time
MOST_TREES_A_BLOCK = 64  # pieces of such a block: the same
TREE_ROUNDS = 400  # rounds in which some trees are grown again: better trees for time
TREE_WORK = 60_000  # rounds times transfers: the same for many transfers
REGROWN = 0.15  # of the pieces, in a round: a wider neighbourhood for slower rounds
FINER = 0.98  # of the seconds before, that twice as many pieces must reach: more pieces tried for time
