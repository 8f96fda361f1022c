# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup clusters."""

from __future__ import annotations

DOCUMENTATION = r"""
name: clusters
short_description: List the clusters of the inventory
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - A cluster is a child group of the group C(spark). This lists them with their hosts in the order of the inventory.
  - Templates see the hosts of each group, but not which group is a child of which. So this parses the inventory sources of
    the run again, which is also why groups that a play makes with C(group_by) do not count.
  - Use it as a query, which always gives a list.
options:
  _terms:
    description: None are taken.
    required: false
"""

EXAMPLES = r"""
- name: Show the clusters
  ansible.builtin.debug:
    msg: "{{ query('gb10.fleet.clusters') }}"
"""

RETURN = r"""
_raw:
  description:
    - One dictionary for each cluster, with C(name) and C(nodes), the head first.
    - One more for each host that is in C(spark) and in no child group, with a C(name) of null and the host in C(nodes).
  type: list
  elements: dict
  sample:
    - name: pair
      nodes: [spark-a, spark-b]
"""

from ansible.errors import AnsibleLookupError
from ansible.inventory.manager import InventoryManager
from ansible.plugins.lookup import LookupBase
from ansible_collections.gb10.fleet.plugins.plugin_utils.clusters import GROUP, clusters_of


class LookupModule(LookupBase):
    """Reads the inventory of the run once more."""

    def run(self, terms, variables=None, **kwargs):
        """The clusters; an inventory without the group spark is an error."""
        if terms:
            raise AnsibleLookupError(f"gb10.fleet.clusters takes no terms; got: {', '.join(map(str, terms))}.")
        sources = list((variables or {}).get("ansible_inventory_sources") or [])
        if not sources:
            raise AnsibleLookupError("gb10.fleet.clusters has no inventory to read: run with -i INVENTORY.")
        inventory = InventoryManager(loader=self._loader, sources=sources)
        if GROUP not in inventory.groups:
            raise AnsibleLookupError(
                f"The inventory {', '.join(sources)} has no group {GROUP}: write your nodes below"
                f" {GROUP}: children: CLUSTER: hosts: (inventories/spark-pair/hosts.yml is a sample)."
            )
        return clusters_of(inventory.groups[GROUP])
