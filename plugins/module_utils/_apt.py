# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apt's sources in both formats, its settings, and what unattended-upgrades may change. Files in, data out."""

from __future__ import annotations

import hashlib
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._dpkg import Package, is_driver
from ansible_collections.gb10.fleet.plugins.module_utils._files import is_denied, list_names, read_text

SOURCES = "etc/apt/sources.list"
SOURCE_PARTS = "etc/apt/sources.list.d"
SETTINGS = "etc/apt/apt.conf"
SETTING_PARTS = "etc/apt/apt.conf.d"
# apt leaves out files of other names.
_PART_NAME = re.compile(r"^[A-Za-z0-9_.-]+$")
_ONE_LINE = re.compile(r"^(deb|deb-src)\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)(?:\s+(.*))?$")
_OPTION = re.compile(r"([A-Za-z-]+)\s*\+?=\s*(\S+)")
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{};])|(//[^\n]*|#(?!clear|include)[^\n]*|/\*.*?\*/)|([^\s"{};]+)', re.DOTALL)
_NO = ("no", "false", "without", "off", "disable", "0")
_NVIDIA_ORIGIN = re.compile(r"nvidia|cuda", re.IGNORECASE)
_MOST_NAMES = 5

Note = t.Callable[[str, str, str], None]


def hide_password(uri: str) -> str:
    """The URI without the name and password in it."""
    return re.sub(r"//[^/@\s]*@", "//REDACTED@", uri)


def _inline_key(text: str) -> str:
    # Keys are compared, and a page of armour in a report helps nobody.
    bare = "".join(line.strip() for line in text.splitlines() if line.strip() != ".")
    return f"inline:{hashlib.sha256(bare.encode()).hexdigest()[:12]}"


def parse_list(text: str, file: str) -> tuple[list[dict[str, t.Any]], list[str]]:
    """Repositories of a one-line file, and the lines that are none."""
    found, odd = [], []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = _ONE_LINE.match(line)
        if not match:
            odd.append(line)
            continue
        options = {key.lower(): value for key, value in _OPTION.findall(match.group(2) or "")}
        found.append(
            {
                "file": file,
                "uris": [hide_password(match.group(3))],
                "suites": [match.group(4)],
                "signed_by": options.get("signed-by"),
                "architectures": [name for name in options.get("arch", "").split(",") if name],
                "enabled": True,
            }
        )
    return found, odd


def parse_deb822(text: str, file: str) -> tuple[list[dict[str, t.Any]], list[str]]:
    """Repositories of a .sources file, and what in it is none."""
    found, odd = [], []
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, list[str]] = {}
        key = None
        for line in stanza.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            name, colon, value = line.partition(":")
            if line[0] in " \t" and key:
                fields[key].append(line.strip())
            elif colon and re.match(r"^[A-Za-z0-9-]+$", name):
                key = name.lower()
                fields[key] = [value.strip()] if value.strip() else []
            else:
                odd.append(line.strip())
        words = {name: " ".join(lines).split() for name, lines in fields.items()}
        if not words.get("uris"):
            odd += [f"{name}: {' '.join(words[name])}" for name in list(words)[:1]]
            continue
        signed_by = fields.get("signed-by") or []
        inline = any("BEGIN PGP" in line for line in signed_by)
        found.append(
            {
                "file": file,
                "uris": [hide_password(uri) for uri in words["uris"]],
                "suites": words.get("suites", []),
                "signed_by": _inline_key("\n".join(signed_by)) if inline else " ".join(signed_by) or None,
                "architectures": words.get("architectures", []),
                "enabled": (words.get("enabled") or ["yes"])[0].lower() not in _NO,
            }
        )
    return found, odd


def read_repositories(root: str, note: Note) -> list[dict[str, t.Any]]:
    """Repositories of /etc/apt, in apt's order."""
    files = [SOURCES] + [f"{SOURCE_PARTS}/{name}" for name in list_names(root, SOURCE_PARTS) if _PART_NAME.match(name)]
    repositories = []
    for file in files:
        if not file.endswith((".list", ".sources")):
            continue
        text = read_text(root, file)
        if text is None:
            if is_denied(root, file):
                note(f"/{file}", "denied", "This file of apt's sources can be read by root alone.")
            continue
        found, odd = (parse_deb822 if file.endswith(".sources") else parse_list)(text, f"/{file}")
        repositories += found
        for line in odd:
            note(f"/{file}", "not_understood", line)
    return repositories


