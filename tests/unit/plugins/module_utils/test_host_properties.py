# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

"""No text whatever makes a reader of the host raise, and what it does not understand it tells."""

import json
import os
import tempfile
from types import SimpleNamespace

from ansible_collections.gb10.fleet.plugins.module_utils import (
    _apt, _dpkg, _elf, _environment, _firmware, _kernel, _memory, _platform, _services, _toolchain,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# Pieces that the parsers look for, so that texts of chance reach their inner parts.
PIECES = (
    "{", "}", "[", "]", '"', "'", ";", "=", ":", "\\", "\n", "\n\n", " ", "\t", "#", "//", "/*", "*/", "├─", "│", "•", "0",
    "1", "9" * 20, "-1", "0x", "é", "\x00",
    "Package: ", "Status: ", "install ok installed", "Version: ", "nvidia-driver-580", "menuentry 'a' {", "submenu 'b' {", "linux /boot/vmlinuz-1.2-3-x",
    'set default="', "${saved_entry}", "saved_entry=", "next_entry=1>2", "GRUB_DEFAULT=", "MemTotal:", " kB", "Max locked memory ", "unlimited", "Filename",
    "deb ", "[signed-by=/k]", "https://u:p@h/x", "noble", "URIs: ", "Types: deb", "Signed-By:", " -----BEGIN PGP", "#clear ",
    "Unattended-Upgrade::Allowed-Origins {",
    "export ", "NCCL_A=", "LD_PRELOAD=nccl", "PATH=$PATH:", "Environment=", "EnvironmentFile=", "Id=", "docker.service", "LoadState=loaded", "MainPID=",
    "0100007F:1F40", "0A", "1: POSIX ADVISORY WRITE 5 00:01:7 0 EOF", "Device ID: ", "Current version: ", "GUID: ", "Update State: ", "release 13.0, V13.0.88",
    '{"Devices": [', '"Releases": [', '"Flags": ["is-upgrade"]', '"Version": ', '"UpdateState": ', "kho=", "renderer: ", "network:",
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=40).map("".join),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from((
        "Devices", "Name", "Guid", "Plugin", "Version", "VersionRaw", "UpdateState", "UpdateError", "Flags", "Releases", "Error", "Message", "Modified",
        "features", "cdi", "default-runtime", "ifname", "addr_info", "local", "prefixlen", "flags", "cuda", "cuda_nvcc", "version", "vllm",
    )), inner, max_size=6)),
    max_leaves=20,
)
FILES = (
    "boot/grub/grub.cfg", "boot/grub/grubenv", "etc/default/grub", "proc/cmdline", "proc/meminfo", "proc/swaps", "proc/self/limits", "proc/self/mounts",
    "proc/locks",
    "proc/net/tcp", "proc/net/tcp6", "var/lib/dpkg/status", "var/lib/dpkg/updates/0001", "etc/apt/sources.list", "etc/apt/sources.list.d/a.sources",
    "etc/apt/apt.conf.d/50x", "etc/environment", "etc/profile", "home/user/.bashrc", "etc/nccl.conf", "etc/systemd/system/a.service", "etc/systemd/system.conf",
    "etc/docker/daemon.json", "etc/ufw/ufw.conf", "etc/systemd/logind.conf", "etc/default/earlyoom", "usr/local/cuda-13.0/version.json",
    "opt/gb10/releases/a/release.json", "opt/gb10/releases/a/pyvenv.cfg", "usr/lib/libnccl.so.2", "usr/include/nccl.h", "usr/bin/vllm", "etc/dgx-release",
    "etc/machine-id", "proc/sys/kernel/hostname", "proc/sys/kernel/osrelease", "proc/sys/vm/swappiness", "etc/netplan/a.yaml", "proc/net/route",
    "proc/net/ipv6_route", "run/reboot-required", "run/reboot-required.pkgs",
)
CHECKS = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
FEW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def answer(output, status=0, error=""):
    return SimpleNamespace(status=status, output=output, error=error, seconds=0.0)


class Notes(list):
    def __call__(self, source, reason, evidence):
        assert reason in ("late", "denied", "failed", "not_understood")
        assert isinstance(source, str) and isinstance(evidence, str)
        self.append((source, reason, evidence))


