# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of a node's files only what spark_facts looks at: the rest of them may tell of people, peers and secrets."""

from __future__ import annotations

import json
import re
import shlex
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils import _apt, _dpkg, _environment, _platform
from ansible_collections.gb10.fleet.plugins.module_utils._redact import REDACTED
from ansible_collections.gb10.fleet.plugins.module_utils._replacements import SECRET

_PACKAGE_FIELD = re.compile(r"^(?:Package|Status|Version): ")
# Packages of drivers, fabric, toolchain and system; of others only those that are held or broken off.
_PACKAGE = re.compile(
    r"^(?:lib)?(?:nvidia|cuda|nccl|cudnn|cublas|mlx|ibverbs|rdma|infiniband|mft|mstflint|doca|perftest|nv|dgx|fwupd"
    r"|linux-(?:image|modules|headers|nvidia|firmware)"
    r"|docker|containerd|earlyoom|unattended-upgrades|netplan|network-manager|systemd|iproute2|ethtool|chrony|ntpsec|ufw|nftables|firewalld|grub|shim"
    r"|python3(?:\.\d+)?$|apt$|dpkg$|c6$|c-bin$|openssh-server|rsync|numa1|iputils-ping|coreutils)"
)
_LEFT_OUT_STATES = ("install ok installed", "deinstall ok config-files")
_DISTRIBUTION = re.compile(r"^(?:vllm|ray|torch|nvidia[._-].+)-[^-]+\.dist-info$", re.IGNORECASE)
_LOCAL = re.compile(r"^(?:cuda|nccl|libnccl|python3)|-linux-gnu$")
_PYTHON_LINE = re.compile(r"^#!\s*(/\S+/bin/python[\d.]*)(?:\s|$)")
_STARTUP = ("profile", "bash.bashrc", ".bash_profile", ".bash_login", ".profile", ".bashrc", ".zshenv", ".zprofile", ".zshrc")
_APT_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|#(?!clear|include)[^\n]*|/\*.*?\*/)', re.DOTALL)
_GRUB_PASSWORD = re.compile(r"^(\s*password(?:_pbkdf2)?\s).*$", re.MULTILINE)
_PROCESS_NAME = re.compile(r"(<process_name>)([^<]*)(</process_name>)")
_ALIAS = re.compile(r'("ifalias"\s*:\s*)"(?:[^"\\]|\\.)*"')
_FIRMWARE_LEFT_OUT = ("InstanceIds", "Serial", "Icons", "Checksums")
UNITS = f"/{_environment.UNITS}"


def _lines(wanted: str) -> t.Callable[[str], str]:
    """A function that empties all other lines, so that numbers of lines stay."""
    pattern = re.compile(wanted)
    return lambda text: "\n".join(line if pattern.match(line) else "" for line in text.split("\n"))


def _without_comments(text: str) -> str:
    return "\n".join("#" if line.lstrip().startswith(("#", ";")) else line for line in text.split("\n"))


def hide_secrets(text: str) -> str:
    """The text without the values of names that hold a secret."""
    return SECRET.sub(rf"\1{REDACTED}", text)


def _packages(text: str) -> str:
    stanzas = []
    for stanza in text.split("\n\n"):
        name = re.search(r"^Package: (\S+)", stanza, re.MULTILINE)
        state = re.search(r"^Status: (.*)$", stanza, re.MULTILINE)
        known = name and state and state.group(1).strip() in _LEFT_OUT_STATES
        if not known or _PACKAGE.match(name.group(1)) or _dpkg.is_driver(name.group(1)):  # type: ignore[union-attr]
            stanzas.append("\n".join(line for line in stanza.split("\n") if _PACKAGE_FIELD.match(line)))
    return "\n\n".join(stanza for stanza in stanzas if stanza)


def _netplan(text: str) -> str:
    renderer = _platform.netplan_renderer(text)
    return f"network:\n  renderer: {renderer}" if renderer else "network:"


def _listening(text: str) -> str:
    """Places that are listened on; peers of the node stand in the other lines."""
    lines = text.split("\n")
    words = [line.split(None, 4)[:4] for line in lines[1:]]
    return "\n".join([lines[0], *(" ".join(parts) for parts in words if parts and (len(parts) < 4 or parts[3] == "0A"))])


