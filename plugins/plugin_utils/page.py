# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTML report of a fleet: one page that needs no network and no script. Pure functions, run on the controller."""

from __future__ import annotations

import collections
import ipaddress
import re
import typing as t
from pathlib import Path

import jinja2
from ansible_collections.gb10.fleet.plugins.plugin_utils import document, drawing, report

TEMPLATE = Path(__file__).with_name("report.html.j2")
# Up to so many nodes the version matrix has a column for each.
COLUMNS = 4
# What these rooms find can be the fault of a line.
LINE_ROOMS = ("rdma", "rail", "mtu", "pcie", "plan")
WORDS = {"fail": "Fail", "warn": "Warning", "info": "Info", "ok": "OK", "silenced": "Silenced"}
TOPOLOGIES = {"single": "single node", "pair": "pair", "ring": "ring", "switch": "through a switch"}


def _get(value: t.Any, *names: str) -> t.Any:
    """What lies below these names, None where there is nothing."""
    for name in names:
        value = value.get(name) if isinstance(value, t.Mapping) else None
    return value


def _rows(value: t.Any, *names: str) -> list[dict[str, t.Any]]:
    """The mappings of a list below these names."""
    found = _get(value, *names) if names else value
    return [item for item in found if isinstance(item, t.Mapping)] if isinstance(found, list) else []


def _text(value: t.Any) -> str | None:
    """A text of a fact, None where it is not known."""
    return None if value is None or value == "" or isinstance(value, (list, dict)) else report.plain(value, 200)


def _number(value: t.Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _joined(values: t.Iterable[t.Any]) -> str | None:
    """The different texts among values, in order of appearance."""
    return ", ".join(dict.fromkeys(text for text in map(_text, values) if text)) or None


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text) is not None


def _worst(severities: t.Iterable[str]) -> str:
    found = set(severities)
    return next((severity for severity in report.SEVERITIES if severity in found), "ok")


def _gbps(device: t.Mapping[str, t.Any]) -> float | None:
    """Speed of a port in Gb/s; a port without a link has none."""
    megabits = _number(device.get("link_speed_mbps"))
    return megabits / 1000 if megabits and megabits > 0 else _number(device.get("rate_gbps"))


