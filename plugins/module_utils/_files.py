# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small reads of text files, as /proc and /sys hold them: a file that is missing or refuses to be read is None."""

from __future__ import annotations

import os
import stat
import typing as t

Watch = t.Callable[[str, str, t.Any], t.Any]

# Told of every read: what was asked (text, bytes, names, link, status or denied), the path, and the answer.
_watch: Watch | None = None


def watch(watcher: Watch | None) -> None:
    """From now on tell `watcher` of every read, or nobody for None."""
    global _watch  # pylint: disable=global-statement
    _watch = watcher


# The six functions below are all that touches the file system.


def _read_whole(path: str, limit: int) -> bytes | None:
    """Reading is by descriptor: one node has a thousand GID files, and a buffered file object costs three times as much."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    pieces = []
    size, left = 1 << 16, limit
    try:
        while left > 0:
            piece = os.read(descriptor, min(size, left))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
            # So little is all: the kernel ends a read early only when the next line does not fit into a page.
            if len(piece) < 256:
                break
            size = 1 << 20
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def _read_part(path: str, offset: int, size: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.pread(descriptor, size, offset)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _list(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_denied(path: str) -> bool:
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return not os.access(path, os.R_OK)


def read_text(*parts: str, limit: int = 1 << 20) -> str | None:
    """Text of the file at the joined path without surrounding white space, or None where it cannot be read."""
    path = os.path.join(*parts)
    content = _read_whole(path, limit)
    text = None if content is None else content.decode("utf-8", "replace").strip("\x00 \t\r\n")
    # The watcher says what counts, so that a file that changes all the time (/proc/meminfo) reads the same twice.
    return _watch("text", path, text) if _watch else text


def read_number(*parts: str) -> int | None:
    """The file's content as a whole number, or None."""
    text = read_text(*parts)
    try:
        return int(text or "")
    except ValueError:
        return None


def list_names(*parts: str) -> list[str]:
    """Sorted names in the directory at the joined path, empty where there is none."""
    path = os.path.join(*parts)
    names = _list(path)
    if _watch:
        _watch("names", path, names)
    return names


def link_target(*parts: str) -> str | None:
    """What the link at the joined path points to, as written in it, or None where there is no link."""
    path = os.path.join(*parts)
    target = _read_link(path)
    if _watch:
        _watch("link", path, target)
    return target


def link_target_name(*parts: str) -> str | None:
    """Last part of what the link at the joined path points to, or None where there is no link."""
    return os.path.basename((link_target(*parts) or "").rstrip("/")) or None


def read_bytes(*parts: str, offset: int = 0, size: int = 1 << 16) -> bytes | None:
    """Up to `size` bytes of the file at the joined path from `offset` on, or None where it cannot be read."""
    path = os.path.join(*parts)
    content = _read_part(path, offset, size)
    if _watch:
        _watch("bytes", path, (offset, content))
    return content


def file_status(*parts: str) -> os.stat_result | None:
    """What stat says of the joined path, links followed, or None where nothing is."""
    path = os.path.join(*parts)
    status = _status(path)
    if _watch:
        _watch("status", path, status)
    return status


def is_directory(*parts: str) -> bool:
    """Whether a directory is at the joined path, links followed."""
    status = file_status(*parts)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_file(*parts: str) -> bool:
    """Whether an ordinary file is at the joined path, links followed."""
    status = file_status(*parts)
    return status is not None and stat.S_ISREG(status.st_mode)


def is_denied(*parts: str) -> bool:
    """Whether something is at the joined path that this user may not read."""
    path = os.path.join(*parts)
    denied = _is_denied(path)
    if _watch:
        _watch("denied", path, denied)
    return denied


def follow_links(root: str, path: str) -> str:
    """The path below `root` with its links followed. An absolute link leads from `root`, as it does on the node itself."""
    waiting = path.split("/")[::-1]
    done: list[str] = []
    left = 40
    while waiting:
        part = waiting.pop()
        if part == "..":
            del done[-1:]
        elif part not in ("", "."):
            target = link_target(root, *done, part) if left else None
            if target is None:
                done.append(part)
            else:
                left -= 1
                done = [] if target.startswith("/") else done
                waiting += target.split("/")[::-1]
    return "/".join(done)
