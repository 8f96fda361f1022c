# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _memory

MEMINFO = (
    "MemTotal:       127600000 kB\nMemFree:         2000000 kB\nMemAvailable:   118755328 kB\nBuffers:          100000 kB\n"
    "Cached:         50000000 kB\n"
    "SwapTotal:      16777212 kB\nSwapFree:       16000000 kB\nShmem:           1000000 kB\nActive(anon):    9 kB\n"
    "HugePages_Total:       4\nHugepagesize:       2048 kB\n"
)
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         {}            {}            bytes     \n"


@pytest.fixture
def notes():
    return []


def read(tree, notes):
    return _memory.read_memory(tree.root, {}, lambda *note: notes.append(note))


def test_memory_of_a_node(tree, notes):
    tree.write("proc/meminfo", MEMINFO)
    tree.write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/swap\\040one.img file 16777212 777212 -2\n/dev/zram0 partition 100 0 5\n")
    tree.write("proc/sys/vm/swappiness", "60\n")
    tree.write("proc/self/limits", LIMITS.format("8388608", "unlimited"))
    assert read(tree, notes) == {
        "total_bytes": 127600000 * 1024,
        "available_bytes": 118755328 * 1024,
        "free_bytes": 2000000 * 1024,
        "page_cache_bytes": (50000000 + 100000 - 1000000) * 1024,
        "swap_total_bytes": 16777212 * 1024,
        "swap_free_bytes": 16000000 * 1024,
        "swappiness": 60,
        "swap": [
            {"path": "/swap one.img", "type": "file", "size_bytes": 16777212 * 1024, "used_bytes": 777212 * 1024},
            {"path": "/dev/zram0", "type": "partition", "size_bytes": 102400, "used_bytes": 0},
        ],
        "huge_pages_bytes": 4 * 2048 * 1024,
        "memlock": {"soft": 8388608, "hard": -1},
    }
    assert notes == []


def test_what_is_not_there_is_null(tree, notes):
    facts = read(tree, notes)
    assert facts.pop("swap") == []
    assert facts.pop("memlock") == {"soft": None, "hard": None}
    assert set(facts.values()) == {None}
    assert notes == []


def test_what_is_not_understood_is_told(tree, notes):
    tree.write("proc/meminfo", "nothing\nMemFree: " + "9" * 5000 + " kB\n")
    tree.write("proc/swaps", "Filename Type\n/swap file many few\n")
    assert read(tree, notes)["swap"] == []
    assert notes == [("/proc/meminfo", "not_understood", "nothing"), ("/proc/swaps", "not_understood", "/swap file many few")]


def test_a_cache_that_is_all_shared_memory_is_none(tree, notes):
    tree.write("proc/meminfo", "MemTotal: 10 kB\nCached: 1 kB\nShmem: 5 kB\n")
    assert read(tree, notes)["page_cache_bytes"] == 0
