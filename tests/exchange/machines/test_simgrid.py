"""SimGrid's platforms: links get their ends from the routes, clusters are stars, what fits no graph is refused."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import pytest
from exchange.machines.reading import both_ways, links_of, refused

from synth.exchange.machines.formats import FORMATS, read_text

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
RATE, WAIT = 125e6, 50e-6


def platform(body: str) -> str:
    return f"{HEAD}{body}</platform>\n"


def zone(*parts: str) -> str:
    return platform(f'<zone id="world" routing="Full">{"".join(parts)}</zone>')


def host(name: str) -> str:
    return f'<host id="{name}" speed="1Gf"/>'


def link(name: str, policy: str = "SPLITDUPLEX", rate: str = "125MBps") -> str:
    return f'<link id="{name}" bandwidth="{rate}" latency="50us" sharing_policy="{policy}"/>'


def route(src: str, dst: str, *links: str) -> str:
    return (
        f'<route src="{src}" dst="{dst}">{"".join(f"<link_ctn id={chr(34)}{one}{chr(34)}/>" for one in links)}</route>'
    )


HOSTS = ("a", "b", "c", "d")
ENDS = "".join(host(name) + link(f"l{name}") for name in HOSTS)


def test_routes_of_one_link_are_a_graph() -> None:
    ring = [link(f"r{i}") + route(u, v, f"r{i}") for i, (u, v) in enumerate(zip(HOSTS, (*HOSTS[1:], "a"), strict=True))]
    machine = read_text(
        zone(*map(host, HOSTS), '<router id="x"/>', *ring, link("up"), route("a", "x", "up")), "ring.xml"
    )
    ends = [*zip(HOSTS, (*HOSTS[1:], "a"), strict=True), ("a", "x")]
    assert links_of(machine) == both_ways(*((u, v, RATE, WAIT) for u, v in ends))
    assert [machine.names[v] for v in machine.switches] == ["x"]


def test_own_links_that_meet_are_a_star() -> None:
    routes = [route(u, v, f"l{u}", f"l{v}") for u, v in combinations(HOSTS, 2)]
    machine = read_text(zone(ENDS, *routes), "star.xml")
    assert links_of(machine) == both_ways(*((name, "switch0", RATE, WAIT) for name in HOSTS))


def test_a_link_between_two_stars() -> None:
    routes = [route("a", "b", "la", "lb"), route("c", "d", "lc", "ld")]
    routes += [
        route(*pair, f"l{pair[0]}", "trunk", f"l{pair[1]}") for pair in (("a", "c"), ("d", "a"), ("b", "c"), ("b", "d"))
    ]
    machine = read_text(zone(ENDS, link("trunk", rate="1GBps"), *routes), "two.xml")
    stars = [(name, "switch0" if name in "ab" else "switch1", RATE, WAIT) for name in HOSTS]
    assert links_of(machine) == both_ways(*stars, ("switch0", "switch1", 1e9, WAIT))


def test_a_link_that_all_pass_is_a_backbone() -> None:
    routes = [route(u, v, f"l{u}", "bb", f"l{v}") for u, v in combinations(HOSTS, 2)]
    machine = read_text(zone(ENDS, link("bb", "FATPIPE", "1GBps"), *routes), "bus.xml")
    up = [(name, "switch0-in", RATE, WAIT) for name in HOSTS]
    down = [("switch0-out", name, RATE, WAIT) for name in HOSTS]
    assert links_of(machine) == Counter([*up, *down, ("switch0-in", "switch0-out", 1e9, WAIT)])
    assert any("FATPIPE" in word for word in machine.assumed)


CLUSTER = '<cluster id="c" prefix="n-" suffix=".x" radical="0-2,7" speed="1Gf" bw="125MBps" lat="50us"/>'
NODES = ("n-0.x", "n-1.x", "n-2.x", "n-7.x")


def laid(kind: str, parameters: str, more: str = "", radical: str = "0-3") -> str:
    """A cluster of this topology, of four hosts."""
    words = f'topology="{kind}" topo_parameters="{parameters}"{more}'
    return platform(f'<cluster id="c" prefix="n" suffix="" radical="{radical}" bw="1GBps" lat="1us" {words}/>')


def test_a_torus_has_a_cable_to_the_next_in_every_dimension() -> None:
    machine = read_text(laid("TORUS", "3,2", radical="0-5"), "torus.xml")
    rows = [(f"n{3 * y + x}", f"n{3 * y + (x + 1) % 3}") for y in range(2) for x in range(3)]
    columns = [(f"n{x}", f"n{3 + x}") for x in range(3)] * 2  # a cable there, and one round the end
    assert links_of(machine) == both_ways(*((u, v, 1e9, 1e-6) for u, v in rows + columns))
    assert "any route may be taken through torus c, not SimGrid's own alone" in machine.assumed


def test_a_fat_tree_has_parents_by_labels() -> None:
    """SimGrid's own example: 16 hosts, four switches of four hosts, two above, two cables between."""
    machine = read_text(laid("FAT_TREE", "2;4,4;1,2;1,2", radical="0-15"), "tree.xml")
    down = [(f"n{4 * leaf + n}", f"c-switch{leaf}", 1e9, 1e-6) for leaf in range(4) for n in range(4)]
    up = [(f"c-switch{leaf}", f"c-switch{4 + top}", 2e9, 1e-6) for leaf in range(4) for top in range(2)]
    assert links_of(machine) == both_ways(*down, *up)
    assert len(machine.switches) == 6


