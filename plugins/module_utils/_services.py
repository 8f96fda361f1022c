# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units, Docker, firewall, clock, ports and package managers of a node. Text and files in, data out."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._apt import judge_unattended, read_settings
from ansible_collections.gb10.fleet.plugins.module_utils._dpkg import Package, read_packages, version_key
from ansible_collections.gb10.fleet.plugins.module_utils._files import (
    file_status, is_denied, is_file, list_names, read_number, read_text,
)

TIME_UNITS = ("chrony.service", "chronyd.service", "ntpsec.service", "ntp.service", "systemd-timesyncd.service")
UNITS = (
    "docker.service", "nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service", "nvidia-persistenced.service", "earlyoom.service",
    "systemd-oomd.service", "ufw.service", "firewalld.service", "nftables.service", "chrony.service", "ntpsec.service",
    "systemd-timesyncd.service", "unattended-upgrades.service", "apt-daily-upgrade.timer", "dgx-dashboard.service",
    "NetworkManager.service", "systemd-networkd.service", "ssh.service",
)
PROBES: dict[str, tuple[str, ...]] = {
    "units": (
        "systemctl", "show", "--all", "--no-pager",
        "--property=Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts,MainPID,OOMScoreAdjust", "--", "gb10-*", *UNITS,
    ),
}
DAEMON = "etc/docker/daemon.json"
UFW = "etc/ufw/ufw.conf"
CDI_FOLDERS = ("etc/cdi", "var/run/cdi")
LOCKS = ("var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")
# From this version on Docker has CDI on without being told.
_CDI_SINCE = "28.2"
_LISTENING = "0A"
_YES, _NO = ("1", "yes", "y", "true", "t", "on"), ("0", "no", "n", "false", "f", "off")
_LOCK = re.compile(r"^\d+:\s+(?:POSIX|OFDLCK|FLOCK)\s+\S+\s+\S+\s+(-?\d{1,10})\s+([0-9a-f]{1,8}):([0-9a-f]{1,8}):(\d{1,20})\s")
_LONGEST_EVIDENCE = 200

Note = t.Callable[[str, str, str], None]


def parse_show(text: str) -> list[dict[str, str]]:
    """Properties of each unit that `systemctl show` prints, units divided by an empty line."""
    units = []
    for block in re.split(r"\n\s*\n", text):
        values = {}
        for line in block.splitlines():
            key, equals, value = line.partition("=")
            if equals:
                values[key.strip()] = value.strip()
        if values.get("Id"):
            units.append(values)
    return units


def _count(text: str | None) -> int | None:
    return int(text) if text and re.match(r"^-?[0-9]{1,10}$", text) else None


def describe_units(shown: t.Sequence[t.Mapping[str, str]]) -> list[dict[str, t.Any]]:
    """The units that are there, each once though it has two names, in alphabetical order."""
    units = {
        unit["Id"]: {
            "name": unit["Id"],
            "load": unit.get("LoadState") or None,
            "active": unit.get("ActiveState") or None,
            "sub": unit.get("SubState") or None,
            "enabled": unit.get("UnitFileState") or None,
            "restarts": _count(unit.get("NRestarts")),
        }
        for unit in shown if unit.get("LoadState") != "not-found"
    }
    return [units[name] for name in sorted(units)]


def _json_object(text: str) -> dict[str, t.Any] | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def read_docker(root: str, packages: t.Sequence[Package], there: bool, note: Note) -> dict[str, t.Any]:
    """Docker: {installed, cdi_files, cdi_enabled, runtime_default}. `there` says that systemd knows the unit."""
    files = {f"/{folder}/{name}" for folder in CDI_FOLDERS for name in list_names(root, folder) if name.endswith((".yaml", ".yml", ".json"))}
    version = next((package.version for package in packages if package.name in ("docker-ce", "docker.io") and package.installed), None)
    installed = there or version is not None or any(is_file(root, path) for path in ("usr/bin/dockerd", "usr/sbin/dockerd"))
    text = read_text(root, DAEMON)
    settings = {} if text in (None, "") else _json_object(text or "")
    if settings is None:
        note(f"/{DAEMON}", "not_understood", (text or "")[:_LONGEST_EVIDENCE])
    denied = text is None and is_denied(root, DAEMON)
    if denied:
        note(f"/{DAEMON}", "denied", "Docker's settings can be read by root alone.")
    unknown = settings is None or denied
    features = (settings or {}).get("features")
    told = features.get("cdi") if isinstance(features, dict) else None
    enabled = None
    if installed and isinstance(told, bool):
        enabled = told
    elif installed and not unknown and version:
        enabled = version_key(version.rpartition(":")[2]) >= version_key(_CDI_SINCE)
    runtime = (settings or {}).get("default-runtime")
    if not isinstance(runtime, str):
        runtime = "runc" if installed and not unknown else None
    return {"installed": installed, "cdi_files": sorted(files), "cdi_enabled": enabled, "runtime_default": runtime}


