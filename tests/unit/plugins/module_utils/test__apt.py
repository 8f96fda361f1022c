# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _apt
from ansible_collections.gb10.fleet.plugins.module_utils._dpkg import Package

RECORDED = Path(__file__).parents[2] / "fixtures" / "host"
DRIVER = Package("nvidia-driver-580-open", "install", "ok", "installed", "580.142")
HELD_DRIVER = DRIVER._replace(want="hold")
UPGRADES = Package("unattended-upgrades", "install", "ok", "installed", "2.9")
# As Ubuntu ships it, cut.
UBUNTU = """
// Automatically upgrade packages from these (origin:archive) pairs
Unattended-Upgrade::Allowed-Origins {
\t"${distro_id}:${distro_codename}";
\t"${distro_id}:${distro_codename}-security";
\t"${distro_id}ESMApps:${distro_codename}-apps-security";
//\t"${distro_id}:${distro_codename}-updates";
};
Unattended-Upgrade::Package-Blacklist {
    // The following matches all packages starting with linux-
//  "linux-";
};
Unattended-Upgrade::DevRelease "auto";
/* several
   "lines"; */
# another comment
"""
PERIODIC = 'APT::Periodic::Update-Package-Lists "1";\nAPT::Periodic::Unattended-Upgrade "1";\n'


def judge(*texts, packages=(UPGRADES, DRIVER), present=False):
    settings = {}
    for text in texts:
        _apt.parse_settings(text, settings)
    return _apt.judge_unattended(settings, packages, present, False)


def test_sources_of_both_formats(tree):
    notes = []
    tree.write(
        "etc/apt/sources.list",
        "# old\n\ndeb [arch=arm64,armhf signed-by=/usr/share/keyrings/a.gpg] https://user:secret@one.example/ubuntu noble main # own\n"
        "deb-src https://one.example/x noble\nodd line\n",
    )
    tree.write(
        "etc/apt/sources.list.d/ubuntu.sources",
        "# first\n\nTypes: deb\nURIs: https://two.example/ports\n https://three.example/ports\nSuites: noble noble-updates\nComponents: main\n"
        "Architectures: arm64\nSigned-By: /usr/share/keyrings/ubuntu.gpg\n\nEnabled: no\nTypes: deb\nURIs: https://four.example\nSuites: ./\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----\n\nTypes: deb\nSuites: noble\n\nnonsense\n",
    )
    for name in ("old.list.save", "b~.list", "README", "c.list.distUpgrade"):
        tree.write(f"etc/apt/sources.list.d/{name}", "deb https://none.example noble main\n")
    repositories = _apt.read_repositories(tree.root, lambda *note: notes.append(note))
    assert [(found["file"], found["uris"], found["suites"], found["architectures"], found["enabled"]) for found in repositories] == [
        ("/etc/apt/sources.list", ["https://REDACTED@one.example/ubuntu"], ["noble"], ["arm64", "armhf"], True),
        ("/etc/apt/sources.list", ["https://one.example/x"], ["noble"], [], True),
        ("/etc/apt/sources.list.d/ubuntu.sources", ["https://two.example/ports", "https://three.example/ports"], ["noble", "noble-updates"], ["arm64"], True),
        ("/etc/apt/sources.list.d/ubuntu.sources", ["https://four.example"], ["./"], [], False),
    ]
    keys = [found["signed_by"] for found in repositories]
    assert keys[:3] == ["/usr/share/keyrings/a.gpg", None, "/usr/share/keyrings/ubuntu.gpg"]
    assert re.match(r"^inline:[0-9a-f]{12}$", keys[3])
    assert notes == [
        ("/etc/apt/sources.list", "not_understood", "odd line"),
        ("/etc/apt/sources.list.d/ubuntu.sources", "not_understood", "types: deb"),
        ("/etc/apt/sources.list.d/ubuntu.sources", "not_understood", "nonsense"),
    ]


def test_a_file_of_sources_for_root_alone_is_told(tree, monkeypatch):
    notes = []
    tree.write("etc/apt/sources.list.d/own.list", "")
    monkeypatch.setattr(_apt, "read_text", lambda *parts: None)
    monkeypatch.setattr(_apt, "is_denied", lambda root, path: path.endswith("own.list"))
    assert _apt.read_repositories(tree.root, lambda *note: notes.append(note)) == []
    assert [note[:2] for note in notes] == [("/etc/apt/sources.list.d/own.list", "denied")]


