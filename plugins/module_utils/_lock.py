# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time works on the files of a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import typing as t

PAUSE_SECONDS = 0.2


class LockedError(Exception):
    """A sentence for the user: another run did not come to its end in time."""


@contextlib.contextmanager
def locked(folder: str, limit: float) -> t.Iterator[int]:
    """Wait until no other run holds the lock on a folder, then hold it.

    Args:
        folder: one that is there and that nobody removes meanwhile.
        limit: seconds to wait at most.

    Yields:
        The handle that holds the lock. A process that inherits it holds the lock as well, until it ends.

    Raises:
        LockedError: the limit was reached.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end = time.monotonic() + limit
        while not _taken(handle):
            if time.monotonic() >= end:
                raise LockedError(
                    f"Another run has held the lock on {folder} of this node for {limit} s and more: wait until it has ended,"
                    " then run again."
                )
            time.sleep(PAUSE_SECONDS)
        yield handle
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
