# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From facts to findings: each node, each cluster and the fleet judged by the rules of the catalogue. Pure, run on the controller.

A rule is a generator that yields `Found`. What was not gathered or is null is not judged.
"""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.plugin_utils import nccl
from ansible_collections.gb10.fleet.plugins.plugin_utils.catalogue import KnownError, finding, known, known_with, order, silence

GIB = 1024**3
SPARK_GPU = "NVIDIA GB10"
# Of both halves of a cage, each: ethtool says 200000Mb/s, RDMA 200 Gb/s (NVIDIA/dgx-spark-playbooks).
RAIL_GBPS = 200
PCIE_LANES = 4
PCIE_GTPS = 32.0
MTU_FOR_ROCE_4096 = 4192
# A Spark shows 119.7 to 121.7 GiB; a machine with much less is none, or a lab's.
MEMORY_GIB = (90, 117)
SWAP_USED_BYTES = GIB
SWAPPINESS = 10
CLOCK_SECONDS = 1.0
RAY_PORT = 6379
PORT = 8000
# Bridges of containers and virtual machines have the same address on every machine.
VIRTUAL = ("lo", "docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "podman", "lxc")
ENGINES = ("vllm", "ray", "torch")


class Found(t.NamedTuple):
    """What a rule found: id, what, evidence; severity, cause and cure where they differ from the catalogue's."""

    identifier: str
    what: str
    evidence: str = ""
    severity: str | None = None
    cause: str | None = None
    cure: str | None = None
    source: str | None = None


def _mapping(value: t.Any) -> t.Mapping[str, t.Any]:
    return value if isinstance(value, t.Mapping) else {}


def _rows(value: t.Any) -> list[t.Mapping[str, t.Any]]:
    return [row for row in value if isinstance(row, t.Mapping)] if isinstance(value, (list, tuple)) else []


def _texts(value: t.Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, tuple)) else []


def _number(value: t.Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) else None


def version_key(text: t.Any) -> tuple[int, ...]:
    """The numbers of a version, for comparing: 580.142 is below 580.159.03, 6.17.0-1029-nvidia is (6, 17, 0, 1029)."""
    return tuple(int(number) for number in re.findall(r"\d+", str(text)))


def _interfaces(addresses: t.Iterable[str]) -> list[ipaddress.IPv4Interface]:
    found = []
    for address in addresses:
        try:
            interface = ipaddress.ip_interface(address)
        except ValueError:
            continue
        if isinstance(interface, ipaddress.IPv4Interface):
            found.append(interface)
    return found


def _size(count: float) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / 1024**2:.0f} MiB"


class Node:
    """A node with its facts, where missing ones are empty."""

    def __init__(self, name: str, variables: t.Any, plan: t.Any, cluster: str | None, members: t.Sequence[str]) -> None:
        self.name = name
        self.variables = _mapping(variables)
        self.plan = _mapping(plan)
        self.cluster = cluster
        self.alone = len(members) < 2
        facts = _mapping(_mapping(self.variables.get("ansible_facts")).get("spark"))
        self.facts = facts
        for subset in ("gpu", "rdma", "platform", "kernel", "memory", "toolchain", "services", "proven"):
            setattr(self, subset, _mapping(facts.get(subset)))

    gpu: t.Mapping[str, t.Any]
    rdma: t.Mapping[str, t.Any]
    platform: t.Mapping[str, t.Any]
    kernel: t.Mapping[str, t.Any]
    memory: t.Mapping[str, t.Any]
    toolchain: t.Mapping[str, t.Any]
    services: t.Mapping[str, t.Any]
    proven: t.Mapping[str, t.Any]

    @property
    def is_spark(self) -> bool:
        return self.platform.get("is_spark") is True

    @property
    def deployed(self) -> bool:
        """Whether site.yml has ever set this node up."""
        return bool(self.proven)

    @property
    def running_kernel(self) -> str | None:
        return self.kernel.get("running") or self.platform.get("kernel")

    def ports(self, active: bool = True) -> list[t.Mapping[str, t.Any]]:
        """RoCE ports of their own, active ones only unless told otherwise."""
        return [
            device for device in _rows(self.rdma.get("devices"))
            if nccl.is_roce(device) and isinstance(device.get("netdev"), str) and (not active or device.get("state") == "ACTIVE")
        ]

    def unit_is_active(self, name: str) -> bool:
        return any(unit.get("name") in (name, f"{name}.service") and unit.get("active") == "active" for unit in _rows(self.services.get("units")))

    def addresses_of(self, port: t.Mapping[str, t.Any]) -> list[ipaddress.IPv4Interface]:
        """IPv4 addresses of a port's interface, link-local ones too; none where they are not known."""
        return self.known_addresses_of(port) or []

    def known_addresses_of(self, port: t.Mapping[str, t.Any]) -> list[ipaddress.IPv4Interface] | None:
        """The same, and None where they are not known."""
        for source in (port, *(row for row in _rows(self.platform.get("interfaces")) if row.get("name") == port.get("netdev"))):
            if isinstance(source.get("addresses"), list):
                return _interfaces(_texts(source["addresses"]))
        return None

    def own_addresses(self) -> set[str]:
        """Every IPv4 address of the node; empty unless those of all of its interfaces are known."""
        rows = _rows(self.platform.get("interfaces"))
        if not all(isinstance(row.get("addresses"), list) for row in rows):
            return set()
        return {str(interface.ip) for row in rows for interface in _interfaces(_texts(row["addresses"]))}

    @property
    def serves(self) -> bool:
        """Whether a unit of ours is active."""
        return any(str(unit.get("name")).startswith("gb10-") and unit.get("active") == "active" for unit in _rows(self.services.get("units")))


Rule = t.Callable[[Node], t.Iterator[Found]]
ClusterRule = t.Callable[[t.Sequence[Node]], t.Iterator[tuple[t.Optional[str], Found]]]
NODE_RULES: list[Rule] = []
CLUSTER_RULES: list[ClusterRule] = []
FLEET_RULES: list[ClusterRule] = []


def node_rule(function: Rule) -> Rule:
    """Registers a rule that judges one node by itself."""
    NODE_RULES.append(function)
    return function