def _last_setting(text: str, name: str) -> str | None:
    found = re.findall(rf"^[ \t]*{name}[ \t]*=[ \t]*(.*)$", text, re.MULTILINE)
    return found[-1].strip() if found else None


def judge_firewall(root: str, units: t.Mapping[str, t.Mapping[str, t.Any]], known: bool, note: Note) -> dict[str, t.Any]:
    """The firewall that is there: {kind, active}. What is active goes before what only is installed.

    What ufw does is told by its settings, for its unit counts as active even where it has no rules. `known` says that
    systemd answered.
    """
    answers: dict[str, bool | None] = {}
    enabled = _last_setting(read_text(root, UFW) or "", "ENABLED")
    if is_denied(root, UFW):
        note(f"/{UFW}", "denied", "Only root may read whether ufw has rules.")
        answers["ufw"] = None
    elif enabled is not None:
        on = enabled.strip("\"'").lower() in _YES
        running = units["ufw.service"]["active"] == "active" if "ufw.service" in units else False
        answers["ufw"] = False if not on else running if known else None
    for kind in ("firewalld", "nftables"):
        if f"{kind}.service" in units:
            answers[kind] = units[f"{kind}.service"]["active"] == "active"
    # Debian and Ubuntu have nftables installed and off; that alone makes no firewall.
    if answers.get("nftables") is False:
        del answers["nftables"]
    kind = next((kind for kind, active in answers.items() if active), next(iter(answers), "none"))
    return {"kind": kind, "active": answers[kind] if kind in answers else (False if known else None)}


def read_remove_ipc(root: str) -> bool:
    """Whether logind removes a user's shared memory and semaphores at the end of the last session, which is its default."""
    files: dict[str, str] = {}
    for base in ("usr/lib", "lib", "usr/local/lib", "run", "etc"):
        for name in list_names(root, base, "systemd/logind.conf.d"):
            if name.endswith(".conf"):
                files[name] = f"{base}/systemd/logind.conf.d/{name}"
    main = next((path for path in ("etc/systemd/logind.conf", "run/systemd/logind.conf", "usr/lib/systemd/logind.conf") if is_file(root, path)), None)
    answer = True
    for path in ([main] if main else []) + [files[name] for name in sorted(files)]:
        for line in (read_text(root, path) or "").splitlines():
            key, equals, value = line.partition("=")
            if equals and key.strip() == "RemoveIPC":
                word = value.strip().lower()
                answer = True if word in (*_YES, "") else False if word in _NO else answer
    return answer


