# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plan_text."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_text
short_description: Show the plan of a fleet as a table
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Writes what the filter P(gb10.fleet.fleet_plan#filter) computed, one line per rail, with the findings below.
options:
  _input:
    description: What the filter P(gb10.fleet.fleet_plan#filter) returns.
    type: dict
    required: true

"""

EXAMPLES = r"""
- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ spark_fleet | gb10.fleet.plan_text }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

from ansible_collections.gb10.fleet.plugins.plugin_utils.report import plan_text


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"plan_text": plan_text}
