# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The options rails and mtu; their argument spec is RAILS_SPEC of module_utils/_fabric.py."""

    DOCUMENTATION = r"""
options:
  rails:
    description:
      - The node's rails, as C(spark_plan.rails) has them. A node without rails has none.
    type: list
    elements: dict
    default: []
    suboptions:
      netdev:
        description: Network interface.
        type: str
        required: true
      device:
        description: RDMA device.
        type: str
        required: true
      address:
        description: IPv4 address.
        type: str
        required: true
      prefix:
        description: Length of the network's prefix.
        type: int
        required: true
      peers:
        description: The other ends, each with C(node) and C(address).
        type: list
        elements: dict
        default: []
      cage:
        description: QSFP cage.
        type: str
      subnet:
        description: The address's network.
        type: str
  mtu:
    description: MTU of the rails in bytes.
    type: int
    default: 9000
"""