def test_case_61_two_entries_of_one_source_with_two_keys(tree):
    error = (RECORDED / "apt_update__apt_unknown__signed_by_conflict.txt").read_text(encoding="utf-8")
    uri, suite, key = re.search(r"regarding source (\S+) (\S+): (\S+) !=", error).groups()
    tree.write("etc/apt/sources.list.d/libnvidia-container.list", f"deb {uri.rstrip('/')} {suite}\n")
    tree.write("etc/apt/sources.list.d/nvidia-container-toolkit.list", f"deb [signed-by={key}] {uri} {suite}\n")
    repositories = _apt.read_repositories(tree.root, lambda *note: None)
    assert _apt.find_conflicts(repositories) == [
        {
            "uri": uri.rstrip("/"),
            "files": ["/etc/apt/sources.list.d/libnvidia-container.list", "/etc/apt/sources.list.d/nvidia-container-toolkit.list"],
            "keys": [None, "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"],
        }
    ]
    # One of them alone is none, nor is the other suite or a source that is off.
    assert _apt.find_conflicts(repositories[:1]) == []
    assert _apt.find_conflicts([repositories[0], {**repositories[1], "suites": ["other"]}]) == []
    assert _apt.find_conflicts([repositories[0], {**repositories[1], "enabled": False}]) == []


def test_case_61b_the_list_that_cuda_keyring_brings_and_an_own_one(tree):
    owned = (RECORDED / "dpkg_listfiles__cuda_keyring.txt").read_text(encoding="utf-8").splitlines()
    brought, key = next(path for path in owned if path.endswith(".list")), next(path for path in owned if path.endswith(".gpg"))
    uri = "https://developer.example/compute/cuda/repos/ubuntu2404/sbsa/"
    tree.write(brought.lstrip("/"), f"deb [signed-by={key}] {uri} /\n")
    tree.write("etc/apt/sources.list.d/cuda.sources", f"Types: deb\nURIs: {uri}\nSuites: /\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n x\n")
    conflict = _apt.find_conflicts(_apt.read_repositories(tree.root, lambda *note: None))[0]
    assert conflict["files"] == [brought, "/etc/apt/sources.list.d/cuda.sources"]
    assert key in conflict["keys"] and len(conflict["keys"]) == 2
    # A second entry with the same key is no conflict.
    tree.write("etc/apt/sources.list.d/cuda.sources", f"Types: deb\nURIs: {uri}\nSuites: /\nSigned-By: {key}\n")
    assert _apt.find_conflicts(_apt.read_repositories(tree.root, lambda *note: None)) == []


def test_settings():
    values = _apt.parse_settings(UBUNTU + PERIODIC + 'Unattended-Upgrade::Package-Blacklist:: "nvidia-";\nDPkg { Options "x"; Post-Invoke {"a; b {"; }; };\n')
    assert values["unattended-upgrade::allowed-origins"] == [
        "${distro_id}:${distro_codename}", "${distro_id}:${distro_codename}-security", "${distro_id}ESMApps:${distro_codename}-apps-security",
    ]
    assert values["unattended-upgrade::package-blacklist"] == ["nvidia-"]
    assert (values["apt::periodic::unattended-upgrade"], values["dpkg::options"], values["dpkg::post-invoke"]) == (["1"], ["x"], ["a; b {"])
    assert "lines" not in str(values)
    _apt.parse_settings('APT::Periodic::Unattended-Upgrade 0;\n#clear Unattended-Upgrade::Allowed-Origins DPkg;\n', values)
    assert values["apt::periodic::unattended-upgrade"] == ["0"]
    assert not any(name.startswith(("dpkg", "unattended-upgrade::allowed")) for name in values)
    assert _apt.parse_settings('} ; "a" } x "y"') == {"": ["a"], "x": ["y"]}


def test_settings_of_files_in_their_order(tree):
    tree.write("etc/apt/apt.conf.d/20auto-upgrades", PERIODIC)
    tree.write("etc/apt/apt.conf.d/99local.conf", 'APT::Periodic::Unattended-Upgrade "0";')
    tree.write("etc/apt/apt.conf.d/99local.bak", 'APT::Periodic::Unattended-Upgrade "7";')
    assert _apt.read_settings(tree.root, print)["apt::periodic::unattended-upgrade"] == ["0"]
    tree.write("etc/apt/apt.conf", 'APT { Periodic { Unattended-Upgrade "3"; }; };')
    assert _apt.read_settings(tree.root, print)["apt::periodic::unattended-upgrade"] == ["3"]


