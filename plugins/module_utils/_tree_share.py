# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rsync daemon that shares a folder, and the commands around it. Pure functions."""

from __future__ import annotations

import re
import typing as t

UNIT = "gb10-share.service"
CONFIGURATION = "/run/gb10-share/rsyncd.conf"
HARDENING = (
    "CapabilityBoundingSet=",
    "LockPersonality=yes",
    "NoNewPrivileges=yes",
    "PrivateTmp=yes",
    "ProtectHome=yes",
    "ProtectSystem=strict",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
)


def configuration(path: str, address: str, port: int, peers: t.Sequence[str]) -> str:
    """Configuration of the daemon: one folder, read only, for the peers only."""
    return (
        "# Written by gb10.fleet for as long as the share runs.\n"
        f"address = {address}\n"
        f"port = {port}\n"
        "reverse lookup = no\n"
        "use chroot = no\n"
        "[tree]\n"
        f"path = {path}\n"
        "read only = yes\n"
        "list = no\n"
        f"hosts allow = {' '.join(peers)}\n"
        "hosts deny = *\n"
    )


def unit_command(rsync: str, user: str, limit_seconds: int) -> list[str]:
    """Command that runs the daemon in a unit that is forgotten when it ends."""
    properties = [f"User={user}", "RuntimeDirectory=gb10-share", f"RuntimeMaxSec={limit_seconds}", *HARDENING]
    return [
        "systemd-run", f"--unit={UNIT}", "--description=Model files for the other nodes of the cluster", "--collect", "--quiet",
        "--service-type=exec", *(f"--property={text}" for text in properties),
        rsync, "--daemon", "--no-detach", f"--config={CONFIGURATION}",
    ]


def fetch_command(rsync: str, url: str, target: str) -> list[str]:
    """Command that fetches the files named on standard input, each ended by a zero byte, into a folder.

    A file that is there is the start of the wanted one, which a broken off copy left, and only the rest is sent: comparing block
    by block costs more than sending anew. Whether start and rest belong together is for the caller to prove.

    Args:
        rsync: path of the program.
        url: the share.
        target: folder to write into.
    """
    return [
        rsync, "--times", "--perms", "--chmod=D755,F644", "--append", "--from0", "--files-from=-", "--timeout=120", "--contimeout=20",
        "--stats", url, target,
    ]


def received_bytes(stats: str) -> int:
    """Bytes that crossed the wire, by the figures that rsync --stats ends with; 0 when they are not there."""
    found = re.search(r"^Total bytes received: ([\d,.]+)$", stats, re.MULTILINE)
    return int(re.sub(r"\D", "", found.group(1))) if found else 0