def _whole(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


class _Node:
    """A node on its way into the page: its plan, its facts and what was found on it."""

    def __init__(
        self, name: str, cluster: str | None, plan: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], findings: list[dict[str, t.Any]]
    ) -> None:
        self.name = name
        self.plan = plan
        self.facts = facts
        self.findings = [found for found in findings if found["node"] == name and found["silenced"] is None]
        self.shared = [
            found for found in findings if found["node"] is None and found["cluster"] == cluster and found["silenced"] is None
        ]
        self.ends: dict[str, dict[str, t.Any]] = {}
        self.cages = self._cages()

    @property
    def verdict(self) -> str:
        return _worst(found["severity"] for found in self.findings)

    @property
    def machine(self) -> str:
        vendor, product = _text(_get(self.facts, "platform", "vendor")), _text(_get(self.facts, "platform", "product"))
        if vendor and product and product.lower().startswith(vendor.lower()):
            vendor = None
        return " ".join(part for part in (vendor, product) if part)

    def _addresses(self, device: t.Mapping[str, t.Any]) -> list[str]:
        """IPv4 addresses with prefix, from the port or else from its interface."""
        texts = device.get("addresses")
        if not isinstance(texts, list):
            interfaces = _rows(self.facts, "platform", "interfaces")
            texts = next((row.get("addresses") for row in interfaces if row.get("name") == device.get("netdev")), None)
        return [text for text in texts if isinstance(text, str) and ":" not in text] if isinstance(texts, list) else []

    def _rail(self, device: t.Mapping[str, t.Any], planned: t.Mapping[str, t.Any] | None) -> dict[str, t.Any]:
        netdev = _text(device.get("netdev")) or _text(device.get("name")) or "?"
        addresses = self._addresses(device)
        address = addresses[0] if addresses else None
        if planned:
            wanted = f"{planned.get('address')}/{planned.get('prefix')}"
            missing = wanted not in addresses
            address = wanted
        else:
            missing = False
        subnet = _text(_get(planned, "subnet")) if planned else None
        if subnet is None and address:
            try:
                subnet = str(ipaddress.ip_interface(address).network)
            except ValueError:
                subnet = None
        speed, mtu, roce = _gbps(device), _number(device.get("netdev_mtu")), _number(device.get("active_mtu"))
        down = device.get("state") != "ACTIVE"
        link = "no link" if down else f"{_whole(speed)} Gb/s \u00b7 MTU {_whole(mtu)} \u00b7 RoCE {_whole(roce)}"
        names = [name for name in (netdev, _text(device.get("name")), address.partition("/")[0] if address else None) if name]
        # What is said of the cluster as a whole names the rail by its subnet, or by node and interface.
        common = [name for name in (subnet, f"{self.name} {netdev}") if name]
        severities = [
            found["severity"]
            for findings, words in ((self.findings, names), (self.shared, common)) for found in findings
            if found["id"].partition(".")[0] in LINE_ROOMS
            and any(_mentions(f"{found['what']}\n{found['evidence']}", word) for word in words)
        ]
        rail = {
            "netdev": netdev,
            "device": _text(device.get("name")) or "",
            "address": address or "no address",
            "planned": missing or address is None,
            "subnet": subnet,
            "speed": speed,
            "mtu": mtu,
            "roce": roce,
            "down": down,
            "link": link if not missing else f"{link} \u00b7 address not set",
            "short": "no link" if down else f"{_whole(speed)}G {_whole(mtu)}/{_whole(roce)}",
            "verdict": _worst(severities),
        }
        self.ends[netdev] = rail
        return rail

    def _cages(self) -> list[dict[str, t.Any]]:
        planned = {str(row.get("netdev")): row for row in _rows(self.plan, "rails")}
        ports: dict[str, list[t.Mapping[str, t.Any]]] = {}
        seen = set()
        for device in _rows(self.facts, "rdma", "devices"):
            if device.get("is_virtual_function") is True or device.get("link_layer") == "InfiniBand":
                continue
            ports.setdefault(_text(device.get("cage")) or "", []).append(device)
            seen.add(device.get("netdev"))
        for netdev, row in planned.items():
            if netdev not in seen:
                ports.setdefault(_text(row.get("cage")) or "", []).append({"netdev": netdev, "name": row.get("device"), "state": None})
        cages = []
        for label in sorted(ports):
            used = [
                device for device in ports[label]
                if device.get("netdev") in planned or device.get("state") == "ACTIVE" or self._addresses(device)
            ]
            cages.append(
                {
                    "label": f"cage {label}" if label else "ports",
                    "idle": "no link" if self.facts else "",
                    "rails": [self._rail(device, planned.get(str(device.get("netdev")))) for device in (ports[label] if used else [])],
                }
            )
        return cages

    def card(self, domain: str) -> dict[str, t.Any]:
        """What the drawing shows of the node; of its name without the domain that all nodes share."""
        role = _text(self.plan.get("role")) or ""
        subtitle = " \u00b7 ".join(part for part in (role, self.machine) if part)
        return {
            "name": self.name,
            "label": self.name[: len(self.name) - len(domain)],
            "role": role,
            "subtitle": subtitle or ("not looked at" if not self.facts else "no plan"),
            "remark": "No network port for rails is on the bus." if self.facts else "This node was not looked at.",
            "verdict": self.verdict,
            "cages": self.cages,
        }


def _look(verdict: str, planned: bool) -> str:
    """How a line looks: by its verdict, and as a plan where nothing is wrong and an address is not set yet."""
    return "planned" if planned and verdict in ("ok", "info") else verdict


