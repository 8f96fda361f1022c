"""Every finding that a lab can show: switched on, seen on the right node, switched off, gone."""
from __future__ import annotations

import json
import os
from pathlib import Path

import faults
import pytest
import yaml
from light_lab import ROOT, LightLab

CATALOGUE = yaml.safe_load((ROOT / "plugins/plugin_utils/findings.yml").read_text(encoding="utf-8"))
KNOWN = yaml.safe_load((ROOT / "plugins/plugin_utils/known.yml").read_text(encoding="utf-8"))
LAB = os.environ.get("GB10_LAB", "test")


@pytest.fixture(scope="module")
def lab():
    """A light pair of this module's own."""
    with LightLab(f"{LAB}-findings") as running:
        yield running


class Preflight:
    """A finished preflight.yml: its status, its text, and the documents that it wrote."""

    def __init__(self, lab: LightLab, folder: Path, inventory: str = "lab", variables: dict | None = None):
        wanted = {"spark_report_folder": str(folder), **(variables or {})}
        finished = lab.run("ansible-playbook", "-i", inventory, "preflight.yml", "-e", json.dumps(wanted))
        self.status = finished.returncode
        self.text = finished.stdout + finished.stderr
        self.documents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "findings").glob("*.json"))}

    @property
    def findings(self) -> list[dict]:
        """Each finding once; those of a cluster or of the fleet are in the document of each of its nodes."""
        found: list[dict] = []
        for document in self.documents.values():
            found.extend(finding for finding in document["findings"] if finding not in found)
        return found

    @property
    def seen(self) -> set[tuple[str, str | None]]:
        return {(finding["id"], finding["node"]) for finding in self.findings}

    def of(self, *severities: str) -> list[str]:
        """What counts, as lines."""
        return sorted(
            f"{finding['severity']} {finding['id']} {finding['node'] or finding['cluster']}: {finding['what']} ({finding['evidence']})"
            for finding in self.findings if finding["severity"] in severities and not finding["silenced"]
        )


def expected(fault: faults.Fault) -> set[tuple[str, str | None]]:
    return {(fault.finding, node) for node in fault.nodes} or {(fault.finding, None)}


def shown() -> set[str]:
    """Ids that the tests of this module switch on."""
    ids = {fault.finding for batch in faults.BATCHES.values() for fault in batch}
    return ids | {given.finding for given in faults.INPUTS} | {fault.finding for fault in faults.RAILS} | set(faults.INVENTORIES)


def test_every_finding_is_switched_on_or_has_a_reason():
    visible = {name for name, row in CATALOGUE.items() if row["visible"] in ("facts", "plan", "rails")}
    visible |= {row["id"] for row in KNOWN["known_bad"]} | {row.get("finding", row["id"]) for row in KNOWN["floors"]}
    assert shown() - visible == set()
    assert set(faults.NOT_SHOWN) - visible == set()
    assert shown() & set(faults.NOT_SHOWN) == set()
    assert visible - shown() - set(faults.NOT_SHOWN) == set()
    assert all(len(reason.split()) > 5 for reason in faults.NOT_SHOWN.values())


def test_a_healthy_lab_has_nothing_to_mend(lab, tmp_path):
    healthy = Preflight(lab, tmp_path)
    assert healthy.status == 0, healthy.text
    assert set(healthy.documents) == {faults.A, faults.B}
    assert healthy.of("fail", "warn") == []


@pytest.mark.parametrize("name", list(faults.BATCHES))
def test_faults_are_found_and_gone_when_mended(lab, tmp_path, name):
    batch = faults.BATCHES[name]
    variables: dict = {}
    try:
        for fault in batch:
            for node, script in fault.on.items():
                lab.on_node(node, script)
            for node, values in fault.state.items():
                lab.switch(node, values)
            variables.update(fault.variables)
        broken = Preflight(lab, tmp_path / "broken", variables=variables)
    finally:
        for fault in reversed(batch):
            for node, script in fault.off.items():
                lab.on_node(node, script)
        for node in {node for fault in batch for node in fault.state}:
            lab.control("reset", node)
    missed = set().union(*(expected(fault) for fault in batch)) - broken.seen
    assert not missed, f"{sorted(missed, key=str)} not in:\n" + "\n".join(broken.of("fail", "warn", "info")) + broken.text[-3000:]
    assert broken.status == (2 if broken.of("fail") else 0), broken.text
    for finding in broken.findings:
        if finding["id"] in {fault.finding for fault in batch}:
            assert finding["what"] and finding["source"], finding
    mended = Preflight(lab, tmp_path / "mended")
    assert mended.status == 0, mended.text
    assert {name for name, _node in mended.seen} & {fault.finding for fault in batch if fault.finding not in faults.AT_REST} == set()
    assert mended.of("fail", "warn") == []


def filled(value: object, words: dict[str, str]) -> object:
    """A value with the words that only the running lab knows."""
    if isinstance(value, dict):
        return {key: filled(entry, words) for key, entry in value.items()}
    if isinstance(value, list):
        return [filled(entry, words) for entry in value]
    return words.get(value, value) if isinstance(value, str) else value


