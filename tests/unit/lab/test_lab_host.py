# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import threading

import pytest
from gb10_lab import host, image


def test_only_folders_of_the_lab_are_deleted(tmp_path):
    inside = tmp_path / "lab"
    (inside / "node").mkdir(parents=True)
    host.remove_folder(inside / "node", inside=inside)
    assert not (inside / "node").exists()
    for outside in (tmp_path / "other", inside, inside / ".." / "other"):
        outside.mkdir(exist_ok=True)
        with pytest.raises(host.LabError, match="Refusing to delete"):
            host.remove_folder(outside, inside=inside)
    assert (tmp_path / "other").is_dir()


def test_a_lock_is_held_while_its_holder_lives(tmp_path):
    path = tmp_path / "lock"
    assert not host.is_held(path)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert host.is_held(path)
    assert not host.is_held(path)


def test_a_lock_that_its_holder_deleted_is_taken_anew(tmp_path):
    path = tmp_path / "run" / "lock"
    taken = []
    with host.locked(path):
        waiter = threading.Thread(target=lambda: take(path, taken))
        waiter.start()
        path.unlink()
    waiter.join(10)
    assert taken == [True]


def take(path, taken):
    with host.locked(path):
        taken.append(path.exists())


def test_the_inotify_limit_is_raised_once_and_put_back(monkeypatch, tmp_path):
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    monkeypatch.setattr(host, "INOTIFY", limit)
    monkeypatch.setattr(host, "RUN", tmp_path / "run")
    host.raise_inotify_limit(2)
    host.raise_inotify_limit(4)
    assert limit.read_text() == "640"
    host.restore_inotify_limit()
    assert limit.read_text() == "128"


def test_a_limit_that_suffices_is_left_alone(monkeypatch, tmp_path):
    limit = tmp_path / "max_user_instances"
    limit.write_text("8192\n")
    monkeypatch.setattr(host, "INOTIFY", limit)
    monkeypatch.setattr(host, "RUN", tmp_path / "run")
    host.raise_inotify_limit(4)
    host.restore_inotify_limit()
    assert limit.read_text() == "8192\n"


def test_an_image_is_named_by_all_that_it_is_made_of():
    keys = {
        image.key("networkd", customize=b"a"), image.key("networkd", customize=b"b"), image.key("NetworkManager", customize=b"a"),
        image.key("networkd", mirror="http://mirror.example/debian", customize=b"a"),
    }
    assert len(keys) == 4
    assert image.key("networkd", customize=b"a") in keys
    assert "network-manager" in image.packages("NetworkManager") and "network-manager" not in image.packages("networkd")
    assert not {"gcc", "g++", "build-essential"} & set(image.packages("networkd"))


def test_a_new_file_is_written_with_its_folders_and_mode(tmp_path):
    host.write_new(tmp_path / "infiniband" / "rocep1s0f0" / "fw_ver", "28.45.4028\n", 0o444)
    path = tmp_path / "infiniband" / "rocep1s0f0" / "fw_ver"
    assert path.read_text() == "28.45.4028\n" and path.stat().st_mode & 0o777 == 0o444
    host.write_new(path, "1\n")
    assert path.read_text() == "1\n"
