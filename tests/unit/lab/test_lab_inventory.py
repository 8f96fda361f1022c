# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

from gb10_lab import host, inventory, record


def a_lab():
    return record.Lab(
        name="pair", topology="pair", renderer="networkd", wheelhouse="", model="", cache="/c", image="/c/i", interface="gb10lab-000000",
        network="10.200.0.0/24", gateway="10.200.0.1",
        nodes=[record.Node("spark-a", 0, "pair-1", "10.200.0.11"), record.Node("spark-b", 1, "pair-2", "10.200.0.12")],
    )


def test_one_group_for_each_cluster_below_spark():
    data = inventory.inventory(a_lab())
    assert data["spark"]["children"] == ["pair-1", "pair-2"]
    assert data["pair-2"] == {"hosts": ["spark-b"]}
    assert data["_meta"]["hostvars"]["spark-b"] == {"ansible_host": "10.200.0.12"}


def test_host_keys_are_checked_against_the_labs_own_list():
    options = inventory.inventory(a_lab())["spark"]["vars"]["ansible_ssh_common_args"]
    assert f"UserKnownHostsFile={host.RUN}/pair/ssh/known_hosts" in options
    assert "StrictHostKeyChecking=no" not in options


def test_no_lab_is_an_error_with_its_cure(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(host, "RUN", tmp_path)
    monkeypatch.setenv("GB10_LAB", "engine")
    assert inventory.main() == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "No lab engine runs" in captured.err and "make demo" in captured.err and "lab_name=engine" in captured.err


def test_a_record_without_a_living_supervisor_is_no_lab(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "RUN", tmp_path)
    lab = a_lab()
    lab.save()
    lab.alive.touch()
    assert record.load("pair") == lab
    assert record.running("pair") is None
    assert json.loads((tmp_path / "pair" / "lab.json").read_text())["network"] == "10.200.0.0/24"