def decode_address(text: str) -> tuple[str, int] | None:
    """Address and port of /proc/net/tcp or tcp6, whose words are in the byte order of the machine; None for what is none."""
    address, _colon, port = text.partition(":")
    if not re.match(r"^(?:[0-9A-Fa-f]{8}|[0-9A-Fa-f]{32})$", address) or not re.match(r"^[0-9A-Fa-f]{1,4}$", port):
        return None
    packed = b"".join(struct.pack("=I", int(address[start:start + 8], 16)) for start in range(0, len(address), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed), int(port, 16)


def parse_listening(text: str) -> tuple[list[tuple[str, int]], list[str]]:
    """Addresses and ports that are listened on, and the lines that are not understood."""
    found, odd = [], []
    for line in text.splitlines()[1:]:
        words = line.split(None, 4)
        if len(words) < 4:
            odd += [line] if words else []
        elif words[3] == _LISTENING:
            place = decode_address(words[1])
            if place:
                found.append(place)
            else:
                odd.append(line)
    return found, odd


def read_ports(root: str, note: Note) -> list[dict[str, t.Any]]:
    """Ports that something listens on by TCP, each once for an address."""
    places = set()
    for name in ("tcp", "tcp6"):
        found, odd = parse_listening(read_text(root, "proc/net", name, limit=16 << 20) or "")
        places |= set(found)
        for line in odd[:1]:
            note(f"/proc/net/{name}", "not_understood", line[:_LONGEST_EVIDENCE])
    return [{"port": port, "address": address, "protocol": "tcp"} for address, port in sorted(places, key=lambda place: (place[1], place[0]))]


def read_earlyoom(root: str, units: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """earlyoom: {installed, active, arguments}; a drop-in's command goes before the defaults that the package's unit takes."""
    text = read_text(root, "etc/default/earlyoom") or ""
    arguments = _last_setting(text, "EARLYOOM_ARGS")
    arguments = arguments.strip("\"'") if arguments is not None else None
    base = "etc/systemd/system/earlyoom.service"
    for path in [base] + [f"{base}.d/{name}" for name in list_names(root, f"{base}.d") if name.endswith(".conf")]:
        command = _last_setting(read_text(root, path) or "", "ExecStart")
        if command:
            own = command.partition(" ")[2].strip()
            arguments = re.sub(r"\$\{?EARLYOOM_ARGS\}?", lambda _found, now=arguments: now or "", own).strip()
    unit = units.get("earlyoom.service")
    installed = unit is not None or any(is_file(root, path) for path in ("usr/bin/earlyoom", "usr/sbin/earlyoom", "usr/local/bin/earlyoom"))
    return {"installed": installed, "active": unit is not None and unit["active"] == "active", "arguments": arguments if installed else None}


def read_sshd_score(root: str, shown: t.Sequence[t.Mapping[str, str]]) -> int | None:
    """How likely the kernel kills sshd for memory, -1000 is never: of the running one, else what its unit sets."""
    for unit in shown:
        if unit["Id"] in ("ssh.service", "sshd.service") and unit.get("LoadState") == "loaded":
            pid = _count(unit.get("MainPID"))
            score = read_number(root, "proc", str(pid), "oom_score_adj") if pid else None
            return score if score is not None else _count(unit.get("OOMScoreAdjust"))
    return None


def parse_locks(text: str) -> list[tuple[int, int, int, int]]:
    """Holders of /proc/locks: pid, device's major and minor number, inode. Who only waits has an arrow in the line."""
    found = []
    for line in text.splitlines():
        match = _LOCK.match(line)
        if match:
            found.append((int(match.group(1)), int(match.group(2), 16), int(match.group(3), 16), int(match.group(4))))
    return found


def read_apt_lock(root: str) -> dict[str, t.Any] | None:
    """Who holds the lock of the package database: {holder, pid}; None where nobody does.

    On layered file systems the device of a lock is not that of its file, so the same inode does where no lock has both.
    A holder in another namespace has no number here.
    """
    locks = parse_locks(read_text(root, "proc/locks") or "")
    for path in LOCKS if locks else ():
        status = file_status(root, path)
        if status is None:
            continue
        device = (os.major(status.st_dev), os.minor(status.st_dev))
        same = [lock for lock in locks if lock[3] == status.st_ino]
        lock = next((lock for lock in same if lock[1:3] == device), same[0] if same else None)
        if lock:
            pid = lock[0] if lock[0] > 0 else None
            return {"holder": read_text(root, "proc", str(pid), "comm") or None if pid else None, "pid": pid}
    return None


def read_services(root: str, answers: t.Mapping[str, t.Any], synchronized: bool | None, note: Note) -> dict[str, t.Any]:
    """Facts of the subset services. `synchronized` is what the kernel says of its clock."""
    answer = answers.get("units")
    shown = parse_show(answer.output) if answer is not None else []
    if answer is not None and answer.status == 0 and answer.output.strip() and not shown:
        note("systemctl show", "not_understood", answer.output.strip()[:_LONGEST_EVIDENCE])
    elif answer is not None and not shown and answer.status not in (0, 124, 126, 127):
        # A container without systemd is no fault: it says so and has no units.
        if "not been booted with systemd" not in answer.error:
            note("systemctl show", "failed", answer.error.strip()[:_LONGEST_EVIDENCE])
    described = describe_units(shown)
    units = {unit["name"]: unit for unit in described}
    packages = read_packages(root) or ()
    unattended = is_file(root, "usr/bin/unattended-upgrade")
    timer = units.get("apt-daily-upgrade.timer")
    # A timer that is off and not running starts no upgrade.
    stopped = timer is not None and timer["active"] != "active" and timer["enabled"] in ("disabled", "masked")
    return {
        "units": described,
        "docker": read_docker(root, packages, "docker.service" in units, note),
        "firewall": judge_firewall(root, units, bool(shown), note),
        "time": {
            "service": next((name.partition(".")[0] for name in TIME_UNITS if units.get(name, {}).get("active") == "active"), None),
            "synchronized": synchronized,
        },
        "remove_ipc": read_remove_ipc(root),
        "ports": read_ports(root, note),
        "earlyoom": read_earlyoom(root, units),
        "sshd_oom_score_adjust": read_sshd_score(root, shown),
        "unattended_upgrades": judge_unattended(read_settings(root, note), packages, unattended, stopped),
        "apt_lock": read_apt_lock(root),
    }