def cluster_rule(function: ClusterRule) -> ClusterRule:
    """Registers a rule that judges the nodes of a cluster together; it yields (node or None, Found)."""
    CLUSTER_RULES.append(function)
    return function


def fleet_rule(function: ClusterRule) -> ClusterRule:
    """Registers a rule that judges all nodes of the fleet together; it yields (cluster or None, Found)."""
    FLEET_RULES.append(function)
    return function


# --- a node as a whole ----------------------------------------------------------------------------------------------------


@node_rule
def unread(node: Node) -> t.Iterator[Found]:
    """What could not be read."""
    said = {"late": "did not answer in time", "denied": "is for root only", "failed": "failed", "not_understood": "is not understood"}
    for entry in _rows(node.facts.get("unread")):
        reason = entry.get("reason")
        if reason in said:
            yield Found(
                f"facts.{reason}", f"{entry.get('source')} {said[reason]}, so that a part of the {entry.get('subset')} facts is unknown.",
                str(entry.get("evidence") or entry.get("source")),
            )


@node_rule
def machine(node: Node) -> t.Iterator[Found]:
    """What this node is."""
    if node.platform.get("is_spark") is False:
        yield Found(
            "node.other_machine", "This is no DGX Spark.", f"vendor {node.platform.get('vendor')}, product {node.platform.get('product')}",
        )
    for device in _rows(node.gpu.get("devices")):
        if device.get("name") and device["name"] != SPARK_GPU:
            yield Found(
                "gpu.other", f"GPU {device.get('index')} is a {device['name']}.", f"compute capability {device.get('compute_capability')}",
            )