def _links(nodes: list[_Node]) -> list[dict[str, t.Any]]:
    """What joins the rails of one subnet."""
    by_subnet: dict[str, list[tuple[_Node, dict[str, t.Any]]]] = {}
    for node in nodes:
        for rail in node.ends.values():
            if rail["subnet"]:
                by_subnet.setdefault(rail["subnet"], []).append((node, rail))
    links = []
    for subnet, ends in by_subnet.items():
        if len(ends) < 2:
            continue
        rails = [rail for node, rail in ends]
        parts = []
        for field, form in (("speed", "{} Gb/s"), ("mtu", "MTU {}")):
            values = list(dict.fromkeys(_whole(rail[field]) for rail in rails if not rail["down"]))
            if values:
                parts.append(form.format(" vs ".join(values[:3])))
        down = [(node.name, rail["netdev"]) for node, rail in ends if rail["down"]]
        links.append(
            {
                "subnet": subnet,
                "text": " \u00b7 ".join(parts) if len(down) < len(ends) else "no link",
                "verdict": _worst(rail["verdict"] for rail in rails),
                "down": bool(down),
                "down_ends": down,
                "ends": [(node.name, rail["netdev"]) for node, rail in ends],
                "rails": {(node.name, rail["netdev"]): _look(rail["verdict"], rail["planned"]) for node, rail in ends},
                "look": _look(_worst(rail["verdict"] for rail in rails), any(rail["planned"] for rail in rails)),
            }
        )
    return links


def _shape(nodes: list[_Node], links: list[dict[str, t.Any]]) -> str:
    """How the nodes are joined: as the plan says, else by the look of the subnets."""
    planned = next((_text(node.plan.get("topology")) for node in nodes if node.plan), None)
    if planned in TOPOLOGIES:
        return planned
    if len(nodes) < 3:
        return ("single", "pair")[len(nodes) - 1]
    return "ring" if links and all(len({name for name, netdev in link["ends"]}) == 2 for link in links) else "switch"


def _described(nodes: list[_Node], links: list[dict[str, t.Any]]) -> str:
    """The drawing in words, for those who do not see it."""
    parts = [f"{node.name}: {WORDS[node.verdict]}" for node in nodes]
    for link in links:
        ends = " and ".join(f"{name} {netdev}" for name, netdev in link["ends"])
        parts.append(f"{link['subnet']} joins {ends}: {link['text']}, {WORDS[link['verdict']]}")
    return "; ".join(parts)


def _components(machine: str, facts: t.Mapping[str, t.Any]) -> dict[str, tuple[str | None, bool]]:
    """Versions of a node: label to (value, whether it compares with the same kind of machine only)."""
    gpus, ports = _rows(facts, "gpu", "devices"), _rows(facts, "rdma", "devices")
    toolkits = _joined(row.get("version") for row in _rows(facts, "toolchain", "cuda"))
    running, installed = _text(_get(facts, "platform", "bios_version")), _text(_get(facts, "platform", "bios", "installed"))
    staged = _get(facts, "platform", "bios", "staged") is True
    rows: dict[str, tuple[str | None, bool]] = {
        "Machine": (machine or None, False),
        "DGX OS": (_text(_get(facts, "platform", "dgx", "ota_version")), False),
        "System": (_text(_get(facts, "platform", "os", "pretty_name")), False),
        "Kernel": (_text(_get(facts, "kernel", "running")) or _text(_get(facts, "platform", "kernel")), False),
        "Next boot kernel": (_text(_get(facts, "kernel", "next_boot")), False),
        "Driver": (_text(_get(facts, "gpu", "driver")), False),
        "CUDA of the driver": (_text(_get(facts, "gpu", "cuda_version")), False),
        "CUDA toolkits": (toolkits, False),
        "GSP firmware": (_joined(row.get("gsp_firmware") for row in gpus), False),
        "VBIOS": (_joined(row.get("vbios") for row in gpus), True),
        "NIC firmware": (_joined(row.get("firmware") for row in ports), False),
        "NIC PSID": (_joined(row.get("psid") for row in ports), False),
        "BIOS": (f"{running or '?'} (staged: {installed})" if staged and installed else running, True),
    }
    for device in _rows(facts, "platform", "firmware", "devices"):
        guid, version, pending = _text(device.get("guid")), _text(device.get("version")), _text(device.get("pending_version"))
        label = f"{_text(device.get('name')) or 'Firmware'}\n{guid or _text(device.get('plugin')) or ''}"
        rows[label] = (f"{version or '?'} (pending: {pending})" if pending else version, True)
    for label, name in (("vLLM", "vllm"), ("PyTorch", "torch"), ("Ray", "ray"), ("NCCL", "nccl"), ("Python of the release", "python"), ("Release", "key")):
        rows[label] = (_text(_get(facts, "toolchain", "release", name)), False)
    return rows


