# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records all that spark_facts reads on a node, without what tells that node from all others.

What is taken out is replaced, each value always by the same one, so that what was equal stays equal.
"""

from __future__ import annotations

import base64
import copy
import ipaddress
import json
import os
import re
import stat
import struct
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils import _files, _gather, _platform, _run, _services
from ansible_collections.gb10.fleet.plugins.module_utils._dpkg import parse_status
from ansible_collections.gb10.fleet.plugins.module_utils._excerpt import (
    UNITS, excerpt, excerpt_as_written, excerpt_names, excerpt_output, hide_secrets,
)
from ansible_collections.gb10.fleet.plugins.module_utils._redact import NAME_BY_MAC, UUID
from ansible_collections.gb10.fleet.plugins.module_utils._replacements import IPV4, NODE, Replacements

FORMAT = 1
MACHINE_ID = "/etc/machine-id"
# It is the same on every machine: the owner of the variables of Secure Boot.
_SHARED_UUIDS = ("8be4df61-93ca-11d2-aa0d-00e098032b8c",)
_ELF = b"\x7fELF"
# Of a program that is no library of NCCL only its first bytes are read.
_LARGEST_HEAD = 256

Rows = t.Dict[str, t.Dict[str, t.Any]]


class RecordingMachine(_gather.Machine):
    """A machine that keeps what it told."""

    def __init__(self) -> None:
        self.told: dict[str, t.Any] = {"space": {}}

    def uname(self) -> t.Any:
        uname = super().uname()
        self.told["uname"] = {"sysname": uname.sysname, "release": uname.release, "version": uname.version, "machine": uname.machine}
        return uname

    def cpus(self) -> int | None:
        self.told["cpus"] = super().cpus()
        return self.told["cpus"]

    def python(self) -> str:
        self.told["python"] = super().python()
        return self.told["python"]

    def synchronized(self) -> bool | None:
        self.told["synchronized"] = super().synchronized()
        return self.told["synchronized"]

    def now(self) -> float:
        self.told["now"] = super().now()
        return self.told["now"]

    def space(self, path: str) -> dict[str, int] | None:
        self.told["space"][path] = super().space(path)
        return self.told["space"][path]

    def variables(self) -> t.Mapping[str, str]:
        variables = super().variables()
        self.told["variables"] = {name: variables[name] for name in ("HOME", "SUDO_USER") if name in variables}
        return self.told["variables"]


class Recorder:
    """Keeps every file, folder, link and answer of a tool from start() to stop()."""

    def __init__(self) -> None:
        self.files: Rows = {}
        self.commands: list[dict[str, t.Any]] = []

    def start(self) -> None:
        """Listen to every read."""
        _files.watch(self.keep_file)
        _run.watch(self.keep_command)

    def stop(self) -> None:
        """Listen no more."""
        _files.watch(None)
        _run.watch(None)

    def keep_file(self, kind: str, path: str, value: t.Any) -> t.Any:
        """Keep what was read of a path, nothing of what is not there. What counts is given back: of a changing text the first."""
        if kind == "text":
            return value if value is None else self._keep_text(path, value)
        if kind == "bytes":
            offset, content = value
            if content:
                pieces = self.files.setdefault(path, {}).setdefault("bytes", {})
                piece = base64.b64encode(content).decode()
                if len(piece) >= len(pieces.get(str(offset), "")):
                    pieces[str(offset)] = piece
        elif kind == "status":
            if value is not None:
                self.files.setdefault(path, {})["status"] = {
                    "kind": "directory" if stat.S_ISDIR(value.st_mode) else "file" if stat.S_ISREG(value.st_mode) else "other",
                    "size": value.st_size, "inode": value.st_ino, "device": value.st_dev,
                }
        elif value or value == "":
            self.files.setdefault(path, {})[kind] = value
        return value

    def _keep_text(self, path: str, text: str) -> str:
        row = self.files.setdefault(path, {})
        kept: str = row.setdefault("text", text)
        # Another look may be at the beginning alone.
        if text.startswith(kept):
            row["text"] = text
        return text if text.startswith(kept) or kept.startswith(text) else kept

    def keep_command(self, argv: t.Sequence[str], status: int, output: str, error: str) -> None:
        """Keep what a tool answered."""
        self.commands.append({"argv": list(argv), "status": status, "output": output, "error": error})


def record(module: t.Any, limit: int) -> dict[str, t.Any]:
    """All that spark_facts reads on this node, and the facts that it makes of it, without what tells the node from all others."""
    recorder, machine = Recorder(), RecordingMachine()
    recorder.start()
    try:
        facts = _gather.Gatherer(module, "/", limit, machine=machine).gather(_gather.SUBSETS)
    finally:
        recorder.stop()
    commands = sorted(recorder.commands, key=lambda command: command["argv"])
    return redact({"format": FORMAT, "machine": machine.told, "files": recorder.files, "commands": commands, "facts": facts})


def _firmware_kinds(commands: t.Sequence[dict[str, t.Any]]) -> set[str]:
    """GUIDs in the lists of fwupd: they name kinds of devices."""
    kinds: set[str] = set()
    for command in commands:
        if command["argv"][0].rpartition("/")[2] == "fwupdmgr":
            for found in re.finditer(r'"Guid"\s*:\s*\[([^\]]*)\]', command["output"]):
                kinds.update(UUID.findall(found.group(1)))
    return kinds


def _reduce_bytes(path: str, row: dict[str, t.Any]) -> None:
    """Bytes stay of libraries and of firmware's variables; all else is a text, of which only what counts stays."""
    pieces = {offset: base64.b64decode(piece) for offset, piece in row.pop("bytes").items()}
    head = pieces.get("0", b"")
    if path.startswith("/sys/firmware/"):
        row["bytes"] = {"0": base64.b64encode(head).decode()}
    elif head.startswith(_ELF):
        pieces["0"] = head[:_LARGEST_HEAD]
        row["bytes"] = {offset: base64.b64encode(piece).decode() for offset, piece in pieces.items()}
    else:
        row["written"] = excerpt_as_written(path, head.decode("utf-8", "replace"))


