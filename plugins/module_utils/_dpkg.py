# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package database of Debian and Ubuntu, read from its file in one pass, and the order of its versions."""

from __future__ import annotations

import functools
import os
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._files import file_status, list_names, read_text

STATUS = "var/lib/dpkg/status"
UPDATES = "var/lib/dpkg/updates"
# A desktop with two architectures has about 8 MB.
_LARGEST = 64 << 20
_WHOLE = ("installed", "not-installed", "config-files")
# By what a package is, not by a branch's number: from 590 on the names have none.
_DRIVER = re.compile(
    r"^(?:cuda-drivers(?:-.+)?"
    r"|nvidia-(?:driver|open|dkms|kernel|headless|utils|compute-utils|firmware|modprobe|persistenced|fabricmanager)(?:-.+)?"
    r"|libnvidia-(?!container|ml-dev).+"
    r"|linux-(?:modules|objects|signatures)-nvidia-.+"
    r"|xserver-xorg-video-nvidia.*)$"
)
_PART = re.compile(r"([^0-9]*)([0-9]*)")


class Package(t.NamedTuple):
    """One package: what is wanted of it (install, hold ...), whether dpkg broke off (reinstreq), its state and its version."""

    name: str
    want: str
    flag: str
    state: str
    version: t.Optional[str]

    @property
    def installed(self) -> bool:
        return self.state not in ("not-installed", "config-files")

    @property
    def held(self) -> bool:
        return self.want == "hold"

    @property
    def half_done(self) -> bool:
        return self.state not in _WHOLE or self.flag != "ok"


def _field(stanza: str, name: str) -> str | None:
    start = stanza.find(f"\n{name}: ")
    if start < 0:
        return None
    start += len(name) + 3
    end = stanza.find("\n", start)
    return stanza[start:] if end < 0 else stanza[start:end]


def parse_status(text: str) -> list[Package]:
    """Packages of a status file. A stanza without a name or a status of three words is none of dpkg's."""
    packages = []
    for stanza in text.split("\n\n"):
        stanza = "\n" + stanza
        name, status = _field(stanza, "Package"), _field(stanza, "Status")
        words = (status or "").split()
        if name and len(words) == 3:
            packages.append(Package(name.strip(), words[0], words[1], words[2], (_field(stanza, "Version") or "").strip() or None))
    return packages


@functools.lru_cache(maxsize=1)
def _parsed(path: str, _stamp: tuple[int, int, int]) -> t.Optional[tuple[Package, ...]]:
    text = read_text(path, limit=_LARGEST)
    return None if text is None else tuple(parse_status(text))


def read_packages(root: str) -> t.Optional[tuple[Package, ...]]:
    """Packages that dpkg knows, None where there is no dpkg. The file is parsed once though several subsets ask."""
    path = os.path.join(root, STATUS)
    status = file_status(path)
    return None if status is None else _parsed(path, (status.st_ino, status.st_mtime_ns, status.st_size))


def read_half_done(root: str, packages: t.Sequence[Package]) -> list[str]:
    """Names of packages that dpkg began and did not finish, in alphabetical order.

    Those that it had in hand when it was broken off are in its journal of numbered files.
    """
    names = {package.name for package in packages if package.half_done}
    for name in list_names(root, UPDATES):
        if name.isdigit():
            names |= {package.name for package in parse_status(read_text(root, UPDATES, name) or "") if package.half_done}
    return sorted(names)


def is_driver(name: str) -> bool:
    """Whether a package is part of NVIDIA's driver, user side or kernel side."""
    return _DRIVER.match(name) is not None


def version_key(version: str) -> tuple[t.Any, ...]:
    """Sorts versions as dpkg does: epoch, upstream version, revision; ~ is before the end, letters before the rest."""
    epoch, colon, rest = version.partition(":")
    if not colon or not re.match(r"^[0-9]+$", epoch):
        epoch, rest = "", version
    upstream, dash, revision = rest.rpartition("-")
    if not dash:
        upstream, revision = rest, ""
    return _number(epoch), _parts(upstream), _parts(revision)


def _number(digits: str) -> tuple[int, str]:
    # Numbers of any length, which int() refuses.
    bare = digits.lstrip("0")
    return len(bare), bare


def _parts(text: str) -> tuple[t.Any, ...]:
    return tuple(
        (tuple(-1 if sign == "~" else ord(sign) if sign.isalpha() else ord(sign) + 256 for sign in signs) + (0,), _number(digits))
        for signs, digits in _PART.findall(text)
    )
