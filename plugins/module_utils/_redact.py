# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes out of facts what tells one machine from all others: serial numbers, GUIDs, MAC addresses and UUIDs."""

from __future__ import annotations

import re
import typing as t

REDACTED = "REDACTED"
# The key stays, its value does not.
SECRET_KEYS = ("mac", "uuid", "node_guid", "sys_image_guid", "serial")
# A boot's id is random, and proofs need it. A firmware's GUIDs, and the id of a library's build, name a kind and no machine.
KEPT_KEYS = ("boot_id", "guid", "guids", "build_id")

_HEX = "[0-9A-Fa-f]"
UUID = re.compile(rf"(?<!{_HEX}){_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}(?!{_HEX})")
# Of InfiniBand a hardware address has 20 bytes.
MAC = re.compile(rf"(?<!{_HEX}){_HEX}{{2}}([:-])(?:{_HEX}{{2}}\1){{4,18}}{_HEX}{{2}}(?!{_HEX})")
GUID = re.compile(rf"(?<![0-9A-Fa-f:.])(?:{_HEX}{{4}}:){{3}}{_HEX}{{4}}(?![0-9A-Fa-f:])")
# An address that is made from a MAC has ff:fe in the middle of its second half.
MADE_FROM_MAC = re.compile(rf"(?<![0-9A-Fa-f:.])([0-9A-Fa-f:]*:)?{_HEX}{{0,2}}ff:fe{_HEX}{{2}}:{_HEX}{{1,4}}(?![0-9A-Fa-f:])", re.IGNORECASE)
NAME_BY_MAC = re.compile(rf"\b(en|wl|ww|ib|usb)x{_HEX}{{12}}\b")
SERIAL = re.compile(
    r"((?<![a-z])(?:serial|device ?id)(?:[ _-]?(?:number|no))?[\"']?\s*[:=]\s*[\"']?)([^\s\"',;<>]+)", re.IGNORECASE
)
# Machine ids, and fwupd's ids of devices, which are digests of where a device sits.
DIGEST = re.compile(rf"(?<!{_HEX})(?:{_HEX}{{32}}|{_HEX}{{40}})(?!{_HEX})")


def network_of(found: re.Match[str]) -> str:
    """The first half of an IPv6 address that is made from a MAC; nothing of a bare GUID is left."""
    text = found.group(0)
    groups = text.split("::")[0].split(":")
    if len(groups) <= 4 and "::" not in text:
        return REDACTED
    return f"{':'.join(groups[:4])}::"


def scrub_text(text: str) -> str:
    """The text without what tells one machine from all others; of an address made from a MAC the network stays."""
    if len(text) < 8:
        return text
    text = UUID.sub(REDACTED, text)
    if ":" in text or "-" in text:
        text = MADE_FROM_MAC.sub(network_of, text)
        text = MAC.sub(REDACTED, text)
        text = GUID.sub(REDACTED, text)
    text = NAME_BY_MAC.sub(rf"\1x{REDACTED}", text)
    text = SERIAL.sub(rf"\1{REDACTED}", text)
    return DIGEST.sub(REDACTED, text)


def scrub(value: t.Any) -> t.Any:
    """The same for every text in a value, whose keys of secrets are set to None."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if isinstance(value, dict):
        return {key: None if key in SECRET_KEYS else item if key in KEPT_KEYS else scrub(item) for key, item in value.items()}
    return value


def redact(facts: dict[str, t.Any]) -> dict[str, t.Any]:
    """Facts without what tells this machine from all others. Of the GIDs those of an IPv4 address stay."""
    redacted = scrub(facts)
    for device in (redacted.get("rdma") or {}).get("devices") or []:
        for gid in device["gids"]:
            if gid["ipv4"] is None:
                gid["gid"] = None
    return redacted
