# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of NCCL and gloo on one node. Pure functions, run on the controller.

Rules are NCCL's own documentation and source, as the docstrings say. Facts have the shape of ansible_facts.spark.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.plugin_utils.toolchain import suggestion

IB_TIMEOUT_UNIT_SECONDS = 4.096e-6
DEFAULT_RETRY_COUNT = 7

# Name: (lowest, highest, what it is). InfiniBand's own fields: 5 bits of time-out, 3 of retries, 8 of traffic class, 4 of level.
RANGES = {
    "NCCL_IB_TIMEOUT": (1, 31, "the exponent of the time-out, 4.096 us x 2^n"),
    "NCCL_IB_RETRY_CNT": (0, 7, "the number of retries"),
    "NCCL_IB_TC": (0, 255, "the traffic class"),
    "NCCL_IB_SL": (0, 15, "the service level"),
    "NCCL_IB_QPS_PER_CONNECTION": (1, 128, "the number of queue pairs of a connection"),
    "NCCL_IB_GID_INDEX": (-1, 255, "the index of a GID, -1 for NCCL's own choice"),
    "NCCL_IB_DISABLE": (0, 1, "a switch"),
    "NCCL_IB_MERGE_NICS": (0, 1, "a switch"),
    "NCCL_IGNORE_CPU_AFFINITY": (0, 1, "a switch"),
}
DEBUG_LEVELS = ("VERSION", "WARN", "INFO", "ABORT", "TRACE")
OWN_ADDRESS = "VLLM_HOST_IP"

_VARIABLE = re.compile(r"^[A-Z][A-Za-z0-9_]*$")


class NcclError(ValueError):
    """A sentence for the user that names the variable and the cure."""


class Remark(t.NamedTuple):
    """What is to be said of a variable: `severity` fail, warn or info, what, and the cure (empty for info)."""

    severity: str
    name: str
    what: str
    cure: str


def select_devices(selector: str, devices: t.Sequence[str]) -> list[str]:
    """The devices that a value of NCCL_IB_HCA selects.

    Args:
        selector: the value: names in a list, each a prefix of a device's name and with an optional `:port`; a leading `=`
            makes all names exact, a leading `^` leaves out what matches.
        devices: names of the node's RDMA devices.

    Returns:
        The selected names in the order of `devices`.

    Raises:
        NcclError: a modifier stands anywhere but at the start. NCCL itself takes it as part of a name that matches nothing.

    Source: NCCL user guide, NCCL_IB_HCA; ncclFindInterface and parseStringList of NCCL's src/misc.
    """
    exclude = selector.startswith("^")
    rest = selector[1:] if exclude else selector
    exact = rest.startswith("=")
    rest = rest[1:] if exact else rest
    names = []
    for part in rest.split(","):
        if "^" in part or "=" in part:
            raise NcclError(
                f"NCCL_IB_HCA is {selector}, where a modifier stands inside the list and is taken for a part of a name: write"
                f" {'^' if exclude else ''}{'=' if exact else ''} only once, at the start"
            )
        if part:
            names.append(part.partition(":")[0])
    chosen = []
    for device in devices:
        matches = any(device == name if exact else device.startswith(name) for name in names)
        if matches != exclude:
            chosen.append(device)
    return chosen


def interface_towards(interfaces: t.Sequence[t.Mapping[str, t.Any]], peer: str) -> str | None:
    """The network interface by which a node reaches a peer.

    Args:
        interfaces: platform.interfaces of the facts: name, addresses in the form address/prefix, default_route.
        peer: the peer's IPv4 address.

    Returns:
        The interface whose own network holds the peer, the smallest network first; else the one with the default route; else
        None. Interfaces without an address, loopback and single addresses (/32, as container networks have) never are it.

    Source: the kernel's longest-prefix rule; a list of names to leave out, as often seen, misses virtual functions and ports
    without an address.
    """
    target = ipaddress.ip_address(peer)
    found: tuple[int, str] | None = None
    fallback = None
    for interface in interfaces:
        networks = [ipaddress.ip_interface(address) for address in interface.get("addresses") or []]
        networks = [network for network in networks if network.version == target.version and not network.is_loopback]
        for network in networks:
            if target in network.network and target != network.ip and network.network.prefixlen < 32:
                if found is None or network.network.prefixlen > found[0]:
                    found = (network.network.prefixlen, interface["name"])
        if networks and interface.get("default_route") and fallback is None:
            fallback = interface["name"]
    return found[1] if found else fallback


