# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter findings_text."""

from __future__ import annotations

DOCUMENTATION = r"""
name: findings_text
short_description: Show findings as text
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Writes findings as lines, worst first, each with node, what is the matter and the cure.
positional: severities
options:
  _input:
    description: Findings, each with id, severity, node, what and cure.
    elements: dict
    type: list
    required: true
  severities:
    description: Only findings of these severities. All when not given.
    type: list
    elements: str
    choices: [fail, warn, info, ok]
"""

EXAMPLES = r"""
- name: Stop on failures
  ansible.builtin.assert:
    that: findings | selectattr('severity', 'eq', 'fail') | length == 0
    fail_msg: "{{ findings | gb10.fleet.findings_text(['fail']) }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

from ansible_collections.gb10.fleet.plugins.plugin_utils import report
from ansible_collections.gb10.fleet.plugins.plugin_utils.catalogue import complete


def findings_text(findings: list[dict], severities: list[str] | None = None) -> str:
    """Findings as lines; what a module on a node left out comes from the catalogue."""
    return report.findings_text(complete(findings), severities)


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"findings_text": findings_text}
