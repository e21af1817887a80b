"""The second checker's part for who holds what: items come from origins to goals. Standard library alone."""

from verify_base import INFINITE, Fault, need


def is_copy(row):
    """Return whether a transfer adds nothing, leaves one node, and arrives later than it leaves."""
    _, (leaves, arrives), adds = row
    return not adds and len(leaves) == 1 and all(after > leaves[0][1] for _, after in arrives)


def copied(item, rows, there, goals):
    """Check copies alone; there: from when on a node has the item. All that arrives by then has left before."""
    for start, (((u, first),), arrives), _ in sorted(rows, key=lambda row: row[0] + row[1][0][0][1]):
        if there.get(u, INFINITE) > start + first:
            raise Fault(f"item {item} is not at node {u}, or sent twice in a sum")
        for v, after in arrives:
            if start + after < there.get(v, INFINITE):
                there[v] = start + after
    need(all(goal in there for goal in goals), f"item {item} is not (completely) where it should be in the end")


def check_possession(ends, moves, members, switches=(), ordered=False, ready=None):
    """Check that every item comes from its origin to its goal, and that transfers carry what is there.

    moves[item]: rows (start, way, adds); a way is two lists (node, ticks from the start): it leaves, it arrives. Held
    are sets of contributions, as bits: without ``adds`` one has to be complete, with it nothing may come twice. Copies
    arrive before additions (``ordered``: as rows stand), both before anything leaves; what comes to a switch leaves at
    that time only. ready: from which tick on ranks have what is theirs. What differs from an earlier item by its start
    alone is not replayed again."""
    everybody, alone, seen = (1 << len(members)) - 1, {v: 1 << i for i, v in enumerate(members)}, set()
    steps = {}  # of a way with or without adds: (4 · ticks + order, node) of what happens
    for item, (origin, goal) in enumerate(ends):
        rows, have, carried, events = moves[item], {}, {}, []
        if origin is not None and not switches and all(map(is_copy, rows)):
            copied(item, rows, {origin: (ready or {}).get(origin) or -INFINITE}, members if goal is None else (goal,))
            continue
        like = (origin, goal, *[x for start, way, adds in rows for x in (start - rows[0][0], id(way), adds)])
        like += (rows[0][0],) if rows and ready else ()
        if like in seen:
            continue
        seen.add(like)
        own = alone if origin is None else {origin: everybody}
        have = {v: held for v, held in own.items() if not (ready and ready.get(v))}
        events += [(4 * ready[v], -1, v) for v in own if v not in have]
        for i, (start, way, adds) in enumerate(rows):
            if (id(way), adds) not in steps:
                (leaves, arrives), order = way, adds and not ordered
                steps[id(way), adds] = [(4 * after + 2, v) for v, after in leaves]
                steps[id(way), adds] += [(4 * after + order, v) for v, after in arrives]
            for after, v in steps[id(way), adds]:
                events.append((4 * start + after, i, v))
        for time, i, v in sorted(events):
            there = (v, time // 4) if v in switches else v
            held = have.get(there, 0)
            if i < 0:
                have[v] = held | own[v]
            elif time % 4 == 2:  # it leaves node v
                if not held or held & carried.get(i, 0):
                    raise Fault(f"item {item} is not at node {v}, or sent twice in a sum")
                carried[i] = held | carried.get(i, 0)
            elif held & carried[i] if rows[i][2] else carried[i] != everybody:
                raise Fault(f"item {item} comes to node {v} incomplete, or a second time to be added")
            else:
                have[there] = held | carried[i]
        there = all(have.get(v) == everybody for v in (members if goal is None else (goal,)))
        need(there, f"item {item} is not (completely) where it should be in the end")
