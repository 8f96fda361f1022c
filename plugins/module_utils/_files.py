# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small reads of text files, as /proc and /sys hold them: a file that is missing or refuses to be read is None."""

from __future__ import annotations

import os


def read_text(*parts: str, limit: int = 1 << 20) -> str | None:
    """Text of the file at the joined path without surrounding white space, or None where it cannot be read.

    Reading is by descriptor: one node has a thousand GID files, and a buffered file object costs three times as much.
    """
    try:
        descriptor = os.open(os.path.join(*parts), os.O_RDONLY)
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
            size = 1 << 20
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(pieces).decode("utf-8", "replace").strip("\x00 \t\r\n")


def read_number(*parts: str) -> int | None:
    """The file's content as a whole number, or None."""
    text = read_text(*parts)
    try:
        return int(text or "")
    except ValueError:
        return None


def list_names(*parts: str) -> list[str]:
    """Sorted names in the directory at the joined path, empty where there is none."""
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []


def link_target_name(*parts: str) -> str | None:
    """Last part of what the link at the joined path points to, or None where there is no link."""
    try:
        return os.path.basename(os.readlink(os.path.join(*parts)).rstrip("/")) or None
    except OSError:
        return None


def link_target(*parts: str) -> str | None:
    """What the link at the joined path points to, as written in it, or None where there is no link."""
    try:
        return os.readlink(os.path.join(*parts))
    except OSError:
        return None


def read_bytes(*parts: str, offset: int = 0, size: int = 1 << 16) -> bytes | None:
    """Up to `size` bytes of the file at the joined path from `offset` on, or None where it cannot be read."""
    try:
        descriptor = os.open(os.path.join(*parts), os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.pread(descriptor, size, offset)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def file_status(*parts: str) -> os.stat_result | None:
    """What stat says of the joined path, links followed, or None where nothing is."""
    try:
        return os.stat(os.path.join(*parts))
    except OSError:
        return None


def is_directory(*parts: str) -> bool:
    """Whether a directory is at the joined path, links followed."""
    return os.path.isdir(os.path.join(*parts))


def is_file(*parts: str) -> bool:
    """Whether an ordinary file is at the joined path, links followed."""
    return os.path.isfile(os.path.join(*parts))


def is_denied(*parts: str) -> bool:
    """Whether something is at the joined path that this user may not read."""
    path = os.path.join(*parts)
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return not os.access(path, os.R_OK)


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
