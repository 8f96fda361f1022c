# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What fwupd says of a machine's firmware: its JSON, and the tree that releases without JSON print. Text in, data out."""

from __future__ import annotations

import json
import re
import typing as t

# Its output is no terminal, so fwupdmgr asks no question and looks for no newer metadata.
PROBES: dict[str, tuple[str, ...]] = {
    "fwupd_devices": ("fwupdmgr", "get-devices", "--json"),
    "fwupd_history": ("fwupdmgr", "get-history", "--json"),
}
NOTHING_TO_DO, LATE, NOT_RUN, MISSING = 2, 124, 126, 127
_UPDATE_STATES = ("unknown", "pending", "success", "failed", "needs-reboot", "failed-transient")
_WAITING = ("pending", "needs-reboot")
# The Founders Edition's SoC and UEFI, where no device has the name System Firmware.
_SYSTEM_GUIDS = ("b488217b-3895-4fc0-b1bf-ab7005a2d45a",)
_DENIED = re.compile(r"not authori[sz]ed|authentication (?:is required|failed)|auth-?failed|permission denied|access ?denied|polkit", re.IGNORECASE)
_GUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_TREE_DEVICE = re.compile(r"^[│| ]*[├└]─+\s*(\S.*)$")
_TREE_FIELD = re.compile(r"^([A-Z][A-Za-z ]{1,30}):(?:\s+(.*))?$")
_TREE_FLAGS = {
    "internal device": "internal",
    "updatable": "updatable",
    "supported on remote server": "supported",
    "system requires external power source": "require-ac",
    "needs a reboot after installation": "needs-reboot",
    "needs shutdown after installation": "needs-shutdown",
    "device is usable for the duration of the update": "usable-during-update",
    "device stages updates": "needs-activation",
}
# Texts in front of the document hold braces of their own at times.
_MOST_ATTEMPTS = 50
_LONGEST_REASON = 300

Note = t.Callable[[str, str, str], None]


def find_document(text: str) -> tuple[t.Optional[dict[str, t.Any]], list[str]]:
    """The first JSON object in a text, and the lines around it: fwupdmgr writes its warnings in front of its answer."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _attempt in range(_MOST_ATTEMPTS):
        if start < 0:
            break
        try:
            document, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
        else:
            return document, _lines(text[:start]) + _lines(text[end:])
    return None, _lines(text)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _text(value: t.Any) -> str | None:
    return None if isinstance(value, bool) or not isinstance(value, (str, int)) else str(value).strip() or None


def _texts(value: t.Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in map(_text, values) if text is not None]


def _number(value: t.Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value, 0) if isinstance(value, str) else None
    except ValueError:
        return None


def update_state(value: t.Any) -> str | None:
    """Word of an update state, which fwupd gives as a number, as its own word, or in prose."""
    number = _number(value)
    if number is not None:
        return _UPDATE_STATES[number] if 0 <= number < len(_UPDATE_STATES) else None
    word = re.sub(r"[\s_]+", "-", value.strip().lower()) if isinstance(value, str) else ""
    word = {"transient-failure": "failed-transient", "reboot-required": "needs-reboot"}.get(word, word)
    return word if word in _UPDATE_STATES else None


def decode_version(raw: int | None) -> str | None:
    """A number 0xMMmmmmpp of a Spark's firmware table as major.minor.patch: 0x02009b0b is 2.155.11."""
    if raw is None or not 0 <= raw < 1 << 32:
        return None
    return f"{raw >> 24}.{raw >> 8 & 0xFFFF}.{raw & 0xFF}"


def _device(
    *, name: str | None, guids: list[str], plugin: str | None, vendor: str | None, version: str | None, version_format: str | None,
    version_raw: int | None, state: str | None, error: str | None, flags: list[str], upgrades: list[str],
) -> dict[str, t.Any]:
    """One device. Only firmware of the UEFI table has bare numbers that mean major, minor and patch."""
    bare = version is None or re.match(r"^(?:0[xX][0-9a-fA-F]+|\d+)$", version)
    raw = version_raw if version_raw is not None else _number(version)
    waiting = state in _WAITING
    return {
        "guid": guids[0] if guids else None,
        "guids": guids,
        "name": name,
        "plugin": plugin,
        "vendor": vendor,
        "version": version,
        "version_format": version_format,
        "version_raw": version_raw,
        "version_decoded": decode_version(raw) if bare and plugin in ("uefi_capsule", None) else None,
        "update_state": state,
        "update_error": error,
        "pending_version": None,
        "flags": flags,
        "updatable": "updatable" in flags,
        # The flags say what an update will need; only with an update that waits is it needed now.
        "needs_reboot": waiting and "needs-shutdown" not in flags,
        "needs_shutdown": waiting and "needs-shutdown" in flags,
        "upgrades": upgrades,
    }


