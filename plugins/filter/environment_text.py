# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter environment_text."""

from __future__ import annotations

DOCUMENTATION = r"""
name: environment_text
short_description: Write variables as a systemd EnvironmentFile
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Gives one line for each variable, sorted by name, with values quoted where systemd would read them otherwise.
options:
  _input:
    description: Variables and their values.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write the environment
  gb10.fleet.node_files:
    name: ray
    files:
      - path: /etc/gb10/ray.env
        content: "{{ {'RAY_AUTH_MODE': 'token'} | gb10.fleet.environment_text }}"
  become: true
"""

RETURN = r"""
_value:
  description: The text, each line with its newline.
  type: str
  sample: |
    RAY_AUTH_MODE=token
"""

from ansible_collections.gb10.fleet.plugins.plugin_utils.nccl import environment_text


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"environment_text": environment_text}