def is_roce(device: t.Mapping[str, t.Any]) -> bool:
    """Whether an RDMA device of the facts is a RoCE port of its own: Ethernet, with a netdev, no virtual function, not iWARP."""
    return bool(
        device.get("link_layer") == "Ethernet"
        and device.get("netdev")
        and not device.get("is_virtual_function")
        and device.get("transport") in (None, "RoCE", "InfiniBand")
    )


def fabric_devices(devices: t.Sequence[t.Mapping[str, t.Any]], subnets: t.Sequence[str]) -> list[str]:
    """The RDMA devices that are on the fabric: active, with an IPv4 GID in one of its subnets.

    Args:
        devices: rdma.devices of the facts.
        subnets: the fabric's subnets as address/prefix.

    Returns:
        Names in the order of the subnets, so that nodes that name their devices differently list them in the same order. NCCL
        pairs devices by their place in the list.
    """
    names = []
    for subnet in subnets:
        network = ipaddress.ip_network(subnet)
        for device in devices:
            addresses = [gid["ipv4"] for gid in device.get("gids") or [] if gid.get("ipv4")]
            if device.get("state") == "ACTIVE" and is_roce(device):
                if any(ipaddress.ip_address(address) in network for address in addresses):
                    names.append(device["name"])
    return names


def timeout_seconds(exponent: int, retries: int = DEFAULT_RETRY_COUNT) -> tuple[float, float]:
    """Seconds of one try and of all tries for a value of NCCL_IB_TIMEOUT: 4.096 us x 2^exponent (InfiniBand specification)."""
    once = IB_TIMEOUT_UNIT_SECONDS * 2**exponent
    return once, once * retries


def environment(plan: t.Mapping[str, t.Any], overrides: t.Mapping[str, t.Any] | None = None) -> dict[str, str]:
    """The environment that Ray, vLLM and NCCL need on one node.

    Args:
        plan: the node's plan (spark_plan): address, interface, rails, toolchain.
        overrides: spark_nccl_environment; each value wins over the derived one, and null takes a derived variable away.

    Returns:
        Variable to text. Without rails (a cluster of one) only the address. For a toolchain on the CPU nothing of NCCL.
        No GID index, traffic class, service level, queue pairs or GPUDirect level: NCCL's own choice is right until a
        measurement says otherwise (the GID index drifts, class and level need a switch, GB10 has no GPUDirect RDMA).
    """
    result: dict[str, str] = {OWN_ADDRESS: plan["address"]}
    if plan["rails"]:
        # One exact name: gloo knows no lists and no prefixes.
        result["GLOO_SOCKET_IFNAME"] = plan["interface"]
        if plan["toolchain"]["device"] == "cuda":
            result["NCCL_SOCKET_IFNAME"] = f"={plan['interface']}"
            result["NCCL_IB_HCA"] = "=" + ",".join(rail["device"] for rail in plan["rails"])
            # Without it NCCL falls back to sockets without a word when RDMA does not work.
            result["NCCL_NET"] = "IB"
            if plan.get("topology") == "ring":
                # Each rail leads to one peer only: NCCL must take the rail in the peer's subnet.
                result["NCCL_IB_SUBNET_AWARE_ROUTING"] = "1"
                result["NCCL_NET_PLUGIN"] = "none"
    for name, value in (overrides or {}).items():
        if name.startswith("NCCL_") and plan["toolchain"]["device"] != "cuda":
            continue
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return dict(sorted(result.items()))