def test_settings_for_root_alone_are_told(tree, monkeypatch):
    notes = []
    tree.write("etc/apt/apt.conf.d/01proxy", 'Acquire::http::Proxy "http://user:secret@proxy";')
    monkeypatch.setattr(_apt, "read_text", lambda *parts: None)
    monkeypatch.setattr(_apt, "is_denied", lambda root, path: path.endswith("01proxy"))
    assert _apt.read_settings(tree.root, lambda *note: notes.append(note)) == {}
    assert [note[:2] for note in notes] == [("/etc/apt/apt.conf.d/01proxy", "denied")]


BLACK = 'Unattended-Upgrade::Package-Blacklist { "nvidia-"; };'
OTHER = '#clear Unattended-Upgrade::Allowed-Origins; Unattended-Upgrade::Origins-Pattern { "origin=Elsewhere"; };'


@pytest.mark.parametrize(
    "texts, packages, enabled, may, words",
    [
        ((UBUNTU, PERIODIC), (UPGRADES, DRIVER), True, True, "nvidia-driver-580-open"),
        ((UBUNTU, PERIODIC), (UPGRADES, HELD_DRIVER), True, False, "held"),
        ((UBUNTU, PERIODIC, BLACK), (UPGRADES, DRIVER), True, False, "Package-Blacklist"),
        ((UBUNTU, PERIODIC, BLACK.replace("nvidia-", "linux-")), (UPGRADES, DRIVER), True, True, "-security"),
        ((UBUNTU, PERIODIC, BLACK.replace("nvidia-", "(")), (UPGRADES, DRIVER), True, True, "-security"),
        ((UBUNTU, PERIODIC, 'Unattended-Upgrade::Package-Whitelist {"vim";};'), (UPGRADES, DRIVER), True, False, "held or on"),
        ((UBUNTU, PERIODIC, 'Unattended-Upgrade::Package-Whitelist {"nvidia";};'), (UPGRADES, DRIVER), True, True, "nvidia"),
        ((UBUNTU, PERIODIC, OTHER), (UPGRADES, DRIVER), True, None, "origin=Elsewhere"),
        ((UBUNTU, PERIODIC, OTHER.replace("Elsewhere", "NVIDIA")), (UPGRADES, DRIVER), True, True, "origin=NVIDIA"),
        ((UBUNTU, PERIODIC, OTHER.replace("Elsewhere", "*")), (UPGRADES, DRIVER), True, True, "origin=*"),
        ((PERIODIC,), (UPGRADES, DRIVER), True, False, "no origin"),
        ((UBUNTU, PERIODIC), (UPGRADES,), True, False, "No package of the driver"),
        ((UBUNTU, PERIODIC, 'APT::Periodic::Enable "0";'), (UPGRADES, DRIVER), False, False, "does not run"),
        ((UBUNTU, 'APT::Periodic::Unattended-Upgrade "0";'), (UPGRADES, DRIVER), False, False, "does not run"),
        ((UBUNTU,), (UPGRADES, DRIVER), False, False, "does not run"),
        ((UBUNTU, 'APT::Periodic::Unattended-Upgrade "always";'), (UPGRADES, DRIVER), True, True, ""),
        ((UBUNTU, PERIODIC), (DRIVER,), False, False, "not installed"),
        ((UBUNTU, PERIODIC), (DRIVER, UPGRADES._replace(state="config-files")), False, False, "not installed"),
    ],
)
def test_whether_unattended_upgrades_may_change_the_driver(texts, packages, enabled, may, words):
    judged = judge(*texts, packages=packages)
    assert (judged["enabled"], judged["may_change_driver"]) == (enabled, may)
    assert words in judged["evidence"]


def test_case_64_blacklists_are_matched_with_the_names_that_are_installed():
    renamed = DRIVER._replace(name="nvidia-driver")
    assert judge(UBUNTU, PERIODIC, BLACK.replace("nvidia-", "nvidia-driver-580"), packages=(UPGRADES, renamed))["may_change_driver"] is True
    assert judge(UBUNTU, PERIODIC, BLACK, packages=(UPGRADES, renamed))["may_change_driver"] is False


def test_many_names_are_counted():
    many = [DRIVER._replace(name=f"libnvidia-{number}") for number in range(9)]
    assert judge(UBUNTU, PERIODIC, packages=many, present=True)["evidence"].endswith("libnvidia-4 and 4 more.")
