# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _dpkg

RECORDED = Path(__file__).parents[2] / "fixtures" / "host"


def stanza(name, status="install ok installed", version="1"):
    return f"Package: {name}\nStatus: {status}\nPriority: optional\nArchitecture: arm64\nVersion: {version}\nDescription: x\n Version: 99\n"


def test_status_of_each_package():
    text = "\n".join(
        [
            stanza("nvidia-driver-580-open", "hold ok installed", "580.142-0ubuntu0.24.04.1"), stanza("gone", "deinstall ok config-files"),
            stanza("half", "install reinstreq half-installed"), "Package: virtual\nVersion: 1\n", "Status: install ok installed\n", "",
        ]
    )
    packages = _dpkg.parse_status(text)
    assert [package.name for package in packages] == ["nvidia-driver-580-open", "gone", "half"]
    assert [(package.installed, package.held, package.half_done, package.version) for package in packages] == [
        (True, True, False, "580.142-0ubuntu0.24.04.1"), (False, False, False, "1"), (True, False, True, "1"),
    ]


def test_a_status_without_version_and_end_of_line():
    assert _dpkg.parse_status("Package: a\nStatus: purge ok not-installed")[0] == _dpkg.Package("a", "purge", "ok", "not-installed", None)
    assert _dpkg.parse_status("") == []


def test_the_database_is_parsed_once_and_again_when_it_changes(tree, monkeypatch):
    assert _dpkg.read_packages(tree.root) is None
    tree.write(_dpkg.STATUS, stanza("a"))
    parses = []
    parse = _dpkg.parse_status
    monkeypatch.setattr(_dpkg, "parse_status", lambda text: parses.append(text) or parse(text))
    assert [package.name for package in _dpkg.read_packages(tree.root)] == ["a"]
    assert _dpkg.read_packages(tree.root) is _dpkg.read_packages(tree.root)
    assert len(parses) == 1
    tree.write(_dpkg.STATUS, stanza("a") + "\n" + stanza("b"))
    assert [package.name for package in _dpkg.read_packages(tree.root)] == ["a", "b"]
    assert len(parses) == 2


def test_a_database_that_cannot_be_read_is_none(tree):
    (tree.path / _dpkg.STATUS).mkdir(parents=True)
    assert _dpkg.read_packages(tree.root) is None


def test_half_done_packages_are_in_the_journal_too(tree):
    tree.write(f"{_dpkg.UPDATES}/0001", stanza("linux-image-6.17.0-1029-nvidia", "install ok half-configured"))
    tree.write(f"{_dpkg.UPDATES}/0002", stanza("fine"))
    tree.write(f"{_dpkg.UPDATES}/tmp.i", stanza("none", "install ok unpacked"))
    packages = [_dpkg.Package("b", "install", "ok", "triggers-pending", "1"), _dpkg.Package("c", "install", "ok", "installed", "1")]
    assert _dpkg.read_half_done(tree.root, packages) == ["b", "linux-image-6.17.0-1029-nvidia"]


def test_case_64_names_of_the_driver_with_and_without_a_number():
    rows = [line.split("\t") for line in (RECORDED / "package_renames__driver_590.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    names = {name for row in rows for name in row if not name.startswith("(")}
    assert len(rows) == 10
    assert {name for name in names if not _dpkg.is_driver(name)} == set()


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-driver-580-open", "nvidia-driver-610", "nvidia-driver", "nvidia-open", "nvidia-open-590", "nvidia-kernel-common-580", "nvidia-dkms-580-open",
        "nvidia-firmware-580-580.142", "nvidia-modprobe", "cuda-drivers", "linux-modules-nvidia-580-open-6.17.0-1029-nvidia",
        "linux-modules-nvidia-580-open-nvidia-hwe-24.04", "linux-objects-nvidia-590-6.17.0-1029-nvidia-64k", "libnvidia-gl", "nvidia-utils-580",
    ],
)
def test_packages_of_the_driver(name):
    assert _dpkg.is_driver(name)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-container-toolkit", "libnvidia-container1", "libnvidia-container-tools", "nvidia-cuda-toolkit", "linux-modules-6.17.0-1029-nvidia",
        "linux-nvidia-hwe-24.04", "nvidia-spark-mlnx-firmware-manager", "nvidia-mlnx-tools", "cuda-toolkit-13-0", "libnvidia-ml-dev", "cuda-drivers580",
    ],
)
def test_packages_that_are_none_of_the_driver(name):
    assert not _dpkg.is_driver(name)


def test_order_of_versions():
    ordered = [
        "", "1~~", "1~~a", "1~", "1", "1a", "1ab", "1.1", "1.9", "1.10", "6.14.0-1015-nvidia", "6.17.0-1008-nvidia", "6.17.0-1029-nvidia",
        "6.17.0-1029-nvidia-64k", "7.0.0-1019-nvidia", "29.6.2-1~ubuntu.24.04~noble", "1:0", "2:0.1", "10:0",
    ]
    assert sorted(reversed(ordered), key=_dpkg.version_key) == ordered
    assert _dpkg.version_key("0:1.0") == _dpkg.version_key("1.0") and _dpkg.version_key("1.01") == _dpkg.version_key("1.1")
    for one, other in itertools.combinations(("9" * 5000, "x:1", "٣", "a-b-c"), 2):
        assert (_dpkg.version_key(one) < _dpkg.version_key(other)) != (_dpkg.version_key(other) < _dpkg.version_key(one))


def test_a_database_of_a_desktop_is_parsed_in_a_blink():
    text = "\n".join(stanza(f"package-{number}") + "Depends: " + "libc6 (>= 2.38), " * 60 + "\n" for number in range(1600))
    begin = time.process_time()
    assert len(_dpkg.parse_status(text)) == 1600
    assert time.process_time() - begin < 0.2
