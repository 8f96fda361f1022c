# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dpkg and the files of accounts say, as values."""

from __future__ import annotations

import re
import typing as t

# dpkg-query takes anything else for a pattern.
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
FORMAT = "${Package} ${db:Status-Status} ${Version}\\n"
UNKNOWN = "dpkg-query: no packages found matching "


def parse_versions(names: t.Sequence[str], rc: int, stdout: str, stderr: str) -> dict[str, str | None]:
    """Installed version by name, from the answer of `dpkg-query -W -f FORMAT NAMES`; None for what is not installed.

    A name that dpkg never heard of makes it end with 1, as does any other trouble with what it was asked.
    Raises ValueError with what dpkg-query said when it could not answer.
    """
    said = [line for line in stderr.splitlines() if line.strip() and not line.startswith(UNKNOWN)]
    if rc not in (0, 1) or (rc == 1 and (said or not stderr.strip())):
        raise ValueError(" ".join(said) or f"it ended with {rc}")
    versions: dict[str, str | None] = dict.fromkeys(names)
    for line in stdout.splitlines():
        # Of two architectures one may be installed; a package that was removed has a line without version.
        name, status, version = (line.split(" ") + ["", ""])[:3]
        if status == "installed" and name in versions:
            versions[name] = version
    return versions


def password_locked(shadow: str, name: str) -> bool:
    """Whether no password can open the account, from the content of /etc/shadow; so it is without an entry there."""
    for line in shadow.splitlines():
        account, _colon, rest = line.partition(":")
        if account == name:
            return rest.startswith(("!", "*"))
    return True
