# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _services
from ansible_collections.gb10.fleet.plugins.module_utils._dpkg import Package

RECORDED = Path(__file__).parents[2] / "fixtures" / "host"
DOCKER = Package("docker-ce", "install", "ok", "installed", "5:29.6.2-1~ubuntu.24.04~noble")


class Notes(list):
    def __call__(self, source, reason, evidence):
        self.append((source, reason, evidence))


@pytest.fixture
def notes():
    return Notes()


def answer(output="", status=0, error=""):
    return SimpleNamespace(status=status, output=output, error=error, seconds=0.1)


def shown(name, active="active", load="loaded", enabled="enabled", **more):
    values = {"Id": name, "LoadState": load, "ActiveState": active, "SubState": "running", "UnitFileState": enabled, "NRestarts": "0", **more}
    return "".join(f"{key}={value}\n" for key, value in values.items())


def read(tree, notes, *blocks, synchronized=True, **given):
    answers = {"units": answer("\n".join(blocks))} if blocks else given
    return _services.read_services(tree.root, answers, synchronized, notes)


def units_of(*blocks):
    return {unit["name"]: unit for unit in _services.describe_units(_services.parse_show("\n".join(blocks)))}


def test_one_question_for_all_units():
    argv = _services.PROBES["units"]
    assert argv[:2] == ("systemctl", "show")
    assert list(_services.PROBES) == ["units"]
    assert argv[argv.index("--") + 1] == "gb10-*" and "docker.service" in argv[argv.index("--"):]


def test_units(tree, notes):
    facts = read(
        tree, notes, shown("gb10-serve@tiny.service", active="failed", NRestarts="7"), shown("docker.service"), shown("docker.service"),
        shown("earlyoom.service", load="not-found", active="inactive", enabled=""), shown("apt-daily-upgrade.timer", NRestarts="", enabled=""),
        shown("firewalld.service", load="masked", active="inactive", enabled="masked"), "odd\n",
    )
    assert facts["units"] == [
        {"name": "apt-daily-upgrade.timer", "load": "loaded", "active": "active", "sub": "running", "enabled": None, "restarts": None},
        {"name": "docker.service", "load": "loaded", "active": "active", "sub": "running", "enabled": "enabled", "restarts": 0},
        {"name": "firewalld.service", "load": "masked", "active": "inactive", "sub": "running", "enabled": "masked", "restarts": 0},
        {"name": "gb10-serve@tiny.service", "load": "loaded", "active": "failed", "sub": "running", "enabled": "enabled", "restarts": 7},
    ]
    assert notes == []


@pytest.mark.parametrize(
    "given, noted",
    [
        (answer("no properties\n"), [("systemctl show", "not_understood", "no properties")]),
        (answer("", 1, "Failed to connect to bus: Permission denied\n"), [("systemctl show", "failed", "Failed to connect to bus: Permission denied")]),
        (answer("", 1, "System has not been booted with systemd as init system (PID 1). Can't operate.\n"), []),
        (answer("", 124, "late"), []),
        (answer("", 127, "none"), []),
        (answer(""), []),
    ],
)
def test_systemctl_without_units(tree, notes, given, noted):
    facts = read(tree, notes, units=given)
    assert (facts["units"], facts["firewall"], facts["time"]) == ([], {"kind": "none", "active": None}, {"service": None, "synchronized": True})
    assert notes == noted


def test_services_of_a_bare_node(tree, notes):
    assert read(tree, notes, synchronized=None) == {
        "units": [],
        "docker": {"installed": False, "cdi_files": [], "cdi_enabled": None, "runtime_default": None},
        "firewall": {"kind": "none", "active": None},
        "time": {"service": None, "synchronized": None},
        "remove_ipc": True,
        "ports": [],
        "earlyoom": {"installed": False, "active": False, "arguments": None},
        "sshd_oom_score_adjust": None,
        "unattended_upgrades": {"installed": False, "enabled": False, "may_change_driver": False, "evidence": "It is not installed."},
        "apt_lock": None,
    }
    assert notes == []