@CHECKS
@given(TEXTS)
def test_parsers_bear_any_text(text):
    _apt.parse_list(text, "f")
    _apt.parse_deb822(text, "f")
    _apt.find_conflicts(_apt.parse_list(text, "f")[0] + _apt.parse_deb822(text, "f")[0])
    packages = _dpkg.parse_status(text)
    _apt.judge_unattended(_apt.parse_settings(text), packages, True, False)
    _environment.parse_shell(text)
    _environment.parse_plain(text)
    _environment.parse_unit(text, ("Environment",))
    _firmware.find_document(text)
    _firmware.parse_devices(text)
    _firmware.parse_history(text)
    _firmware.parse_tree(text)
    entries, default = _kernel.parse_menu(text)
    _kernel.select_entry(entries, default)
    _kernel.parse_environment(text)
    _kernel.parse_settings([text])
    _kernel.parse_kho(text)
    _memory.parse_meminfo(text)
    _memory.parse_swaps(text)
    _memory.parse_memlock(text)
    _platform.parse_mounts(text)
    _platform.netplan_renderer(text)
    _platform.resolved(answer(text))
    _services.describe_units(_services.parse_show(text))
    _services.parse_listening(text)
    _services.parse_locks(text)
    _services.decode_address(text)
    _toolchain.parse_nvcc(text)


@CHECKS
@given(VALUES)
def test_parsers_bear_any_document(value):
    text = json.dumps(value)
    _firmware.read_firmware({"fwupd_devices": answer(text), "fwupd_history": answer(text)}, Notes())
    _firmware.describe_bios("5.36_0ACUM023", _firmware.parse_devices(json.dumps({"Devices": [value, {"Version": value, "Guid": value}]}))[0])
    try:
        _platform.parse_addresses(text)
    except ValueError:
        assert not isinstance(value, list)


@CHECKS
@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_versions_have_one_order(one, two, three):
    keys = sorted(map(_dpkg.version_key, (one, two, three)))
    assert keys[0] <= keys[1] <= keys[2] and keys[0] <= keys[2]
    assert _dpkg.version_key(f"{one}~") < _dpkg.version_key(f"{one}") or ":" in one or "-" in one


@CHECKS
@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_any_file_may_call_itself_elf(content, wide, little):
    content = b"\x7fELF" + bytes([2 if wide else 1, 1 if little else 2]) + content
    found = _elf.read_build_id(lambda offset, size: content[offset:offset + size])
    assert found is None or bytes.fromhex(found)


@FEW
@given(st.dictionaries(st.sampled_from(FILES), TEXTS, max_size=12), TEXTS, st.sampled_from((0, 1, 2, 124, 126, 127)))
def test_readers_bear_any_file_and_any_answer(files, text, status):
    notes = Notes()
    with tempfile.TemporaryDirectory() as root:
        for name, content in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        os.makedirs(os.path.join(root, "boot"), exist_ok=True)
        for version in ("6.17.0-1014-nvidia", "6.17.0-1029-nvidia"):
            with open(os.path.join(root, "boot", f"vmlinuz-{version}"), "w", encoding="utf-8"):
                pass
        given_answers = {name: answer(text, status, text) for name in ("units", "fwupd_devices", "fwupd_history", "addresses", "nvcc", "name_a")}
        facts = {
            "kernel": _kernel.read_kernel(root, given_answers, notes),
            "memory": _memory.read_memory(root, given_answers, notes),
            "services": _services.read_services(root, given_answers, None, notes),
            "toolchain": _toolchain.read_toolchain(root, given_answers, "3.12.3", "/home/user", notes),
            "platform": _platform.read_platform(
                root, given_answers, SimpleNamespace(release="x", machine="y"), 1, notes, names=["a"], clock=lambda: None, space=lambda path: None,
            ),
        }
        _toolchain.more_probes(root)
        _platform.more_probes(root, ["a"])
    json.dumps(facts)
    json.dumps(notes)


@CHECKS
@given(st.text(alphabet="abcdefgh !?", min_size=1, max_size=40).filter(str.strip))
def test_what_is_not_understood_is_told(words):
    """A text that is nothing of what a tool writes leaves a note, whatever it is."""
    for reader, name in (
        (_firmware.read_firmware, "fwupd_devices"),
        (lambda answers, note: _services.read_services("/nonexistent", answers, None, note), "units"),
        (lambda answers, note: _platform.read_interfaces("/nonexistent", answers["addresses"], note), "addresses"),
        (lambda answers, note: _toolchain.read_toolchain("/nonexistent", answers, "3", None, note), "nvcc"),
    ):
        notes = Notes()
        reader({name: answer(words)}, notes)
        assert [reason for _source, reason, _evidence in notes] == ["not_understood"], name