def _releases(value: t.Any) -> list[dict[str, t.Any]]:
    return [release for release in value if isinstance(release, dict)] if isinstance(value, list) else []


def _upgrades(entry: dict[str, t.Any]) -> list[str]:
    found = []
    for release in _releases(entry.get("Releases")):
        flags, version = _texts(release.get("Flags")), _text(release.get("Version"))
        if "is-upgrade" in flags and "is-downgrade" not in flags and version is not None and version not in found:
            found.append(version)
    return found


def parse_device(entry: dict[str, t.Any]) -> dict[str, t.Any]:
    """A device of the JSON."""
    return _device(
        name=_text(entry.get("Name")),
        guids=_texts(entry.get("Guid")),
        plugin=_text(entry.get("Plugin")),
        vendor=_text(entry.get("Vendor")),
        version=_text(entry.get("Version")),
        version_format=_text(entry.get("VersionFormat")),
        version_raw=_number(entry.get("VersionRaw")),
        state=update_state(entry.get("UpdateState")),
        error=_text(entry.get("UpdateError")),
        flags=_texts(entry.get("Flags")),
        upgrades=_upgrades(entry),
    )


def parse_tree(text: str) -> tuple[list[dict[str, t.Any]], list[str]]:
    """Devices of the tree, and the lines in it that belong to none."""
    nodes: list[dict[str, list[str]]] = []
    others: list[str] = []
    key = None
    for line in text.splitlines():
        head = _TREE_DEVICE.match(line.rstrip())
        bare = line.strip("│| \t\r")
        if head:
            nodes.append({"Name": [head.group(1).rstrip(":")]})
            key = None
        elif bare:
            field = _TREE_FIELD.match(bare)
            if not nodes or (field is None and key is None):
                others.append(bare)
            elif field:
                key = field.group(1)
                nodes[-1][key] = [field.group(2)] if field.group(2) else []
            elif key:
                nodes[-1][key].append(bare)
    devices: list[dict[str, t.Any]] = []
    for node in nodes:
        first = {name: values[0] if values else None for name, values in node.items()}
        if "Device ID" not in node and first.get("New version") and devices:
            devices[-1]["upgrades"].append(first["New version"])
            continue
        guids = [found.group(0) for value in node.get("GUID", []) + node.get("GUIDs", []) for found in [_GUID.search(value)] if found]
        if not guids and not {"Device ID", "Current version"} & set(node):
            others.append(str(first["Name"]))
            continue
        flags = [flag.lstrip("• ").strip() for flag in node.get("Device Flags", [])]
        devices.append(
            _device(
                name=first["Name"], guids=guids, plugin=None, vendor=first.get("Vendor"), version=first.get("Current version"),
                version_format=None, version_raw=None, state=update_state(first.get("Update State")), error=first.get("Update Error"),
                flags=[_TREE_FLAGS.get(flag.lower(), flag) for flag in flags], upgrades=[],
            )
        )
    return devices, others


def parse_devices(text: str) -> tuple[t.Optional[list[dict[str, t.Any]]], list[str], list[str]]:
    """Devices of an answer of get-devices, None where it holds none to be understood; its warnings; and what was not understood."""
    document, lines = find_document(text)
    if document is None:
        devices, others = parse_tree(text)
        return (devices, others, []) if devices else (None, lines, lines[:1])
    entries = document.get("Devices")
    if not isinstance(entries, list):
        return None, lines, [] if "Error" in document else [json.dumps(document)[:_LONGEST_REASON]]
    odd = [repr(entry)[:_LONGEST_REASON] for entry in entries if not isinstance(entry, dict)]
    return [parse_device(entry) for entry in entries if isinstance(entry, dict)], lines, odd


def parse_history(text: str) -> list[dict[str, t.Any]]:
    """Updates that fwupd remembers, in its order; `version` is what was there, `release` what was to come."""
    document = find_document(text)[0] or {}
    entries = document.get("Devices")
    history = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            guids = _texts(entry.get("Guid"))
            releases = [_text(release.get("Version")) for release in _releases(entry.get("Releases"))]
            history.append(
                {
                    "guid": guids[0] if guids else None,
                    "name": _text(entry.get("Name")),
                    "version": _text(entry.get("Version")),
                    "release": releases[0] if releases else None,
                    "update_state": update_state(entry.get("UpdateState")),
                    "update_error": _text(entry.get("UpdateError")),
                    "modified": _number(entry.get("Modified")) or _number(entry.get("Created")),
                }
            )
    return history


