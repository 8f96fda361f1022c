# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter fleet_findings."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet_findings
short_description: Judge a fleet by its facts
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Compares the facts of each node, of each cluster and of the whole fleet with what is known of DGX Spark, and returns what is
    wrong, doubtful or worth knowing, each with evidence, cause, cure and source. The findings of the plan are among them.
  - All kinds of findings are listed in C(docs/findings.md).
  - Changes nothing and reaches no node. A fact that was not gathered or is null is not judged.
  - Rules for a Spark are not applied to another machine or another GPU; that it is one is said as V(info).
  - A finding that C(site.yml) sets right itself (C(cured_by) is V(site)) is V(info) on a node that was never set up.
positional: hostvars, clusters
options:
  _input:
    description: The plan, as the filter P(gb10.fleet.fleet_plan#filter) returns it.
    type: dict
    required: true
  hostvars:
    description:
      - Variables of every host, with C(ansible_facts.spark) of those to be judged.
      - C(spark_known_bad) and C(spark_floors) add rows to those of C(plugins/plugin_utils/known.yml), C(spark_silenced_findings)
        names findings that shall not count.
    type: dict
    required: true
  clusters:
    description:
      - Clusters as the lookup P(gb10.fleet.clusters#lookup) lists them.
      - When not given, those of the plan, and each other host with facts by itself.
    type: list
    elements: dict
seealso:
  - plugin: gb10.fleet.fleet_plan
    plugin_type: filter
  - module: gb10.fleet.spark_facts
  - module: gb10.fleet.fleet_report
"""

EXAMPLES = r"""
- name: Judge the fleet
  ansible.builtin.set_fact:
    spark_findings: "{{ spark_fleet | gb10.fleet.fleet_findings(hostvars, query('gb10.fleet.clusters')) }}"
  run_once: true

- name: Show what would stop the run
  ansible.builtin.debug:
    msg: "{{ spark_findings | gb10.fleet.findings_text(['fail']) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Findings, worst first, silenced ones last.
  type: list
  elements: dict
  contains:
    id:
      description: Kind of finding, always the same for the same kind.
      type: str
    severity:
      description: V(fail) stops or ruins serving, V(warn) may, V(info) is worth knowing, V(ok) says that nothing is wrong with a node.
      type: str
    node:
      description: Inventory name of the host; V(null) when it is about a cluster or the fleet.
      type: str
    cluster:
      description: Name of the cluster; V(null) when it is about the fleet.
      type: str
    what:
      description: What is the matter.
      type: str
    evidence:
      description: What was measured.
      type: str
    cause:
      description: Why it is so, or the likely cause.
      type: str
    cure:
      description: What to do.
      type: str
    source:
      description: Where the rule is read.
      type: str
    silenced:
      description: The reason given in C(spark_silenced_findings), V(null) for what counts.
      type: str
    cured_by:
      description: V(site) for what site.yml sets right itself, else V(null).
      type: str
  sample:
    - id: mtu.rail_differs
      severity: fail
      node: null
      cluster: pair
      what: "The ends of the rail in 192.168.100.0/24 have different MTUs: spark-a enp1s0f0np0 9000, spark-b enp1s0f0np0 1500."
      evidence: spark-a enp1s0f0np0 9000, spark-b enp1s0f0np0 1500
      cause: One node was set up, or lost its setting at a reboot or firmware update.
      cure: Set 9000 on both ends and activate it; site.yml does.
      source: NVIDIA/nccl PR 2135; 0xSero/local-ai-registry PR 55 (hangs, error 12)
      silenced: null
      cured_by: site
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.fleet.plugins.plugin_utils.doctor import diagnose


def clusters_of(fleet, hostvars):
    """The clusters of a plan, then each other host with facts by itself."""
    clusters = {}
    for node, plan in fleet["nodes"].items():
        clusters.setdefault(plan["cluster"], list(plan["nodes"]) or [node])
    planned = {node for nodes in clusters.values() for node in nodes}
    others = [node for node in hostvars if node not in planned and "spark" in ((hostvars[node] or {}).get("ansible_facts") or {})]
    return [{"name": name, "nodes": nodes} for name, nodes in clusters.items()] + [{"name": None, "nodes": [node]} for node in others]


def fleet_findings(fleet, hostvars, clusters=None):
    """The findings; a plan of another form is an error with the cure."""
    if not isinstance(fleet, dict) or not {"nodes", "findings"} <= set(fleet):
        raise AnsibleFilterError("fleet_findings takes what the filter gb10.fleet.fleet_plan returns, a dictionary with nodes and findings.")
    return diagnose(fleet, hostvars, clusters_of(fleet, hostvars) if clusters is None else clusters)


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"fleet_findings": fleet_findings}