def find_conflicts(repositories: t.Sequence[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Repositories that two entries give different keys, no key being one: with such apt reads no source at all."""
    keys: dict[tuple[str, str], dict[str, list[str]]] = {}
    for repository in repositories:
        if repository["enabled"]:
            for uri in repository["uris"]:
                for suite in repository["suites"]:
                    files = keys.setdefault((uri.rstrip("/"), suite), {}).setdefault(repository["signed_by"] or "", [])
                    if repository["file"] not in files:
                        files.append(repository["file"])
    conflicts: dict[str, dict[str, t.Any]] = {}
    for (uri, _suite), by_key in keys.items():
        if len(by_key) > 1:
            conflict = conflicts.setdefault(uri, {"uri": uri, "files": [], "keys": []})
            for key, files in by_key.items():
                conflict["files"] += [file for file in files if file not in conflict["files"]]
                conflict["keys"] += [key] if key not in conflict["keys"] else []
    return [{**conflict, "keys": [key or None for key in conflict["keys"]]} for conflict in conflicts.values()]


def parse_settings(text: str, values: dict[str, list[str]] | None = None) -> dict[str, list[str]]:
    """Settings of apt's configuration by their lower-case names; a list has its members under its own name.

    `values` are those of the files before. Only what stands in lists adds up; a single value replaces the one before.
    """
    values = {} if values is None else values
    scopes: list[str] = []
    words: list[str] = []
    strings: list[str] = []

    def end() -> None:
        name = "::".join([*scopes, *words[:1]]).lower() if words else "::".join(scopes).lower()
        if words and words[0] == "#clear":
            for cleared in [f"{'::'.join([*scopes, word])}".lower() for word in words[1:]]:
                for key in [key for key in values if key == cleared or key.startswith(f"{cleared}::")]:
                    del values[key]
        elif strings or len(words) > 1:
            value = strings[-1] if strings else words[-1]
            if not words or name.endswith("::"):
                values.setdefault(name.rstrip(":"), []).append(value)
            else:
                values[name] = [value]
        words.clear()
        strings.clear()

    for string, sign, comment, word in _TOKEN.findall(text):
        if comment:
            continue
        if sign == "{":
            scopes.append("::".join(words[:1]).rstrip(":"))
            words.clear()
            strings.clear()
        elif sign == ";":
            end()
        elif sign == "}":
            end()
            if scopes:
                scopes.pop()
        elif word:
            words.append(word)
        else:
            strings.append(string)
    end()
    return values


def read_settings(root: str, note: Note) -> dict[str, list[str]]:
    """apt's settings, of all files in apt's order: the parts first."""
    values: dict[str, list[str]] = {}
    names = [name for name in list_names(root, SETTING_PARTS) if _PART_NAME.match(name) and ("." not in name or name.endswith(".conf"))]
    for path in [f"{SETTING_PARTS}/{name}" for name in names] + [SETTINGS]:
        text = read_text(root, path)
        if text is None and is_denied(root, path):
            note(f"/{path}", "denied", "This file of apt's settings can be read by root alone.")
        parse_settings(text or "", values)
    return values


def _matches(pattern: str, name: str) -> bool:
    """As unattended-upgrades matches a name of its lists: from the start. A pattern that is none matches nothing."""
    try:
        return re.match(pattern, name) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def _names(names: t.Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def judge_unattended(settings: t.Mapping[str, t.Sequence[str]], packages: t.Sequence[Package], present: bool, stopped: bool) -> dict[str, t.Any]:
    """Whether unattended-upgrades is there and on, and whether it may change the driver: {installed, enabled, may_change_driver, evidence}.

    It may where a package of the driver is neither held nor on its blacklist, and an origin that it takes has such packages:
    the distribution itself, or NVIDIA. Of other origins nobody knows without apt's lists, which is null. `present` says that
    its program is there, `stopped` that its timer is off.
    """

    def last(name: str, default: str) -> str:
        found = settings.get(f"apt::periodic::{name}", ())
        return found[-1] if found else default

    installed = present or any(package.name == "unattended-upgrades" and package.installed for package in packages)
    # Days between runs; "always" is one too.
    enabled = installed and not stopped and last("unattended-upgrade", "0") != "0" and last("enable", "1") != "0"
    may, evidence = _may_change_driver(settings, packages) if enabled else (False, "It does not run." if installed else "It is not installed.")
    return {"installed": installed, "enabled": enabled, "may_change_driver": may, "evidence": evidence}


def _may_change_driver(settings: t.Mapping[str, t.Sequence[str]], packages: t.Sequence[Package]) -> tuple[bool | None, str]:
    def listed(name: str) -> list[str]:
        return list(settings.get(f"unattended-upgrade::{name}", ()))

    drivers = sorted({package.name for package in packages if package.installed and is_driver(package.name)})
    if not drivers:
        return False, "No package of the driver is installed."
    held = {package.name for package in packages if package.held}
    blacklist, whitelist = listed("package-blacklist"), listed("package-whitelist")
    free = [
        name for name in drivers
        if name not in held and not any(_matches(pattern, name) for pattern in blacklist)
        and (not whitelist or any(_matches(pattern, name) for pattern in whitelist))
    ]
    if not free:
        return False, f"All packages of the driver are held or on Unattended-Upgrade::Package-Blacklist: {_names(drivers)}."
    origins = listed("allowed-origins") + listed("origins-pattern")
    if not origins:
        return False, "It takes no origin."
    taken = [origin for origin in origins if "${distro_id}" in origin or re.search(r"ubuntu|debian|\*", origin, re.IGNORECASE) or _NVIDIA_ORIGIN.search(origin)]
    # ESM and Ubuntu Pro have no driver that the main archive has not.
    taken = [origin for origin in taken if "ESM" not in origin]
    if taken:
        return True, f"It takes {_names(taken)}, and these are not held: {_names(free)}."
    return None, f"It takes {_names(origins)}, and these are not held: {_names(free)}."
