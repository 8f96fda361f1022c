# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter toolchain."""

from __future__ import annotations

DOCUMENTATION = r"""
name: toolchain
short_description: Take a row of the toolchain table
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Gives the versions of CUDA, torch, vLLM, Ray, NCCL and Python that belong together, and what they can do.
positional: own_rows
options:
  _input:
    description: Name of the row, as C(spark_toolchain) has it.
    type: str
    required: true
  own_rows:
    description: Rows of the inventory, as C(spark_toolchains) has them. They win over the collection's.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the versions
  ansible.builtin.debug:
    msg: "{{ 'cuda-12.8' | gb10.fleet.toolchain }}"
"""

RETURN = r"""
_value:
  description:
    - The row, with C(name), C(device), C(cuda), C(vllm), C(torch), C(ray), C(nccl), C(python), C(architectures), C(nvfp4),
      C(environment), C(engine), C(source) and C(notes).
  type: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.fleet.plugins.plugin_utils.toolchain import ToolchainError, toolchain


def toolchain_filter(name, own_rows=None):
    """The row of that name; a wrong name or row is an error with the cure."""
    try:
        return toolchain(name, own_rows)
    except ToolchainError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"toolchain": toolchain_filter}
