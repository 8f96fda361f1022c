# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter nccl_environment."""

from __future__ import annotations

DOCUMENTATION = r"""
name: nccl_environment
short_description: Derive the environment of NCCL and gloo for a node
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Names this node's rails exactly in C(NCCL_IB_HCA), the interface of its own address in C(NCCL_SOCKET_IFNAME) and
    C(GLOO_SOCKET_IFNAME), its address in C(VLLM_HOST_IP), and sets C(NCCL_NET) to V(IB), so that a fall back to sockets is loud.
  - A toolchain on the CPU gets nothing of NCCL.
positional: facts, overrides
options:
  _input:
    description: The node's plan, C(spark_plan).
    type: dict
    required: true
  facts:
    description: The node's C(ansible_facts.spark), against which the variables of your own are checked.
    type: dict
    required: true
  overrides:
    description: Variables of your own, C(spark_nccl_environment). They win over the derived ones, and null takes one away.
    type: dict
    default: {}
seealso:
  - plugin: gb10.fleet.fleet_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the environment
  ansible.builtin.debug:
    msg: "{{ spark_plan | gb10.fleet.nccl_environment(ansible_facts.spark, {'NCCL_DEBUG': 'INFO'}) }}"
"""

RETURN = r"""
_value:
  description: Variables and their values as text, sorted by name.
  type: dict
  sample:
    GLOO_SOCKET_IFNAME: enp1s0f0np0
    NCCL_IB_HCA: "=rocep1s0f0,roceP2p1s0f0"
    NCCL_NET: IB
    NCCL_SOCKET_IFNAME: "=enp1s0f0np0"
    VLLM_HOST_IP: 192.168.100.10
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.fleet.plugins.plugin_utils.nccl import check_overrides, environment


def nccl_environment(plan, facts, overrides=None):
    """The node's environment; an override that cannot work is an error with the cure."""
    wrong = [remark for remark in check_overrides(overrides or {}, facts, plan) if remark.severity == "fail"]
    if wrong:
        raise AnsibleFilterError(
            " ".join(f"spark_nccl_environment: {remark.name} {remark.what}; {remark.cure}." for remark in wrong)
        )
    return environment(plan, overrides)


class FilterModule:
    """Offers the filter."""

    def filters(self):
        """Name to function."""
        return {"nccl_environment": nccl_environment}
