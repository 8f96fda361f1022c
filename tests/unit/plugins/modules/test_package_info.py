# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import pwd

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils._packages import FORMAT
from ansible_collections.gb10.fleet.plugins.modules import package_info


class Node:
    """A node whose dpkg-query gives one answer, and what it was asked."""

    def __init__(self, monkeypatch, capsys) -> None:
        self.capsys = capsys
        self.answer = (0, "rsync installed 3.2.7-1\n", "")
        self.asked: list[list[str]] = []
        monkeypatch.setattr(package_info, "run", self.run)

    def run(self, module, argv):
        self.asked.append(argv)
        return self.answer

    def look(self, check=False, **arguments):
        with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            package_info.main()
        return json.loads(self.capsys.readouterr().out)


@pytest.fixture
def node(monkeypatch, capsys):
    return Node(monkeypatch, capsys)


@pytest.mark.parametrize("check", [False, True])
def test_packages_in_one_question(node, check):
    node.answer = (1, "rsync installed 3.2.7-1\n", "dpkg-query: no packages found matching libnuma1\n")
    found = node.look(check=check, names=["rsync", "libnuma1"])
    assert (found["changed"], found["packages"], found["user"]) == (False, {"rsync": "3.2.7-1", "libnuma1": None}, None)
    assert node.asked == [["dpkg-query", "-W", "-f", FORMAT, "rsync", "libnuma1"]]


def test_no_names_ask_for_nothing(node):
    assert node.look(names=[])["packages"] == {}
    assert node.asked == []


@pytest.mark.parametrize("name", ["rsync=3.2.7-1", "--admindir=/tmp", "lib*"])
def test_what_is_no_name(node, name):
    assert name in node.look(names=["rsync", name])["msg"]
    assert node.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((2, "", "dpkg-query: error: parsing file '/var/lib/dpkg/status' near line 1"), "parsing file '/var/lib/dpkg/status'"),
        ((124, "", "dpkg-query -W did not end within 20 s and was stopped"), "did not end within 20 s"),
        ((127, "", "dpkg-query is not on this node; install the package that has it"), "dpkg-query is not on this node"),
    ],
)
def test_a_broken_dpkg_fails(node, answer, words):
    node.answer = answer
    found = node.look(names=["rsync"])
    assert found["failed"] is True
    assert words in found["msg"]


def has_account(monkeypatch, name):
    account = pwd.struct_passwd((name, "x", 990, 990, "", "/var/lib/gb10", "/usr/sbin/nologin"))
    monkeypatch.setattr(package_info.pwd, "getpwnam", {name: account}.__getitem__)


def test_an_account(node, monkeypatch, tmp_path):
    has_account(monkeypatch, "gb10")
    shadow = tmp_path / "shadow"
    shadow.write_text("gb10:!:19700::::::\n")
    monkeypatch.setattr(package_info, "SHADOW", str(shadow))
    expected = {"home": "/var/lib/gb10", "shell": "/usr/sbin/nologin", "locked": True}
    assert node.look(names=[], user="gb10")["user"] == expected
    shadow.write_text("gb10:$y$hash:19700::::::\n")
    assert node.look(names=[], user="gb10")["user"] == {**expected, "locked": False}


def test_an_account_when_shadow_cannot_be_read(node, monkeypatch, tmp_path):
    has_account(monkeypatch, "gb10")
    monkeypatch.setattr(package_info, "SHADOW", str(tmp_path / "none"))
    assert node.look(names=[], user="gb10")["user"]["locked"] is None


def test_no_account(node, monkeypatch):
    has_account(monkeypatch, "somebody")
    assert node.look(names=[], user="gb10")["user"] is None
