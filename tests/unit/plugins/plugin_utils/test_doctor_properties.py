# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the doctor whatever the facts lack: it judges only what it knows, and never raises."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue, doctor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures/doctor"))
import healthy  # noqa: E402

PAIR = healthy.Pair()
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=8), st.just([]), st.just({}),
    st.just([None, 3, {}]), st.just({"a": 1}),
)
NOBODY_IS_ILL = ("fail", "warn")


def paths(value, so_far=()):
    """Every place of a structure, containers too."""
    if so_far:
        yield so_far
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from paths(entry, (*so_far, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from paths(entry, (*so_far, number))


PLACES = sorted(paths(PAIR.a), key=str)


def replaced(facts, place, value):
    """Puts a value at a place, if the place is still there."""
    target = facts
    for step in place[:-1]:
        try:
            target = target[step]
        except (KeyError, IndexError, TypeError):
            return
    try:
        target[place[-1]] = value
    except (KeyError, IndexError, TypeError):
        return


def removed(facts, place):
    """Takes a key away, if the place is still there."""
    target = facts
    for step in place[:-1]:
        try:
            target = target[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(target, dict):
        target.pop(place[-1], None)


def judged(facts):
    """Findings of a pair of which spark-a has these facts."""
    pair = healthy.Pair()
    pair.facts["spark-a"] = facts
    return doctor.diagnose(pair.fleet, pair.hostvars, pair.clusters)


def test_a_healthy_pair_has_nothing_to_mend():
    found = judged(copy.deepcopy(PAIR.a))
    assert [one for one in found if one["severity"] in NOBODY_IS_ILL] == []
    assert {one["node"] for one in found if one["id"] == "node.healthy"} == {"spark-a", "spark-b"}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PLACES), max_size=6))
def test_what_was_not_gathered_or_is_null_is_not_judged(gone):
    without, null = (copy.deepcopy(PAIR.a) for _each in range(2))
    for place in gone:
        removed(without, place)
        # An element of a list is never null, and the null of a GID's ipv4 says that it is no IPv4 address.
        if not isinstance(place[-1], int) and place[-1] != "ipv4":
            replaced(null, place, None)
    for facts in (without, null):
        assert [one for one in judged(facts) if one["severity"] in NOBODY_IS_ILL] == []


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), max_size=6))
def test_no_facts_whatever_make_a_rule_raise(odd):
    facts = copy.deepcopy(PAIR.a)
    for place, value in odd:
        replaced(facts, place, value)
    for one in judged(facts):
        assert one["id"] in catalogue.catalogue()
        assert one["severity"] in catalogue.SEVERITIES
        json.dumps(one)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(("gpu", "rdma", "platform", "kernel", "memory", "toolchain", "services", "proven", "unread")), ODD))
def test_a_node_with_hardly_any_facts(facts):
    judged(facts)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.lists(st.integers(0, 10**6), min_size=1, max_size=4))
def test_versions_compare_by_their_numbers(one, other):
    def text(parts):
        return ".".join(map(str, parts))

    assert (doctor.version_key(text(one)) < doctor.version_key(text(other))) == (tuple(one) < tuple(other))
