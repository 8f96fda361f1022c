# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.gb10.fleet.plugins.module_utils import _files
from ansible_collections.gb10.fleet.plugins.module_utils._files import link_target_name, list_names, read_number, read_text


def test_reads(tree):
    tree.write("a/text", " 200 Gb/sec\n\x00")
    tree.write("a/number", "9000\n")
    tree.write("a/long", "x" * 200000)
    tree.link("a/link", "../devices/0000:01:00.0/")
    assert read_text(tree.root, "a", "text") == "200 Gb/sec"
    assert read_number(tree.root, "a/number") == 9000
    assert read_number(tree.root, "a/text") is None
    assert len(read_text(tree.root, "a/long")) == 200000
    assert len(read_text(tree.root, "a/long", limit=10)) == 10
    assert list_names(tree.root, "a") == ["link", "long", "number", "text"]
    assert link_target_name(tree.root, "a/link") == "0000:01:00.0"


def test_what_is_missing_or_no_file_is_none(tree):
    (tree.path / "folder").mkdir()
    assert read_text(tree.root, "missing") is None
    assert read_text(tree.root, "folder") is None
    assert read_number(tree.root, "missing") is None
    assert list_names(tree.root, "missing") == []
    assert link_target_name(tree.root, "missing") is None


def test_bytes_that_are_no_text_do_not_break(tree):
    (tree.path / "raw").write_bytes(b"\xff\xfeabc\n")
    assert read_text(tree.root, "raw").endswith("abc")


def test_bytes_links_and_kinds(tree):
    tree.write("lib/a.so", "0123456789")
    tree.link("lib/b.so", "a.so")
    tree.link("lib/gone", "nowhere")
    assert _files.read_bytes(tree.root, "lib/a.so", offset=2, size=3) == b"234"
    assert _files.read_bytes(tree.root, "lib/none") is None
    assert _files.read_bytes(tree.root, "lib") is None
    assert _files.link_target(tree.root, "lib/b.so") == "a.so"
    assert _files.link_target(tree.root, "lib/a.so") is None
    assert _files.file_status(tree.root, "lib/b.so").st_size == 10
    assert _files.file_status(tree.root, "lib/gone") is None
    assert (_files.is_directory(tree.root, "lib"), _files.is_file(tree.root, "lib")) == (True, False)
    assert (_files.is_directory(tree.root, "lib/b.so"), _files.is_file(tree.root, "lib/b.so")) == (False, True)


def test_denied_is_not_missing(tree, monkeypatch):
    path = str(tree.write("boot/grub/grub.cfg", "secret"))
    assert not _files.is_denied(tree.root, "boot/grub/grub.cfg")
    assert not _files.is_denied(tree.root, "boot/grub/none")
    monkeypatch.setattr(_files.os, "access", lambda name, mode: name != path)
    assert _files.is_denied(tree.root, "boot/grub/grub.cfg")

    def refuse(name):
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(_files.os, "stat", refuse)
    assert _files.is_denied(tree.root, "boot/grub/grub.cfg")


def test_links_are_followed_below_the_root(tree):
    tree.write("usr/local/cuda-13.0/version.json", "{}")
    tree.link("usr/local/cuda", "/etc/alternatives/cuda")
    tree.link("etc/alternatives/cuda", "../../usr/local/./cuda-13.0/")
    tree.link("loop/a", "b")
    tree.link("loop/b", "a")
    assert _files.follow_links(tree.root, "/usr/local/cuda/version.json") == "usr/local/cuda-13.0/version.json"
    assert _files.follow_links(tree.root, "usr/../../usr/none/x") == "usr/none/x"
    assert _files.follow_links(tree.root, "loop/a/x").startswith("loop/")
    assert _files.follow_links(tree.root, "/") == ""