def _tells_nothing(path: str, row: dict[str, t.Any]) -> bool:
    """Whether a unit of the administrator sets nothing that spark_facts looks at."""
    return path.startswith(f"{UNITS}/") and "written" in row and not (row["written"].strip() or row.get("text") or row.get("denied"))


def reduce(recording: dict[str, t.Any]) -> None:
    """Take out of a recording what the facts do not depend on."""
    files: Rows = recording["files"]
    variables = recording["machine"].get("variables", {})
    mounts = {system["mount"] for system in recording["facts"]["platform"]["filesystems"]}
    for path, row in files.items():
        if "text" in row:
            row["text"] = excerpt(path, row["text"], variables.get("SUDO_USER"), mounts)
        if "bytes" in row:
            _reduce_bytes(path, row)
    for path in [path for path, row in files.items() if _tells_nothing(path, row)]:
        del files[path]
    for path, row in files.items():
        if "names" in row:
            row["names"] = excerpt_names(path, row["names"], files, variables.get("HOME"))
    for command in recording["commands"]:
        command["output"] = excerpt_output(command["argv"], command["output"])
    kernel = recording["facts"]["kernel"]
    if kernel["command_line"]:
        kernel["command_line"] = hide_secrets(kernel["command_line"])
    for entry in recording["facts"]["unread"]:
        entry["evidence"] = hide_secrets(entry["evidence"])


def _learn_addresses(recording: dict[str, t.Any], replacements: Replacements) -> None:
    """Public addresses, from where no version of anything stands."""
    texts = [command["output"] for command in recording["commands"] if command["argv"][0] in ("ip", "getent")]
    texts += [row[kind] for path, row in recording["files"].items() for kind in ("written", "text") if kind in row and _may_have_addresses(path)]
    texts += [port["address"] for port in recording["facts"]["services"]["ports"]]
    texts += [gid["ipv4"] for device in recording["facts"]["rdma"]["devices"] for gid in device["gids"] if gid["ipv4"]]
    for text in texts:
        IPV4.sub(lambda found: replacements.ipv4_text(found.group(0)), text)


def _may_have_addresses(path: str) -> bool:
    return path.startswith(("/etc/", "/home/", "/root/", "/proc/cmdline")) and not path.endswith("-release")


def _listening_replaced(text: str, replacements: Replacements) -> str:
    """Places that are listened on, whose addresses are in the byte order of the machine."""

    def place(found: re.Match[str]) -> str:
        decoded = _services.decode_address(found.group(0))
        if decoded is None:
            return found.group(0)
        address = ipaddress.ip_address(decoded[0])
        other = replacements.ipv4(address) if isinstance(address, ipaddress.IPv4Address) else replacements.ipv6(address)
        words = struct.unpack(f"={len(other.packed) // 4}I", other.packed)
        return "".join(f"{word:08X}" for word in words) + found.group(0)[-5:]

    return re.sub(r"\b(?:[0-9A-F]{32}|[0-9A-F]{8}):[0-9A-F]{4}\b", place, text)