def _matrix(nodes: list[_Node]) -> dict[str, t.Any]:
    """The versions of a cluster's nodes with the differences marked.

    Returns:
        {rows: [{label, guid, differs, cells: [{value, odd}], groups: [{value, nodes, odd}]}], unknown: [label], different: number}.
        A version that is not known is no difference. Of machines of several makers, what each maker numbers in its own way is
        compared among the same product only.
    """
    components = {node.name: _components(node.machine, node.facts) for node in nodes}
    labels = list(dict.fromkeys(label for rows in components.values() for label in rows))
    rows, unknown = [], []
    for label in labels:
        values = {node.name: components[node.name].get(label, (None, False)) for node in nodes}
        if all(value is None for value, own in values.values()):
            unknown.append(label.partition("\n")[0])
            continue
        odd: set[str] = set()
        kinds: dict[str, list[str]] = {}
        for node in nodes:
            value, own = values[node.name]
            if value is not None:
                kinds.setdefault(node.machine if own else "", []).append(node.name)
        for names in kinds.values():
            tally = collections.Counter(values[name][0] for name in names).most_common()
            if len(tally) > 1:
                common = tally[0][0] if tally[0][1] > tally[1][1] else None
                odd.update(name for name in names if values[name][0] != common)
        groups: dict[str | None, list[str]] = {}
        for node in nodes:
            groups.setdefault(values[node.name][0], []).append(node.name)
        title, _separator, guid = label.partition("\n")
        rows.append(
            {
                "label": title,
                "guid": guid,
                "differs": bool(odd),
                "cells": [{"value": values[node.name][0], "odd": node.name in odd} for node in nodes],
                "groups": [
                    {"value": value, "nodes": names, "odd": value is not None and any(name in odd for name in names)}
                    for value, names in sorted(groups.items(), key=lambda item: -len(item[1]))
                ],
            }
        )
    return {
        "rows": rows,
        "unknown": unknown,
        "different": sum(row["differs"] for row in rows),
        "columns": len(nodes) <= COLUMNS,
        "compared": sum(bool(node.facts) for node in nodes) > 1,
    }


def _reached(peers: list[dict[str, t.Any]]) -> str | None:
    """The nodes at the other ends of a rail, or how many there are."""
    if len(peers) > 3:
        return report.number_of(len(peers), "node")
    return _joined(f"{_text(peer.get('node'))} {_text(peer.get('address'))}" for peer in peers)


def _plan(nodes: list[_Node]) -> dict[str, t.Any] | None:
    """What shall be: of the cluster, and a row for each rail."""
    first = next((node.plan for node in nodes if node.plan), None)
    if first is None:
        return None
    rows = []
    for node in nodes:
        rails = _rows(node.plan, "rails") or [{"address": node.plan.get("address"), "prefix": None}]
        for number, rail in enumerate(rails):
            address = _text(rail.get("address"))
            rows.append(
                {
                    "node": node.name if number == 0 else "",
                    "role": _text(node.plan.get("role")) if number == 0 else "",
                    "cage": _text(rail.get("cage")),
                    "netdev": _text(rail.get("netdev")),
                    "device": _text(rail.get("device")),
                    "address": f"{address}/{rail['prefix']}" if rail.get("prefix") else address,
                    "peers": _reached(_rows(rail, "peers")),
                }
            )
    values = (
        ("Profile", _get(first, "profile", "name")),
        ("Model", _get(first, "model", "name")),
        ("Toolchain", _get(first, "toolchain", "name")),
        ("Tensor parallel", first.get("tensor_parallel")),
        ("Executor", first.get("executor")),
        ("MTU", first.get("mtu")),
        ("Head", first.get("head")),
        ("Head address", first.get("head_address")),
    )
    return {"values": [(label, _text(value)) for label, value in values if _text(value)], "rows": rows}


