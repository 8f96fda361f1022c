# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of wheels with a requirements.txt that pins and hashes them: what it holds, and whether a machine can install it."""

from __future__ import annotations

import hashlib
import os
import re
import typing as t

REQUIREMENTS = "requirements.txt"
# Without these no release can be built: the engine, what places its ranks, what it computes with, and the installer.
NEEDED = ("vllm", "torch", "ray", "uv")
# The old names of manylinux, by the glibc that they stand for (PEP 513, 571, 599).
LEGACY_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
CURE = "Fill the folder again, from where its wheels and its requirements.txt come."

_REQUIREMENT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*([^\s;]+)")
_HASH = re.compile(r"--hash[= ](sha256:[0-9a-f]{64})\b")
_PYTHON_TAG = re.compile(r"^(py|cp)(\d)(\d*)$")
_MANYLINUX = re.compile(r"^manylinux_(\d+)_(\d+)_(.+)$")
_LEGACY = re.compile(r"^(manylinux1|manylinux2010|manylinux2014|linux)_(.+)$")


class Machine(t.NamedTuple):
    """What wheels are chosen by: Python's version, architecture, and glibc's version."""

    python: tuple[int, int]
    architecture: str
    libc: tuple[int, int]


def normal_name(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def base_version(version: str) -> str:
    """A version without its local part: 0.19.1 of 0.19.1+cu128."""
    return version.partition("+")[0]


def parse_version(text: str, default: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """The first two numbers of a version."""
    found = re.search(r"(\d+)\.(\d+)", text or "")
    return (int(found.group(1)), int(found.group(2))) if found else default


def parse_wheel_name(name: str) -> dict[str, t.Any] | None:
    """What a wheel's file name says (PEP 427): name, version, pythons, abis and platforms. None for no such name."""
    if not name.endswith(".whl"):
        return None
    parts = name[: -len(".whl")].split("-")
    if len(parts) not in (5, 6) or not all(parts):
        return None
    return {
        "name": normal_name(parts[0]),
        "version": parts[1],
        "pythons": parts[-3].split("."),
        "abis": parts[-2].split("."),
        "platforms": parts[-1].split("."),
    }


def parse_requirements(text: str) -> list[dict[str, t.Any]]:
    """The pinned distributions of a requirements file: name, version and hashes of each.

    Lines that are no pin (options, comments) are left out. A pin and its hashes may go over several lines.
    """
    joined = re.sub(r"\\\s*\n", " ", text)
    pins = []
    for line in joined.splitlines():
        found = _REQUIREMENT.match(line.strip())
        if found:
            pins.append({"name": normal_name(found.group(1)), "version": found.group(2), "hashes": _HASH.findall(line)})
    return pins


def release_digest(requirements: bytes) -> str:
    """What names the content of a wheelhouse: its requirements hold the hash of every wheel."""
    return hashlib.sha256(requirements).hexdigest()[:12]


def unfit(wheel: t.Mapping[str, t.Any], machine: Machine) -> str | None:
    """Why a machine cannot install a wheel, None when it can.

    Args:
        wheel: what parse_wheel_name returned.
        machine: the machine.
    """
    reasons = [_platform_unfit(platform, machine) for platform in wheel["platforms"]]
    if None not in reasons:
        return reasons[0]
    if not any(_python_fits(python, abi, machine.python) for python in wheel["pythons"] for abi in wheel["abis"]):
        tags = ".".join(wheel["pythons"]), ".".join(wheel["abis"])
        return f"is for Python {tags[0]}-{tags[1]}, and the Python for it on this node is {machine.python[0]}.{machine.python[1]}"
    return None


def _python_fits(python: str, abi: str, version: tuple[int, int]) -> bool:
    found = _PYTHON_TAG.match(python)
    if not found:
        return False
    major, minor = int(found.group(2)), int(found.group(3) or 0)
    if major != version[0]:
        return False
    if found.group(1) == "py":
        return abi == "none" and minor <= version[1]
    if abi == "abi3":
        return minor <= version[1]
    return minor == version[1] and abi in ("none", python)


def _platform_unfit(platform: str, machine: Machine) -> str | None:
    if platform == "any":
        return None
    found, legacy = _MANYLINUX.match(platform), _LEGACY.match(platform)
    if found:
        libc, architecture = (int(found.group(1)), int(found.group(2))), found.group(3)
    elif legacy:
        libc, architecture = LEGACY_MANYLINUX.get(legacy.group(1), (0, 0)), legacy.group(2)
    else:
        return f"is for {platform}, and this node runs Linux with glibc"
    if architecture != machine.architecture:
        return f"is for {architecture}, and this node is {machine.architecture}"
    if libc > machine.libc:
        needed, there = ".".join(map(str, libc)), ".".join(map(str, machine.libc))
        return f"needs glibc {needed}, and this node has {there}"
    return None


def list_wheels(path: str) -> list[dict[str, t.Any]]:
    """Wheels of a folder by name: name, version, tags, file and size in bytes. A link counts as what it leads to.

    Raises:
        OSError: the folder cannot be read.
    """
    wheels = []
    for file in sorted(os.listdir(path)):
        parsed = parse_wheel_name(file)
        if parsed and os.path.isfile(os.path.join(path, file)):
            wheels.append({**parsed, "file": file, "size": os.path.getsize(os.path.join(path, file))})
    return wheels


def inspect(path: str, machine: Machine, versions: t.Mapping[str, str | None] | None = None) -> dict[str, t.Any]:
    """What a wheelhouse holds, and what keeps this machine from installing it.

    Args:
        path: the folder.
        machine: the machine that shall install it.
        versions: by distribution, versions that it must hold, any local part aside; None for any version.

    Returns:
        {exists, requirements, wheels, vllm, torch, ray, key, machine_ok, reason, problems, pins}. Problems are sentences that
        name spark_wheelhouse and the cure.
    """
    report: dict[str, t.Any] = {
        "exists": os.path.isdir(path), "requirements": False, "wheels": [], "vllm": None, "torch": None, "ray": None,
        "key": None, "machine_ok": False, "reason": None, "problems": [], "pins": [],
    }
    if not report["exists"]:
        report["problems"].append(f"spark_wheelhouse is {path}, and there is no such folder. Put the wheels and their {REQUIREMENTS} there.")
        report["reason"] = "there is no wheelhouse"
        return report
    try:
        report["wheels"] = list_wheels(path)
        with open(os.path.join(path, REQUIREMENTS), "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        report["problems"].append(f"spark_wheelhouse is {path}, which has no {REQUIREMENTS}: it must pin every wheel with its hash. {CURE}")
        report["reason"] = f"there is no {REQUIREMENTS}"
        return report
    report["requirements"] = True
    report["key"] = release_digest(content)
    report["pins"] = parse_requirements(content.decode("utf-8", "replace"))
    _find_problems(report, path, machine, versions or {})
    return report


def _find_problems(report: dict[str, t.Any], path: str, machine: Machine, versions: t.Mapping[str, str | None]) -> None:
    problems = report["problems"]
    pinned = {pin["name"]: pin for pin in report["pins"]}
    for name in ("vllm", "torch", "ray"):
        report[name] = pinned[name]["version"] if name in pinned else None
    missing = [name for name in NEEDED if name not in pinned]
    if missing:
        problems.append(f"spark_wheelhouse is {path}, whose {REQUIREMENTS} does not list {', '.join(missing)}. {CURE}")
    for name, wanted in versions.items():
        if wanted and name in pinned and base_version(pinned[name]["version"]) != base_version(wanted):
            problems.append(
                f"spark_wheelhouse is {path}, which holds {name} {pinned[name]['version']}, and spark_toolchain wants {wanted}."
                " Name the wheelhouse that fits, or the toolchain that it was made for."
            )
    unhashed = [pin["name"] for pin in report["pins"] if not pin["hashes"]]
    if unhashed:
        problems.append(f"spark_wheelhouse is {path}, whose {REQUIREMENTS} gives no sha256 for {_some(unhashed)}. {CURE}")
    there: dict[tuple[str, str], list] = {}
    for wheel in report["wheels"]:
        there.setdefault((wheel["name"], wheel["version"]), []).append(wheel)
    absent, unusable = [], []
    for pin in report["pins"]:
        found = there.get((pin["name"], pin["version"]), [])
        if not found:
            absent.append(f"{pin['name']}=={pin['version']}")
        elif all(unfit(wheel, machine) for wheel in found):
            unusable.append((found[0]["file"], unfit(found[0], machine)))
    if absent:
        problems.append(f"spark_wheelhouse is {path}, which has no wheel of {_some(absent)}. {CURE}")
    if unusable:
        more = f" (and {len(unusable) - 1} other wheels do not fit either)" if len(unusable) > 1 else ""
        problems.append(
            f"spark_wheelhouse is {path}, whose {unusable[0][0]} {unusable[0][1]}{more}. Take wheels that are made for this node."
        )
    report["machine_ok"] = not unusable
    report["reason"] = f"{unusable[0][0]} {unusable[0][1]}" if unusable else None


def _some(names: t.Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def release_key(toolchain: str, vllm: str, digest: str) -> str:
    """Name of a release: the toolchain, vLLM's version without its local part, and what the wheelhouse holds."""
    return f"{toolchain}-{base_version(vllm)}-{digest}"


def without_bytecode(site_packages: str, cache_tag: str) -> list[str]:
    """Sources below a folder that came without bytecode for a Python, sorted.

    Args:
        site_packages: the folder.
        cache_tag: that Python's tag, such as cpython-312.
    """
    found = []
    for folder, _folders, files in os.walk(site_packages):
        sources = [file for file in files if file.endswith(".py")]
        if not sources:
            continue
        try:
            cached = set(os.listdir(os.path.join(folder, "__pycache__")))
        except FileNotFoundError:
            cached = set()
        found.extend(os.path.join(folder, file) for file in sources if f"{file[:-3]}.{cache_tag}.pyc" not in cached)
    return sorted(found)
