# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import threading

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._lock import LockedError, locked


def test_a_lock_is_held_until_its_block_ends(tmp_path):
    folder = str(tmp_path)
    with locked(folder, 0):
        with pytest.raises(LockedError, match=f"Another run has held the lock on {folder} of this node for 0.1 s and more: wait"):
            with locked(folder, 0.1):
                pass
    with pytest.raises(KeyError), locked(folder, 0):
        raise KeyError
    with locked(folder, 0):
        pass


def test_a_run_waits_for_the_one_before(tmp_path):
    order = []

    def first():
        with locked(str(tmp_path), 0):
            held.set()
            end.wait(10)
            order.append("first")

    held, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(10)
    threading.Timer(0.1, end.set).start()
    with locked(str(tmp_path), 10):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_who_inherits_the_handle_holds_the_lock_as_well(tmp_path):
    with locked(str(tmp_path), 0) as handle:
        inherited = os.dup(handle)
    with pytest.raises(LockedError), locked(str(tmp_path), 0):
        pass
    os.close(inherited)
    with locked(str(tmp_path), 0):
        pass


def test_the_folder_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError), locked(str(tmp_path / "none"), 0):
        pass
