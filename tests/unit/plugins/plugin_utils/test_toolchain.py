# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils.toolchain import (
    DEFAULT,
    ToolchainError,
    load_table,
    problems_of_row,
    suggestion,
    toolchain,
)

OWN = {"device": "cuda", "cuda": "13.0", "vllm": "0.34.0", "torch": "2.14.0", "ray": "2.60.0", "python": "3.12"}


def test_every_row_of_the_collection_is_well_formed():
    table = load_table()
    assert list(table)[0] == DEFAULT
    for name, row in table.items():
        assert problems_of_row(name, row) == []
        assert row["source"] and row["notes"], name


@pytest.mark.parametrize(
    "name, field, value",
    [
        ("cuda-12.8", "vllm", "0.19.1"),
        ("cuda-12.8", "torch", "2.10.0"),
        ("cuda-12.8", "python", "3.12"),
        ("cuda-12.8", "architectures", ["12.0"]),
        ("cuda-12.8", "nvfp4", False),
        ("cuda-13.0", "vllm", "0.33.0"),
        ("cuda-13.0", "nvfp4", True),
        ("cpu", "device", "cpu"),
        ("cpu", "engine", {"enforce-eager": True}),
    ],
)
def test_rows_hold_what_is_known_to_fit(name, field, value):
    row = toolchain(name)
    assert row[field] == value
    assert row["name"] == name


def test_values_of_the_environment_are_text():
    row = toolchain("own", {"own": {**OWN, "environment": {"OMP_NUM_THREADS": 2}}})
    assert row["environment"] == {"OMP_NUM_THREADS": "2"}
    assert toolchain("cpu")["environment"]["VLLM_CPU_KVCACHE_SPACE"] == "1"


def test_own_rows_win_and_get_defaults():
    row = toolchain("cuda-13.0", {"cuda-13.0": OWN})
    assert row["vllm"] == "0.34.0"
    assert (row["nvfp4"], row["nccl"], row["engine"]) == (False, None, {})


def test_the_table_is_not_changed_by_its_users():
    toolchain("cpu")["environment"]["X"] = "1"
    assert "X" not in toolchain("cpu")["environment"]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"vllm": None}, "spark_toolchains['own'] lacks vllm"),
        ({"vlm": "1"}, "has vlm, which no toolchain has; did you mean vllm"),
        ({"device": "gpu"}, "device is gpu: set it to cuda or cpu"),
        ({"python": 3.12}, "python must be a version in quotes such as '1.2.3'; got: 3.12"),
        ({"torch": "newest"}, "torch must be a version"),
        ({"engine": ["enforce-eager"]}, "engine must be a mapping"),
        ({"environment": "A=1"}, "environment must be a mapping"),
        ({"environment": {"A B": "1"}}, "environment['A B'] must be one line"),
        ({"environment": {"A": "1\nB=2"}}, "environment['A'] must be one line"),
        ({"architectures": "12.0"}, "architectures must be a list"),
        ({"cuda": "12.8", "architectures": ["12.1a"]}, "which CUDA 12.8 does not know (Unsupported gpu architecture): set it to '12.0'"),
    ],
)
def test_a_wrong_row_is_named(change, words):
    row = {key: value for key, value in {**OWN, **change}.items() if value is not None}
    with pytest.raises(ToolchainError) as caught:
        toolchain("own", {"own": row})
    assert words in str(caught.value)


def test_cuda_12_9_knows_12_1():
    assert problems_of_row("own", {**OWN, "cuda": "12.9", "architectures": ["12.1a"]}) == []


def test_a_row_that_is_no_mapping():
    with pytest.raises(ToolchainError, match="must be a mapping with device, vllm"):
        toolchain("own", {"own": "0.34.0"})
    with pytest.raises(ToolchainError, match="must be a mapping of names"):
        toolchain("own", ["own"])


def test_an_unknown_row_lists_own_and_known_ones():
    with pytest.raises(ToolchainError, match=r"spark_toolchain is cuda-14, .* \(there are cpu, cuda-12.8, cuda-13.0, own\)"):
        toolchain("cuda-14", {"own": OWN})


def test_suggestions():
    assert suggestion("x", []) == "there are none"
    assert suggestion("zzz", ["b", "a"]) == "there are a, b"
