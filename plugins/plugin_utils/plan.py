# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a fleet: from inventory and facts to what each node shall be. Pure functions, run on the controller.

Nothing is changed anywhere, and the same inventory and facts give the same plan whatever the order of mappings.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gb10.fleet.plugins.plugin_utils import nccl
from ansible_collections.gb10.fleet.plugins.plugin_utils.catalogue import finding
from ansible_collections.gb10.fleet.plugins.plugin_utils.profiles import ProfileError, load_profile, profile_paths
from ansible_collections.gb10.fleet.plugins.plugin_utils.toolchain import (
    DEFAULT as DEFAULT_TOOLCHAIN,
    ToolchainError,
    suggestion,
    toolchain,
)

try:
    from netaddr import AddrFormatError, IPAddress, IPNetwork
except ImportError as error:
    NETADDR_ERROR: ImportError | None = error
else:
    NETADDR_ERROR = None

SUBNETS = ("192.168.100.0/24", "192.168.101.0/24")
MTU = 9000
# ConnectX-7 takes up to 9978 bytes; below 1280 IPv6 is off and RoCE falls to 1024.
MTU_RANGE = (1280, 9978)
# 4096 bytes of RoCE payload and the 96 bytes of headers that the kernel takes off (iboe_get_mtu in rdma/ib_addr.h).
MTU_FOR_ROCE_4096 = 4192
# NVIDIA's two-Spark guide begins at .10 and .11.
FIRST_HOST = 10
LOOPBACK = "127.0.0.1"
# "This host", loopback, multicast and reserved: no interface takes an address of these (RFC 6890).
NO_UNICAST = ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4")
PORT = 8000
# These say how a whole cluster is, so that all of its nodes must agree.
SHARED = (
    "spark_profile",
    "spark_profiles",
    "spark_toolchain",
    "spark_toolchains",
    "spark_tensor_parallel",
    "spark_mtu",
    "spark_rail_subnets",
    "spark_wheelhouse",
)
CABLE_CURE = "Put the cable in at both ends, then boot both nodes with it in."


class PlanError(Exception):
    """A sentence for the user, for what stops planning altogether."""


