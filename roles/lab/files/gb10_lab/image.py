# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base image: one Debian tree in the cache that all nodes share as the lower layer of their overlays."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from . import host

CUSTOMIZE = Path(__file__).resolve().parent.parent / "image" / "customize"
# Debian 12 has Python 3.11, the one that the CPU build of torch is offered for.
SUITE = "bookworm"
# What a bare DGX OS node has, and no compiler: roles must not count on one.
PACKAGES = (
    "acl", "ca-certificates", "curl", "dbus", "ethtool", "iproute2", "iputils-ping", "kmod", "libnuma1", "netplan.io",
    "openssh-server", "procps", "python3", "python3-apt", "rsync", "sudo", "systemd", "systemd-sysv", "tzdata", "udev",
)
RENDERER_PACKAGES = {"networkd": (), "NetworkManager": ("network-manager",)}


def packages(renderer: str) -> list[str]:
    return sorted({*PACKAGES, *RENDERER_PACKAGES[renderer]})


def key(renderer: str, suite: str = SUITE, mirror: str = "", customize: bytes | None = None) -> str:
    """Names an image by all that it is made of, so that an unchanged one is never built twice."""
    made_of = "\n".join([suite, mirror, *packages(renderer)]).encode() + (CUSTOMIZE.read_bytes() if customize is None else customize)
    return f"{suite}-{renderer}-{hashlib.sha256(made_of).hexdigest()[:12]}"


def folder(cache: Path, renderer: str, mirror: str = "") -> Path:
    return cache / "images" / key(renderer, mirror=mirror)


def build(cache: Path, renderer: str, mirror: str = "") -> bool:
    """Make the image unless it is there. Returns whether it was made."""
    target = folder(cache, renderer, mirror)
    if target.is_dir():
        return False
    with host.locked(cache / "images" / f".{target.name}.lock"):
        if target.is_dir():
            return False
        free = shutil.disk_usage(cache).free
        if free < 2 * 2**30:
            raise host.LabError(f"The lab's cache {cache} has {free // 2**20} MiB free and an image needs 2 GiB; free some space or set GB10_LAB_CACHE.")
        partial = target.with_name(f"{target.name}.partial")
        host.remove_folder(partial, inside=cache)
        host.run(
            "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(packages(renderer))}",
            "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*", f"--customize-hook={CUSTOMIZE}",
            SUITE, partial, *([mirror] if mirror else []), timeout=1800,
        )
        os.replace(partial, target)
    return True


def prune(cache: Path, renderer: str, mirror: str, in_use: set[str]) -> list[str]:
    """Delete images that an older list of packages made and that no running lab stands on."""
    kept = {str(folder(cache, renderer, mirror)), *in_use}
    old = [path for path in (cache / "images").glob(f"*-{renderer}-*") if path.is_dir() and str(path) not in kept and path.suffix != ".partial"]
    for path in old:
        host.remove_folder(path, inside=cache)
        path.with_name(f".{path.name}.lock").unlink(missing_ok=True)
    return [path.name for path in old]
