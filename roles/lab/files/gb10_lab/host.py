# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that the lab runs on: commands, locks, mounts and the one sysctl that the lab raises."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

RUN = Path("/run/gb10-lab")
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
# A booted node holds some 60 inotify instances; with the usual 128 the third node's udevd does not start.
INOTIFY_PER_NODE = 128
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "mount": "mount",
}
# Ubuntu hosts lack the key that signs the image's packages.
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class LabError(Exception):
    """Something that the user can put right; the text says what and how."""


def cache_folder() -> Path:
    return Path(os.environ.get("GB10_LAB_CACHE") or "~/.cache/gb10-lab").expanduser().absolute()


def require_root_on_linux() -> None:
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise LabError("The lab needs root on Linux (it boots systemd hosts in namespaces); run it as root.")


def missing_packages() -> list[str]:
    missing = {package for tool, package in TOOLS.items() if shutil.which(tool) is None}
    if not KEYRING.exists():
        missing.add("debian-archive-keyring")
    return sorted(missing)


def require_tools() -> None:
    missing = missing_packages()
    if missing:
        raise LabError(f"The lab needs the host packages {', '.join(missing)}; install them with apt-get install {' '.join(missing)}.")


def run(*argv: str | os.PathLike[str], check: bool = True, timeout: float = 60, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    words = [os.fspath(word) for word in argv]
    result = subprocess.run(
        words, text=True, capture_output=True, timeout=timeout, input=stdin, check=False,
        env={**os.environ, "LC_ALL": "C", "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"},
    )
    if check and result.returncode:
        raise LabError(f"`{' '.join(words)}` ended with {result.returncode}: {(result.stderr or result.stdout).strip()}")
    return result


@contextlib.contextmanager
def locked(path: Path):
    """Hold a lock file for the time of the block; wait for whoever has it. A file that its last holder deleted does not count."""
    with contextlib.ExitStack() as stack:
        while True:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                handle = stack.enter_context(open(path, "w"))
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                    break
        yield


def is_held(path: Path) -> bool:
    """Whether a living process holds this lock file."""
    try:
        handle = open(path)
    except FileNotFoundError:
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file in one step, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with open(partial, "w", opener=lambda name, flags: os.open(name, flags, mode)) as handle:
        handle.write(text)
    os.chmod(partial, mode)
    os.replace(partial, path)


def write_new(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file that nobody reads yet, by as few calls as can be: a node has a thousand of them."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def mounts_below(folder: Path) -> list[str]:
    """Mount points in a folder (itself included), innermost first."""
    prefix = str(folder)
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].encode().decode("unicode_escape")
        if point == prefix or point.startswith(prefix + "/"):
            found.append(point)
    return found[::-1]


def remove_folder(folder: Path, inside: Path) -> None:
    """Delete one of the lab's own folders: only below `inside`, and only when nothing is mounted in it."""
    folder = Path(os.path.normpath(folder))
    if inside not in folder.parents:
        raise LabError(f"Refusing to delete {folder}: it does not lie below {inside}.")
    for point in mounts_below(folder):
        if run("umount", point, check=False).returncode:
            run("umount", "--lazy", point, check=False)
    left = mounts_below(folder)
    if left:
        raise LabError(f"Refusing to delete {folder}: {left[0]} is still mounted; unmount it and try again.")
    if folder.exists():
        shutil.rmtree(folder)


def raise_inotify_limit(labs_nodes: int) -> None:
    """Make room for the nodes; what was there before is kept for `restore_inotify_limit`."""
    before = int(INOTIFY.read_text())
    wanted = max(before, 128 + INOTIFY_PER_NODE * labs_nodes)
    if wanted == before:
        return
    kept = RUN / "inotify.json"
    if not kept.exists():
        write(kept, json.dumps({"max_user_instances": before}))
    INOTIFY.write_text(str(wanted))


def restore_inotify_limit() -> None:
    kept = RUN / "inotify.json"
    if kept.exists():
        INOTIFY.write_text(str(json.loads(kept.read_text())["max_user_instances"]))
        kept.unlink()


def has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


# --- control groups, for hosts where no systemd gives each node its own -------------------------------------------

def cgroup_folders(name: str) -> list[Path]:
    """Where a node's own control group lies: systemd's hierarchies only, nspawn looks at no other."""
    root = Path("/sys/fs/cgroup")
    bases = [root] if (root / "cgroup.controllers").exists() else [root / part for part in ("systemd", "unified")]
    return [base / name for base in bases if base.is_dir()]


def remove_cgroup(name: str) -> None:
    """Remove a node's control group with all that systemd made in it (deepest first); processes left in it are killed."""
    for top in cgroup_folders(name):
        if not top.is_dir():
            continue
        folders = sorted((Path(folder) for folder, _names, _files in os.walk(top)), key=lambda path: -len(path.parts))
        for folder in folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


def cgroup_processes(name: str) -> list[int]:
    found: set[int] = set()
    for top in cgroup_folders(name):
        for folder, _names, files in os.walk(top):
            if "cgroup.procs" in files:
                with contextlib.suppress(OSError):
                    found.update(int(line) for line in (Path(folder) / "cgroup.procs").read_text().split() if line != "0")
    return sorted(found)