@node_rule
def refusals(node: Node) -> t.Iterator[Found]:
    """What the preflight's own checks said: no root, no wheels, no model."""
    refused = _mapping(node.variables.get("spark_refused"))
    if refused:
        become = refused.get("task") == "Become root"
        if become:
            yield Found("node.become", "The login user cannot become root.", str(refused.get("message")))
        else:
            yield Found("node.refused", f"The check '{refused.get('task')}' failed: {refused.get('message')}", f"task {refused.get('task')}")
    wheelhouse = _mapping(node.variables.get("vllm_wheelhouse_found"))
    if _texts(wheelhouse.get("problems")):
        problems = _texts(wheelhouse["problems"])
        folder = wheelhouse.get("path") or node.variables.get("spark_wheelhouse")
        yield Found("toolchain.wheelhouse", " ".join(problems), f"{folder}: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
    model = _mapping(node.variables.get("model_source_found"))
    if model and node.plan.get("role") == "head":
        source = _mapping(node.plan.get("model")).get("source")
        problems = _texts(model.get("problems"))
        if model.get("exists") is False:
            yield Found("model.source", f"spark_model_source is {source}, which is no folder on this head.", f"{source}: exists false")
        elif problems:
            more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
            yield Found("model.source", f"spark_model_source is {source}, where {'; '.join(problems[:3])}{more}.", f"{len(problems)} problems in {source}")
    if _mapping(model.get("installed")).get("foreign"):
        name = _mapping(node.plan.get("model")).get("name")
        yield Found(
            "model.foreign", f"/var/lib/gb10/models/{name} (or the same with .partial or .old) was not put there by this collection.",
            f"/var/lib/gb10/models/{name} has no mark of this collection",
        )


# --- GPU and driver -------------------------------------------------------------------------------------------------------


@node_rule
def gpu_state(node: Node) -> t.Iterator[Found]:
    """Present, healthy, and of one version with its library and firmware."""
    state, reason = node.gpu.get("state"), str(node.gpu.get("reason") or "")
    driver, library, module = (node.gpu.get(key) for key in ("driver", "library_version", "module_version"))
    evidence = "; ".join(_texts(node.gpu.get("warnings"))[:3])
    if state == "absent" and node.is_spark:
        yield Found("gpu.absent", f"No GPU answers. {reason}", evidence or f"state absent, loaded module {module or 'none'}")
    mismatch = state == "driver_mismatch"
    if not mismatch and module and library:
        # NVML tells its own version by two parts only when it fails; compare as many as both have.
        pairs = list(zip(version_key(module), version_key(library)))
        mismatch = any(one != other for one, other in pairs)
    if mismatch:
        yield Found("driver.mismatch", f"The loaded module is {module or driver or 'of another version'}, the driver's library {library or 'unknown'}.",
                    evidence or f"module {module}, library {library}")
    if state == "needs_reset":
        yield Found("gpu.needs_reset", reason or "The GPU asks for a reset.", evidence or _actions(node))
    if state == "degraded":
        yield Found("gpu.degraded", reason or "The GPU complains.", evidence or _actions(node))
    for device in _rows(node.gpu.get("devices")):
        firmware = device.get("gsp_firmware")
        if firmware and driver and firmware != driver and not mismatch:
            yield Found("gpu.gsp_mismatch", f"GPU {device.get('index')} runs GSP firmware {firmware} under driver {driver}.",
                        f"GSP {firmware}, driver {driver}")


def _actions(node: Node) -> str:
    """What each GPU says of itself."""
    return "; ".join(
        f"GPU {device.get('index')}: recovery action {device.get('recovery_action')}, {', '.join(_texts(device.get('warnings'))[:3]) or 'no warning'}"
        for device in _rows(node.gpu.get("devices"))
    ) or f"state {node.gpu.get('state')}"


@node_rule
def gpu_busy(node: Node) -> t.Iterator[Found]:
    """Memory of the GPU in use by others than our units."""
    if node.serves:
        return
    processes = [process for device in _rows(node.gpu.get("devices")) for process in _rows(device.get("processes"))]
    used = sum(_number(process.get("used_memory_bytes")) or 0 for process in processes)
    if used > GIB:
        names = ", ".join(f"{process.get('name')} ({process.get('pid')})" for process in processes[:5])
        yield Found("gpu.busy", f"{len(processes)} processes hold {_size(used)} of GPU memory.", names)


@node_rule
def driver_packages(node: Node) -> t.Iterator[Found]:
    """Installed driver packages of the loaded driver's branch."""
    driver = version_key(node.gpu.get("driver") or "")
    if not driver:
        return
    others = [
        f"{package.get('name')} {package.get('version')}" for package in _rows(node.kernel.get("driver_packages"))
        if re.match(r"^(nvidia-(driver|modprobe|utils|compute-utils|kernel-common|firmware|persistenced|settings)|libnvidia-(compute|gl|cfg1|ml))",
                    str(package.get("name")))
        and (upstream := version_key(str(package.get("version")).rpartition(":")[2])) and upstream[0] >= 300 and upstream[0] != driver[0]
    ]
    if others:
        yield Found("driver.packages_differ", f"The driver is of branch {driver[0]}, and installed are {', '.join(others)}.", "; ".join(others))


# --- RDMA devices and rails -----------------------------------------------------------------------------------------------


@node_rule
def card(node: Node) -> t.Iterator[Found]:
    """The network card as a whole."""
    functions = _number(node.rdma.get("nic_functions"))
    if node.rdma.get("state") == "no_device":
        hotplug = _mapping(node.rdma.get("hotplug"))
        if functions:
            yield Found("rdma.no_driver", f"{int(functions)} functions of the card are on the PCI bus, and there is no RDMA device.",
                        f"nic_functions {int(functions)}")
        elif node.is_spark and node.alone:
            yield Found("rdma.no_cable", "There is no RDMA device: no cable was in at boot.",
                        f"dgx-spark-mlnx-hotplug {'enabled' if hotplug.get('enabled') else 'not enabled'}")
    count = _number(node.rdma.get("virtual_functions"))
    if count:
        yield Found("rdma.virtual_functions", f"The card has {int(count)} virtual functions.", f"virtual_functions {int(count)}")
    for device in _rows(node.rdma.get("devices")):
        if device.get("link_layer") == "InfiniBand" and device.get("phys_state") == "LinkUp" and device.get("state") in ("DOWN", "INIT"):
            yield Found("rdma.no_subnet_manager", f"The link of {device.get('name')} is trained and its state is {device['state']}.",
                        f"physical state LinkUp, state {device['state']}, link layer InfiniBand")


@node_rule
def counters(node: Node) -> t.Iterator[Found]:
    """Errors and discards of active ports."""
    limits = known()["counter_limits"]
    for port in node.ports():
        high = [
            f"{name} {count}" for name, count in sorted(_mapping(port.get("counters")).items())
            if name in limits and (_number(count) or 0) > limits[name]
        ]
        if high:
            yield Found("rdma.counters", f"Rail {port['netdev']} counts {', '.join(high)}.", f"{port.get('name')}: {', '.join(high)}")


@node_rule
def rate(node: Node) -> t.Iterator[Found]:
    """200 Gb/s on every active rail."""
    if not node.is_spark:
        return
    for port in node.ports():
        speeds = [value for value in (_number(port.get("rate_gbps")), (_number(port.get("link_speed_mbps")) or 0) / 1000) if value]
        if speeds and min(speeds) < RAIL_GBPS:
            yield Found("rail.slow", f"Rail {port['netdev']} runs at {min(speeds):g} Gb/s in place of {RAIL_GBPS}.",
                        f"{port.get('name')}: rate {port.get('rate_gbps')} Gb/s, interface {port.get('link_speed_mbps')} Mb/s")


@node_rule
def pcie(node: Node) -> t.Iterator[Found]:
    """Four lanes of PCIe 5 for each function. The GPU's own figures (gen 1, x1) mean nothing on a GB10."""
    if not node.is_spark:
        return
    for port in node.ports(active=False):
        link = _mapping(port.get("pcie"))
        width = _number(link.get("width"))
        evidence = f"{port.get('pci_address')}: {link.get('speed')}, x{link.get('width')}; able: {link.get('max_speed')}, x{link.get('max_width')}"
        if width and width < PCIE_LANES:
            yield Found("pcie.width", f"{port['netdev']} has {int(width)} PCIe lanes in place of {PCIE_LANES}.", evidence)
        speed = re.match(r"\s*(\d+(?:\.\d+)?)", str(link.get("speed") or ""))
        if speed and float(speed.group(1)) < PCIE_GTPS:
            yield Found("pcie.speed", f"{port['netdev']} has PCIe at {speed.group(1)} GT/s in place of {PCIE_GTPS:g}.", evidence)


@node_rule
def rail_addresses(node: Node) -> t.Iterator[Found]:
    """Both rails of a cage have addresses, in networks of their own, with their GIDs."""
    cages: dict[str, list[t.Mapping[str, t.Any]]] = {}
    for port in node.ports():
        if port.get("cage"):
            cages.setdefault(str(port["cage"]), []).append(port)
    for cage, ports in sorted(cages.items()):
        told = {port["netdev"]: node.known_addresses_of(port) for port in ports}
        addresses = {netdev: own for netdev, own in told.items() if own is not None}
        bare = [netdev for netdev, own in addresses.items() if not own]
        if bare and len(bare) < len(addresses):
            having = [netdev for netdev, own in addresses.items() if own][0]
            yield Found("rail.no_address", f"Rail {', '.join(bare)} of cage {cage} has no IPv4 address, and its twin {having} has.",
                        "; ".join(f"{netdev}: {', '.join(map(str, own)) or 'none'}" for netdev, own in addresses.items()))
        for one, other in itertools.combinations(sorted(addresses), 2):
            clash = [(a, b) for a in addresses[one] for b in addresses[other] if a.network.overlaps(b.network)]
            if clash:
                yield Found("rail.twins_one_subnet", f"The rails {one} and {other} of cage {cage} are both in {clash[0][0].network}.",
                            f"{one} {clash[0][0]}, {other} {clash[0][1]}")
    for port in node.ports():
        if not isinstance(port.get("gids"), list):
            continue
        gids = _unique(gid.get("ipv4") for gid in _rows(port["gids"]) if gid.get("type") == "RoCE v2")
        lacking = [str(address.ip) for address in node.addresses_of(port) if str(address.ip) not in gids]
        # A GID of unknown type may be the one.
        if lacking and all(gid.get("type") and "ipv4" in gid for gid in _rows(port["gids"])):
            yield Found("rail.no_gid", f"Rail {port['netdev']} has {', '.join(lacking)}, and {port.get('name')} no RoCE v2 GID for it.",
                        f"RoCE v2 GIDs of IPv4: {', '.join(gids) or 'none'}")


@node_rule
def mtu(node: Node) -> t.Iterator[Found]:
    """MTU of the active rails of one node, and RDMA's own."""
    ports = node.ports()
    known_ports = [port for port in ports if _number(port.get("netdev_mtu"))]
    evidence = ", ".join(f"{port['netdev']} {port['netdev_mtu']}" for port in known_ports)
    if len({port["netdev_mtu"] for port in known_ports if port.get("cage")}) > 1:
        yield Found("mtu.twins_differ", "The active rails have different MTUs.", evidence)
    low = [port for port in known_ports if port["netdev_mtu"] < MTU_FOR_ROCE_4096]
    if low and node.is_spark and not node.alone:
        names = ", ".join(f"{port['netdev']} ({port['netdev_mtu']})" for port in low)
        yield Found("mtu.low", f"The MTU of {names} leaves RoCE less than 4096 bytes.", evidence)
    for port in ports:
        active, expected = _number(port.get("active_mtu")), _number(port.get("expected_active_mtu"))
        if active and expected and active != expected:
            said = f"{port.get('name')} uses an MTU of {int(active)}, and {int(expected)} follows from {port.get('netdev_mtu')} of {port['netdev']}."
            yield Found("mtu.active", said,
                        f"active_mtu {int(active)}, interface {port.get('netdev_mtu')}")


# --- versions known to be bad, and lowest ones ------------------------------------------------------------------------------


def _versions(node: Node, kind: str, row: t.Mapping[str, t.Any]) -> list[str]:
    values: list[t.Any] = []
    if kind == "firmware":
        values = [
            device.get("version") for device in _rows(_mapping(node.platform.get("firmware")).get("devices"))
            if row.get("guid") in (device.get("guid"), *_texts(device.get("guids")))
        ]
    elif kind == "package":
        values = [package.get("version") for package in _rows(node.kernel.get("driver_packages")) if package.get("name") == row.get("name")]
    elif kind == "kernel":
        values = [node.running_kernel]
    elif kind == "next_kernel":
        values = [node.kernel.get("next_boot")]
    elif kind == "driver":
        values = [node.gpu.get("driver")]
    elif kind == "nic_firmware":
        values = [port.get("firmware") for port in node.ports(active=False)]
    elif kind == "bios":
        values = [node.platform.get("bios_version")]
    elif kind == "bios_date":
        # Of the form 12/11/2025; by year, month and day they compare as versions do.
        date = re.match(r"^(\d+)/(\d+)/(\d{4})$", str(node.platform.get("bios_date") or ""))
        values = [f"{date.group(3)}.{date.group(1)}.{date.group(2)}"] if date else []
    elif kind == "dgx_os":
        values = [_mapping(node.platform.get("dgx")).get("ota_version")]
    elif kind == "vbios":
        values = [device.get("vbios") for device in _rows(node.gpu.get("devices"))]
    return sorted({str(value) for value in values if value})


def _is_bad(node: Node, row: t.Mapping[str, t.Any], version: str) -> bool:
    if row.get("oem") and node.platform.get("oem") not in row["oem"]:
        return False
    # Without a command line it is not known whether kho is off.
    if row.get("unless") == "kho_off" and (node.kernel.get("kho") == "off" or not node.kernel.get("command_line")):
        return False
    if version in row.get("exact", []) or any(version.startswith(start) for start in row.get("prefix", [])):
        return True
    if "from" not in row and "below" not in row:
        return False
    key = version_key(version)
    return ("from" not in row or key >= version_key(row["from"])) and ("below" not in row or key < version_key(row["below"]))


def known_rows(node: Node, rows: t.Mapping[str, t.Sequence[t.Mapping[str, t.Any]]]) -> t.Iterator[Found]:
    """The node against known.yml and the site's own rows."""
    if not node.is_spark:
        return
    for row in rows["known_bad"]:
        for version in _versions(node, row["kind"], row):
            if _is_bad(node, row, version):
                yield Found(row["id"], f"{row['kind'].replace('_', ' ').capitalize()} {version} is known to be bad: {row.get('symptom') or row['cure']}",
                            f"{row['kind']} {version}", severity=row["severity"], cure=row["cure"], source=row["source"],
                            cause=row.get("symptom") or "This version is on the list of the site.")
    for row in rows["floors"]:
        yield from _floor(node, row)


def _floor(node: Node, row: t.Mapping[str, t.Any]) -> t.Iterator[Found]:
    kind, minimum = row["kind"], row["minimum"]
    if kind in ("disk_free_bytes", "inodes_free"):
        key = "free_bytes" if kind == "disk_free_bytes" else "inodes_free"
        for place in _rows(node.platform.get("filesystems")):
            free = _number(place.get(key))
            # A release that is there already has its room.
            if place.get("path") != row["path"] or free is None or free >= minimum:
                continue
            # File systems that make inodes as they go tell a total of none.
            if kind == "inodes_free" and not _number(place.get("inodes_total")):
                continue
            amount, wanted = (_size(free), _size(minimum)) if kind == "disk_free_bytes" else (f"{int(free)} inodes", str(minimum))
            yield Found(str(row.get("finding") or row["id"]), f"{row['path']} has {amount} free, and {wanted} are needed.",
                        f"{place.get('mount')} ({place.get('type')}): {key} {int(free)}", severity=row["severity"], cure=row["cure"], source=row["source"])
        return
    for version in _versions(node, kind, row):
        if version_key(version) < version_key(minimum):
            yield Found(str(row.get("finding") or row["id"]), f"{kind.replace('_', ' ').capitalize()} {version} is older than {minimum}.",
                        f"{kind} {version}, lowest {minimum}", severity=row["severity"], cure=row["cure"], source=row["source"],
                        cause="It was not updated with the rest of the system.")


# --- kernel, firmware, memory -----------------------------------------------------------------------------------------------


@node_rule
def boot(node: Node) -> t.Iterator[Found]:
    """What the next boot brings."""
    following, running = node.kernel.get("next_boot"), node.running_kernel
    if following and node.kernel.get("next_boot_has_nvidia") is False and node.gpu.get("driver"):
        yield Found("kernel.next_boot_no_module", f"The next boot takes {following}, for which this node has no nvidia module.",
                    f"next boot by {node.kernel.get('next_boot_rule')}")
    if following and running and following != running:
        yield Found("kernel.next_boot_differs", f"The next boot takes {following}; {running} is running.", f"by {node.kernel.get('next_boot_rule')}")
    if node.kernel.get("pending_reboot") is True:
        packages = ", ".join(_texts(node.kernel.get("pending_reboot_packages"))[:8])
        yield Found("kernel.pending_reboot", f"A reboot is pending{' for ' + packages if packages else ''}.", packages or "/run/reboot-required")


@node_rule
def packages(node: Node) -> t.Iterator[Found]:
    """The package database."""
    interrupted, held = _texts(node.kernel.get("interrupted")), _texts(node.kernel.get("held"))
    if interrupted:
        yield Found("kernel.interrupted", f"{len(interrupted)} packages are half installed: {', '.join(interrupted[:8])}.", ", ".join(interrupted[:20]))
    if held:
        yield Found("kernel.held", f"{len(held)} packages are on hold: {', '.join(held[:8])}{' ...' if len(held) > 8 else ''}.", ", ".join(held[:20]))
    for interface in _rows(node.platform.get("interfaces")):
        if str(interface.get("driver")).startswith("mt79") and interface.get("state") == "up":
            yield Found("kernel.wifi", f"The Wi-Fi interface {interface.get('name')} is up.", f"driver {interface.get('driver')}")


@node_rule
def firmware(node: Node) -> t.Iterator[Found]:
    """Updates of firmware that wait, failed or are to be had."""
    upgrades = []
    for device in _rows(_mapping(node.platform.get("firmware")).get("devices")):
        name = f"{device.get('name')} ({device.get('guid')})"
        state, error, running = str(device.get("update_state") or ""), device.get("update_error"), device.get("version")
        waiting = f" for {device['pending_version']}" if device.get("pending_version") else ""
        # fwupd also keeps an error of a device that it cannot update at all: no update of it has failed.
        if state.startswith("failed"):
            yield Found("firmware.failed", f"The last update of {name} failed; {running} is running.", str(error or state))
        elif state in ("pending", "needs-reboot") or device.get("needs_reboot") is True or device.get("needs_shutdown") is True:
            how = "a shutdown" if device.get("needs_shutdown") is True else "a reboot"
            yield Found("firmware.staged", f"{name} has {running} and waits{waiting} until {how}.", f"update state {state or 'unknown'}")
        if _texts(device.get("upgrades")):
            upgrades.append(f"{name} {running} to {_texts(device['upgrades'])[0]}")
    if upgrades:
        yield Found("firmware.available", f"There are updates of {len(upgrades)} devices.", "; ".join(upgrades))
    bios = _mapping(node.platform.get("bios"))
    if bios.get("staged") is True:
        yield Found("firmware.bios_differs", f"BIOS {bios.get('running')} is running, and {bios.get('installed')} is installed.",
                    f"DMI {bios.get('running')}, fwupd {bios.get('installed')}")


@node_rule
def memory(node: Node) -> t.Iterator[Found]:
    """Memory, swap and page cache."""
    total, free, cache = (_number(node.memory.get(key)) for key in ("total_bytes", "free_bytes", "page_cache_bytes"))
    lowest, usual = MEMORY_GIB
    if node.is_spark and total and lowest * GIB <= total < usual * GIB:
        yield Found("memory.less", f"The system has {_size(total)}, and a Spark has {usual} GiB or more.",
                    f"MemTotal {_size(total)}, kho {node.kernel.get('kho') or 'unknown'}")
    if node.is_spark and total and free is not None and cache is not None and free < total / 10 and cache > total / 2:
        yield Found("memory.page_cache", f"{_size(cache)} are page cache and {_size(free)} free.", f"MemFree {_size(free)}, page cache {_size(cache)}")
    swap, left = (_number(node.memory.get(key)) for key in ("swap_total_bytes", "swap_free_bytes"))
    used = max([swap - left if swap is not None and left is not None else 0,
                sum(_number(area.get("used_bytes")) or 0 for area in _rows(node.memory.get("swap")))])
    if used > SWAP_USED_BYTES:
        areas = ", ".join(f"{area.get('path')} {area.get('used_bytes')}" for area in _rows(node.memory.get("swap")))
        yield Found("memory.swap", f"{_size(used)} are swapped out.", f"used {int(used)} bytes: {areas or 'areas unknown'}")
    swappiness = _number(node.memory.get("swappiness"))
    limit = _number(_mapping(node.memory.get("memlock")).get("hard"))
    if node.is_spark and total and limit is not None and 0 <= limit < total / 2:
        yield Found("memory.memlock", f"A login session may lock {_size(limit)} of memory.", f"memlock hard {int(limit)}, MemTotal {_size(total)}")
    if swap and swappiness is not None and swappiness > SWAPPINESS:
        yield Found("memory.swappiness", f"vm.swappiness is {int(swappiness)} with {_size(swap)} of swap.", f"swappiness {int(swappiness)}")


# --- toolchain and environment ------------------------------------------------------------------------------------------------


@node_rule
def strays(node: Node) -> t.Iterator[Found]:
    """Engines outside /opt/gb10."""
    found = [stray for stray in _rows(node.toolchain.get("strays")) if stray.get("what") in ENGINES]
    if found:
        listed = ", ".join(f"{stray['what']}{' ' + str(stray['version']) if stray.get('version') else ''} at {stray.get('path')}" for stray in found[:6])
        yield Found("toolchain.stray", f"Another engine is installed: {listed}.", listed)
        if node.services.get("remove_ipc") is True and any(stray["what"] in ("vllm", "ray") for stray in found):
            yield Found("services.remove_ipc", "RemoveIPC is on, and engines are installed that are started from a login.", "RemoveIPC=yes")


@node_rule
def stray_variables(node: Node) -> t.Iterator[Found]:
    """Variables that were set outside our units."""
    groups: dict[str, list[str]] = {}
    for entry in _rows(node.toolchain.get("environment")):
        name, value = str(entry.get("name")), str(entry.get("value") or "")
        place = f"{entry.get('file')}:{entry.get('line')}"
        if name == "CUDA_VISIBLE_DEVICES":
            groups.setdefault("environment.visible_devices", []).append(f"{name}={value} in {place}")
        elif name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
            if "nccl" in value.lower():
                groups.setdefault("environment.preload", []).append(f"{name}={value} in {place}")
        elif name.startswith(("NCCL_", "GLOO_")):
            remarks = _remarks(node, name, value)
            doubts = "".join(f", which {remark.what}" for remark in remarks if remark.severity == "warn")
            groups.setdefault("environment.nccl", []).append(f"{name}={value} in {place}{doubts}")
            for remark in remarks:
                if remark.severity == "fail":
                    groups.setdefault("environment.nccl_wrong", []).append(f"{name} {remark.what} ({place})")
    what = {
        "environment.visible_devices": "CUDA_VISIBLE_DEVICES is set",
        "environment.preload": "Another NCCL is loaded by force",
        "environment.nccl": "Variables of NCCL are set outside our units",
        "environment.nccl_wrong": "Variables of NCCL cannot be right",
    }
    for identifier, lines in groups.items():
        yield Found(identifier, f"{what[identifier]}: {'; '.join(lines[:4])}{' ...' if len(lines) > 4 else ''}.", "; ".join(lines[:20]))


def _remarks(node: Node, name: str, value: str) -> list[nccl.Remark]:
    """What nccl.py says of a variable; without a plan only what needs none."""
    rails = [{"device": port.get("name"), "netdev": port.get("netdev"), "address": str(node.addresses_of(port)[0].ip)}
             for port in node.ports() if node.addresses_of(port)]
    try:
        return nccl.check_overrides({name: value}, node.facts, {"rails": rails, "toolchain": {"device": "cuda", "name": "any"}, **node.plan})
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


@node_rule
def repositories(node: Node) -> t.Iterator[Found]:
    """Sources of apt that contradict each other."""
    for conflict in _rows(node.toolchain.get("repository_conflicts")):
        files, keys = (conflict.get(key) if isinstance(conflict.get(key), list) else [] for key in ("files", "keys"))
        yield Found("apt.conflict", f"{conflict.get('uri')} is named by {' and '.join(map(str, files))} with different keys.",
                    ", ".join("none" if key is None else str(key) for key in keys))


# --- services, names, clock -----------------------------------------------------------------------------------------------------


@node_rule
def services(node: Node) -> t.Iterator[Found]:
    """What else runs on the node."""
    docker = _mapping(node.services.get("docker"))
    if docker.get("installed") is True and (docker.get("cdi_enabled") is False or (node.is_spark and docker.get("cdi_files") == [])):
        reason = "CDI is off" if docker.get("cdi_enabled") is False else "there is no CDI specification of the GPU"
        yield Found("services.cdi", f"Docker is installed, and {reason}.", f"cdi_enabled {docker.get('cdi_enabled')}, files {docker.get('cdi_files')}")
    earlyoom = _mapping(node.services.get("earlyoom"))
    if earlyoom.get("active") is True or node.unit_is_active("earlyoom"):
        arguments = str(earlyoom.get("arguments") or "")
        # It acts when memory and swap are both short, and with a swappiness of 0 swap stays free; -s 100 takes swap out of that.
        inert = node.memory.get("swappiness") == 0 and _number(node.memory.get("swap_total_bytes")) and not re.search(r"-s\s*100\b", arguments)
        yield Found("services.earlyoom", f"earlyoom is active{', and with vm.swappiness 0 it never acts' if inert else ''}.",
                    f"arguments: {arguments or 'default'}; swappiness {node.memory.get('swappiness')}")
    score = _number(node.services.get("sshd_oom_score_adjust"))
    if node.is_spark and score is not None and score >= 0:
        yield Found("services.sshd_oom", f"The OOM killer's score adjustment of sshd is {int(score)}.", f"oom_score_adj {int(score)}")
    upgrades = _mapping(node.services.get("unattended_upgrades"))
    if upgrades.get("enabled") is True and upgrades.get("may_change_driver") is True:
        yield Found("services.unattended", "unattended-upgrades may change the driver.", str(upgrades.get("evidence") or "enabled, may_change_driver"))
    lock = _mapping(node.services.get("apt_lock"))
    if lock:
        yield Found("services.apt_lock", f"{lock.get('holder')} (process {lock.get('pid')}) holds apt's lock.", f"pid {lock.get('pid')}")
    firewall = _mapping(node.services.get("firewall"))
    if firewall.get("active") is True:
        yield Found("services.firewall", f"The firewall {firewall.get('kind')} is active.", f"{firewall.get('kind')} active")


@node_rule
def taken_ports(node: Node) -> t.Iterator[Found]:
    """Ports that our units are going to listen on."""
    if not node.plan or node.serves:
        return
    wanted = {}
    if node.plan.get("role") == "head":
        given = str(node.variables.get("spark_port") or PORT)
        wanted[int(given) if given.isdecimal() else PORT] = "spark_port"
        if node.plan.get("executor") == "ray":
            wanted[RAY_PORT] = "Ray's port"
    for port in _rows(node.services.get("ports")):
        number = port.get("port")
        if isinstance(number, int) and number in wanted:
            yield Found("services.port_taken", f"{wanted[number]} {number} is taken on {port.get('address')}.", f"listening: {port.get('address')}:{number}")


@node_rule
def own_name(node: Node) -> t.Iterator[Found]:
    """Where the node's own name leads."""
    answers = node.platform.get("own_address")
    if not isinstance(answers, list):
        return
    own = node.own_addresses()
    name = node.platform.get("hostname")
    if not answers:
        yield Found("names.own", f"The own name {name} resolves to nothing.", "no address")
        return
    elsewhere = [answer for answer in _texts(answers) if answer.startswith("127.") or (own and ":" not in answer and answer not in own)]
    if elsewhere:
        yield Found("names.own", f"The own name {name} resolves to {', '.join(elsewhere)}.", f"resolves to {', '.join(_texts(answers))}")


@node_rule
def clock(node: Node) -> t.Iterator[Found]:
    """A clock that something disciplines."""
    if _mapping(node.platform.get("clock")).get("synchronized") is False:
        yield Found("clock.unsynchronized", "Nothing synchronizes the clock of this node.", "adjtimex: unsynchronized")


# --- a cluster ------------------------------------------------------------------------------------------------------------------


def _differ(identifier: str, nodes: t.Sequence[Node], value: t.Callable[[Node], t.Any], label: str) -> t.Iterator[tuple[str | None, Found]]:
    having: list[tuple[str, str]] = []
    for node in nodes:
        own = value(node)
        text = own if isinstance(own, str) else " ".join(own) if isinstance(own, tuple) else ""
        if text:
            having.append((node.name, text))
    if len({text for _name, text in having}) > 1:
        listed = ", ".join(f"{name} {text}" for name, text in having)
        yield None, Found(identifier, f"{label}: {listed}.", listed)


def _same_machines(nodes: t.Sequence[Node]) -> list[list[Node]]:
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        vendor, product = node.platform.get("vendor"), node.platform.get("product")
        if vendor and product:
            groups.setdefault((str(vendor), str(product)), []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def _unique(values: t.Iterable[t.Any]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values if value}))


