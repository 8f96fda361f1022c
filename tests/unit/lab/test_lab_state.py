# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from gb10_lab import state


@pytest.fixture
def healthy():
    return state.healthy("pair", "spark-a")


def test_nodes_differ_in_what_is_theirs_alone(healthy):
    other = state.healthy("pair", "spark-b")
    assert healthy["gpu"]["uuid"] != other["gpu"]["uuid"]
    assert healthy["dmi"]["product_serial"] != other["dmi"]["product_serial"]
    assert healthy["gpu"]["driver"] == other["gpu"]["driver"]


def test_a_change_is_a_copy(healthy):
    changed = state.set_value(healthy, "rails.enp1s0f0np0.speed_gbps", 13.3)
    assert changed["rails"]["enp1s0f0np0"]["speed_gbps"] == 13.3
    assert healthy["rails"]["enp1s0f0np0"]["speed_gbps"] == 97.98


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("gpu.vbios", "9A.0B.2D.00.00", "9A.0B.2D.00.00"),
        ("gpu.cuda", "13.1", "13.1"),
        ("rails.enp1s0f0np0.speed_gbps", "13", 13),
        ("rdma.present", "false", False),
        ("firmware.0.Version", "3.5.9", "3.5.9"),
        ("meminfo.MemTotal", "127500000", 127500000),
        ("rails.enp1s0f0np0.counters.symbol_error", "12", 12),
        ("rails.enp1s0f0np0.counters", '{"out_of_sequence": 3}', {"out_of_sequence": 3}),
        ("rails.enP2p1s0f0np0.pcie.width", "2", 2),
        ("firmware.0.UpdateState", "3", 3),
        ("tools.hang", '["fwupdmgr"]', ["fwupdmgr"]),
        ("tools.fail.fwupdmgr", "Failed to connect to daemon", "Failed to connect to daemon"),
        ("gpu.inforom", "corrupted", "corrupted"),
        ("nccl.sockets", "true", True),
        ("nccl.wrong", "3", 3),
        ("nccl.version", "2.30.7", "2.30.7"),
        ("nccl.build_id", "00ff00ff", "00ff00ff"),
    ],
)
def test_values_from_a_command_line(healthy, key, text, value):
    changed = state.set_value(healthy, key, state.convert(text))
    place = changed
    for part in key.split("."):
        place = place[int(part)] if isinstance(place, list) else place[part]
    assert place == value and type(place) is type(value)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("gpu.colour", "red", "gpu.colour is not a key of the state file; gpu has bus_id, "),
        ("nothing", 1, "the state has dgx_release, dmi, "),
        ("rdma.present", 1, "rdma.present takes true or false, not 1"),
        ("rails.enp1s0f0np0.speed_gbps", "slow", "takes a number"),
        ("rails.enp1s0f0np0.speed_gbps", True, "takes a number"),
        ("gpu.state", "tired", "gpu.state is one of ok, needs_reset"),
        ("firmware.9.Version", "1", "is not a key"),
        ("firmware.0.Colour", "1", "is not a key of the state file; firmware.0 has .*UpdateError"),
        ("gpu.inforom", "old", "gpu.inforom is one of ok, corrupted, not old"),
        ("rails.enp1s0f0np0.counters.colour", 1, "is not a key"),
        ("rails.enp1s0f0np0.counters", {"colour": 1}, "has no counter 'colour'"),
        ("rails.enp1s0f0np0.counters", {"symbol_error": "many"}, "symbol_error takes a number"),
        ("rails.enp1s0f0np0.link_layer", "Token Ring", "is Ethernet or InfiniBand, not Token Ring"),
        ("nccl.version", "2.30", "nccl.version is a version as 2.28.3, not 2.30"),
        ("nccl.build_id", "xyz", "nccl.build_id is a build id in hexadecimal, not xyz"),
        ("nccl.single_rank", 1, "takes true or false"),
        ("tools.hang", ["ls"], "tools.hang names some of all_gather_perf, "),
        ("tools.fail.ls", "no", "is not a key"),
        ("gpu.processes", [{"pid": 1}], r"gpu.processes\[0\] must have pid, name, used_mib"),
        ("gpu.processes", [{"pid": "1", "name": "x", "used_mib": 1}], r"gpu.processes\[0\].pid takes a number"),
        ("proc.swaps", ["/swap.img"], r"proc.swaps\[0\] must have path"),
    ],
)
def test_what_the_state_does_not_take(healthy, key, value, sentence):
    with pytest.raises(state.StateError, match=sentence):
        state.set_value(healthy, key, value)


def test_a_reset_puts_back_the_keys_named_and_no_others(healthy):
    changed = state.set_value(state.set_value(healthy, "gpu.inforom", "corrupted"), "rails.enp1s0f0np0.counters.symbol_error", 12)
    changed = state.set_value(changed, "meminfo.MemTotal", 1)
    half = state.reset(changed, healthy, ["rails.enp1s0f0np0.counters", "meminfo"])
    assert half["gpu"]["inforom"] == "corrupted" and half["rails"] == healthy["rails"] and half["meminfo"] == {}
    assert state.reset(changed, healthy, []) == healthy


@pytest.mark.parametrize(("key", "sentence"), [("gpu.colour", "not a key of the healthy state"), ("firmware.0.Version", "name firmware")])
def test_what_cannot_be_reset(healthy, key, sentence):
    with pytest.raises(state.StateError, match=sentence):
        state.reset(healthy, healthy, [key])
