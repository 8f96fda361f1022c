# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter summary_text."""

from __future__ import annotations

DOCUMENTATION = r"""
name: summary_text
short_description: Show what a fleet serves and how to use it
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Writes one card per cluster with the address, the served name, where the key lies, a request to try, and what the model said.
positional: hostvars
options:
  _input:
    description: What the filter P(gb10.fleet.fleet_plan#filter) returns.
    type: dict
    required: true
  hostvars:
    description: Variables of every host.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Summary
  ansible.builtin.debug:
    msg: "{{ spark_fleet | gb10.fleet.summary_text(hostvars) }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

from ansible_collections.gb10.fleet.plugins.plugin_utils.report import summary_text


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"summary_text": summary_text}
