# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import html.parser
import importlib.util
import re
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils import drawing, page, report
from hypothesis import HealthCheck, given, settings, strategies as st

ROOT = Path(__file__).parents[4]
VOID = {"meta", "link", "br", "img", "input", "hr"}
FLEETS = ["healthy_pair", "faulty_pair", "ring", "switch", "bare", "unplanned", "hostile", "everything"]


def load_samples():
    path = ROOT / "tests" / "unit" / "fixtures" / "report" / "samples.py"
    spec = importlib.util.spec_from_file_location("report_samples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


samples = load_samples()


class Walk(html.parser.HTMLParser):
    """Walks a page: every element is closed in order, ids are unique; keeps tags, attributes and text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text, self.ids = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def view_of(sample):
    return page.page_view(sample["clusters"], sample["fleet"], sample["facts"], sample["findings"], samples.OBSERVED_AT)


def walked(sample):
    text = page.page_text(view_of(sample))
    walk = Walk()
    walk.feed(text)
    walk.close()
    assert walk.open == []
    assert len(walk.ids) == len(set(walk.ids))
    return text, walk


@pytest.mark.parametrize("name", FLEETS)
def test_pages_are_well_formed_and_load_nothing(name):
    text, walk = walked(getattr(samples, name)())
    assert "script" not in walk.tags and "iframe" not in walk.tags and "img" not in walk.tags
    for tag, attribute, value in walk.attributes:
        assert not attribute.startswith("on"), (tag, attribute)
        if attribute in ("href", "src", "action", "data", "poster", "srcset", "xlink:href"):
            assert value.startswith("#") or value == "data:,", (tag, attribute, value)
            assert value == "data:," or value[1:] in walk.ids
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in style and "@import" not in style
    for part in ("prefers-color-scheme: dark", "@media print", "max-width: 600px"):
        assert part in style


@pytest.mark.parametrize("name", FLEETS)
def test_every_finding_node_and_source_is_on_the_page(name):
    sample = getattr(samples, name)()
    text, walk = walked(sample)
    words = " ".join(walk.text)
    for finding in sample["findings"]:
        for field in ("id", "what", "cure", "source"):
            assert finding["severity"] == "ok" and field != "id" or report.plain(finding[field]) in words
    for cluster in sample["clusters"]:
        for node in cluster["nodes"]:
            assert node in words
    assert "2026-11-30 22:25:00 UTC" in words


def test_hostile_text_stays_text():
    text, walk = walked(samples.hostile())
    assert "<script>" not in text and "<img" not in text and "\x1b" not in text and "\u202e" not in text
    words = " ".join(walk.text)
    assert "<script>alert(6)</script>" in words
    assert "{{ 7 * 7 }}" in words
    assert "hf_abcdef" not in text


def test_the_headline_and_counts():
    view = view_of(samples.faulty_pair())
    assert (view["verdict"], view["headline"]) == ("fail", "2 findings to mend first")
    assert view["counts"] == {"fail": 2, "warn": 3, "info": 3, "ok": 0, "silenced": 1}
    assert view_of(samples.healthy_pair())["headline"] == "All is well"
    # The same finding of two nodes is one card.
    assert [group["nodes"] for group in view["active"] if group["id"] == "memory.swap"] == [["spark-a", "spark-b"]]
    assert [group["silenced"] for group in view["silenced"]] == ["Runs here since July without trouble."]


def shapes(drawn, kind):
    return [shape for shape in drawn["shapes"] if shape["shape"] == kind]


def texts(drawn):
    return [shape["whole"] or shape["text"] for shape in shapes(drawn, "text")]


def wires(drawn, *kinds):
    return [shape for shape in shapes(drawn, "path") if set(kinds) <= set(shape["kind"].split())]


@pytest.mark.parametrize(
    ("name", "lines"), [("healthy_pair", 2), ("ring", 6), ("switch", 2 + 8), ("bare", 0), ("unplanned", 0)],
)
def test_the_wide_drawing_joins_what_is_joined(name, lines):
    drawn = view_of(getattr(samples, name)())["clusters"][0]["wide"]
    assert len(shapes(drawn, "path")) == lines


def test_lines_have_the_verdict_of_their_rails():
    drawn = view_of(samples.faulty_pair())["clusters"][0]["wide"]
    assert len(wires(drawn, "wire", "fail")) == 1 and len(wires(drawn, "wire", "warn")) == 1
    assert "200 Gb/s \u00b7 MTU 9000 vs 1500" in texts(drawn) and "200 vs 100 Gb/s \u00b7 MTU 9000" in texts(drawn)
    drawn = view_of(samples.ring())["clusters"][0]["wide"]
    assert len(wires(drawn, "wire", "ok")) == 5 and len(wires(drawn, "fail", "down")) == 1


def test_of_many_nodes_only_the_faulty_line_is_red():
    cluster = view_of(samples.switch(16, "hall"))["clusters"][0]
    assert len(wires(cluster["wide"], "fail")) == 1
    assert len(wires(cluster["wide"], "bus")) == 2 and not wires(cluster["wide"], "bus", "fail")
    assert {"spark-01", "spark-16"} <= set(texts(cluster["wide"])) & set(texts(cluster["narrow"]))


def loop():
    """A ring of four with both rails of each cable."""
    nodes = {}
    for number in range(4):
        other = (number + 1) % 4
        nodes[f"n{number}"] = {
            "enp1s0f0np0": f"10.0.{number}.1/24", "enP2p1s0f0np0": f"10.1.{number}.1/24",
            "enp1s0f1np1": f"10.0.{other}.2/24", "enP2p1s0f1np1": f"10.1.{other}.2/24",
        }
    return samples.fleet_of("loop", nodes, "ring")


def both_cages():
    """Four nodes with both cages on a switch."""
    nodes = {f"n{number}": {netdev: f"10.0.{place}.{number + 1}/24" for place, (netdev, _d, _c) in enumerate(samples.PORTS)} for number in range(4)}
    return samples.fleet_of("both", nodes, "switch")


def outside(drawn):
    """Shapes that reach out of a drawing."""
    sizes = {"box": lambda shape: (shape["width"], shape["height"]), "icon": lambda shape: (shape["size"], shape["size"])}
    found = []
    for shape in drawn["shapes"]:
        if shape["shape"] in ("box", "icon", "text", "dot"):
            width, height = sizes.get(shape["shape"], lambda shape: (0, 0))(shape)
            if not (0 <= shape["x"] and shape["x"] + width <= drawn["width"] and 0 <= shape["y"] and shape["y"] + height <= drawn["height"]):
                found.append(shape)
    return found


@pytest.mark.parametrize("sample", [*(getattr(samples, name) for name in FLEETS), lambda: samples.switch(16, "hall"), loop, both_cages])
@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_nothing_is_drawn_outside(sample, kind):
    for cluster in view_of(sample())["clusters"]:
        assert cluster[kind]["width"] == {"wide": drawing.WIDE, "narrow": drawing.NARROW}[kind]
        assert outside(cluster[kind]) == []


def test_a_ring_of_four_and_a_switch_with_both_cages_are_drawn_in_lanes():
    assert len(wires(view_of(loop())["clusters"][0]["wide"], "bus")) == 8
    assert len(wires(view_of(both_cages())["clusters"][0]["wide"], "bus")) == 4


def test_planned_addresses_that_are_not_set_are_told_apart():
    sample = samples.healthy_pair()
    samples.port(sample["facts"]["spark-a"], "enp1s0f0np0")["addresses"] = []
    drawn = view_of(sample)["clusters"][0]["wide"]
    faint = [shape["text"] for shape in shapes(drawn, "text") if "faint" in shape["kind"]]
    assert faint == ["192.168.100.10/24"]
    assert any(text.endswith("address not set") for text in texts(drawn))


def row(view, label):
    return next(row for row in view["clusters"][0]["matrix"]["rows"] if row["label"] == label)


def test_differences_in_the_matrix():
    view = view_of(samples.faulty_pair())
    assert [cell["odd"] for cell in row(view, "GSP firmware")["cells"]] == [True, True]
    assert row(view, "UEFI Device Firmware")["cells"][1]["value"] == "2.149.4 (pending: 2.155.11)"
    assert not row(view, "Driver")["differs"]
    assert view["clusters"][0]["matrix"]["different"] == 4
    view = view_of(samples.switch(16, "hall"))
    assert [group["nodes"] for group in row(view, "Driver")["groups"] if group["odd"]] == [["spark-07"]]


def test_makers_number_in_their_own_way_and_the_unknown_is_no_difference():
    sample = samples.healthy_pair()
    platform = sample["facts"]["spark-b"]["platform"]
    platform.update(vendor="ASUSTeK COMPUTER INC.", product="GX10", bios_version="GX10DGX.0105.2026")
    sample["facts"]["spark-b"]["gpu"]["driver"] = None
    view = view_of(sample)
    assert row(view, "Machine")["differs"]
    assert not row(view, "BIOS")["differs"] and not row(view, "Driver")["differs"]


def test_what_no_node_tells_is_named_below():
    assert "vLLM" in view_of(samples.bare())["clusters"][0]["matrix"]["unknown"]


def test_a_cluster_without_a_plan():
    view = view_of(samples.unplanned())
    assert view["clusters"][0]["plan"] is None
    assert "There is no plan" in page.page_text(view)


def test_no_cluster_at_all():
    text = page.page_text(page.page_view([], {"nodes": {}}, {}, [], samples.OBSERVED_AT))
    assert "No node was looked at." in text and "All is well" not in text


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
NAMES = st.sampled_from(
    ["gpu", "rdma", "platform", "kernel", "toolchain", "devices", "netdev", "name", "cage", "state", "addresses", "firmware", "bios", "release",
     "interfaces", "is_virtual_function", "link_layer", "link_speed_mbps", "rails", "prefix", "address", "subnet", "topology", "role"]
)
TREES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=6)), max_leaves=30)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(NAMES, TREES, max_size=5), min_size=1, max_size=5), st.dictionaries(NAMES, TREES, max_size=5), st.text(max_size=30))
def test_no_facts_whatever_break_the_page(facts, plan, words):
    nodes = [f"n{number}" for number in range(len(facts))]
    sample = {
        "clusters": [{"name": "c", "nodes": nodes}],
        "fleet": {"nodes": {"n0": plan}},
        "facts": dict(zip(nodes, facts)),
        "findings": [samples.finding("rail.x", "warn", "n0", "c", words, evidence=words)],
    }
    text, walk = walked(sample)
    assert "script" not in walk.tags


def test_a_line_without_addresses_is_a_plan_unless_something_is_wrong_with_it():
    sample = samples.healthy_pair()
    for facts in sample["facts"].values():
        for netdev in ("enp1s0f0np0", "enP2p1s0f0np0"):
            samples.port(facts, netdev)["addresses"] = []
    sample["findings"] = [samples.finding("rail.slow", "warn", "spark-a", "pair", "Rail enp1s0f0np0 is slow.")]
    drawn = view_of(sample)["clusters"][0]["wide"]
    assert len(wires(drawn, "planned")) == 1 and len(wires(drawn, "warn")) == 1


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["a.example.net", "b.example.net"], ["a", "b"]),
        (["a.example.net", "b.example.org"], ["a.example.net", "b.example.org"]),
        (["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
        (["a-node-with-a-long-name-that-no-card-holds-01", "b"], ["a-node-with-a-long-name-that-no-card-holds-01", "b"]),
        ([".x", ".x.y"], [".x", ".x.y"]),
    ],
)
def test_names_in_the_drawing_lose_the_domain_that_all_share(names, labels):
    sample = samples.fleet_of("c", {name: {} for name in names}, "pair")
    drawn = view_of(sample)["clusters"][0]
    for kind in ("wide", "narrow"):
        shown = [shape for shape in shapes(drawn[kind], "text") if shape["kind"].startswith("name")]
        assert [shape["whole"] or shape["text"] for shape in shown] == labels
        assert all(shape["text"].endswith(shape["whole"][-3:]) for shape in shown if shape["whole"])


def test_what_is_found_on_a_cluster_as_a_whole_marks_the_rail_of_the_subnet_it_names():
    sample = samples.healthy_pair()
    sample["findings"] = [
        samples.finding("mtu.rail_differs", "fail", None, "pair", "The ends of the rail in 192.168.101.0/24 have different MTUs."),
        samples.finding("mtu.rail_differs", "fail", None, "other", "The ends of the rail in 192.168.100.0/24 have different MTUs."),
        samples.finding("cluster.versions", "fail", None, "pair", "The nodes of 192.168.100.0/24 differ."),
    ]
    drawn = view_of(sample)["clusters"][0]["wide"]
    assert len(wires(drawn, "fail")) == 1 and len(wires(drawn, "ok")) == 1
    texts_in_order = [shape["text"] for shape in shapes(drawn, "text")]
    pills = [shape["kind"] for shape in shapes(drawn, "box") if shape["kind"].startswith("pill")]
    assert pills[[text for text in texts_in_order if text.endswith(".0/24")].index("192.168.101.0/24")] == "pill fail"