def _say(answer: t.Any) -> str:
    """What a failed answer says of its failure, in one line."""
    error = (find_document(answer.output)[0] or {}).get("Error")
    message = _text(error.get("Message")) if isinstance(error, dict) else None
    words = message or " ".join(_lines(answer.error)) or " ".join(_lines(answer.output)) or f"it ended with {answer.status}"
    return words[:_LONGEST_REASON]


def _empty(state: str, reason: str | None, warnings: t.Sequence[str] = ()) -> dict[str, t.Any]:
    return {"state": state, "reason": reason, "devices": [], "history": [], "warnings": list(warnings)}


def read_firmware(answers: t.Mapping[str, t.Any], note: Note) -> dict[str, t.Any]:
    """Firmware facts of the answers to PROBES: {state, reason, devices, history, warnings}."""
    answer = answers.get("fwupd_devices")
    if answer is None or answer.status == MISSING:
        return _empty("absent", "fwupdmgr is not installed; install fwupd.")
    if answer.status in (LATE, NOT_RUN):
        return _empty("failed", answer.error or f"fwupdmgr ended with {answer.status}")
    devices, warnings, odd = parse_devices(answer.output)
    for evidence in odd if answer.status == 0 or devices is not None else []:
        note("fwupdmgr get-devices", "not_understood", evidence)
    if devices is None:
        if answer.status == NOTHING_TO_DO:
            return _empty("ok", None, warnings)
        said = _say(answer)
        denied = _DENIED.search(said) is not None
        if answer.status != 0:
            note("fwupdmgr get-devices", "denied" if denied else "failed", said)
        return _empty("denied" if denied else "failed", said, warnings)
    history = _read_history(answers.get("fwupd_history"), note)
    for device in devices:
        waiting = [
            past["release"] for past in history if past["update_state"] in _WAITING and past["guid"] in device["guids"] and past["release"]
        ]
        if waiting and waiting[-1] != device["version"]:
            device["pending_version"] = waiting[-1]
    return {"state": "ok", "reason": None, "devices": devices, "history": history, "warnings": warnings}


def _read_history(answer: t.Any, note: Note) -> list[dict[str, t.Any]]:
    if answer is None or answer.status in (NOTHING_TO_DO, LATE, NOT_RUN, MISSING):
        return []
    if answer.status != 0:
        said = _say(answer)
        note("fwupdmgr get-history", "denied" if _DENIED.search(said) else "failed", said)
        return []
    if answer.output.strip() and not isinstance((find_document(answer.output)[0] or {}).get("Devices"), list):
        note("fwupdmgr get-history", "not_understood", answer.output.strip()[:_LONGEST_REASON])
    return parse_history(answer.output)


def _shape(version: str) -> str:
    return re.sub(r"\d+", "0", version)


def describe_bios(running: str | None, devices: t.Sequence[dict[str, t.Any]]) -> dict[str, t.Any]:
    """The BIOS that runs (DMI) against the one that fwupd has: {running, installed, staged}.

    Where both write versions alike a difference is an update that is staged or failed. Else, as on a Founders Edition, only
    an update that waits tells it.
    """
    system = _system_firmware(running, devices)
    installed = system["version"] if system else None
    staged = None
    if system:
        alike = running is not None and installed is not None and _shape(running) == _shape(installed)
        staged = system["needs_reboot"] or system["needs_shutdown"] or (alike and installed != running)
    return {"running": running, "installed": installed, "staged": staged}


def _system_firmware(running: str | None, devices: t.Sequence[dict[str, t.Any]]) -> dict[str, t.Any] | None:
    table = [device for device in devices if device["plugin"] in ("uefi_capsule", None)]
    tests: tuple[t.Callable[[dict[str, t.Any]], bool], ...] = (
        lambda device: device["name"] == "System Firmware",
        # Numbers and dots alone look like any other version.
        lambda device: running is not None and _shape(running) == _shape(device["version"] or "") and re.search("[A-Za-z]", running) is not None,
        lambda device: any(guid in _SYSTEM_GUIDS for guid in device["guids"]),
    )
    return next((device for test in tests for device in table if test(device)), None)
