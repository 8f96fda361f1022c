# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters from the group tree of an inventory. Pure functions, run on the controller."""

from __future__ import annotations

import typing as t

GROUP = "spark"


def clusters_of(group: t.Any) -> list[dict]:
    """The child groups of `group` as clusters.

    Args:
        group: an inventory group, with name, child_groups, hosts (direct ones) and get_hosts() (all of them).

    Returns:
        [{name, nodes}] in the order of the inventory, then {name: None, nodes: [host]} for each host that is in the group and
        in no child group.
    """
    clusters: list[dict] = [
        {"name": child.name, "nodes": [host.name for host in child.get_hosts()]} for child in group.child_groups
    ]
    placed = {node for cluster in clusters for node in cluster["nodes"]}
    strays = [host.name for host in group.hosts if host.name not in placed]
    return clusters + [{"name": None, "nodes": [node]} for node in strays]
