# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import grp
import json
import os
import pwd
import socket

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _node_files as node_files

ME = pwd.getpwuid(os.geteuid()).pw_name
MY_GROUP = grp.getgrgid(os.getegid()).gr_name


def snapshot(folder):
    """Every path below the folder with its kind, mode, owner and bytes."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            found[os.path.relpath(path, folder)] = node_files.look(path)
    return found


@pytest.fixture(name="node")
def node_fixture(tmp_path):
    (tmp_path / "etc").mkdir()
    return tmp_path


def manager(node, name="ray", check_mode=False):
    return node_files.NodeFiles(name, check_mode, str(node / "var" / "backup"))


def entry(node, path, **fields):
    return dict({"path": str(node / path), "owner": ME, "group": MY_GROUP}, **fields)


def entries(node, *items):
    return node_files.entries_from([entry(node, path, **fields) for path, fields in items])


def paths_of(result, node):
    return [os.path.relpath(change.path, node) for change in result.changes]


def test_writes_what_differs_and_nothing_the_second_time(node):
    wanted = entries(
        node,
        ("etc/gb10/ray.env", {"content": "A=1\n", "mode": "0640"}),
        ("etc/gb10/secret", {"kind": "directory", "mode": "0700"}),
        ("etc/gb10/current", {"kind": "link", "source": "ray.env"}),
    )
    result = manager(node).present(wanted)
    assert paths_of(result, node) == ["etc/gb10", "etc/gb10/secret", "etc/gb10/ray.env", "etc/gb10/current"]
    assert result.backups == []
    assert (node / "etc/gb10/ray.env").read_text() == "A=1\n"
    assert node_files.look(str(node / "etc/gb10/ray.env")).mode == 0o640
    assert node_files.look(str(node / "etc/gb10/secret")).mode == 0o700
    assert os.readlink(node / "etc/gb10/current") == "ray.env"
    before = os.stat(node / "etc/gb10/ray.env").st_mtime_ns
    assert manager(node).present(wanted).changes == []
    assert os.stat(node / "etc/gb10/ray.env").st_mtime_ns == before
    assert not [name for name in os.listdir(node / "etc/gb10") if name.startswith(".gb10-")]


def test_foreign_things_come_back_byte_for_byte(node):
    (node / "etc/old").write_bytes(b"\xff\x00 mine, no newline")
    os.chmod(node / "etc/old", 0o604)
    os.symlink("somewhere", node / "etc/link")
    (node / "etc/folder").mkdir()
    os.chmod(node / "etc/folder", 0o2750)
    before = snapshot(node)
    wanted = entries(
        node,
        ("etc/old", {"content": "ours\n"}),
        ("etc/link", {"content": "a file now\n"}),
        ("etc/folder", {"kind": "directory", "mode": "0755"}),
        ("etc/folder/new", {"content": "x"}),
    )
    result = manager(node).present(wanted)
    assert sorted(result.backups) == [str(node / "etc/link"), str(node / "etc/old")]
    assert not os.path.islink(node / "etc/link")
    (node / "etc/old").write_text("edited after us\n")
    manager(node).present(wanted)
    taken = manager(node).absent()
    assert {"etc/old", "etc/link", "etc/folder", "etc/folder/new"} == set(paths_of(taken, node))
    assert snapshot(node) == before
    assert manager(node).absent().changes == []


def test_a_file_that_was_right_already_stays_after_teardown(node):
    (node / "etc/same").write_text("same\n")
    os.chmod(node / "etc/same", 0o644)
    wanted = entries(node, ("etc/same", {"content": "same\n"}))
    assert manager(node).present(wanted).changes == []
    assert manager(node).absent().changes == []
    assert (node / "etc/same").read_text() == "same\n"


@pytest.mark.parametrize("state", ["present", "absent"])
def test_check_mode_says_what_a_run_does_and_writes_nothing(node, state):
    (node / "etc/old").write_text("old\n")
    wanted = entries(node, ("etc/a/b/new", {"content": "x\n"}), ("etc/old", {"content": "y\n"}))
    if state == "absent":
        manager(node).present(wanted)
    before = snapshot(node)
    check = manager(node, check_mode=True)
    foretold = check.present(wanted) if state == "present" else check.absent()
    assert snapshot(node) == before
    real = manager(node).present(wanted) if state == "present" else manager(node).absent()
    assert foretold == real
    assert foretold.changes


def test_check_mode_on_a_bare_node_knows_no_owner_yet(node):
    wanted = entries(node, ("etc/x", {"content": "x", "owner": "nobody-made-me", "group": "nor-me"}))
    result = manager(node, check_mode=True).present(wanted)
    assert paths_of(result, node) == ["etc/x"]
    assert node_files.diff_of(result.changes)[0]["after_header"].endswith("(file 0644 ?:?)")
    with pytest.raises(node_files.NodeFilesError, match="the user nobody-made-me, owner of .*run the role host first"):
        manager(node).present(wanted)


def test_paths_no_longer_listed_are_given_back(node):
    (node / "etc/old").write_text("old\n")
    manager(node).present(entries(node, ("etc/old", {"content": "a"}), ("etc/sub/b", {"content": "b"})))
    result = manager(node).present(entries(node, ("etc/sub/c", {"content": "c"})))
    assert paths_of(result, node) == ["etc/sub/c", "etc/old", "etc/sub/b"]
    assert (node / "etc/old").read_text() == "old\n"
    assert os.listdir(node / "etc/sub") == ["c"]
    assert list(manager(node).own) == [str(node / "etc/sub"), str(node / "etc/sub/c")]


def test_an_empty_list_leaves_no_trace(node):
    assert manager(node).present([]) == ([], [], [])
    assert snapshot(node).keys() == {"etc"}
    manager(node).present(entries(node, ("etc/x", {"content": ""})))
    manager(node).present([])
    assert not (node / "etc/x").exists()
    manager(node).absent()
    assert snapshot(node).keys() == {"etc"}


def test_notes_are_kept_until_the_end(node):
    first = manager(node)
    first.notes = {"eth0": {"mtu": 1500}}
    first.present(entries(node, ("etc/x", {"content": ""})))
    again = manager(node)
    assert again.notes == {"eth0": {"mtu": 1500}}
    again.notes = {}
    again.save_notes()
    assert manager(node).notes == {}
    manager(node, check_mode=True).save_notes()
    manager(node).absent()
    assert snapshot(node).keys() == {"etc"}


def test_notes_that_are_kept_outlive_the_files_of_all(node):
    manager(node, "host").present(entries(node, ("var", {"kind": "directory"})))
    fabric = manager(node, "fabric")
    fabric.notes = {"eth0": {"mtu": 1500}}
    fabric.present(entries(node, ("etc/x", {"content": ""})))
    manager(node, "fabric").absent(keep_notes=True)
    assert manager(node, "host").absent().kept == [str(node / "var")]
    assert not (node / "etc/x").exists()
    again = manager(node, "fabric")
    assert (again.own, again.notes) == ({}, {"eth0": {"mtu": 1500}})
    manager(node, "fabric", check_mode=True).drop_notes()
    assert (node / "var/backup/index.json").exists()
    again.drop_notes()
    assert snapshot(node).keys() == {"etc"}


def test_a_folder_with_files_of_others_stays_and_is_named(node):
    manager(node).present(entries(node, ("etc/models", {"kind": "directory"})))
    (node / "etc/models/users").write_text("mine")
    result = manager(node).absent()
    assert result.changes == []
    assert result.kept == [str(node / "etc/models")]
    assert (node / "etc/models/users").exists()


def test_the_folder_above_the_backup_goes_with_the_last_name(node):
    manager(node, "host").present(entries(node, ("var", {"kind": "directory"}), ("etc/h", {"content": ""})))
    manager(node, "ray").present(entries(node, ("etc/r", {"content": ""})))
    assert manager(node, "ray").absent().kept == []
    assert (node / "var/backup/index.json").exists()
    result = manager(node, "host").absent()
    assert "var" in paths_of(result, node)
    assert snapshot(node).keys() == {"etc"}


def test_the_folder_above_the_backup_is_kept_while_another_name_needs_it(node):
    manager(node, "host").present(entries(node, ("var", {"kind": "directory"})))
    manager(node, "ray").present(entries(node, ("etc/r", {"content": ""})))
    assert manager(node, "host").absent().kept == [str(node / "var")]
    manager(node, "ray").absent()
    assert snapshot(node).keys() == {"etc"}


def test_one_path_has_one_name(node):
    manager(node, "ray").present(entries(node, ("etc/x", {"content": ""})))
    with pytest.raises(node_files.NodeFilesError, match="etc/x is managed as ray already, so serve must not"):
        manager(node, "serve").present(entries(node, ("etc/x", {"content": ""})))


def test_an_implied_parent_passes_to_the_name_that_lists_it(node):
    manager(node, "nccl").present(entries(node, ("etc/gb10/nccl.env", {"content": ""})))
    host = entries(node, ("etc/gb10", {"kind": "directory", "mode": "0755"}))
    assert manager(node, "host").present(host).changes == []
    assert str(node / "etc/gb10") not in manager(node, "nccl").own
    manager(node, "nccl").absent()
    manager(node, "host").absent()
    assert snapshot(node).keys() == {"etc"}


@pytest.mark.parametrize(
    "there, wanted, kind",
    [("directory", "file", "directory"), ("file", "directory", "file"), ("socket", "file", "special file")],
)
def test_another_kind_in_the_way_is_refused(node, monkeypatch, there, wanted, kind):
    path = node / "etc/x"
    if there == "directory":
        path.mkdir()
    elif there == "file":
        path.write_text("x")
    else:
        monkeypatch.chdir(node)  # a socket's path is short: relative to here
        socket.socket(socket.AF_UNIX).bind("etc/x")
    before = snapshot(node)
    with pytest.raises(node_files.NodeFilesError, match=f"must be a {wanted}, and a {kind} is there; move it away"):
        manager(node).present(entries(node, ("etc/x", {"kind": wanted, "content": ""})))
    assert snapshot(node) == before


@pytest.mark.parametrize(
    "item, message",
    [
        ({"path": "etc/x", "content": ""}, r"files\[0\].path must be an absolute path"),
        ({"path": "/etc/../x", "content": ""}, r"without '\.\.'"),
        ({"path": "/etc/x"}, r"files\[0\] \(/etc/x\) is a file and needs content"),
        ({"path": "/etc/x", "kind": "link"}, "is a link and needs source"),
        ({"path": "/etc/x", "content": "", "mode": "u=rw"}, "mode must be an octal string"),
        ({"path": "/etc/x", "content": "", "mode": "77777"}, "mode must be an octal string"),
    ],
)
def test_bad_entries_are_named(item, message):
    with pytest.raises(node_files.NodeFilesError, match=message):
        node_files.entries_from([item])


def test_a_path_listed_twice_is_refused():
    with pytest.raises(node_files.NodeFilesError, match=r"files\[1\].path repeats /etc/x"):
        node_files.entries_from([{"path": "/etc/x", "content": ""}, {"path": "/etc/x", "content": ""}])


def test_sensitive_content_never_shows(node):
    for content in ("first-secret", "second-secret"):
        key = ("etc/key", {"content": content, "sensitive": True, "mode": "0600"})
        result = manager(node).present(entries(node, key))
        text = json.dumps(node_files.diff_of(result.changes))
        assert "hidden: sensitive" in text
        assert content not in text
    gone = json.dumps(node_files.diff_of(manager(node).absent().changes))
    assert "second-secret" not in gone


def test_diff_shows_mode_and_link(node):
    manager(node).present(
        entries(node, ("etc/l", {"kind": "link", "source": "a"}), ("etc/f", {"content": "x", "mode": "0600"}))
    )
    result = manager(node).present(
        entries(node, ("etc/l", {"kind": "link", "source": "b"}), ("etc/f", {"content": "x", "mode": "0640"}))
    )
    link, file = node_files.diff_of(result.changes)
    assert (link["before"], link["after"]) == ("a\n", "b\n")
    assert "0600" in file["before_header"] and "0640" in file["after_header"]


def test_names_of_unknown_owners_are_their_numbers():
    found = node_files.Found("directory", 0o755, 4242424, 4242425)
    assert node_files.describe("/x", found, False)[0] == "/x (directory 0755 4242424:4242425)"


@pytest.mark.parametrize(
    "content, message",
    [("{", "is not valid JSON"), ('{"format": 9, "names": {}}', "has format 9, and this release knows 1")],
)
def test_a_broken_index_is_refused(node, content, message):
    manager(node).present(entries(node, ("etc/x", {"content": ""})))
    (node / "var/backup/index.json").write_text(content)
    with pytest.raises(node_files.NodeFilesError, match=message):
        manager(node)


def test_a_backup_folder_that_others_may_write_is_refused(node):
    manager(node).present(entries(node, ("etc/x", {"content": ""})))
    os.chmod(node / "var/backup", 0o777)
    with pytest.raises(node_files.NodeFilesError, match="must be a folder that only .* can write"):
        manager(node)


def test_an_interrupted_run_can_be_taken_back(node, monkeypatch):
    (node / "etc/a").write_text("a\n")
    before = snapshot(node)
    wanted = entries(node, ("etc/a", {"content": "new"}), ("etc/b", {"content": "new"}))
    real = node_files.write_file

    def full_disk(path, *arguments):
        if path.endswith("etc/b"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        real(path, *arguments)

    monkeypatch.setattr(node_files, "write_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        manager(node).present(wanted)
    monkeypatch.undo()
    manager(node).absent()
    assert snapshot(node) == before


def test_a_mount_point_is_written_in_place(node, monkeypatch):
    path = node / "etc/hosts"
    path.write_text("old\n")
    inode = path.stat().st_ino

    def busy(source, target):
        raise OSError(errno.EBUSY, "Device or resource busy", target)

    monkeypatch.setattr(os, "replace", busy)
    node_files.write_file(str(path), b"new\n", 0o644, os.geteuid(), os.getegid())
    assert path.read_text() == "new\n"
    assert path.stat().st_ino == inode
    assert os.listdir(node / "etc") == ["hosts"]
