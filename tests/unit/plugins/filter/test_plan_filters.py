# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.fleet.plugins.filter import environment_text, fleet_plan, nccl_environment, toolchain
from ansible_collections.gb10.fleet.plugins.plugin_utils import plan


def filters_of(module):
    return module.FilterModule().filters()


def test_each_file_offers_the_filter_of_its_name():
    for module in (environment_text, fleet_plan, nccl_environment, toolchain):
        assert list(filters_of(module)) == [module.__name__.rpartition(".")[2]]


def test_the_plan_feeds_the_environment(fleet):
    made = filters_of(fleet_plan)["fleet_plan"](fleet.clusters, fleet.hostvars)
    derive = filters_of(nccl_environment)["nccl_environment"]
    worker = derive(made["nodes"]["spark-b"], fleet.facts("spark-b"), {"NCCL_DEBUG": "INFO"})
    assert worker["VLLM_HOST_IP"] == "192.168.100.11"
    assert worker["NCCL_DEBUG"] == "INFO"
    text = filters_of(environment_text)["environment_text"](worker)
    assert "NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0\n" in text


def test_a_controller_without_netaddr_is_told_what_to_install(fleet, monkeypatch):
    monkeypatch.setattr(plan, "NETADDR_ERROR", ImportError("No module named 'netaddr'"))
    with pytest.raises(AnsibleFilterError, match="netaddr is missing on the controller: install what requirements.txt lists"):
        filters_of(fleet_plan)["fleet_plan"](fleet.clusters, fleet.hostvars)


def test_a_wrong_override_is_an_error_with_the_cure(fleet):
    made = filters_of(fleet_plan)["fleet_plan"](fleet.clusters, fleet.hostvars)
    with pytest.raises(AnsibleFilterError, match="spark_nccl_environment: NCCL_IB_CUDA_SUPPORT was removed in NCCL 2.4; remove it."):
        filters_of(nccl_environment)["nccl_environment"](
            made["nodes"]["spark-a"], fleet.facts("spark-a"), {"NCCL_IB_CUDA_SUPPORT": 1}
        )


def test_an_unknown_toolchain_is_an_error():
    assert filters_of(toolchain)["toolchain"]("cpu")["device"] == "cpu"
    with pytest.raises(AnsibleFilterError, match="did you mean cpu"):
        filters_of(toolchain)["toolchain"]("cpuu")