@pytest.mark.parametrize(
    "text, version, enabled, runtime",
    [
        (None, "5:29.6.2-1~ubuntu.24.04~noble", True, "runc"),
        (None, "5:28.2.0-1~ubuntu", True, "runc"),
        (None, "5:28.1.1-1~ubuntu", False, "runc"),
        (None, "28.2.2-0ubuntu1", True, "runc"),
        ('{"features": {"cdi": false}, "default-runtime": "nvidia"}', "5:29.6.2-1", False, "nvidia"),
        ('{"features": {"cdi": true}}', "5:27.0.0-1", True, "runc"),
        ('{"features": {"buildkit": true}, "default-runtime": 3}', "5:29.6.2-1", True, "runc"),
        ('{"features": []}', None, None, "runc"),
        ("", "5:29.6.2-1", True, "runc"),
    ],
)
def test_docker(tree, notes, text, version, enabled, runtime):
    if text is not None:
        tree.write("etc/docker/daemon.json", text)
    packages = [DOCKER._replace(version=version)] if version else []
    docker = _services.read_docker(tree.root, packages, True, notes)
    assert docker == {"installed": True, "cdi_files": [], "cdi_enabled": enabled, "runtime_default": runtime}
    assert notes == []


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100000])
def test_docker_settings_that_are_none(tree, notes, text):
    tree.write("etc/docker/daemon.json", text)
    docker = _services.read_docker(tree.root, [DOCKER], True, notes)
    assert (docker["installed"], docker["cdi_enabled"], docker["runtime_default"]) == (True, None, None)
    assert [note[:2] for note in notes] == [("/etc/docker/daemon.json", "not_understood")]


def test_docker_settings_that_may_not_be_read(tree, notes, monkeypatch):
    monkeypatch.setattr(_services, "is_denied", lambda root, path: path == _services.DAEMON)
    assert _services.read_docker(tree.root, [DOCKER], True, notes)["cdi_enabled"] is None
    assert [note[:2] for note in notes] == [("/etc/docker/daemon.json", "denied")]


def test_docker_by_its_program_and_its_cdi_files(tree, notes):
    tree.write("usr/bin/dockerd", "")
    for name in ("etc/cdi/nvidia.yaml", "var/run/cdi/nvidia.json", "etc/cdi/README"):
        tree.write(name, "")
    assert _services.read_docker(tree.root, [], False, notes) == {
        "installed": True, "cdi_files": ["/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.json"], "cdi_enabled": None, "runtime_default": "runc",
    }


UFW_ON, UFW_OFF = "# /etc/ufw/ufw.conf\nENABLED=yes\nLOGLEVEL=low\n", "ENABLED=no\n"


@pytest.mark.parametrize(
    "conf, blocks, known, firewall",
    [
        (UFW_ON, [shown("ufw.service")], True, {"kind": "ufw", "active": True}),
        (UFW_OFF, [shown("ufw.service")], True, {"kind": "ufw", "active": False}),
        (UFW_ON, [shown("ufw.service", active="inactive")], True, {"kind": "ufw", "active": False}),
        (UFW_ON, [], True, {"kind": "ufw", "active": False}),
        (UFW_ON, [], False, {"kind": "ufw", "active": None}),
        (UFW_OFF, [], False, {"kind": "ufw", "active": False}),
        (UFW_OFF, [shown("firewalld.service")], True, {"kind": "firewalld", "active": True}),
        (UFW_OFF, [shown("nftables.service")], True, {"kind": "nftables", "active": True}),
        (None, [shown("nftables.service", active="inactive")], True, {"kind": "none", "active": False}),
        (None, [shown("firewalld.service", active="inactive")], True, {"kind": "firewalld", "active": False}),
        (None, [], True, {"kind": "none", "active": False}),
    ],
)
def test_firewalls(tree, conf, blocks, known, firewall):
    if conf:
        tree.write("etc/ufw/ufw.conf", conf)
    assert _services.judge_firewall(tree.root, units_of(*blocks), known, print) == firewall


def test_a_firewall_that_only_root_may_see(tree, notes, monkeypatch):
    monkeypatch.setattr(_services, "is_denied", lambda root, path: path == _services.UFW)
    assert _services.judge_firewall(tree.root, units_of(shown("ufw.service")), True, notes) == {"kind": "ufw", "active": None}
    assert _services.judge_firewall(tree.root, units_of(shown("firewalld.service")), True, notes) == {"kind": "firewalld", "active": True}
    assert [note[:2] for note in notes] == [("/etc/ufw/ufw.conf", "denied")] * 2


