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
    try:
        content = b""
        while len(content) < limit:
            piece = os.read(descriptor, min(65536, limit - len(content)))
            if not piece:
                break
            content += piece
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return content.decode("utf-8", "replace").strip("\x00 \t\r\n")


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