def check_overrides(
    overrides: t.Any,
    facts: t.Mapping[str, t.Any],
    plan: t.Mapping[str, t.Any],
) -> list[Remark]:
    """What is wrong or doubtful in spark_nccl_environment, judged for one node.

    Args:
        overrides: spark_nccl_environment.
        facts: ansible_facts.spark of the node.
        plan: the node's plan; its rails name the devices, netdevs and addresses.

    Returns:
        Remarks in the order of the variables' names; none when all is well.
    """
    if not isinstance(overrides, dict):
        return [Remark("fail", "", "is no mapping", "write it as VARIABLE: value")]
    remarks: list[Remark] = []
    for name in sorted(overrides):
        value = overrides[name]
        if not _VARIABLE.match(str(name)):
            remarks.append(Remark("fail", name, "is no name of an environment variable", "correct or remove it"))
        elif isinstance(value, (dict, list)) or "\n" in str(value):
            remarks.append(Remark("fail", name, "must be one line of text", "correct it"))
        elif value is not None:
            remarks.extend(_check_one(name, str(value), facts, plan))
    return remarks


def _check_one(name: str, value: str, facts: t.Mapping, plan: t.Mapping) -> list[Remark]:
    if name == OWN_ADDRESS:
        return [Remark("fail", name, "is derived for each node and cannot be one value for all", "remove it")]
    if name == "NCCL_IB_CUDA_SUPPORT":
        return [Remark("fail", name, "was removed in NCCL 2.4", "remove it")]
    if name.startswith("NCCL_") and plan["toolchain"]["device"] != "cuda":
        return [Remark("warn", name, f"has no effect with toolchain {plan['toolchain']['name']}, which has no NCCL", "remove it")]
    if name in RANGES:
        return _check_range(name, value, facts, plan)
    if name == "NCCL_NET_GDR_LEVEL":
        return [Remark("warn", name, "has no effect on GB10, which has no GPUDirect RDMA", "remove it")]
    if name == "NCCL_IB_HCA":
        return _check_devices(value, facts, plan)
    if name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        return _check_interface(name, value, facts)
    if name == "NCCL_DEBUG" and value.upper() not in DEBUG_LEVELS:
        return [Remark("fail", name, f"is {value}, which is no level; {suggestion(value.upper(), DEBUG_LEVELS)}", "correct it")]
    return []


def _check_range(name: str, value: str, facts: t.Mapping, plan: t.Mapping) -> list[Remark]:
    lowest, highest, meaning = RANGES[name]
    if not re.fullmatch(r"-?\d+", value) or not lowest <= int(value) <= highest:
        hint = ""
        if name == "NCCL_IB_TIMEOUT":
            once, all_tries = timeout_seconds(20)
            hint = f" (it is no number of seconds: 20, NCCL's default, is {once:.3g} s a try and {all_tries:.3g} s in all)"
        return [Remark("fail", name, f"is {value}, and {meaning} goes from {lowest} to {highest}{hint}", "correct it")]
    if name == "NCCL_IB_TIMEOUT":
        once, all_tries = timeout_seconds(int(value))
        return [Remark("info", name, f"is {value}: {once:.3g} s a try, {all_tries:.3g} s in all", "")]
    if name == "NCCL_IB_GID_INDEX" and int(value) >= 0:
        return _check_gid_index(int(value), facts, plan)
    if name == "NCCL_IB_DISABLE" and value == "1":
        return [Remark("fail", name, "of 1 turns RDMA off, while NCCL_NET=IB asks for it", "remove it")]
    return []


