# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One way to run a program on a node: found by name, in the C locale, and never for longer than it may take."""

from __future__ import annotations

import os
import textwrap
import time
import typing as t

LIMIT_SECONDS = 20
# Between the request to end and the kill of a program that does not listen.
GRACE_SECONDS = 5
LATE, NOT_RUN, MISSING = 124, 126, 127
LONGEST_NAME = 100

Watch = t.Callable[[t.Sequence[str], int, str, str], None]

# Told of every program that was asked for, with its status, output and error.
_watch: Watch | None = None


def watch(watcher: Watch | None) -> None:
    """From now on tell `watcher` of every program, or nobody for None."""
    global _watch  # pylint: disable=global-statement
    _watch = watcher


def run(
    module: t.Any, argv: t.Sequence[str], limit: int = LIMIT_SECONDS, environment: t.Mapping[str, str] | None = None, grace: int | None = None,
    **options: t.Any,
) -> tuple[int, str, str]:
    """Run a program. Several threads may do so at once: neither this nor run_command changes anything that they share.

    Args:
        module: an AnsibleModule.
        argv: name or path of the program, and its arguments.
        limit: seconds that it may take, kept where the node has the program timeout.
        environment: variables beside the C locale.
        grace: seconds between the request to end and the kill of a program that does not listen.
        options: further ones of run_command.

    Returns:
        Status, standard output and standard error. As a shell has it, the status is 124 when the limit was reached, 126 when
        the program cannot be run and 127 when there is none; standard error is then one sentence without its full stop.
    """
    answer = _run(module, argv, limit, environment, GRACE_SECONDS if grace is None else grace, options)
    if _watch:
        _watch(argv, *answer)
    return answer


def _run(
    module: t.Any, argv: t.Sequence[str], limit: int, environment: t.Mapping[str, str] | None, grace: int, options: t.Mapping[str, t.Any]
) -> tuple[int, str, str]:
    path = argv[0] if os.path.isabs(argv[0]) else module.get_bin_path(argv[0])
    if path is None:
        return MISSING, "", f"{argv[0]} is not on this node; install the package that has it"
    command = [path, *argv[1:]]
    timeout = module.get_bin_path("timeout")
    if timeout:
        command = [timeout, "-k", str(grace), str(limit), *command]
    begin = time.monotonic()
    try:
        status, output, error = module.run_command(
            command, environ_update={"LANGUAGE": "C", "LC_ALL": "C", **(environment or {})}, expand_user_and_vars=False,
            handle_exceptions=False, **options,
        )
    except OSError as problem:
        return NOT_RUN, "", f"{path} cannot be run: {problem.strerror}"
    # timeout is killed along with the program that had to be killed.
    if timeout and (status == LATE or (status == -9 and time.monotonic() - begin >= limit)):
        name = textwrap.shorten(" ".join(argv), LONGEST_NAME, placeholder=" ...")
        return LATE, output, f"{name} did not end within {limit} s and was stopped"
    return status, output, error