def test_a_tree_whose_hosts_have_two_parents() -> None:
    machine = read_text(laid("FAT_TREE", "1;4;2;3", ' sharing_policy="SHARED"'), "tree.xml")
    ends = [(f"n{n}", f"c-switch{top}", 3e9, 1e-6) for n in range(4) for top in range(2)]
    assert links_of(machine) == both_ways(*ends)
    assert len({one.group for one in machine.links}) == 8


def test_a_dragonfly_has_three_colours() -> None:
    machine = read_text(laid("DRAGONFLY", "2,4;2,3;2,2;1", radical="0-7"), "fly.xml")
    own = [(f"n{n}", f"c-switch{n}", 1e9, 1e-6) for n in range(8)]
    green = [(f"c-switch{n}", f"c-switch{n + 1}", 2e9, 1e-6) for n in range(0, 8, 2)]
    black = [(f"c-switch{n}", f"c-switch{n + 2}", 3e9, 1e-6) for n in (0, 1, 4, 5)]
    assert links_of(machine) == both_ways(*own, *green, *black, ("c-switch1", "c-switch4", 4e9, 1e-6))


def test_a_laid_cluster_beside_others() -> None:
    """A route between gateways may name a host of it, as any node."""
    torus = laid("TORUS", "2,2").removeprefix(HEAD).removesuffix("</platform>\n")
    between = '<zoneRoute src="c" dst="e" gw_src="n0" gw_dst="n-e_router.x"><link_ctn id="wan"/></zoneRoute>'
    machine = read_text(zone(torus, CLUSTER.replace('"c"', '"e"'), link("wan"), between), "grid.xml")
    assert links_of(machine)["n0", "n-e_router.x", RATE, WAIT] == 1
    assert len(machine.ranks) == 8


def test_a_cluster_is_a_star() -> None:
    machine = read_text(platform(CLUSTER), "cluster.xml")
    assert links_of(machine) == both_ways(*((name, "n-c_router.x", RATE, WAIT) for name in NODES))
    text = CLUSTER.replace("/>", ' bb_bw="2GBps" bb_lat="1us"/>')
    machine = read_text(platform(f'<zone id="w" routing="Full">{text}</zone>'), "cluster.xml")
    ends = [(name, "c-in", RATE, WAIT) for name in NODES] + [("c-out", name, RATE, WAIT) for name in NODES]
    assert links_of(machine) == Counter([*ends, ("c-in", "c-out", 2e9, 1e-6)])