def _user_of(variables: t.Mapping[str, str]) -> str | None:
    return variables.get("SUDO_USER") or os.path.basename(variables.get("HOME", "").rstrip("/")) or None


def redact(recording: dict[str, t.Any]) -> dict[str, t.Any]:
    """The recording without what tells the node or its people from all others."""
    recording = copy.deepcopy(recording)
    files: Rows = recording["files"]
    variables = recording["machine"].get("variables", {})
    reduce(recording)
    host = recording["facts"]["platform"]["hostname"]
    kinds = {*_SHARED_UUIDS, *_firmware_kinds(recording["commands"])}
    replacements = Replacements(kinds, host, _user_of(variables), variables.get("HOME"), files)
    _learn_addresses(recording, replacements)
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        if "text" in files.get(path, {}):
            files[path]["text"] = _listening_replaced(files[path]["text"], replacements)
    machine_id = files.get(MACHINE_ID, {}).get("text") or ""
    # Routes have zeros and names alone, and their words are no ids.
    apart = {path: files.pop(path) for path in ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/ipv6_route", "/proc/net/route") if path in files}
    replacements.learn(recording)
    redacted: dict[str, t.Any] = replacements.value(recording)
    for path, row in apart.items():
        if "text" in row:
            row["text"] = NAME_BY_MAC.sub(lambda found: replacements.text(found.group(0)), row["text"])
        redacted["files"][path] = row
    if _platform.digest_of(machine_id):
        redacted["facts"]["platform"]["machine_id_digest"] = _platform.digest_of(replacements.text(machine_id))
    if host:
        _name_host(redacted, host)
    return redacted


def _name_host(recording: dict[str, t.Any], host: str) -> None:
    """Where a host's name and nothing else stands it is replaced even if it is a common word."""
    recording["facts"]["platform"]["hostname"] = NODE
    for path in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        if "text" in recording["files"].get(path, {}):
            recording["files"][path]["text"] = NODE
    for command in recording["commands"]:
        if command["argv"][0] == "getent" and command["argv"][-1] in (host, NODE):
            command["argv"][-1] = NODE
            command["output"] = re.sub(rf"(?<![\w-]){re.escape(host)}(?:\.[\w.-]+)?(?![\w-])", NODE, command["output"])


_TOOLS = ("iproute2", "ibverbs-utils", "fwupd", "systemd", "rdma-core")


def describe(recording: dict[str, t.Any]) -> list[tuple[str, str]]:
    """Which machine a recording is of, which tools answered, and in what versions."""
    facts = recording["facts"]
    platform = facts["platform"]
    status = recording["files"].get("/var/lib/dpkg/status", {}).get("text") or ""
    packages = {package.name: package.version for package in parse_status(status) if package.version}
    commands = recording["commands"]

    def tools(*statuses: int) -> str:
        return ", ".join(sorted({command["argv"][0].rpartition("/")[2] for command in commands if command["status"] in statuses}))

    unknown = {command["status"] for command in commands} - {_run.MISSING, _run.LATE, _run.NOT_RUN}
    rows = [
        ("machine", " ".join(part for part in (platform["vendor"], platform["product"], platform["board"]) if part)),
        ("architecture", platform["architecture"]),
        ("BIOS", platform["bios_version"]),
        ("system", platform["dgx"]["pretty_name"] or platform["os"]["pretty_name"]),
        ("DGX OS", platform["dgx"]["ota_version"]),
        ("kernel", platform["kernel"]),
        ("driver", facts["gpu"]["driver"]),
        ("CUDA of the driver", facts["gpu"]["cuda_version"]),
        ("firmware of the NIC", ", ".join(sorted({device["firmware"] for device in facts["rdma"]["devices"] if device["firmware"]}))),
        ("Python", facts["toolchain"]["python"]),
        *((name, packages.get(name)) for name in _TOOLS),
        ("answered", tools(*unknown)),
        ("not installed", tools(_run.MISSING)),
        ("late", tools(_run.LATE)),
        ("could not be run", tools(_run.NOT_RUN)),
    ]
    return [(name, value) for name, value in rows if value]


def dump(part: t.Any) -> str:
    """A part of a recording as it lies in a file."""
    return json.dumps(part, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
