# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter fleet_plan."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet_plan
short_description: Plan a fleet from its inventory and facts
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Says for each node which cluster it is in, whether it is the head, its rails with their addresses, the MTU, the toolchain, the
    profile and the model. Says also what is wrong or doubtful in the inventory, each as a finding with the cure.
  - Changes nothing. The same inventory and facts give the same plan.
positional: hostvars
options:
  _input:
    description: Clusters as the lookup P(gb10.fleet.clusters#lookup) lists them.
    type: list
    elements: dict
    required: true
  hostvars:
    description: Variables of every host, with C(ansible_facts.spark) of those that the plan is for.
    type: dict
    required: true
requirements:
  - netaddr on the controller
seealso:
  - plugin: gb10.fleet.clusters
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Plan the fleet
  ansible.builtin.set_fact:
    spark_fleet: "{{ query('gb10.fleet.clusters') | gb10.fleet.fleet_plan(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(nodes) maps each host to its plan. A cluster with a failing finding has none.
    - C(addresses) of a plan are those by which the nodes of the cluster reach each other for all but NCCL's data, in the order of
      C(nodes). They are on the rails; in a ring, where no rail reaches all, on the management network.
    - C(findings) lists what is wrong or doubtful.
  type: dict
  sample:
    nodes:
      spark-a:
        cluster: pair
        nodes: [spark-a, spark-b]
        head: spark-a
        role: head
        topology: pair
        tensor_parallel: 2
        executor: ray
        mtu: 9000
        rails:
          - netdev: enp1s0f0np0
            device: rocep1s0f0
            cage: p0
            address: 192.168.100.10
            prefix: 24
            subnet: 192.168.100.0/24
            peers: [{node: spark-b, address: 192.168.100.11}]
        address: 192.168.100.10
        interface: enp1s0f0np0
        head_address: 192.168.100.10
        addresses: [192.168.100.10, 192.168.100.11]
        hosts: [{address: 192.168.100.10, names: [spark-a-rail0]}]
        toolchain: {name: cpu, device: cpu, vllm: 0.32.0}
        profile: {name: tiny, model: tiny, tensor_parallel: 2}
        model: {name: tiny, source: /srv/models/tiny}
    findings: []
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.fleet.plugins.plugin_utils.plan import PlanError, fleet_plan


def fleet_plan_filter(clusters, hostvars):
    """The plan; what stops planning altogether is an error with the cure."""
    try:
        return fleet_plan(clusters, hostvars)
    except PlanError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"fleet_plan": fleet_plan_filter}
