# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue

GOOD = {"id": "site.row", "kind": "driver", "exact": ["580.142"], "severity": "warn", "cure": "Update it."}
FLOOR = {"id": "site.floor", "kind": "disk_free_bytes", "path": "/tmp", "minimum": 5, "severity": "warn", "cure": "Make room."}


def test_every_row_is_whole():
    for name, row in catalogue.catalogue().items():
        assert set(row) <= {"severity", "title", "rule", "cause", "cure", "source", "cured_by", "visible"}, name
        assert row["severity"] in catalogue.SEVERITIES, name
        assert row["visible"] in ("facts", "plan", "rails", "gate"), name
        assert row["cured_by"] in (None, "site"), name
        assert all(isinstance(row[key], str) and row[key] for key in ("title", "rule", "source")), name
        assert row["cause"] or row["severity"] == "ok" or catalogue._IDENTIFIER.match(name), name
        assert catalogue._IDENTIFIER.match(name), name
        assert "shared" not in row["source"] and row["source"][-1] not in ",;", name


def test_rows_of_known_are_as_a_site_must_write_them():
    rows = catalogue.known()
    made = catalogue.known_with(rows["known_bad"], rows["floors"])
    assert [row["id"] for row in made["known_bad"]] == [row["id"] for row in rows["known_bad"]]
    assert all(row["strength"] in ("vendor", "measured", "report", "weak") for row in rows["known_bad"])
    assert not [row["id"] for row in rows["known_bad"] if row["strength"] == "weak" and row["severity"] == "fail"]


def test_a_finding_takes_from_the_catalogue_what_is_not_given():
    made = catalogue.finding("mtu.rail_differs", None, None, "They differ.", evidence="9000, 1500", cluster="pair")
    assert (made["severity"], made["cured_by"], made["cluster"], made["silenced"]) == ("fail", "site", "pair", None)
    assert made["cure"].startswith("Set 9000") and "PR 2135" in made["source"] and made["cause"]
    own = catalogue.finding("mtu.rail_differs", "info", "spark-a", "They differ.", "", cause="Mine.", source="Mine too.")
    assert (own["severity"], own["cure"], own["cause"], own["source"]) == ("info", "", "Mine.", "Mine too.")


def test_findings_of_a_node_are_completed():
    (made,) = catalogue.complete(
        [{"id": "rail.link_down", "severity": "fail", "node": "spark-a", "what": "No link.", "evidence": "no carrier", "cause": "", "cure": "Plug it in.",
          "source": ""}]
    )
    assert made["cause"] == catalogue.catalogue()["rail.link_down"]["cause"]
    assert (made["cure"], made["evidence"], made["source"]) == ("Plug it in.", "no carrier", "kernel")
    assert (made["cluster"], made["silenced"], made["cured_by"]) == (None, None, None)
    (unknown,) = catalogue.complete([{"id": "rail.new", "severity": "ok", "what": "Well."}])
    assert (unknown["severity"], unknown["cure"], unknown["node"]) == ("ok", "", None)


def two():
    return [catalogue.finding("disk.space", None, node, "Small.", evidence="3") for node in ("spark-a", "spark-b")]


def test_a_silence_of_one_node_and_of_all():
    found = catalogue.silence(two(), {"disk.space@spark-a": "It is a lab."}, ["spark-a", "spark-b"])
    assert [one["silenced"] for one in found] == ["It is a lab.", None]
    assert [one["node"] for one in catalogue.counting(found)] == ["spark-b"]
    assert [one["node"] for one in catalogue.order(found)] == ["spark-b", "spark-a"]
    found = catalogue.silence(two(), {"disk.space": " It is a lab. "}, ["spark-a", "spark-b"])
    assert [one["silenced"] for one in found] == ["It is a lab."] * 2
    assert catalogue.counting(found) == []


@pytest.mark.parametrize("silences", [
    {"disk.space": ""}, {"disk.space": None}, {"disk.space@spark-z": "because"}, {"disk.spaec": "because"}, ["disk.space"], "disk.space",
])
def test_a_silence_that_does_nothing_is_a_finding(silences):
    found = catalogue.silence(two(), silences, ["spark-a", "spark-b"])
    assert [one["id"] for one in found] == ["disk.space", "disk.space", "settings.silence"]
    assert [one["silenced"] for one in found] == [None] * 3
    assert found[2]["evidence"] and found[2]["cure"]


def test_no_silences():
    assert catalogue.silence(two(), None, []) == catalogue.silence(two(), {}, []) == two()


def test_rows_of_a_site_add_to_and_replace_those_of_the_collection():
    made = catalogue.known_with([GOOD, {**GOOD, "id": "kernel.kho"}], [FLOOR])
    assert made["known_bad"][-1]["source"] == "the inventory's spark_known_bad"
    assert next(row for row in made["known_bad"] if row["id"] == "kernel.kho")["kind"] == "driver"
    assert made["floors"][-1]["minimum"] == 5
    assert catalogue.known_with(None, None)["floors"] == catalogue.known()["floors"]


@pytest.mark.parametrize("bad, word", [
    ("driver", "write it as a list"), (["driver"], "no id"), ([{**GOOD, "id": "site"}], "no id"), ([{**GOOD, "kind": "disk"}], "kind is disk"),
    ([{**GOOD, "severity": "bad"}], "severity is bad"), ([{**GOOD, "cure": None}], "cure is missing"), ([{**GOOD, "exact": 580}], "exact is 580"),
    ([{**GOOD, "from": 580}], "from is 580"), ([{key: value for key, value in GOOD.items() if key != "exact"}], "matches nothing"),
    ([{**GOOD, "kind": "firmware"}], "guid is missing"), ([{**GOOD, "kind": "package"}], "name is missing"),
])
def test_a_row_of_known_bad_that_is_not_understood(bad, word):
    with pytest.raises(catalogue.KnownError, match=word) as error:
        catalogue.known_with(bad, None)
    assert "spark_known_bad" in str(error.value)


@pytest.mark.parametrize("change, word", [
    ({"minimum": "5"}, "minimum is 5"), ({"minimum": True}, "minimum is True"), ({"path": "tmp"}, "path is tmp"), ({"kind": "driver"}, "minimum is 5"),
])
def test_a_row_of_floors_that_is_not_understood(change, word):
    with pytest.raises(catalogue.KnownError, match=word):
        catalogue.known_with(None, [{**FLOOR, **change}])