def _check_gid_index(index: int, facts: t.Mapping, plan: t.Mapping) -> list[Remark]:
    name = "NCCL_IB_GID_INDEX"
    remarks = [
        Remark("warn", name, f"is {index}, and the table of GIDs shifts when addresses come and go", "leave it to NCCL by removing it")
    ]
    devices = {device["name"]: device for device in facts.get("rdma", {}).get("devices") or []}
    for rail in plan["rails"]:
        gids = devices.get(rail["device"], {}).get("gids") or []
        if not any(gid.get("ipv4") == rail["address"] for gid in gids):
            continue  # not addressed yet: what the index will be is not known
        right = [gid["index"] for gid in gids if gid.get("ipv4") == rail["address"] and gid.get("type") == "RoCE v2"]
        if index not in right:
            there = next((f"{gid['type']} {gid.get('ipv4') or gid.get('gid') or 'of no IPv4 address'}" for gid in gids if gid["index"] == index), "empty")
            wanted = f"the RoCE v2 GID of {rail['address']} has index {', '.join(map(str, right)) or 'none'}"
            remarks.append(Remark("fail", name, f"is {index}, which is {there} on {rail['device']}; {wanted}", "remove it"))
    return remarks


def _check_devices(value: str, facts: t.Mapping, plan: t.Mapping) -> list[Remark]:
    name = "NCCL_IB_HCA"
    devices = [device["name"] for device in facts.get("rdma", {}).get("devices") or []]
    by_netdev = {device.get("netdev"): device["name"] for device in facts.get("rdma", {}).get("devices") or []}
    try:
        chosen = select_devices(value, devices)
    except NcclError as error:
        return [Remark("fail", name, str(error)[len(name) + 1 :], "or remove it: the plan lists this node's rails exactly")]
    remarks = []
    exact = value.lstrip("^").startswith("=")
    for part in value.lstrip("^=").split(","):
        word = part.partition(":")[0]
        known = word in devices if exact else any(device.startswith(word) for device in devices)
        if not word or known:
            continue
        if word in by_netdev:
            what = f"has {word}, which is a network interface; its RDMA device is {by_netdev[word]}"
        else:
            what = f"has {word}, which this node has not; {suggestion(word, devices)}"
        remarks.append(Remark("fail", name, what, "correct or remove it"))
    if not remarks:
        rails = [rail["device"] for rail in plan["rails"]]
        missing = [device for device in rails if device not in chosen]
        extra = [device for device in chosen if device not in rails]
        if not chosen:
            remarks.append(Remark("fail", name, f"is {value}, which selects no device of this node", "correct or remove it"))
        elif missing or extra:
            listed = f"leaves out rail {', '.join(missing)}" if missing else f"adds {', '.join(extra)}, which is no rail"
            remarks.append(Remark("warn", name, f"is {value}, which {listed}", f"set it to ={','.join(rails)} or remove it"))
    return remarks


def _check_interface(name: str, value: str, facts: t.Mapping) -> list[Remark]:
    interfaces = facts.get("platform", {}).get("interfaces") or []
    names = [interface["name"] for interface in interfaces]
    addressed = [interface["name"] for interface in interfaces if interface.get("addresses") and interface["name"] != "lo"]
    if name == "GLOO_SOCKET_IFNAME":
        if value not in names:
            return [Remark("fail", name, f"is {value}, and gloo takes one exact name; {suggestion(value, addressed)}", "correct it")]
        return []
    try:
        chosen = select_devices(value, names)
    except NcclError:
        return [Remark("fail", name, f"is {value}, where a modifier stands inside the list", "write ^ and = only at the start")]
    if not chosen:
        what = f"is {value}, which selects no interface of this node; {suggestion(value, addressed)}"
        return [Remark("fail", name, what, "correct or remove it")]
    return []


def environment_text(variables: t.Mapping[str, str]) -> str:
    """The variables as lines of a systemd EnvironmentFile, values quoted where systemd would read them otherwise."""
    lines = []
    for name, value in sorted(variables.items()):
        if not re.fullmatch(r"[A-Za-z0-9_./:,=^@%+-]*", value):
            value = '"' + re.sub(r'(["\\$`])', r"\\\1", value) + '"'
        lines.append(f"{name}={value}\n")
    return "".join(lines)
