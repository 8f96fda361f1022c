# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter proof."""

from __future__ import annotations

DOCUMENTATION = r"""
name: proof
short_description: What a run proved on a node
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Builds what C(/etc/ansible/facts.d/gb10.fact) keeps, from the results that the roles' verify tasks registered.
  - Gates that an earlier run passed since the same boot stay; after a boot they are unproven.
positional: variables, now
options:
  _input:
    description: The node's plan.
    type: dict
    required: true
  variables:
    description: The node's variables.
    type: dict
    required: true
  now:
    description: Time of the run, ISO 8601 in UTC.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Record what was proven
  gb10.fleet.node_files:
    name: record
    files:
      - path: /etc/ansible/facts.d/gb10.fact
        content: "{{ spark_plan | gb10.fleet.proof(hostvars[inventory_hostname], now(utc=true).isoformat(timespec='seconds')) | to_json }}"
  become: true
"""

RETURN = r"""
_value:
  description: Cluster, role, served name, boot id, kernel, and the gates with their dates.
  type: dict
  sample:
    cluster: pair
    role: head
    served_name: tiny
    boot_id: 5b1c0a52-6c0e-4d2b-9a51-0a3f3f0d8a11
    kernel: 6.17.0-1014-nvidia
    gates:
      fabric: {date: '2026-11-30T19:00:00', passed: true}
"""

from ansible_collections.gb10.fleet.plugins.plugin_utils.record import proof


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"proof": proof}