def _release_nccl(node: Node) -> tuple[str, ...]:
    return _unique(
        library.get("build_id") for library in _rows(node.toolchain.get("nccl_libraries")) if str(library.get("path")).startswith("/opt/gb10/")
    )


@cluster_rule
def versions(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """What must be equal on the nodes of a cluster."""
    yield from _differ("cluster.driver", nodes, lambda node: node.gpu.get("driver"), "The driver differs")
    yield from _differ("cluster.cuda", nodes, lambda node: node.gpu.get("cuda_version"), "The driver's CUDA version differs")
    yield from _differ("cluster.kernel", nodes, lambda node: node.running_kernel, "The kernel differs")
    yield from _differ("cluster.nic_firmware", nodes, lambda node: _unique(port.get("firmware") for port in node.ports(active=False)),
                       "The network cards' firmware differs")
    yield from _differ("cluster.psid", nodes, lambda node: _unique(port.get("psid") for port in node.ports(active=False)), "The cards' PSID differs")
    yield from _differ("cluster.dgx_os", nodes, lambda node: _mapping(node.platform.get("dgx")).get("ota_version"), "DGX OS differs")
    yield from _differ("cluster.os", nodes, lambda node: _mapping(node.platform.get("os")).get("pretty_name"), "The system differs")
    yield from _differ("cluster.python", nodes, lambda node: node.toolchain.get("python"), "Python differs")
    yield from _differ("cluster.release", nodes, lambda node: _mapping(node.toolchain.get("release")).get("key"), "The release differs")
    yield from _differ("cluster.nccl", nodes, _release_nccl, "The release's NCCL differs")


@cluster_rule
def next_boots(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """What will be equal or not after a reboot, or after an update."""
    if len({node.running_kernel for node in nodes if node.running_kernel}) == 1:
        yield from _differ("cluster.next_kernel", nodes, lambda node: node.kernel.get("next_boot"), "Different kernels boot next")
    held = {
        node.name: {name for name in _texts(node.kernel.get("held")) if "nvidia" in name or name.startswith("linux-")}
        for node in nodes if isinstance(node.kernel.get("held"), list)
    }
    uneven = sorted(set().union(*held.values()) - set.intersection(*held.values())) if held else []
    if uneven:
        listed = ", ".join(f"{name} on {' and '.join(node for node, own in held.items() if name in own)} only" for name in uneven[:8])
        yield None, Found("cluster.held", f"Packages on hold differ: {listed}.", listed)


@cluster_rule
def machine_versions(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """Firmware, which compares only between machines of one vendor and product."""
    for group in _same_machines(nodes):
        yield from _differ("cluster.bios", group, lambda node: node.platform.get("bios_version"), "The BIOS differs")
        yield from _differ("cluster.vbios", group, lambda node: _unique(device.get("vbios") for device in _rows(node.gpu.get("devices"))), "The VBIOS differs")
        devices: dict[str, dict[str, set[str]]] = {}
        names: dict[str, str] = {}
        for node in group:
            for device in _rows(_mapping(node.platform.get("firmware")).get("devices")):
                if device.get("guid") and device.get("version"):
                    devices.setdefault(str(device["guid"]), {}).setdefault(node.name, set()).add(str(device["version"]))
                    names[str(device["guid"])] = str(device.get("name"))
        for guid, having in sorted(devices.items()):
            if len({tuple(sorted(own)) for own in having.values()}) > 1:
                listed = ", ".join(f"{name} {' '.join(sorted(own))}" for name, own in having.items())
                yield None, Found("cluster.firmware", f"{names[guid]} ({guid}) differs: {listed}.", listed)


@cluster_rule
def fabric(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """The rails between the nodes: MTU in each subnet, and places of the GIDs."""
    subnets: dict[str, list[tuple[str, str, int]]] = {}
    indexes: set[int] = set()
    places: list[str] = []
    for node in nodes:
        for port in node.ports():
            size = _number(port.get("netdev_mtu"))
            for address in node.addresses_of(port):
                if size:
                    subnets.setdefault(str(address.network), []).append((node.name, str(port["netdev"]), int(size)))
                for gid in _rows(port.get("gids")):
                    if gid.get("type") == "RoCE v2" and gid.get("ipv4") == str(address.ip) and isinstance(gid.get("index"), int):
                        indexes.add(gid["index"])
                        places.append(f"{node.name} {port.get('name')} {gid['index']}")
    for subnet, ends in sorted(subnets.items()):
        if len({name for name, _netdev, _size in ends}) > 1 and len({size for _name, _netdev, size in ends}) > 1:
            listed = ", ".join(f"{name} {netdev} {size}" for name, netdev, size in ends)
            yield None, Found("mtu.rail_differs", f"The ends of the rail in {subnet} have different MTUs: {listed}.", listed)
    if len(indexes) > 1:
        yield None, Found("rail.gid_index", f"The RoCE v2 GIDs of IPv4 have the indexes {', '.join(map(str, sorted(indexes)))}.", ", ".join(places))


@cluster_rule
def peer_names(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """Names of peers, as each node resolves them."""
    own = {node.name: node.own_addresses() for node in nodes}
    for node in nodes:
        for peer, answers in _mapping(node.platform.get("names")).items():
            wrong = [answer for answer in _texts(answers) if ":" not in answer and answer not in own.get(peer, set())]
            if own.get(peer) and wrong:
                yield node.name, Found("names.peer", f"The name {peer} resolves to {', '.join(wrong)} here, which {peer} does not have.",
                                       f"{peer} has {', '.join(sorted(own[peer]))}")


@cluster_rule
def clocks(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """Clocks that are apart whatever the delay of asking was."""
    windows = []
    for node in nodes:
        window = _mapping(node.platform.get("clock")).get("window")
        if isinstance(window, (list, tuple)) and len(window) == 2 and all(_number(edge) is not None for edge in window):
            windows.append((node.name, window[0], window[1]))
    for (one, low, high), (other, other_low, other_high) in itertools.combinations(windows, 2):
        apart = max(other_low - high, low - other_high)
        if apart > CLOCK_SECONDS:
            yield None, Found("clock.apart", f"The clocks of {one} and {other} are at least {apart:.1f} s apart.",
                              f"against the controller: {one} {low:.2f} to {high:.2f} s, {other} {other_low:.2f} to {other_high:.2f} s")


# --- the fleet --------------------------------------------------------------------------------------------------------------------


def _shared_cluster(nodes: t.Iterable[Node]) -> str | None:
    """The cluster of all of these nodes, None when they are of several."""
    names = {node.cluster for node in nodes}
    return names.pop() if len(names) == 1 else None


@fleet_rule
def machine_ids(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """One machine-id a machine."""
    having: dict[str, list[Node]] = {}
    for node in nodes:
        if isinstance(node.platform.get("machine_id_digest"), str):
            having.setdefault(node.platform["machine_id_digest"], []).append(node)
    for digest, owners in having.items():
        if len(owners) > 1:
            listed = " and ".join(node.name for node in owners)
            yield _shared_cluster(owners), Found("cluster.machine_id", f"{listed} have one machine-id.", f"digest {digest} on {listed}")


@fleet_rule
def addresses(nodes: t.Sequence[Node]) -> t.Iterator[tuple[str | None, Found]]:
    """One address a node. Rails of different clusters may share subnets, since no cable joins them."""
    having: dict[tuple[str, str | None], list[tuple[Node, str]]] = {}
    for node in nodes:
        rails = {port["netdev"] for port in node.ports(active=False)}
        for interface in _rows(node.platform.get("interfaces")):
            name = str(interface.get("name"))
            if name.startswith(VIRTUAL):
                continue
            for address in _interfaces(_texts(interface.get("addresses"))):
                if not address.ip.is_loopback and not address.ip.is_link_local:
                    having.setdefault((str(address.ip), node.cluster if name in rails else None), []).append((node, name))
    for (address, _cluster), places in having.items():
        if len({node.name for node, _name in places}) > 1:
            listed = ", ".join(f"{node.name} {name}" for node, name in places)
            yield _shared_cluster(node for node, _name in places), Found("names.address_twice", f"{address} is on {listed}.", f"{address}: {listed}")


# --- all together -------------------------------------------------------------------------------------------------------------------


def diagnose(
    fleet: t.Mapping[str, t.Any],
    hostvars: t.Mapping[str, t.Any],
    clusters: t.Sequence[t.Mapping[str, t.Any]],
) -> list[dict[str, t.Any]]:
    """Every finding of a fleet, worst first.

    Args:
        fleet: what the filter fleet_plan returns; its findings are among the result.
        hostvars: variables of every host, with ansible_facts.spark and the results of the roles' preflights; spark_known_bad,
            spark_floors and spark_silenced_findings are the first node's that has them.
        clusters: [{name, nodes}] of the lookup clusters.

    Returns:
        [{id, severity, node, cluster, what, evidence, cause, cure, source, silenced, cured_by}].
    """
    plans = _mapping(_mapping(fleet).get("nodes"))
    membership = {node: (cluster["name"], list(cluster["nodes"])) for cluster in clusters for node in cluster["nodes"]}
    nodes = [
        Node(name, hostvars.get(name), plans.get(name), cluster, members) for name, (cluster, members) in membership.items()
    ]
    looked_at = [node for node in nodes if node.facts]
    settings = {
        name: next((node.variables[name] for node in nodes if node.variables.get(name)), None)
        for name in ("spark_known_bad", "spark_floors", "spark_silenced_findings")
    }
    findings = complete_plan(_rows(_mapping(fleet).get("findings")), membership)
    try:
        rows: t.Mapping[str, t.Any] = known_with(settings["spark_known_bad"], settings["spark_floors"])
    except KnownError as error:
        findings.append(finding("settings.known", None, None, str(error), evidence="spark_known_bad, spark_floors"))
        rows = known_with(None, None)
    for node in looked_at:
        for found in itertools.chain(*(rule(node) for rule in NODE_RULES), known_rows(node, rows)):
            findings.append(_made(found, node.name, node.cluster, node.deployed))
    for name in dict.fromkeys(node.cluster for node in looked_at if node.cluster is not None):
        members = [node for node in looked_at if node.cluster == name]
        for rule in CLUSTER_RULES:
            for where, found in rule(members):
                findings.append(_made(found, where, name, any(node.deployed for node in members)))
    for rule in FLEET_RULES:
        for where, found in rule(looked_at):
            findings.append(_made(found, None, where, True))
    findings = silence(findings, settings["spark_silenced_findings"], {node.name for node in nodes})
    for node in looked_at:
        if not any(found["node"] == node.name and found["severity"] in ("fail", "warn") and not found["silenced"] for found in findings):
            findings.append(finding("node.healthy", None, node.name, "Nothing is wrong with this node by itself.", cluster=node.cluster))
    return order(findings)


def complete_plan(findings: t.Iterable[t.Mapping[str, t.Any]], membership: t.Mapping[str, tuple[t.Any, t.Any]]) -> list[dict[str, t.Any]]:
    """The plan's findings with the cluster of their node."""
    return [
        {**found, "cluster": found.get("cluster") or membership.get(str(found.get("node")), (None, None))[0], "silenced": None,
         "cured_by": found.get("cured_by")}
        for found in findings
    ]


def _made(found: Found, node: str | None, cluster: str | None, deployed: bool) -> dict[str, t.Any]:
    made = finding(
        found.identifier, found.severity, node, found.what, found.cure, evidence=found.evidence, cause=found.cause, source=found.source,
        cluster=cluster,
    )
    if made["cured_by"] == "site" and not deployed and made["severity"] in ("fail", "warn"):
        made["severity"] = "info"
    return made
