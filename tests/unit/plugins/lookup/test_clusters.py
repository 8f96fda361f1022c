# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import stat

import pytest
from ansible.errors import AnsibleLookupError
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible_collections.gb10.fleet.plugins.lookup.clusters import LookupModule

FLEET = """\
spark:
  hosts:
    stray:
  children:
    second:
      hosts: {d: {}, c: {}}
    first:
      hosts: {a: {}}
      children:
        below:
          hosts: {b: {}}
    empty:
others:
  hosts: {a: {}}
"""

SCRIPT = """\
#!/bin/sh
echo '{"pair": {"hosts": ["y", "x"]}, "spark": {"children": ["pair"]}, "_meta": {"hostvars": {}}}'
"""


@pytest.fixture(name="lookup", scope="module")
def lookup_fixture():
    init_plugin_loader([])

    def lookup(*sources, terms=()):
        return LookupModule(loader=DataLoader()).run(list(terms), {"ansible_inventory_sources": [str(source) for source in sources]})

    return lookup


def test_child_groups_are_clusters_and_strays_are_told(lookup, tmp_path):
    (tmp_path / "hosts.yml").write_text(FLEET)
    assert lookup(tmp_path / "hosts.yml") == [
        {"name": "second", "nodes": ["d", "c"]},
        {"name": "first", "nodes": ["a", "b"]},
        {"name": "empty", "nodes": []},
        {"name": None, "nodes": ["stray"]},
    ]


def test_an_inventory_made_by_a_script(lookup, tmp_path):
    script = tmp_path / "fleet.sh"
    script.write_text(SCRIPT)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert lookup(script) == [{"name": "pair", "nodes": ["y", "x"]}]


def test_no_group_spark(lookup, tmp_path):
    (tmp_path / "hosts.yml").write_text("others: {hosts: {a: {}}}\n")
    with pytest.raises(AnsibleLookupError, match="has no group spark: write your nodes below spark: children"):
        lookup(tmp_path / "hosts.yml")


def test_no_inventory(lookup):
    with pytest.raises(AnsibleLookupError, match="no inventory to read: run with -i"):
        lookup()


def test_terms_are_refused(lookup):
    with pytest.raises(AnsibleLookupError, match="takes no terms; got: pair"):
        lookup("x", terms=["pair"])