def fleet_plan(clusters: t.Sequence[t.Mapping[str, t.Any]], hostvars: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Plan every cluster whose nodes have been looked at.

    Args:
        clusters: [{name, nodes}], the head first; name is None for a host that is in no cluster (lookup clusters).
        hostvars: variables of every host; ansible_facts.spark of those that spark_facts looked at.

    Returns:
        {nodes: {host: plan}, findings: [finding]}. A cluster with a failing finding has no plan. Clusters of which no node was
        looked at (--limit) are left out. A plan is
        {cluster, nodes, head, role: head|worker, topology: single|pair|switch|ring, tensor_parallel, executor: ray|none, mtu,
        rails: [{netdev, device, cage, address, prefix, subnet, peers: [{node, address}]}], address, interface, head_address,
        addresses: [address of each node, in the order of nodes], hosts: [{address, names}], toolchain, profile, model: {name, source}}.

    Raises:
        PlanError: netaddr is missing on the controller.
    """
    if NETADDR_ERROR is not None:
        raise PlanError("The Python package netaddr is missing on the controller: install what requirements.txt lists.") from NETADDR_ERROR
    findings = _membership(clusters)
    nodes: dict[str, dict] = {}
    named = [cluster for cluster in clusters if cluster["name"] is not None and cluster["nodes"]]
    if not named:
        findings.append(
            finding(
                "plan.no_cluster", "fail", None,
                "The group spark has no child group with hosts in it.",
                "Write the nodes below spark: children: CLUSTER: hosts:.",
            )
        )
    looked_at = {node for cluster in named for node in cluster["nodes"] if _facts(hostvars, node)}
    if named and not looked_at:
        findings.append(
            finding("plan.no_facts", "fail", None, "No node has been looked at.", "Run gb10.fleet.spark_facts on the group spark first.")
        )
    for cluster in named:
        if not looked_at & set(cluster["nodes"]):
            continue
        planned = _Cluster(cluster["name"], list(cluster["nodes"]), hostvars)
        planned.plan()
        findings.extend(planned.findings)
        nodes.update(planned.plans)
    return {"nodes": nodes, "findings": findings}


def _facts(hostvars: t.Mapping, node: str) -> dict:
    variables = hostvars.get(node) or {}
    return (variables.get("ansible_facts") or {}).get("spark") or {}


def _membership(clusters: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict]:
    findings = []
    places: dict[str, list[str]] = {}
    for cluster in clusters:
        if cluster["name"] is None:
            for node in cluster["nodes"]:
                findings.append(
                    finding(
                        "plan.host_in_no_cluster", "fail", node,
                        "This host is in group spark, but in none of its child groups, which are the clusters.",
                        "Move it below spark: children: CLUSTER: hosts:.",
                    )
                )
            continue
        for node in cluster["nodes"]:
            places.setdefault(node, []).append(cluster["name"])
    for node, names in places.items():
        if len(names) > 1:
            findings.append(
                finding(
                    "plan.host_in_two_clusters", "fail", node,
                    f"This host is in the clusters {' and '.join(names)}, which are child groups of spark.",
                    "Leave it in one of them.",
                )
            )
    return findings


class _Cluster:
    """One cluster on its way to a plan. `findings` collects what is found, `plans` stays empty after a failing one."""

    def __init__(self, name: str, nodes: list[str], hostvars: t.Mapping) -> None:
        self.name = name
        self.nodes = nodes
        self.head = nodes[0]
        self.variables = {node: hostvars.get(node) or {} for node in nodes}
        self.facts = {node: _facts(hostvars, node) for node in nodes}
        self.findings: list[dict] = []
        self.plans: dict[str, dict] = {}

    def fail(self, identifier: str, node: str, what: str, cure: str, **more: str) -> None:
        self.findings.append(finding(identifier, "fail", node, what, cure, **more))

    def warn(self, identifier: str, node: str, what: str, cure: str, **more: str) -> None:
        self.findings.append(finding(identifier, "warn", node, what, cure, **more))

    @property
    def failed(self) -> bool:
        return any(found["severity"] == "fail" for found in self.findings)

    def value(self, name: str, default: t.Any = None, node: str | None = None) -> t.Any:
        value = self.variables[node or self.head].get(name)
        return default if value is None else value

    def plan(self) -> None:
        for node in self.nodes:
            if not self.facts[node]:
                self.fail(
                    "plan.node_not_looked_at", node,
                    f"This node of cluster {self.name} has not been looked at: it is unreachable or left out by --limit.",
                    "Run with the whole cluster, and with all of its nodes on.",
                )
        for name in SHARED:
            for node in self.nodes[1:]:
                mine, heads = self.variables[node].get(name), self.variables[self.head].get(name)
                if mine != heads:
                    self.fail(
                        "plan.not_shared", node,
                        f"{name} is {mine} here and {heads} on {self.head}, and a cluster has one value.",
                        f"Set it for the group {self.name} or for all.",
                    )
        if self.failed:
            return
        row = self._toolchain()
        profile = self._profile(row)
        size = self._tensor_parallel(profile)
        mtu = self._mtu()
        self._paths()
        self._listener()
        rails: dict[str, list[dict]] = {node: [] for node in self.nodes}
        if len(self.nodes) > 1:
            rails = self._rails()
        if self.failed:
            return
        topology = self._topology(rails)
        ways = {node: self._way(node, rails, topology) for node in self.nodes}
        if self.failed:
            return
        for node in self.nodes:
            self.plans[node] = {
                "cluster": self.name,
                "nodes": list(self.nodes),
                "head": self.head,
                "role": "head" if node == self.head else "worker",
                "topology": topology,
                "tensor_parallel": size,
                "executor": "ray" if size > 1 else "none",
                "mtu": mtu,
                "rails": rails[node],
                "address": ways[node][0],
                "interface": ways[node][1],
                "head_address": ways[self.head][0],
                "addresses": [ways[other][0] for other in self.nodes],
                "hosts": self._hosts(rails),
                "toolchain": row,
                "profile": profile,
                "model": {"name": profile["model"], "source": self.value("spark_model_source")},
            }
        for node in self.nodes:
            self._overrides(node)
        if self.failed:
            self.plans = {}

    def _toolchain(self) -> dict:
        name = self.value("spark_toolchain", DEFAULT_TOOLCHAIN)
        if not isinstance(name, str):
            self.fail("plan.toolchain", self.head, f"spark_toolchain is {name}, which is no name of a row.", f"Set it to one such as {DEFAULT_TOOLCHAIN}.")
            return {}
        try:
            return toolchain(name, self.value("spark_toolchains", {}))
        except ToolchainError as error:
            self.fail("plan.toolchain", self.head, str(error), "Set spark_toolchain to one of the table.")
            return {}

    def _profile(self, row: dict) -> dict:
        name = self.value("spark_profile")
        try:
            paths = profile_paths(self.value("spark_profiles"))
            if name and not isinstance(name, str):
                self.fail(
                    "plan.profile_unknown", self.head, f"spark_profile is {name}, which is no name.",
                    f"Set it to one profile; {suggestion('', paths)}.",
                )
                return {}
            if not name:
                self.fail(
                    "plan.profile_missing", self.head,
                    f"spark_profile is not set for cluster {self.name}.",
                    f"Set it to the profile to serve; {suggestion('', paths)}.",
                )
                return {}
            if name not in paths:
                self.fail(
                    "plan.profile_unknown", self.head,
                    f"spark_profile is {name}, and there is no such profile; {suggestion(name, paths)}.",
                    "Set spark_profile to one of these, or put your own into the folder spark_profiles.",
                )
                return {}
            profile = load_profile(name, paths[name])
        except ProfileError as error:
            self.fail("plan.profile", self.head, str(error), "Correct it.")
            return {}
        able = profile["toolchains"]
        if row and able and row["name"] not in able:
            self.fail(
                "plan.profile_toolchain", self.head,
                f"spark_profile {name} cannot be served by spark_toolchain {row['name']}.",
                f"Set spark_toolchain to {' or '.join(able)}, or choose another profile.",
            )
        return profile

    def _tensor_parallel(self, profile: dict) -> int:
        size = self.value("spark_tensor_parallel", profile.get("tensor_parallel"))
        if size is None:
            return 0
        source = "spark_tensor_parallel" if self.value("spark_tensor_parallel") is not None else f"tensor_parallel of spark_profile {profile['name']}"
        count = len(self.nodes)
        if isinstance(size, bool) or not str(size).isdigit() or int(size) < 1:
            self.fail("plan.tensor_parallel", self.head, f"{source} is {size}, which is no number of nodes.", f"Set it to {count}.")
            return 0
        size = int(size)
        if size > 1 and count == 1:
            self.fail(
                "plan.cluster_of_one", self.head,
                f"{source} is {size}, and cluster {self.name} has this one node only.",
                f"Add the other nodes to {self.name}, or set spark_tensor_parallel to 1 with a profile that fits one node.",
            )
        elif size != count:
            self.fail(
                "plan.tensor_parallel", self.head,
                f"{source} is {size}, and cluster {self.name} has {count} nodes of one GPU each.",
                f"Set spark_tensor_parallel to {count}, or change the cluster's nodes.",
            )
        return size

    def _mtu(self) -> int:
        mtu = self.value("spark_mtu", MTU)
        lowest, highest = MTU_RANGE
        if isinstance(mtu, bool) or not str(mtu).isdigit() or not lowest <= int(mtu) <= highest:
            self.fail("plan.mtu", self.head, f"spark_mtu is {mtu}, and the rails take {lowest} to {highest} bytes.", "Set it to 9000.")
            return MTU
        if int(mtu) < MTU_FOR_ROCE_4096 and len(self.nodes) > 1:
            self.warn(
                "plan.mtu_low", self.head,
                f"spark_mtu is {mtu}, which leaves RoCE less than its 4096 bytes.",
                f"Set it to 9000, or to {MTU_FOR_ROCE_4096} at least.",
                source="iboe_get_mtu of the kernel: 96 bytes of headers, then the next lower of 4096, 2048, 1024, 512, 256",
            )
        return int(mtu)

    def _paths(self) -> None:
        for name, node, meaning in (
            ("spark_wheelhouse", self.head, "the folder on every node with the wheels to install"),
            ("spark_model_source", self.head, "the folder on this head that holds the model"),
        ):
            path = self.value(name, node=node)
            if not isinstance(path, str) or not path.startswith("/"):
                self.fail("plan.path", node, f"{name} is {path or 'not set'}.", f"Set it to {meaning}, as an absolute path.")

    def _listener(self) -> None:
        port = self.value("spark_port", PORT)
        if isinstance(port, bool) or not str(port).isdigit() or not 1024 <= int(port) <= 65535:
            self.fail(
                "plan.port", self.head, f"spark_port is {port}, and the engine, which runs without privileges, takes 1024 to 65535.",
                f"Set it to {PORT}.",
            )
        listen = self.value("spark_listen", LOOPBACK)
        try:
            IPAddress(str(listen))
        except (AddrFormatError, ValueError):
            self.fail(
                "plan.listen", self.head, f"spark_listen is {listen}, which is no address.",
                f"Set it to {LOOPBACK}, to 0.0.0.0, or to an address of this head.",
            )

    # Rails

    def _rails(self) -> dict[str, list[dict]]:
        subnets = self._subnets()
        rails: dict[str, list[dict]] = {}
        for place, node in enumerate(self.nodes):
            own = self.value("spark_rail_addresses", node=node)
            if own:
                rails[node] = self._own_rails(node, own)
            else:
                rails[node] = self._derived_rails(node, place, subnets)
        if self.failed:
            return rails
        for node in self.nodes:
            self._check_networks(node, rails[node])
        self._check_equal(rails)
        if self.failed:
            return rails
        order = [rail["subnet"] for rail in rails[self.head]]
        for node in self.nodes:
            # NCCL pairs devices by their place, so that every node lists the same subnet at the same place.
            rails[node].sort(key=lambda rail: order.index(rail["subnet"]) if rail["subnet"] in order else len(order))
            for rail in rails[node]:
                rail["peers"] = [
                    {"node": peer, "address": other["address"]}
                    for peer in self.nodes if peer != node
                    for other in rails[peer] if other["subnet"] == rail["subnet"]
                ]
        self._check_reach(rails)
        return rails

    def _subnets(self) -> list[IPNetwork]:
        subnets: list[IPNetwork] = []
        written = self.value("spark_rail_subnets", list(SUBNETS))
        if not isinstance(written, list):
            self.fail("plan.subnets", self.head, f"spark_rail_subnets is {written}.", f"Write a list such as {list(SUBNETS)}.")
            return subnets
        for text in written:
            try:
                network = IPNetwork(text)
                whole = network.version == 4 and network.ip == network.network and network.prefixlen <= 30
                if not whole or any(_overlap(network, IPNetwork(other)) for other in NO_UNICAST):
                    raise AddrFormatError("no network of hosts")
            except (AddrFormatError, ValueError, TypeError):
                self.fail(
                    "plan.subnets", self.head,
                    f"spark_rail_subnets has {text}, which is no IPv4 network with room for two nodes.",
                    "Write one such as 192.168.100.0/24.",
                )
                continue
            clash = next((other for other in subnets if _overlap(other, network)), None)
            if clash:
                self.fail(
                    "plan.subnets_overlap", self.head,
                    f"spark_rail_subnets has {network}, which overlaps {clash}.",
                    "Give each rail a subnet of its own.",
                )
            subnets.append(network)
        return subnets

    def _ports(self, node: str) -> list[dict]:
        devices = self.facts[node].get("rdma", {}).get("devices") or []
        ports = [device for device in devices if nccl.is_roce(device)]
        return sorted(ports, key=lambda port: (port.get("pci_address") or "", port["name"]))

    def _interface(self, node: str, name: str) -> dict:
        interfaces = self.facts[node].get("platform", {}).get("interfaces") or []
        return next((interface for interface in interfaces if interface["name"] == name), {})

    def _link(self, node: str, port: dict) -> str:
        """up, down, or unknown: an interface that nobody has brought up yet tells nothing of its cable."""
        if port.get("state") == "ACTIVE":
            return "up"
        return "down" if self._interface(node, port["netdev"]).get("carrier") is False else "unknown"

    def _own_rails(self, node: str, own: t.Any) -> list[dict]:
        ports = {port["netdev"]: port for port in self._ports(node)}
        if not isinstance(own, dict):
            self.fail(
                "plan.rail_addresses", node, f"spark_rail_addresses is {own}.",
                "Write it as NETDEV: ADDRESS/PREFIX, one line for each rail.",
            )
            return []
        rails = []
        for netdev in sorted(own, key=str):
            if netdev not in ports:
                by_device = next((port["netdev"] for port in ports.values() if port["name"] == netdev), None)
                hint = f"that is an RDMA device, its netdev is {by_device}" if by_device else suggestion(str(netdev), ports)
                self.fail(
                    "plan.rail_missing", node,
                    f"spark_rail_addresses names {netdev}, which is no rail of this node; {hint}.",
                    "Name one of the node's rails, and see that its cable is in: without one the card leaves the bus.",
                )
                continue
            port = ports[netdev]
            cage = self.value("spark_cage", node=node)
            if cage and port.get("cage") != cage:
                self.fail(
                    "plan.cage_conflict", node,
                    f"spark_rail_addresses names {netdev} in cage {port.get('cage')}, and spark_cage is {cage}.",
                    "Leave out spark_cage, or name the rails of that cage.",
                )
            address = self._address(node, netdev, own[netdev])
            twins = [other["netdev"] for other in ports.values() if port.get("cage") and other.get("cage") == port["cage"]]
            for twin in twins:
                if twin not in own:
                    self.fail(
                        "plan.twin_missing", node,
                        f"spark_rail_addresses gives {netdev} an address and not its twin {twin}, which halves the bandwidth.",
                        f"Add {twin} with an address in a subnet of its own.",
                    )
            if address:
                rails.append(self._rail(node, port, str(address.ip), address))
        rails.sort(key=lambda rail: [port["netdev"] for port in self._ports(node)].index(rail["netdev"]))
        return rails

    def _address(self, node: str, netdev: str, text: t.Any) -> IPNetwork | None:
        try:
            address = IPNetwork(text)
            plain = "/" in str(text) and address.version == 4 and 8 <= address.prefixlen <= 31
            if not plain or (address.prefixlen < 31 and address.ip in (address.network, address.broadcast)):
                raise AddrFormatError("no address of a host")
        except (AddrFormatError, ValueError, TypeError):
            self.fail(
                "plan.address", node, f"spark_rail_addresses has {text} for {netdev}, which is no address of a host with its prefix.",
                "Write one such as 192.168.100.10/24.",
            )
            return None
        subnets = self.value("spark_rail_subnets")
        if isinstance(subnets, list) and not any(address.ip in IPNetwork(subnet) for subnet in subnets if _is_network(subnet)):
            self.fail(
                "plan.address_out_of_subnet", node,
                f"spark_rail_addresses has {text} for {netdev}, which is in none of spark_rail_subnets ({', '.join(map(str, subnets))}).",
                "Change the address, or the subnets.",
            )
        return address

    def _derived_rails(self, node: str, place: int, subnets: list[IPNetwork]) -> list[dict]:
        ports = self._cage(node, subnets)
        if not ports or not subnets:
            return []
        if len(ports) > len(subnets):
            self.fail(
                "plan.subnets", node, f"spark_rail_subnets has {len(subnets)} subnets, and a cage of this node has {len(ports)} rails.",
                "Write one subnet for each rail.",
            )
            return []
        rails = []
        for port, subnet in zip(ports, subnets):
            first = FIRST_HOST if subnet.size > FIRST_HOST + len(self.nodes) + 1 else 1
            if first + place >= subnet.size - 1:
                self.fail(
                    "plan.subnet_full", node, f"spark_rail_subnets has {subnet}, which has no address left for node {place + 1}.",
                    "Write a larger subnet.",
                )
                continue
            rails.append(self._rail(node, port, str(subnet[first + place]), subnet))
        return rails

    def _rail(self, node: str, port: dict, address: str, network: IPNetwork) -> dict:
        interface = self._interface(node, port["netdev"])
        if interface.get("default_route") or self._is_login_address(node, interface):
            self.fail(
                "plan.rail_is_management", node,
                f"{port['netdev']} would become a rail, and it is the link by which this node is reached.",
                "Choose another cage with spark_cage or other rails with spark_rail_addresses.",
                evidence=f"{port['netdev']}: {', '.join(interface.get('addresses') or []) or 'no address'}"
                f"{', default route' if interface.get('default_route') else ''}",
            )
        if self._link(node, port) == "down":
            self.fail(
                "plan.link_down", node, f"The link of rail {port['netdev']} ({port['name']}, cage {port.get('cage')}) is down.",
                f"{CABLE_CURE} If the cable is in the other cage, set spark_cage.",
                evidence=f"{port['netdev']}: no carrier; {port['name']}: {port.get('state')}, {port.get('phys_state')}",
            )
        others = [
            text for text in interface.get("addresses") or []
            if IPNetwork(text).version == 4 and IPNetwork(text).ip != IPAddress(address) and not IPNetwork(text).ip.is_link_local()
        ]
        if others:
            self.warn(
                "plan.rail_has_address", node,
                f"{port['netdev']} has {', '.join(others)} already and gets {address}/{network.prefixlen} beside it.",
                "To keep what is there, write it into spark_rail_addresses.",
                evidence=f"{port['netdev']}: {', '.join(others)}",
            )
        return {
            "netdev": port["netdev"],
            "device": port["name"],
            "cage": port.get("cage"),
            "address": address,
            "prefix": network.prefixlen,
            "subnet": str(network.cidr),
            "peers": [],
        }

    def _is_login_address(self, node: str, interface: dict) -> bool:
        login = self.value("ansible_host", node, node=node)
        return any(str(IPNetwork(text).ip) == str(login) for text in interface.get("addresses") or [])

    def _cage(self, node: str, subnets: list[IPNetwork]) -> list[dict]:
        """The ports of the cage to use, in the order of their PCI addresses."""
        ports = self._ports(node)
        if not ports:
            self.fail(
                "plan.no_rdma_device", node, "This node shows no RoCE port, so it has no rail: without a cable the card leaves the bus.",
                CABLE_CURE, evidence=str(self.facts[node].get("rdma", {}).get("reason") or "rdma.devices is empty"),
            )
            return []
        cages: dict[str, list[dict]] = {}
        for port in ports:
            if port.get("cage"):
                cages.setdefault(port["cage"], []).append(port)
        wanted = self.value("spark_cage", node=node)
        if wanted:
            if wanted not in cages:
                self.fail(
                    "plan.cage_missing", node, f"spark_cage is {wanted}, and this node has {_listed(cages) or 'no cage'}.",
                    "Set it to one that is there, or leave it out.",
                )
            return cages.get(wanted, [])
        if not cages:
            self.fail(
                "plan.cage_missing", node, "The ports of this node name no cage, so which of them belong together is not known.",
                f"Name the rails in spark_rail_addresses; there are {_listed(port['netdev'] for port in ports)}.",
            )
            return []
        links = {cage: [self._link(node, port) for port in members] for cage, members in cages.items()}
        addressed = set(nccl.fabric_devices(ports, [str(subnet) for subnet in subnets]))
        labels = sorted(cages)
        for test in (
            lambda cage: all(port["name"] in addressed for port in cages[cage]),
            lambda cage: all(link == "up" for link in links[cage]),
            lambda cage: "down" not in links[cage],
            lambda cage: "up" in links[cage],
        ):
            fitting = [cage for cage in labels if test(cage)]
            if fitting:
                if len(fitting) > 1:
                    self.findings.append(
                        finding(
                            "plan.cage_chosen", "info", node, f"Cages {_listed(fitting)} would both do, and {fitting[0]} is taken.",
                            "Set spark_cage to use the other one.",
                            evidence=", ".join(f"{cage}: {' '.join(links[cage])}" for cage in fitting),
                        )
                    )
                return cages[fitting[0]]
        self.fail(
            "plan.link_down", node, f"The links of all rails are down: {_listed(port['netdev'] for port in ports)}.", CABLE_CURE,
            evidence=", ".join(f"{port['name']} {port.get('state')}" for port in ports),
        )
        return []

    def _check_networks(self, node: str, rails: list[dict]) -> None:
        for number, rail in enumerate(rails):
            network = IPNetwork(rail["subnet"])
            clash = next((other for other in rails[:number] if _overlap(IPNetwork(other["subnet"]), network)), None)
            if clash:
                self.fail(
                    "plan.subnets_overlap", node,
                    f"The rails {clash['netdev']} and {rail['netdev']} are both in {rail['subnet']}, and each needs a subnet of its own.",
                    "Change spark_rail_addresses or spark_rail_subnets.",
                )
        names = {rail["netdev"] for rail in rails}
        for interface in self.facts[node].get("platform", {}).get("interfaces") or []:
            if interface["name"] in names or interface["name"] == "lo":
                continue
            for text in interface.get("addresses") or []:
                other = IPNetwork(text)
                for rail in rails:
                    if other.version == 4 and not other.ip.is_link_local() and _overlap(other, IPNetwork(rail["subnet"])):
                        self.fail(
                            "plan.subnet_in_use", node,
                            f"Rail {rail['netdev']} would be in {rail['subnet']}, which overlaps {other.cidr} of {interface['name']}.",
                            "Set spark_rail_subnets to networks that are free, or change spark_rail_addresses.",
                        )

    def _check_equal(self, rails: dict[str, list[dict]]) -> None:
        taken: dict[str, tuple[str, str]] = {}
        for node in self.nodes:
            for rail in rails[node]:
                if rail["address"] in taken:
                    other, netdev = taken[rail["address"]]
                    self.fail(
                        "plan.address_twice", node,
                        f"spark_rail_addresses has {rail['address']} for {rail['netdev']}, which is that of {netdev} on {other} too.",
                        "Give each rail an address of its own.",
                    )
                taken[rail["address"]] = (node, rail["netdev"])

    def _check_reach(self, rails: dict[str, list[dict]]) -> None:
        for node in self.nodes:
            for rail in rails[node]:
                if not rail["peers"]:
                    self.fail(
                        "plan.address_out_of_subnet", node,
                        f"spark_rail_addresses has {rail['address']}/{rail['prefix']} for {rail['netdev']}, and no other node of"
                        f" {self.name} is in {rail['subnet']}.",
                        "Give both ends of a rail addresses in one subnet, with the same prefix.",
                    )
            reached = {peer["node"] for rail in rails[node] for peer in rail["peers"]}
            for peer in self.nodes[self.nodes.index(node) + 1 :]:
                if peer not in reached and not self.failed:
                    self.fail(
                        "plan.no_rail_to_peer", node, f"No rail of this node shares a subnet with {peer}.",
                        "Correct spark_rail_addresses of the two.",
                    )

    def _topology(self, rails: dict[str, list[dict]]) -> str:
        if len(self.nodes) == 1:
            return "single"
        if len(self.nodes) == 2:
            return "pair"
        return "switch" if self._common(rails) else "ring"

    def _common(self, rails: dict[str, list[dict]]) -> list[str]:
        """Subnets in which every node has a rail."""
        return [
            rail["subnet"] for rail in rails[self.head]
            if all(rail["subnet"] in [other["subnet"] for other in rails[node]] for node in self.nodes)
        ]

    def _way(self, node: str, rails: dict[str, list[dict]], topology: str) -> tuple[str, str]:
        """The address by which the other nodes reach this one for all but the data of NCCL, and its interface."""
        if topology == "single":
            return LOOPBACK, "lo"
        common = self._common(rails)
        if common:
            rail = next(rail for rail in rails[node] if rail["subnet"] == common[0])
            return rail["address"], rail["netdev"]
        # In a ring no rail reaches all: the management link does.
        interfaces = self.facts[node].get("platform", {}).get("interfaces") or []
        peer = self.nodes[1] if node == self.head else self.head
        login = str(self.value("ansible_host", peer, node=peer))
        name = nccl.interface_towards(interfaces, login if _is_address(login) else "0.0.0.0")
        addresses = [IPNetwork(text) for text in self._interface(node, name or "").get("addresses") or []]
        address = next((str(found.ip) for found in addresses if found.version == 4), None)
        if not address:
            self.fail(
                "plan.no_management_address", node,
                "In a ring the nodes talk over the management network, and this node has no IPv4 address towards the others.",
                "Give its management interface an address and a default route.",
            )
            return "", ""
        return address, str(name)

    def _hosts(self, rails: dict[str, list[dict]]) -> list[dict]:
        """Names for the addresses on the rails, for people and for reverse look-ups."""
        hosts = []
        for node in self.nodes:
            short = node if _is_address(node) else node.partition(".")[0]
            for number, rail in enumerate(rails[node]):
                hosts.append({"address": rail["address"], "names": [f"{short}-rail{number}"]})
        return hosts

    def _overrides(self, node: str) -> None:
        overrides = self.value("spark_nccl_environment", {}, node=node)
        for remark in nccl.check_overrides(overrides, self.facts[node], self.plans[node]):
            variable = f"spark_nccl_environment{': ' if remark.name else ''}{remark.name} {remark.what}"
            self.findings.append(
                finding(
                    "plan.nccl_environment", remark.severity, node, f"{variable}.",
                    f"{remark.cure[:1].upper()}{remark.cure[1:]}." if remark.cure else "",
                    source="NCCL user guide, environment variables",
                )
            )


def _overlap(one: IPNetwork, other: IPNetwork) -> bool:
    return one.first <= other.last and other.first <= one.last


def _is_network(text: t.Any) -> bool:
    try:
        return IPNetwork(text) is not None
    except (AddrFormatError, ValueError, TypeError):
        return False


def _is_address(text: str) -> bool:
    try:
        return IPAddress(text) is not None
    except (AddrFormatError, ValueError):
        return False


def _listed(names: t.Iterable[str]) -> str:
    return " and ".join(sorted(names))
