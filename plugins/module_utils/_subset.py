# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of gather_subset, as the network facts modules understand them."""

from __future__ import annotations


def resolve_subset(requested: list[str], known: tuple[str, ...], minimum: tuple[str, ...]) -> list[str]:
    """Names to gather, in the order of `known`.

    `all` means every name, `min` the minimum, NAME adds one, `!NAME` takes one away. The minimum is always part of it
    unless `!min` or `!NAME` takes it away; `!all` leaves the minimum. A list of exclusions only is taken off everything.
    Raises ValueError with a sentence for an unknown word.
    """
    allowed = set(known) | {"all", "min"}
    chosen: set[str] = set()
    excluded: set[str] = set()
    only_named = False
    for word in requested:
        name = word[1:] if word.startswith("!") else word
        if name not in allowed:
            raise ValueError(
                f"gather_subset has the unknown word '{word}'; use all, min, {', '.join(known)}, "
                "or one of them with a leading '!'."
            )
        members = set(known) if name == "all" else set(minimum) if name == "min" else {name}
        if word == "!all":
            only_named = True
        elif word.startswith("!"):
            excluded |= members
        else:
            only_named = True
            chosen |= members
    wanted = (chosen | set(minimum) if only_named else set(known)) - excluded
    return [name for name in known if name in wanted]