def test_clusters_are_joined_by_a_route_of_zones() -> None:
    other = CLUSTER.replace('"c"', '"e"').replace("n-", "m-")
    between = '<zoneRoute src="c" dst="e" gw_src="n-c_router.x" gw_dst="m-e_router.x"><link_ctn id="wan"/></zoneRoute>'
    machine = read_text(zone(CLUSTER, other, link("wan", rate="10Gbps"), between), "grid.xml")
    assert links_of(machine)["n-c_router.x", "m-e_router.x", 1.25e9, WAIT] == 1
    assert len(machine.ranks) == 8
    assert len(machine.links) == 18


def test_routers_of_clusters_are_behind_their_backbones() -> None:
    """What leaves a cluster passes its backbone and what comes in does: from `out` of one to `in` of the other."""
    first, other = (
        CLUSTER.replace("/>", ' bb_bw="2GBps"/>').replace('"c"', f'"{n}"').replace("n-", f"{n}-") for n in "ab"
    )
    ends = 'gw_src="a-a_router.x" gw_dst="b-b_router.x"'
    between = f'<zoneRoute src="a" dst="b" {ends}><link_ctn id="wan"/></zoneRoute>'
    found = links_of(read_text(zone(first, other, link("wan", rate="10Gbps"), between), "grid.xml"))
    assert {ends for ends in found if 1.25e9 in ends} == {
        ("a-out", "b-in", 1.25e9, WAIT),
        ("b-out", "a-in", 1.25e9, WAIT),
    }
    named = other.replace("/>", ' router_id="gate"/>')
    assert (
        links_of(
            read_text(
                zone(first, named, link("wan", rate="10Gbps"), between.replace("b-b_router.x", "gate")), "grid.xml"
            )
        )
        == found
    )


def test_a_router_of_a_zone_is_behind_its_backbone() -> None:
    body = "".join(host(n) + link(f"l{n}") + f'<host_link id="{n}" up="l{n}" down="l{n}"/>' for n in "ab")
    body += '<router id="gate"/><backbone id="bb" bandwidth="1GBps" latency="50us"/>'
    inner = f'<zone id="s" routing="Cluster">{body}</zone><zone id="t" routing="Full">{host("x")}</zone>'
    inner += link("wan", rate="10Gbps")
    between = '<zoneRoute src="s" dst="t" gw_src="gate" gw_dst="x"><link_ctn id="wan"/></zoneRoute>'
    machine = read_text(zone(inner, between), "gate.xml")
    found = links_of(machine)
    assert {ends for ends in found if 1.25e9 in ends} == {("s-out", "x", 1.25e9, WAIT), ("x", "s-in", 1.25e9, WAIT)}
    assert "gate" not in machine.names


def test_a_bus_that_several_pairs_share_is_a_group() -> None:
    routes = [route(u, v, "bus") for u, v in combinations("abc", 2)]
    machine = read_text(zone(*map(host, "abc"), link("bus", "SHARED"), *routes), "bus.xml")
    assert links_of(machine) == both_ways(*((u, v, RATE, WAIT) for u, v in combinations("abc", 2)))
    assert {one.group for one in machine.links} == {"bus"}


def test_links_up_and_down_of_a_zone() -> None:
    body = "".join(host(n) + link(f"{n}u") + link(f"{n}d", rate="250MBps") for n in "ab")
    body += "".join(f'<host_link id="{n}" up="{n}u" down="{n}d"/>' for n in "ab")
    machine = read_text(platform(f'<AS id="s" routing="Cluster">{body}</AS>'), "up.xml")
    assert links_of(machine) == Counter([link for n in "ab" for link in ((n, "s", RATE, WAIT), ("s", n, 250e6, WAIT))])


def test_directions_of_a_shared_link_take_turns() -> None:
    machine = read_text(zone(host("a"), host("b"), link("l", "SHARED"), route("a", "b", "l")), "shared.xml")
    assert {one.group for one in machine.links} == {"l"}


