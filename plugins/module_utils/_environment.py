# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of NCCL, vLLM, Ray and their like that something other than gb10.fleet sets on a node, and the PATH of a login."""

from __future__ import annotations

import re
import shlex
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._apt import hide_password
from ansible_collections.gb10.fleet.plugins.module_utils._files import is_denied, is_directory, is_file, list_names, read_bytes, read_text

UNITS = "etc/systemd/system"
# What /etc/login.defs and /etc/profile of Debian and Ubuntu give a user.
LOGIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games"
_WANTED = re.compile(r"^(?:CUDA_VISIBLE_DEVICES$|NCCL_|VLLM_|RAY_|GLOO_|TORCH_)")
_LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS(?:WORD|WD)|CREDENTIAL", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
_HINT = re.compile(r"CUDA_VISIBLE_DEVICES|NCCL_|VLLM_|RAY_|GLOO_|TORCH_|LD_LIBRARY_PATH|LD_PRELOAD")
_SHELL_WORDS = ("if", "then", "else", "do", "{", "}", "fi", "done")
_EXPORTS = ("export", "declare", "typeset", "readonly")
_SETTING = re.compile(r"^([A-Za-z]+)\s*=\s*(.*)$")
_PATH_LINE = re.compile(r"(?:^|[\s;])PATH=(\"[^\"]*\"|'[^']*'|[^\s;]*)")
_OTHER_SHELLS = (".zshenv", ".zprofile", ".zshrc")
_LONGEST_VALUE = 500
_LARGEST_FILE = 1 << 20

Note = t.Callable[[str, str, str], None]


def _wanted(name: str, value: str) -> bool:
    return _WANTED.match(name) is not None or (name in _LOADER and "nccl" in value.lower())


def is_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret."""
    return _SECRET.search(name) is not None


def _entry(name: str, value: str, file: str, line: int, kind: str) -> dict[str, t.Any]:
    shown = None if is_secret(name) else hide_password(value)[:_LONGEST_VALUE]
    return {"name": name, "value": shown, "file": file, "line": line, "kind": kind}


def _words(line: str) -> list[str]:
    """Words of a line as systemd splits it; of a line with an open quote what white space splits."""
    try:
        return shlex.split(line)
    except ValueError:
        return re.sub("[\"']", "", line).split()


def _commands(line: str) -> list[list[str]]:
    """Words of each command of a shell's line; of a line that goes on elsewhere what white space splits."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return [re.sub("[\"']", "", line).split()]
    commands: list[list[str]] = [[]]
    for word in words:
        if word and set(word) <= set("();<>|&"):
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def parse_shell(text: str) -> list[tuple[int, str, str]]:
    """Line number, name and value of each wanted assignment in a shell's start-up file, whether its branch is taken or not.

    An assignment in front of a command is that command's alone.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not _HINT.search(line) or line.lstrip().startswith("#"):
            continue
        for command in _commands(line):
            words = [word for word in command if word not in _SHELL_WORDS]
            exported = any(word in _EXPORTS for word in words)
            assignments = [match for match in map(_ASSIGNMENT.match, words) if match]
            others = [word for word in words if not _ASSIGNMENT.match(word) and word not in _EXPORTS]
            if exported or not others:
                found += [(number, match.group(1), match.group(2)) for match in assignments if _wanted(match.group(1), match.group(2))]
    return found


def parse_plain(text: str) -> list[tuple[int, str, str]]:
    """The same of a file of NAME=VALUE lines, as pam_env, environment.d, EnvironmentFile and NCCL read them."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"^\s*(?:export\s+)?", "", line).rstrip()
        match = _ASSIGNMENT.match(line)
        if match:
            value = match.group(2).strip()
            if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            if _wanted(match.group(1), value):
                found.append((number, match.group(1), value))
    return found


def parse_unit(text: str, settings: t.Sequence[str]) -> tuple[list[tuple[int, str, str]], list[tuple[int, str]]]:
    """The same of the named settings of a unit or systemd configuration, and the files that EnvironmentFile= names."""
    found, files = [], []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first, line = number + 1, lines[number]
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = f"{line[:-1]} {lines[number]}"
        number += 1
        setting = _SETTING.match(line.strip())
        if not setting:
            continue
        if setting.group(1) in settings:
            for word in _words(setting.group(2)):
                match = _ASSIGNMENT.match(word)
                if match and _wanted(match.group(1), match.group(2)):
                    found.append((first, match.group(1), match.group(2)))
        elif setting.group(1) == "EnvironmentFile":
            files.append((first, setting.group(2).strip().lstrip("-")))
    return found, files


def _unit_files(root: str) -> list[str]:
    """Unit files and drop-ins of the administrator, gb10.fleet's own aside. Links lead to units that packages brought."""
    found = []
    for name in list_names(root, UNITS):
        if name.startswith("gb10-"):
            continue
        path = f"{UNITS}/{name}"
        if name.endswith(".d"):
            found += [f"{path}/{part}" for part in list_names(root, path) if part.endswith(".conf")]
        elif name.endswith((".service", ".socket", ".timer", ".path", ".target")) and is_file(root, path):
            found.append(path)
    return found


