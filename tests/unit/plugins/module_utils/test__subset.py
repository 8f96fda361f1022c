# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._subset import resolve_subset

KNOWN = ("gpu", "rdma", "platform", "toolchain")


@pytest.mark.parametrize(
    "requested, expected",
    [
        (["all"], ["gpu", "rdma", "platform", "toolchain"]),
        ([], ["gpu", "rdma", "platform", "toolchain"]),
        (["min"], ["platform"]),
        (["!all"], ["platform"]),
        (["!all", "rdma"], ["rdma", "platform"]),
        (["rdma"], ["rdma", "platform"]),
        (["rdma", "!min"], ["rdma"]),
        (["!all", "!min", "rdma"], ["rdma"]),
        (["!all", "!min"], []),
        (["!gpu"], ["rdma", "platform", "toolchain"]),
        (["all", "!gpu", "!rdma"], ["platform", "toolchain"]),
        (["toolchain", "gpu"], ["gpu", "platform", "toolchain"]),
    ],
)
def test_words(requested, expected):
    assert resolve_subset(requested, KNOWN, ("platform",)) == expected


@pytest.mark.parametrize("word", ["network", "!network", "", "!"])
def test_unknown_word_is_named(word):
    with pytest.raises(ValueError, match=f"unknown word '{word}'; use all, min, gpu, rdma, platform, toolchain"):
        resolve_subset([word], KNOWN, ("platform",))
