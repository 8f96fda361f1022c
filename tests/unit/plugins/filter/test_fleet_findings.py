# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.fleet.plugins.filter import fleet_findings

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures/doctor"))
import healthy  # noqa: E402

FILTER = fleet_findings.FilterModule().filters()["fleet_findings"]


def test_clusters_of_the_lookup_or_of_the_plan():
    pair = healthy.Pair()
    pair.b["gpu"].update(cuda_version="13.1")
    given = FILTER(pair.fleet, pair.hostvars, pair.clusters)
    assert given == FILTER(pair.fleet, pair.hostvars)
    assert [found["cluster"] for found in given if found["id"] == "cluster.cuda"] == ["pair"]


def test_a_node_without_a_plan_is_judged_by_itself():
    pair = healthy.Pair()
    pair.fleet["nodes"] = {}
    pair.b["gpu"].update(cuda_version="13.1")
    found = FILTER(pair.fleet, {**pair.hostvars, "localhost": {}})
    assert {one["node"] for one in found if one["id"] == "node.healthy"} == {"spark-a", "spark-b"}
    assert "cluster.cuda" not in {one["id"] for one in found}


@pytest.mark.parametrize("fleet", [[], {"nodes": {}}, "plan"])
def test_what_is_no_plan_is_an_error(fleet):
    with pytest.raises(AnsibleFilterError, match="fleet_plan"):
        FILTER(fleet, {})