def test_clock_services(tree, notes):
    facts = read(tree, notes, shown("systemd-timesyncd.service", active="inactive"), shown("chrony.service"), synchronized=False)
    assert facts["time"] == {"service": "chrony", "synchronized": False}


def test_shared_memory_of_sessions_that_end(tree):
    tree.write("usr/lib/systemd/logind.conf", "RemoveIPC=no\n")
    assert _services.read_remove_ipc(tree.root) is False
    tree.write("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n")
    assert _services.read_remove_ipc(tree.root) is True
    tree.write("etc/systemd/logind.conf.d/50-own.conf", "[Login]\nRemoveIPC = No\n")
    assert _services.read_remove_ipc(tree.root) is False
    tree.write("usr/lib/systemd/logind.conf.d/90-vendor.conf", "RemoveIPC=maybe\n")
    assert _services.read_remove_ipc(tree.root) is False
    tree.write("run/systemd/logind.conf.d/90-vendor.conf", "RemoveIPC=\n")
    assert _services.read_remove_ipc(tree.root) is True


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def hexadecimal(*numbers):
    return "".join(f"{number:08X}" for number in numbers)


def test_ports_that_are_listened_on(tree, notes):
    packed = [struct.unpack("=I", bytes(part))[0] for part in ((127, 0, 0, 1), (192, 168, 100, 10))]
    loopback = hexadecimal(0, 0, 0, struct.unpack("=I", b"\0\0\0\1")[0])
    tree.write(
        "proc/net/tcp",
        HEAD + f"   0: {hexadecimal(packed[0])}:1F40 00000000:0000 0A 0 0\n   1: {hexadecimal(packed[1])}:18EB 00000000:0000 0A 0\n"
        f"   2: {hexadecimal(packed[1])}:0016 {hexadecimal(packed[0])}:0017 01 0\n   3: 00000000:0016 00000000:0000 0A 0\n",
    )
    tree.write("proc/net/tcp6", HEAD + f"   0: {loopback}:1F40 {hexadecimal(0, 0, 0, 0)}:0000 0A 0\n   1: {hexadecimal(0, 0, 0, 0)}:0016 x 0A 0\n" * 2)
    assert [(port["port"], port["address"]) for port in _services.read_ports(tree.root, notes)] == [
        (22, "0.0.0.0"), (22, "::"), (6379, "192.168.100.10"), (8000, "127.0.0.1"), (8000, "::1"),
    ]
    assert notes == []


def test_port_lines_that_are_not_understood(tree, notes):
    tree.write("proc/net/tcp", HEAD + "0: zz:1F40 x 0A\nshort\n\n0: 0000:1 x 0A 0\n")
    tree.write("proc/net/tcp6", HEAD + "0: 00000000:12345 x 0A 0\n")
    assert _services.read_ports(tree.root, notes) == []
    assert [note[:2] for note in notes] == [("/proc/net/tcp", "not_understood"), ("/proc/net/tcp6", "not_understood")]


def test_earlyoom(tree, notes):
    tree.write("etc/default/earlyoom", '# comment\nEARLYOOM_ARGS="-m 4,2 -s 100,100"\n')
    assert read(tree, notes)["earlyoom"] == {"installed": False, "active": False, "arguments": None}
    assert read(tree, notes, shown("earlyoom.service"))["earlyoom"] == {"installed": True, "active": True, "arguments": "-m 4,2 -s 100,100"}
    tree.write("etc/systemd/system/earlyoom.service.d/own.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/earlyoom -r 60 $EARLYOOM_ARGS\n")
    assert read(tree, notes, shown("earlyoom.service", active="failed"))["earlyoom"] == {
        "installed": True, "active": False, "arguments": "-r 60 -m 4,2 -s 100,100",
    }
    tree.write("usr/bin/earlyoom", "")
    tree.write("etc/systemd/system/earlyoom.service", "ExecStart=/usr/bin/earlyoom -p ${EARLYOOM_ARGS}\n")
    (tree.path / "etc/systemd/system/earlyoom.service.d/own.conf").unlink()
    (tree.path / "etc/default/earlyoom").unlink()
    assert read(tree, notes)["earlyoom"] == {"installed": True, "active": False, "arguments": "-p"}


