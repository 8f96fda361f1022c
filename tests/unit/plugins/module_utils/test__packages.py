# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._packages import NAME, UNKNOWN, parse_versions, password_locked

SHADOW = "root:$y$j9T$salt$hash:19700:0:99999:7:::\ngb10:!:19700::::::\ndaemon:*:19700:0:99999:7:::\nopen::19700:0:99999:7:::\n"


def test_installed_removed_and_unknown_packages():
    stdout = "libnuma1 installed 2.0.16-1\niputils-ping config-files 3:20221126-1\nrsync not-installed \n"
    assert parse_versions(["rsync", "libnuma1", "iputils-ping", "nosuch"], 1, stdout, f"{UNKNOWN}nosuch\n") == {
        "rsync": None, "libnuma1": "2.0.16-1", "iputils-ping": None, "nosuch": None,
    }


@pytest.mark.parametrize("lines", [("installed 2.0-1", "not-installed "), ("not-installed ", "installed 2.0-1")])
def test_a_package_of_two_architectures_counts_once(lines):
    assert parse_versions(["libnuma1"], 0, "".join(f"libnuma1 {line}\n" for line in lines), "") == {"libnuma1": "2.0-1"}


def test_a_half_installed_package_is_missing():
    assert parse_versions(["rsync"], 0, "rsync half-configured 3.2.7-1\n", "") == {"rsync": None}


def test_a_warning_beside_an_answer_is_none_of_our_business():
    assert parse_versions(["rsync"], 0, "rsync installed 3.2.7-1\n", "dpkg-query: warning: parsing file\n") == {"rsync": "3.2.7-1"}


@pytest.mark.parametrize(
    ("rc", "stderr", "said"),
    [
        (2, "dpkg-query: error: parsing file '/var/lib/dpkg/status' near line 1\n", "parsing file '/var/lib/dpkg/status' near line 1"),
        (1, f"{UNKNOWN}rsync\ndpkg-query: error: cannot read\n", "dpkg-query: error: cannot read"),
        (1, "", "it ended with 1"),
        (126, "", "it ended with 126"),
    ],
)
def test_a_broken_dpkg_is_not_a_missing_package(rc, stderr, said):
    with pytest.raises(ValueError, match=said):
        parse_versions(["rsync"], rc, "", stderr)


@pytest.mark.parametrize(("name", "good"), [("libstdc++6", True), ("*", False), ("rsync=3.2", False), ("--all", False), ("lib:arm64", False)])
def test_names(name, good):
    assert bool(NAME.fullmatch(name)) is good


@pytest.mark.parametrize(("name", "locked"), [("root", False), ("gb10", True), ("daemon", True), ("open", False), ("nobody", True)])
def test_locked_passwords(name, locked):
    assert password_locked(SHADOW, name) is locked