def login_home(root: str, environment: t.Mapping[str, str]) -> str | None:
    """Home directory of who logs in: of the user before sudo, where a module runs by it, else of the user who runs it."""
    name = environment.get("SUDO_USER")
    for line in (read_text(root, "etc/passwd") or "").splitlines() if name else ():
        fields = line.split(":")
        if fields[0] == name and len(fields) == 7 and fields[5].startswith("/"):
            return fields[5]
    return environment.get("HOME") or None


def startup_files(root: str, home: str | None) -> list[str]:
    """A shell's start-up files in the order of a login, as paths below the root."""
    files = ["etc/profile", *(f"etc/profile.d/{name}" for name in list_names(root, "etc/profile.d") if name.endswith(".sh")), "etc/bash.bashrc"]
    if home:
        folder = home.strip("/")
        own = next((name for name in (".bash_profile", ".bash_login", ".profile") if is_file(root, folder, name)), None)
        files += [f"{folder}/{name}" for name in (own, ".bashrc") if name]
    return files


def read_environment(root: str, home: str | None, note: Note) -> list[dict[str, t.Any]]:
    """Every line that sets such a variable: {name, value, file, line, kind}. Of names that hold a secret the value is None."""
    found: list[dict[str, t.Any]] = []
    folder = home.strip("/") if home else None

    def add(kind: str, path: str, assignments: t.Iterable[tuple[int, str, str]]) -> None:
        found.extend(_entry(name, value, f"/{path}", line, kind) for line, name, value in assignments)

    plain = [("system", "etc/environment")]
    plain += [("system", f"etc/environment.d/{name}") for name in list_names(root, "etc/environment.d") if name.endswith(".conf")]
    plain += [("nccl_conf", "etc/nccl.conf")]
    if folder:
        plain += [("nccl_conf", f"{folder}/.nccl.conf")]
        base = f"{folder}/.config/environment.d"
        plain += [("system", f"{base}/{name}") for name in list_names(root, base) if name.endswith(".conf")]
    for kind, path in plain:
        add(kind, path, parse_plain(_as_written(root, path, note)))
    others = [f"{folder}/{name}" for name in _OTHER_SHELLS] if folder else []
    for path in startup_files(root, home) + others:
        add("shell", path, parse_shell(_as_written(root, path, note)))
    seen = set()
    for path in _unit_files(root):
        text = _as_written(root, path, note)
        assignments, files = parse_unit(text, ("Environment",))
        add("unit", path, assignments)
        for _line, name in files:
            # Those under /etc/gb10 are ours; a pattern or a specifier names no one file.
            if name.startswith("/") and not name.startswith("/etc/gb10/") and not re.search(r"[*?\[%]", name) and name not in seen:
                seen.add(name)
                add("unit", name.lstrip("/"), parse_plain(_as_written(root, name.lstrip("/"), note)))
    managers = ["etc/systemd/system.conf"]
    for base in ("etc/systemd/system.conf.d", "usr/lib/systemd/system.conf.d"):
        managers += [f"{base}/{name}" for name in list_names(root, base) if name.endswith(".conf")]
    for path in managers:
        add("system", path, parse_unit(_as_written(root, path, note), ("DefaultEnvironment", "ManagerEnvironment"))[0])
    return found


def _as_written(root: str, path: str, note: Note | None = None) -> str:
    """A file's text with its empty lines, so that lines have their numbers; nothing for one that is not there."""
    content = read_bytes(root, path, size=_LARGEST_FILE)
    if content is None and note and is_denied(root, path):
        note(f"/{path}", "denied", "Variables that are set there can be read by root alone.")
    return (content or b"").decode("utf-8", "replace")


def login_path(root: str, home: str | None) -> list[str]:
    """Folders on the PATH of a login shell of the user, from the files that set it.

    Branches count as taken, for what they test is whether a folder is there, and one that is not there does no harm.
    """
    path = LOGIN_PATH
    for value in path_lines(_as_written(root, "etc/environment")):
        path = value
    for file in startup_files(root, home):
        # /etc/profile sets the same as LOGIN_PATH, for root and for others.
        if file != "etc/profile":
            for value in path_lines(_as_written(root, file)):
                value = re.sub(r"\$\{PATH:\+:\$\{?PATH\}?\}", ":$PATH", value)
                value = re.sub(r"\$\{?PATH(?::-[^}]*)?\}?(?![A-Za-z0-9_])", lambda _found, now=path: now, value)
                path = re.sub(r"\$\{?HOME\}?(?![A-Za-z0-9_])|(?:(?<=^)|(?<=:))~(?=/|:|$)", lambda _found: home or "/nonexistent", value)
                path = path[: 1 << 14]
    folders: list[str] = []
    for name in path.split(":"):
        if name.startswith("/") and "$" not in name and name not in folders and is_directory(root, name.strip("/") or "."):
            folders.append(name.rstrip("/") or "/")
    return folders


def path_lines(text: str) -> list[str]:
    """What each line sets PATH to, as it is written."""
    lines = [line for line in text.splitlines() if "PATH=" in line and not line.lstrip().startswith("#")]
    return [match.group(1).strip("\"'") for match in map(_PATH_LINE.search, lines) if match]