def test_how_the_kernel_spares_sshd(tree, notes):
    block = shown("ssh.service", MainPID="812", OOMScoreAdjust="-500")
    assert read(tree, notes, block)["sshd_oom_score_adjust"] == -500
    tree.write("proc/812/oom_score_adj", "-1000\n")
    assert read(tree, notes, block)["sshd_oom_score_adjust"] == -1000
    assert read(tree, notes, shown("ssh.service", load="not-found"))["sshd_oom_score_adjust"] is None
    assert read(tree, notes, shown("ssh.service", MainPID="0", OOMScoreAdjust="many"))["sshd_oom_score_adjust"] is None


def test_case_60_who_holds_the_lock_of_the_package_database(tree):
    message = (RECORDED / "apt_get__apt_unknown__lock_held.txt").read_text(encoding="utf-8")
    path, pid, holder = re.search(r"lock (\S+)\. It is held by process (\d+) \((\S+)\)", message).groups()
    status = os.stat(tree.write(path.lstrip("/"), ""))
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    tree.write(f"proc/{pid}/comm", f"{holder}\n")
    tree.write(
        "proc/locks",
        f"1: FLOCK  ADVISORY  WRITE 1 00:01:77 0 EOF\n2: POSIX  ADVISORY  WRITE {pid} {place} 0 EOF\n"
        f"2: -> POSIX  ADVISORY  WRITE 99 {place} 0 EOF\n",
    )
    assert _services.read_apt_lock(tree.root) == {"holder": "unattended-upgr", "pid": 7972}


@pytest.mark.parametrize(
    "locks, lock",
    [
        ("", None),
        ("1: POSIX  ADVISORY  WRITE 5 {device}:1 0 EOF\n", None),
        # An overlay shows another device.
        ("1: POSIX  ADVISORY  WRITE 5 00:99:{inode} 0 EOF\n", {"holder": "dpkg", "pid": 5}),
        ("1: POSIX  ADVISORY  WRITE 6 00:99:{inode} 0 EOF\n2: POSIX  ADVISORY  WRITE 5 {device}:{inode} 0 EOF\n", {"holder": "dpkg", "pid": 5}),
        ("1: OFDLCK ADVISORY  WRITE -1 {device}:{inode} 0 EOF\n", {"holder": None, "pid": None}),
        ("1: POSIX  ADVISORY  WRITE 8 {device}:{inode} 0 EOF\n", {"holder": None, "pid": 8}),
        ("odd\n1: POSIX ADVISORY\n", None),
    ],
)
def test_locks(tree, locks, lock):
    status = os.stat(tree.write("var/lib/dpkg/lock", ""))
    tree.write("proc/5/comm", "dpkg\n")
    tree.write("proc/locks", locks.format(device=f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}", inode=status.st_ino))
    assert _services.read_apt_lock(tree.root) == lock


def test_unattended_upgrades_of_a_node(tree, notes):
    tree.write("var/lib/dpkg/status", "Package: nvidia-driver-580-open\nStatus: install ok installed\nVersion: 580.142\n\n")
    tree.write("usr/bin/unattended-upgrade", "")
    tree.write("etc/apt/apt.conf.d/20auto-upgrades", 'APT::Periodic::Unattended-Upgrade "1";\n')
    tree.write("etc/apt/apt.conf.d/50unattended-upgrades", 'Unattended-Upgrade::Allowed-Origins {"${distro_id}:${distro_codename}-security";};\n')
    judged = read(tree, notes)["unattended_upgrades"]
    assert (judged["installed"], judged["enabled"], judged["may_change_driver"]) == (True, True, True)
    # A timer that never fires does nothing.
    judged = read(tree, notes, shown("apt-daily-upgrade.timer", load="masked", active="inactive", enabled="masked"))["unattended_upgrades"]
    assert (judged["installed"], judged["enabled"], judged["may_change_driver"]) == (True, False, False)
    assert json.dumps(judged)