def _routes(text: str) -> str:
    """Default routes, without their gateways."""
    lines = text.split("\n")
    rows = [line.split() for line in lines[1:]]
    kept = [[*row[:2], "00000000", *row[3:]] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"]
    return "\n".join([lines[0].strip(), *("\t".join(row) for row in kept)])


def _routes6(text: str) -> str:
    rows = [line.split() for line in text.split("\n")]
    kept = [[*row[:4], "0" * 32, *row[5:]] for row in rows if len(row) == 10 and row[0] == "0" * 32 and row[1] == "00"]
    return "\n".join(" ".join(row) for row in kept)


def _docker(text: str) -> str:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return hide_secrets(text)
    if not isinstance(content, dict):
        return "[]"
    features = content.get("features")
    kept = {"features": {"cdi": features["cdi"]}} if isinstance(features, dict) and isinstance(features.get("cdi"), bool) else {}
    if isinstance(content.get("default-runtime"), str):
        kept["default-runtime"] = content["default-runtime"]
    return json.dumps(kept)


def _apt_settings(text: str) -> str:
    return _APT_PIECE.sub(lambda found: "" if found.group(1) else found.group(0), text)


_RULES: tuple[tuple[re.Pattern[str], t.Callable[[str], str]], ...] = tuple(
    (re.compile(path), reduce)
    for path, reduce in (
        (r"^/var/lib/dpkg/", _packages),
        (r"^/(?:etc|lib|run)/netplan/", _netplan),
        (r"^/proc/net/tcp6?$", _listening),
        (r"^/proc/net/route$", _routes),
        (r"^/proc/net/ipv6_route$", _routes6),
        (r"^/etc/docker/", _docker),
        (r"^/etc/apt/sources\.list.*\.sources$", _without_comments),
        (r"^/etc/apt/sources\.list", lambda text: "\n".join(line.split("#")[0] for line in text.split("\n"))),
        (r"^/etc/apt/apt\.conf", _apt_settings),
        (r"/logind\.conf", _lines(r"^\s*RemoveIPC\s*=")),
        (r"^/etc/ufw/", _lines(r"^\s*ENABLED\s*=")),
        (r"/earlyoom", _lines(r"^\s*(?:EARLYOOM_ARGS|ExecStart)\s*=")),
        (r"^/etc/default/grub", _lines(r"^\s*(?:export\s+)?GRUB_(?!PASSWORD)\w+=")),
        (r"/pyvenv\.cfg$", _lines(r"^\s*version(?:_info)?\s*=")),
        (r"/nccl\.h$", _lines(r"^#define\s+NCCL_(?:MAJOR|MINOR|PATCH|VERSION)")),
        (r"/grub\.cfg$", lambda text: _GRUB_PASSWORD.sub(rf"\1{REDACTED}", text)),
        (r"^/etc/ansible/", lambda text: text),
        (r"^/etc/", lambda text: hide_secrets(_without_comments(text))),
        (r"^/proc/cmdline$", hide_secrets),
    )
)


def excerpt(path: str, text: str, user: str | None = None, mounts: t.Collection[str] = ()) -> str:
    """What counts of a file's text.

    Args:
        path: path of the file.
        text: its text.
        user: whose line of /etc/passwd counts.
        mounts: mount points that count.
    """
    if path == "/etc/passwd":
        rows = [line.split(":") for line in text.split("\n")]
        return "\n".join(f"{row[0]}:x:1000:1000::{row[5]}:/bin/bash" for row in rows if user and len(row) == 7 and row[0] == user)
    if path == "/proc/self/mounts":
        words = [line.split(" ") for line in text.split("\n")]
        counts = [parts for parts in words if len(parts) > 2 and set(_platform.parse_mounts(" ".join(parts))) & set(mounts)]
        return "\n".join(f"device {parts[1]} {parts[2]} rw 0 0" for parts in counts)
    return next((reduce(text) for pattern, reduce in _RULES if pattern.search(path)), text)


def _quoted_path(value: str) -> str:
    return f'"{value}"' if '"' not in value else f"'{value}'"


def excerpt_as_written(path: str, text: str) -> str:
    """Of a file that sets variables those that spark_facts looks at, each in its line. Of a program the Python that runs it."""
    count = len(text.splitlines())
    lines = [""] * count
    name = path.rpartition("/")[2]
    found: dict[int, list[str]] = {}
    if path.startswith(f"{UNITS}/") or "/systemd/system.conf" in path:
        setting = "Environment" if path.startswith(f"{UNITS}/") else "DefaultEnvironment"
        assignments, files = _environment.parse_unit(text, ("Environment",) if setting == "Environment" else ("DefaultEnvironment", "ManagerEnvironment"))
        for line, variable, value in assignments:
            found.setdefault(line, []).append(shlex.quote(f"{variable}={_told(variable, value)}"))
        for line, words in found.items():
            lines[line - 1] = f"{setting}={' '.join(words)}"
        for line, file in files:
            lines[line - 1] = f"EnvironmentFile=-{file}"
        return "\n".join(lines)
    shell = name in _STARTUP or name.endswith(".sh")
    if shell:
        for line, variable, value in _environment.parse_shell(text):
            found.setdefault(line, []).append(f"export {variable}={shlex.quote(_told(variable, value))}")
    else:
        for line, variable, value in _environment.parse_plain(text):
            found[line] = [f'{variable}="{_told(variable, value)}"']
    for number, line in enumerate(text.splitlines(), 1):
        path_value = next(iter(_environment.path_lines(line)), None)
        if path_value is not None and (shell or number not in found):
            found.setdefault(number, []).append(f"PATH={_quoted_path(path_value)}")
    for line, words in found.items():
        lines[line - 1] = "; ".join(words)
    interpreter = _PYTHON_LINE.match(text.split("\n", 1)[0])
    if interpreter and not lines[0]:
        lines[0] = f"#!{interpreter.group(1)}"
    return "\n".join(lines)


def _told(name: str, value: str) -> str:
    return REDACTED if _environment.is_secret(name) else _apt.hide_password(value)


def excerpt_names(folder: str, names: t.Sequence[str], paths: t.Collection[str], home: str | None) -> list[str]:
    """Of the names in a folder those that count: what is installed or configured for other ends is nobody's business."""
    below = {path[len(folder.rstrip("/")) + 1:].partition("/")[0] for path in paths if path.startswith(f"{folder.rstrip('/')}/")}
    if folder.startswith(UNITS):
        return [name for name in names if name in below or name.startswith("gb10-")]
    if folder.endswith(("/dist-packages", "/site-packages")):
        return [name for name in names if name in below or _DISTRIBUTION.match(name)]
    if folder.startswith(("/usr/", "/lib/")) and not folder.startswith(("/lib/modules", "/usr/lib/modules")) or (home and f"{folder}/".startswith(f"{home}/")):
        return [name for name in names if name in below or _LOCAL.search(name)]
    return list(names)


def excerpt_output(argv: t.Sequence[str], text: str) -> str:
    """What counts of a tool's answer: of processes on the GPU the program's name alone, of firmware no serial numbers."""
    tool = argv[0].rpartition("/")[2]
    if tool == "nvidia-smi":
        return _PROCESS_NAME.sub(lambda found: found.group(1) + _program(found.group(2)) + found.group(3), text)
    if tool == "ip":
        return _ALIAS.sub(rf'\1"{REDACTED}"', text)
    if tool == "fwupdmgr" and "{" in text:
        begin = text.index("{")
        try:
            document, end = json.JSONDecoder().raw_decode(text, begin)
        except (ValueError, RecursionError):
            return text
        return text[:begin] + json.dumps(_pruned(document), indent=1) + text[end:]
    return text


def _program(text: str) -> str:
    words = text.split()
    return words[0].rstrip("/").rpartition("/")[2] if words else text


def _pruned(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if key not in _FIRMWARE_LEFT_OUT}
    return [_pruned(item) for item in value] if isinstance(value, list) else value