def _domain(names: list[str]) -> str:
    """The domain that all of several names have, with its dot; the empty text where there is none, or where a name is an address."""
    domains = {name[name.find(".") :] if "." in name.lstrip(".") else "" for name in names}
    domain = domains.pop() if len(domains) == 1 and len(names) > 1 else ""
    return "" if re.search(r"\.[0-9]+$", domain) or not all(name[: len(name) - len(domain)] for name in names) else domain


def _cluster(
    number: int, name: str | None, names: list[str], fleet: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], findings: list[dict]
) -> dict[str, t.Any]:
    plans = _get(fleet, "nodes")
    nodes = [_Node(node, name, _get(plans, node) or {}, facts.get(node) or {}, findings) for node in names]
    links = _links(nodes)
    shape = _shape(nodes, links)
    model = {"nodes": [node.card(_domain(names)) for node in nodes], "links": links, "shape": shape}
    own = [found for found in findings if found["node"] in names or (found["node"] is None and found["cluster"] == name)]
    return {
        "anchor": f"cluster-{number}",
        "name": name or "In no cluster",
        "verdict": report.verdict(own),
        "counts": report.counts(own),
        "nodes": names,
        "kind": TOPOLOGIES[shape] if shape == "single" else f"{TOPOLOGIES[shape]}, {report.number_of(len(names), 'node')}",
        "description": _described(nodes, links),
        "wide": drawing.wide(model),
        "narrow": drawing.lanes(model),
        "matrix": _matrix(nodes),
        "plan": _plan(nodes),
    }


def page_view(
    clusters: t.Sequence[t.Mapping[str, t.Any]],
    fleet: t.Mapping[str, t.Any],
    facts: t.Mapping[str, t.Mapping[str, t.Any]],
    findings: t.Iterable[t.Mapping[str, t.Any]],
    observed_at: str,
) -> dict[str, t.Any]:
    """What the page shows, in the words and lengths of the template.

    Args:
        clusters: [{name, nodes}], as the lookup clusters lists them, those without a node that was looked at left out.
        fleet: the plan, as the filter fleet_plan gives it.
        facts: ansible_facts.spark of each node that was looked at.
        findings: all findings.
        observed_at: time in UTC, ISO 8601.

    Returns:
        The variables of report.html.j2.
    """
    found = report.ordered(findings)
    known = {name: document.clean(value) for name, value in facts.items()}
    plan = document.clean(fleet)
    shown = [
        _cluster(number, _get(cluster, "name"), list(cluster["nodes"]), plan, known, found)
        for number, cluster in enumerate(clusters, start=1) if cluster["nodes"]
    ]
    groups = report.grouped(found)
    total = report.counts(found)
    nodes = sum(len(cluster["nodes"]) for cluster in shown)
    worst = report.verdict(found)
    headline = {
        "fail": f"{report.number_of(total['fail'], 'finding')} to mend first",
        "warn": f"Usable, with {report.number_of(total['warn'], 'warning')}",
        "info": "All is well, with something to know",
        "ok": "All is well" if shown else "No node was looked at",
    }[worst]
    return {
        "observed_at": observed_at,
        "observed": observed_at.replace("T", " ").replace("Z", " UTC"),
        "collector": document.collector(),
        "verdict": worst,
        "headline": headline,
        "counts": total,
        "words": WORDS,
        "nodes": report.number_of(nodes, "node"),
        "clusters": shown,
        "size": report.number_of(len(shown), "cluster"),
        "active": [group for group in groups if group["silenced"] is None and group["severity"] != "ok"],
        "fine": [group for group in groups if group["silenced"] is None and group["severity"] == "ok"],
        "silenced": [group for group in groups if group["silenced"] is not None],
    }


def page_text(view: t.Mapping[str, t.Any]) -> str:
    """The page as HTML; every value is escaped by the template engine.

    Args:
        view: what page_view returns.
    """
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(view)