def write_inventory(folder: Path, spark: dict) -> str:
    """An inventory with the lab's own variables; its path."""
    (folder / "group_vars").mkdir(parents=True)
    (folder / "group_vars/all.yml").write_text((ROOT / "inventories/lab/group_vars/all.yml").read_text(encoding="utf-8"), encoding="utf-8")
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"children": {"spark": spark}}}), encoding="utf-8")
    return str(path)


def test_faults_of_the_inventory_are_found(lab, tmp_path):
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    for name, content in faults.PROFILES.items():
        (profiles / f"{name}.yml").write_text(content, encoding="utf-8")
    nodes = list(lab.variables)
    words = {"management": lab.variables[nodes[0]]["ansible_host"].rsplit(".", 1)[0] + ".0/24", "profiles": str(profiles)}
    clusters = {
        given.cluster: {
            "hosts": {
                given.host(number): {**lab.variables[nodes[number % len(nodes)]], **filled({**given.group, **own}, words)}
                for number, own in enumerate(given.hosts)
            }
        }
        for given in faults.INPUTS
    }
    twice = {"twice-0": lab.variables[nodes[0]]}
    spark = {"hosts": {"loner-0": lab.variables[nodes[0]]}, "children": {**clusters, "one": {"hosts": twice}, "other": {"hosts": twice}}}
    for node in nodes:
        lab.on_node(node, f"ip link set {faults.SECOND} down; ip link set {faults.SECOND_TWIN} down")
    try:
        found = Preflight(lab, tmp_path / "report", inventory=write_inventory(tmp_path / "inventory", spark))
    finally:
        for node in nodes:
            lab.on_node(node, f"ip link set {faults.SECOND} up; ip link set {faults.SECOND_TWIN} up")
    wanted = {(given.finding, given.host(given.at)) for given in faults.INPUTS}
    wanted |= {("plan.host_in_two_clusters", "twice-0"), ("plan.host_in_no_cluster", "loner-0")}
    assert wanted - found.seen == set(), found.text[-5000:]
    assert found.status == 2


def test_an_inventory_without_a_cluster_and_one_whose_nodes_are_all_off(lab, tmp_path):
    loner = {"hosts": {"loner-0": lab.variables[faults.A]}}
    found = Preflight(lab, tmp_path / "loner-report", inventory=write_inventory(tmp_path / "loner", loner))
    assert found.status == 2 and {("plan.no_cluster", None), ("plan.host_in_no_cluster", "loner-0")} <= found.seen, found.text
    off = {"children": {"pair": {"hosts": {faults.A: faults.CLOSED, faults.B: faults.CLOSED}}}}
    found = Preflight(lab, tmp_path / "off-report", inventory=write_inventory(tmp_path / "off", off))
    # No node was looked at, so there is no document either.
    assert found.status == 2 and not found.documents and "plan.no_facts" in found.text, found.text


def test_a_node_alone_needs_no_cable(lab, tmp_path):
    alone = {**lab.variables[faults.B], "spark_tensor_parallel": 1}
    inventory = write_inventory(tmp_path / "inventory", {"children": {"single": {"hosts": {"alone-0": alone}}}})
    lab.switch(faults.B, {"rdma.present": False})
    try:
        found = Preflight(lab, tmp_path / "report", inventory=inventory)
    finally:
        lab.control("reset", faults.B)
    assert ("rdma.no_cable", "alone-0") in found.seen, found.text
    assert not any(name.startswith("plan.no_rdma") for name, _node in found.seen)


def test_what_the_check_of_the_rails_finds(lab):
    """rail_check looks at rails that are set up, so it is called here as the role fabric calls it."""
    planned = [
        {"netdev": netdev, "device": device, "address": address, "prefix": 24, "peers": [{"node": faults.B, "address": peer[2]}]}
        for (netdev, device, address), peer in zip(faults.PLANNED[faults.A], faults.PLANNED[faults.B])
    ]
    arguments = json.dumps({"node": faults.A, "rails": planned, "mtu": 9000})

    def check() -> dict:
        finished = lab.run("ansible", "-i", "lab", faults.A, "-m", "gb10.fleet.rail_check", "-a", arguments, format="json")
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return json.loads(finished.stdout[finished.stdout.index("{"):])

    try:
        for node, script in faults.RAILS_UP.items():
            lab.on_node(node, script)
        for fault in faults.RAILS:
            for node, script in fault.on.items():
                lab.on_node(node, script)
            for node, values in fault.state.items():
                lab.switch(node, values)
            broken = check()
            for node, script in fault.off.items():
                lab.on_node(node, script)
            for node in fault.state:
                lab.control("reset", node)
            assert not broken["passed"], fault
            assert (fault.finding, "fail") in {(finding["id"], finding["severity"]) for finding in broken["findings"]}, broken["findings"]
        mended = check()
        assert mended["passed"], mended["findings"]
    finally:
        for node, script in faults.RAILS_DOWN.items():
            lab.on_node(node, script)
        lab.control("reset", faults.A)