def test_routes_that_are_no_way_back() -> None:
    """One link there and another back; own links up and down; nothing is made of a way that no route names."""
    there, back = (route(*ends, name).replace("<route", '<route symmetrical="NO"') for *ends, name in ("abx", "bay"))
    machine = read_text(zone(host("a"), host("b"), link("x"), link("y", rate="250MBps"), there, back), "ways.xml")
    assert links_of(machine) == Counter([("a", "b", RATE, WAIT), ("b", "a", 250e6, WAIT)])
    wires = "".join(host(n) + link(f"{n}u") + link(f"{n}d", rate="250MBps") for n in "abc")
    routes = [
        route(u, v, f"{u}u", f"{v}d").replace("<route", '<route symmetrical="no"') for u, v in permutations("abc", 2)
    ]
    machine = read_text(zone(wires, *routes), "ways.xml")
    ends = [link for n in "abc" for link in ((n, "switch0", RATE, WAIT), ("switch0", n, 250e6, WAIT))]
    assert links_of(machine) == Counter(ends)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (zone(host("a"), host("a")), "host[a] = 'a': must be a name of its own"),
        (zone(ENDS, route("a", "b", "no")), "route[a-b] = 'no': names no link of the file"),
        (zone(ENDS, route("a", "z", "la")), "route[a-z] = 'z': names no host or router of the file"),
        (zone(ENDS, route("a", "b", "la", "lb", "lc", "ld")), "has 4 links; routes of 1 to 3 are read"),
        (zone(ENDS, route("a", "b", "la"), route("a", "c", "la")), "the link la joins a-b and others too"),
        (zone(ENDS, route("a", "b", "la", "lb"), route("c", "d", "la", "ld")), "la or ld is another's own link"),
        (zone(link("l", rate="quick")), "@bandwidth = 'quick': must be a rate"),
        (zone('<peer id="p"/>'), "peer[p]: is not read"),
        (platform(CLUSTER.replace("0-2,7", "0-99999999")), "@radical = '0-99999999': are more than 65,536 hosts"),
        (platform(CLUSTER.replace("0-2,7", "a-b")), "@radical = 'a-b': must be numbers and ranges"),
        (laid("VIVALDI", "2,2"), "@topology = 'VIVALDI': must be FLAT, TORUS, FAT_TREE, DRAGONFLY"),
        (laid("TORUS", "2,3"), "@topo_parameters = '2,3': is for 6 hosts; radical names 4"),
        (laid("TORUS", "2,x"), "@topo_parameters = '2,x': must hold whole numbers such as"),
        (laid("TORUS", "0,4"), "must hold whole numbers above 0"),
        (laid("TORUS", ""), "@topo_parameters = '': must hold whole numbers"),
        (laid("FAT_TREE", "2;4,1;1,1"), "must be levels; children,…; parents,…; cables,…"),
        (laid("FAT_TREE", "1;4;99999;1"), "makes 100,003 nodes; at most 65,536 are supported"),
        (laid("FAT_TREE", "1;5000;50000;1", radical="0-4999"), "makes 500,000,000 links; at most 4,000,000"),
        (laid("DRAGONFLY", "4,1;1,1;1,1;1"), "joins 4 groups by 1 routers of each"),
        (laid("DRAGONFLY", "4,1;1,1"), "must be groups,blue; chassis,black; blades,green; nodes"),
        (laid("TORUS", "2,2", ' bb_bw="1GBps"'), "@bb_bw: has no meaning with TORUS"),
        (laid("FLAT", "", ' limiter_link="1GBps"'), "@limiter_link: is not read"),
        (platform(""), "holds no rank"),
        (platform(CLUSTER).replace(".dtd\"", ".dtd\" [<!ENTITY x \"y\">]"), "holds a DTD or entities"),
    ],
)  # fmt: skip
def test_what_fits_no_graph_is_refused(text: str, message: str) -> None:
    assert [one.name for one in FORMATS if one.looks_like(text)] == ["simgrid"]
    assert message in refused(text)
