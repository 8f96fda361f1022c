# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each finding appears with its evidence where it shall, and not on a healthy pair."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils import catalogue, doctor

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests/unit/fixtures/doctor"))
import healthy  # noqa: E402

RAIL, TWIN = "enp1s0f0np0", "enP2p1s0f0np0"
A, B = "spark-a", "spark-b"


@pytest.fixture(name="pair")
def pair_fixture():
    return healthy.Pair()


def diagnose(pair):
    return doctor.diagnose(pair.fleet, pair.hostvars, pair.clusters)


def unread(reason):
    def bend(pair):
        pair.a["unread"] = [{"subset": "gpu", "source": "nvidia-smi", "reason": reason, "evidence": "status 9"}]
    return bend


def setting(subset, **values):
    """Bends a subset of spark-a."""
    return lambda pair: pair.a[subset].update(values)


def on_b(subset, **values):
    return lambda pair: pair.b[subset].update(values)


def port(netdev, node=A, **values):
    return lambda pair: pair.port(node, netdev).update(values)


def gpu(**values):
    return lambda pair: pair.a["gpu"]["devices"][0].update(values)


def device(**values):
    """Bends the first fwupd device of spark-a."""
    return lambda pair: pair.a["platform"]["firmware"]["devices"][0].update(values)


def driver(version):
    def bend(pair):
        pair.a["gpu"].update(driver=version, library_version=version, module_version=version)
        pair.a["gpu"]["devices"][0]["gsp_firmware"] = version
    return bend


def no_card(functions):
    def bend(pair):
        pair.single()
        pair.a["rdma"].update(state="no_device", devices=[], cages={}, nic_functions=functions)
    return bend


def both(*bends):
    def bend(pair):
        for each in bends:
            each(pair)
    return bend


def filesystem(path, **values):
    def bend(pair):
        next(row for row in pair.a["platform"]["filesystems"] if row["path"] == path).update(values)
    return bend


def variable(name, value):
    def bend(pair):
        pair.a["toolchain"]["environment"] = [{"name": name, "value": value, "file": "/etc/environment", "line": 4, "kind": "system"}]
    return bend


def variables(**values):
    return lambda pair: pair.variables[A].update(values)


def bridge_out(pair):
    pair.a["platform"]["interfaces"][1]["addresses"] = ["10.20.30.8/24"]
    pair.a["platform"]["own_address"] = ["10.20.30.8"]


def wifi(pair):
    pair.a["platform"]["interfaces"].append({"name": "wlP9s9", "driver": "mt7925e", "state": "up", "addresses": []})


def after_set_up(bend):
    return both(lambda pair: pair.set_up(), bend)


# id: (how a healthy pair is bent, where the finding is, its severity, what the evidence must hold)
SHOWN = {
    "facts.late": (unread("late"), A, "warn", "status 9"),
    "facts.failed": (unread("failed"), A, "warn", "status 9"),
    "facts.not_understood": (unread("not_understood"), A, "warn", "status 9"),
    "facts.denied": (unread("denied"), A, "info", "status 9"),
    "node.other_machine": (setting("platform", is_spark=False, vendor="Supermicro"), A, "info", "Supermicro"),
    "node.become": (variables(spark_refused={"task": "Become root", "message": "a password is required"}), A, "fail", "a password is required"),
    "node.refused": (variables(spark_refused={"task": "Look at the model", "message": "no such folder"}), A, "fail", "Look at the model"),
    "toolchain.wheelhouse": (variables(vllm_wheelhouse_found={"path": "/srv/wheels", "problems": ["It has no ray."]}), A, "fail", "/srv/wheels"),
    "model.source": (variables(model_source_found={"exists": True, "problems": ["a.safetensors is a dangling link"]}), A, "fail", "1 problems"),
    "model.foreign": (variables(model_source_found={"installed": {"foreign": True}}), A, "fail", "/var/lib/gb10/models/small"),
    "gpu.absent": (setting("gpu", state="absent", devices=[], reason="The driver sees no GPU."), A, "fail", "580.142"),
    "gpu.other": (gpu(name="NVIDIA H200", compute_capability="9.0"), A, "info", "9.0"),
    "gpu.needs_reset": (both(setting("gpu", state="needs_reset"), gpu(recovery_action="Reset")), A, "fail", "Reset"),
    "gpu.degraded": (setting("gpu", state="degraded", warnings=["WARNING: infoROM is corrupted"]), A, "warn", "infoROM is corrupted"),
    "gpu.gsp_mismatch": (gpu(gsp_firmware="580.126.09"), A, "fail", "580.126.09"),
    "gpu.busy": (gpu(processes=[{"pid": 6330, "name": "sglang", "used_memory_bytes": 96 * 1024**3}]), A, "info", "sglang (6330)"),
    "driver.mismatch": (setting("gpu", state="driver_mismatch", library_version="580.159.03"), A, "fail", "580.159.03"),
    "driver.packages_differ": (setting("kernel", driver_packages=[{"name": "nvidia-modprobe", "version": "610.57.04-1ubuntu1"}]), A, "warn", "610.57.04"),
    "rdma.no_cable": (no_card(0), A, "info", "dgx-spark-mlnx-hotplug enabled"),
    "rdma.no_driver": (no_card(4), A, "fail", "nic_functions 4"),
    "rdma.no_subnet_manager": (port(RAIL, link_layer="InfiniBand", state="DOWN"), A, "warn", "state DOWN"),
    "rdma.counters": (port(RAIL, counters={"symbol_error": 120000}), A, "warn", "symbol_error 120000"),
    "rdma.virtual_functions": (setting("rdma", virtual_functions=2), A, "info", "virtual_functions 2"),
    "rail.slow": (port(RAIL, rate_gbps=100.0, link_speed_mbps=100000), A, "fail", "rate 100.0"),
    "rail.no_address": (after_set_up(port(TWIN, addresses=[], gids=[])), A, "fail", "enP2p1s0f0np0: none"),
    "rail.twins_one_subnet": (
        port(TWIN, addresses=["192.168.100.12/24"], gids=[{"index": 3, "type": "RoCE v2", "ipv4": "192.168.100.12"}]), A, "warn", "192.168.100.12/24",
    ),
    "rail.no_gid": (port(TWIN, gids=[{"index": 2, "type": "RoCE v1", "ipv4": "192.168.101.10"}]), A, "fail", "none"),
    "rail.gid_index": (port(TWIN, gids=[{"index": 5, "type": "RoCE v2", "ipv4": "192.168.101.10"}]), None, "info", "spark-a roceP2p1s0f0 5"),
    "mtu.low": (after_set_up(port(RAIL, netdev_mtu=1500, expected_active_mtu=1024, active_mtu=1024)), A, "warn", "enp1s0f0np0 1500"),
    "mtu.twins_differ": (after_set_up(port(RAIL, netdev_mtu=4200)), A, "fail", "enp1s0f0np0 4200, enP2p1s0f0np0 9000"),
    "mtu.rail_differs": (after_set_up(port(RAIL, netdev_mtu=4200)), None, "fail", "spark-a enp1s0f0np0 4200"),
    "mtu.active": (port(RAIL, active_mtu=1024), A, "fail", "active_mtu 1024"),
    "pcie.width": (port(TWIN, pcie={"speed": "32.0 GT/s", "width": 2, "max_speed": "32.0 GT/s", "max_width": 4}), A, "fail", "x2"),
    "pcie.speed": (port(TWIN, pcie={"speed": "16.0 GT/s PCIe", "width": 4}), A, "fail", "16.0 GT/s"),
    "kernel.next_boot_no_module": (setting("kernel", next_boot="6.17.0-1032-nvidia", next_boot_has_nvidia=False), A, "fail", "grubenv saved_entry"),
    "kernel.next_boot_differs": (setting("kernel", next_boot="6.17.0-1032-nvidia"), A, "info", "grubenv saved_entry"),
    "kernel.pending_reboot": (setting("kernel", pending_reboot=True, pending_reboot_packages=["linux-image"]), A, "info", "linux-image"),
    "kernel.interrupted": (setting("kernel", interrupted=["nvidia-utils-580"]), A, "fail", "nvidia-utils-580"),
    "kernel.held": (setting("kernel", held=["vim"]), A, "info", "vim"),
    "kernel.wifi": (wifi, A, "info", "mt7925e"),
    "firmware.staged": (device(update_state="needs-reboot", needs_reboot=True, pending_version="2.156.1"), A, "warn", "needs-reboot"),
    "firmware.failed": (device(update_state="failed", update_error="battery level is too low"), A, "warn", "battery level is too low"),
    "firmware.available": (device(upgrades=["2.156.1"]), A, "info", "2.155.11 to 2.156.1"),
    "firmware.bios_differs": (setting("platform", bios={"running": "5.36_0ACUM018", "installed": "5.36_0ACUM023", "staged": True}), A, "warn", "0ACUM018"),
    "memory.less": (setting("memory", total_bytes=int(113.9 * 1024**3)), A, "warn", "113.9 GiB"),
    "memory.swap": (setting("memory", swap_free_bytes=17179865088 - 13 * 1024**3), A, "warn", "/swap.img"),
    "memory.swappiness": (setting("memory", swappiness=60), A, "info", "swappiness 60"),
    "memory.page_cache": (setting("memory", free_bytes=5 * 1024**3, page_cache_bytes=100 * 1024**3), A, "info", "page cache 100.0 GiB"),
    "memory.memlock": (setting("memory", memlock={"soft": 8388608, "hard": 8388608}), A, "info", "8388608"),
    "disk.space": (filesystem("/opt/gb10", free_bytes=3 * 10**9), A, "fail", "free_bytes 3000000000"),
    "disk.inodes": (filesystem("/var/lib/gb10", inodes_free=64), A, "fail", "inodes_free 64"),
    "toolchain.stray": (setting("toolchain", strays=[{"what": "torch", "path": "/usr/lib/torch", "version": "2.4"}]), A, "warn", "torch 2.4"),
    "services.remove_ipc": (setting("toolchain", strays=[{"what": "vllm", "path": "/home/u/.local/bin/vllm"}]), A, "info", "RemoveIPC"),
    "environment.visible_devices": (variable("CUDA_VISIBLE_DEVICES", "1"), A, "warn", "/etc/environment:4"),
    "environment.nccl": (variable("NCCL_IB_GID_INDEX", "3"), A, "warn", "NCCL_IB_GID_INDEX=3 in /etc/environment:4, which is 3, and the table"),
    "environment.nccl_wrong": (variable("NCCL_IB_GID_INDEX", "2"), A, "fail", "which is RoCE v1 192.168.100.10 on rocep1s0f0"),
    "environment.preload": (variable("LD_PRELOAD", "/opt/lib/libnccl.so.2"), A, "warn", "libnccl.so.2"),
    "apt.conflict": (
        setting("toolchain", repository_conflicts=[{"uri": "https://x.invalid/", "files": ["a", "b"], "keys": ["k", None]}]), A, "fail", "k, none",
    ),
    "services.cdi": (setting("services", docker={"installed": True, "cdi_files": [], "cdi_enabled": True}), A, "warn", "files []"),
    "services.earlyoom": (setting("services", earlyoom={"installed": True, "active": True, "arguments": "-m 5"}), A, "warn", "-m 5"),
    "services.sshd_oom": (setting("services", sshd_oom_score_adjust=0), A, "info", "oom_score_adj 0"),
    "services.unattended": (
        setting("services", unattended_upgrades={"enabled": True, "may_change_driver": True, "evidence": "takes NVIDIA"}), A, "warn", "takes NVIDIA",
    ),
    "services.apt_lock": (setting("services", apt_lock={"holder": "apt-get", "pid": 77}), A, "info", "pid 77"),
    "services.firewall": (setting("services", firewall={"kind": "ufw", "active": True}), A, "info", "ufw active"),
    "services.port_taken": (setting("services", ports=[{"port": 8000, "address": "0.0.0.0", "protocol": "tcp"}]), A, "fail", "0.0.0.0:8000"),
    "names.own": (setting("platform", own_address=["127.0.1.1"]), A, "info", "127.0.1.1"),
    "names.peer": (setting("platform", names={B: ["203.0.113.9"]}), A, "warn", "spark-b has 10.20.30.8"),
    "names.address_twice": (bridge_out, None, "fail", "10.20.30.8: spark-a enP7s7, spark-b enP7s7"),
    "clock.unsynchronized": (setting("platform", clock={"synchronized": False}), A, "warn", "unsynchronized"),
    "clock.apart": (setting("platform", clock={"synchronized": True, "window": [5.0, 5.2]}), None, "warn", "spark-a 5.00 to 5.20 s"),
    "cluster.driver": (driver("580.159.09"), None, "fail", "spark-a 580.159.09, spark-b 580.142"),
    "cluster.kernel": (setting("kernel", running="6.17.0-1032-nvidia"), None, "warn", "spark-a 6.17.0-1032-nvidia"),
    "cluster.next_kernel": (setting("kernel", next_boot="6.17.0-1032-nvidia"), None, "warn", "spark-a 6.17.0-1032-nvidia"),
    "cluster.held": (setting("kernel", held=["nvidia-driver-580-open"]), None, "info", "nvidia-driver-580-open on spark-a only"),
    "cluster.cuda": (setting("gpu", cuda_version="13.1"), None, "warn", "spark-a 13.1"),
    "cluster.vbios": (gpu(vbios="9A.0B.2D.00.00"), None, "warn", "9A.0B.2D.00.00"),
    "cluster.nic_firmware": (port(RAIL, firmware="28.46.1000"), None, "warn", "28.46.1000"),
    "cluster.psid": (port(RAIL, psid="MT_0000000838"), None, "warn", "MT_0000000838"),
    "cluster.bios": (setting("platform", bios_version="5.36_0ACUM027"), None, "warn", "5.36_0ACUM027"),
    "cluster.firmware": (device(version="2.149.4"), None, "warn", "spark-a 2.149.4"),
    "cluster.dgx_os": (lambda pair: pair.a["platform"]["dgx"].update(ota_version="7.6.0"), None, "warn", "spark-a 7.6.0"),
    "cluster.os": (lambda pair: pair.a["platform"]["os"].update(pretty_name="Ubuntu 24.04.5 LTS"), None, "warn", "24.04.5"),
    "cluster.python": (setting("toolchain", python="3.12.7"), None, "warn", "3.12.7"),
    "cluster.release": (after_set_up(lambda pair: pair.a["toolchain"]["release"].update(key="other")), None, "fail", "spark-a other"),
    "cluster.nccl": (lambda pair: pair.a["toolchain"]["nccl_libraries"][0].update(build_id="00ff"), None, "fail", "spark-a 00ff"),
    "cluster.machine_id": (setting("platform", machine_id_digest="0a1b2c3d4e51"), None, "warn", "spark-a and spark-b"),
    "settings.silence": (variables(spark_silenced_findings={"no.such": "because"}), None, "warn", "no.such: because"),
    "settings.known": (variables(spark_known_bad=[{"id": "site.row"}]), None, "fail", "spark_known_bad"),
    # Rows of known.yml.
    "kernel.kho": (setting("kernel", running="7.0.0-1019-nvidia"), A, "fail", "7.0.0-1019-nvidia"),
    "kernel.panics": (setting("kernel", running="6.17.0-1008-nvidia"), A, "warn", "6.17.0-1008"),
    "kernel.hotplug": (lambda pair: None, A, "info", "6.17.0-1029"),
    "driver.branch": (driver("590.48.01"), A, "fail", "590.48.01"),
    "driver.newer_branch": (driver("610.57.04"), A, "warn", "610.57.04"),
    "driver.gsp_timeout": (driver("580.173.02"), A, "info", "580.173.02"),
    "driver.not_permitted": (driver("580.159.03"), A, "info", "580.159.03"),
    "driver.floor": (driver("580.82.07"), A, "fail", "580.82.07, lowest 580.95.05"),
    "dgx_os.february": (lambda pair: pair.a["platform"]["dgx"].update(ota_version="7.4.0"), A, "warn", "7.4.0"),
    "bios.narrow_link": (setting("platform", oem="msi", bios_date="12/11/2025"), A, "warn", "2025.12.11"),
    "nic_firmware.floor": (port(RAIL, firmware="28.42.1000"), A, "warn", "28.42.1000"),
}
# The kernel of the healthy pair is on a list whose source is weak, which is worth an info.
AT_REST = {"kernel.hotplug"}
FACTS = {name for name, row in catalogue.catalogue().items() if row["visible"] == "facts"}


def test_a_healthy_pair(pair):
    assert {(found["id"], found["severity"]) for found in diagnose(pair)} == {("kernel.hotplug", "info"), ("node.healthy", "ok")}


@pytest.mark.parametrize("identifier", sorted(SHOWN))
def test_a_finding_is_seen_where_it_is(pair, identifier):
    bend, node, severity, evidence = SHOWN[identifier]
    assert identifier in AT_REST or identifier not in {found["id"] for found in diagnose(pair)}
    bend(pair)
    found = [one for one in diagnose(pair) if one["id"] == identifier]
    assert {(one["node"], one["severity"]) for one in found} >= {(node, severity)}, found
    one = next(one for one in found if one["node"] == node)
    assert evidence in one["evidence"], one["evidence"]
    assert all(one[part] for part in ("what", "cause", "source")), one
    assert one["cure"] or identifier in ("node.other_machine", "gpu.other"), one
    assert "../shared" not in str(one)


def test_every_finding_of_facts_is_tested():
    assert FACTS - set(SHOWN) == {"node.healthy"}
    assert set(SHOWN) - set(catalogue.catalogue()) == set()


def used(path):
    """Ids that a file of ours uses, except those that it builds."""
    words = re.findall(r'"([a-z_]+\.[a-z0-9_]+)"', (ROOT / path).read_text(encoding="utf-8"))
    return {word for word in words if word.partition(".")[0] in ROOMS}


ROOMS = {name.partition(".")[0] for name in catalogue.catalogue()}
CODE = ("plugins/plugin_utils/doctor.py", "plugins/plugin_utils/plan.py", "plugins/plugin_utils/catalogue.py", "plugins/modules/rail_check.py")


def test_ids_of_the_code_and_of_the_catalogue_are_the_same():
    in_code = set().union(*(used(path) for path in CODE)) | {f"facts.{reason}" for reason in ("late", "denied", "failed", "not_understood")}
    known = {row.get("finding", row["id"]) for rows in ("known_bad", "floors") for row in catalogue.known()[rows]}
    assert in_code - set(catalogue.catalogue()) == set()
    assert {name for name, row in catalogue.catalogue().items() if row["visible"] != "gate"} - in_code - known == set()


# --- what is no fault --------------------------------------------------------------------------------------------------


def seen(pair):
    return {found["id"] for found in diagnose(pair)} - AT_REST - {"node.healthy"}


def test_what_is_no_fault_of_a_gb10(pair):
    for facts in pair.facts.values():
        facts["gpu"]["devices"][0].update(pcie={"generation": 1, "width": 1}, memory_total_bytes=None, power_cap="Active", inforom=None)
        for device_ in facts["rdma"]["devices"]:
            device_.update(active_speed="100.0 Gbps (128)", active_width="2X (16)")
    assert seen(pair) == set()


def test_a_single_node_without_a_cable_is_well_and_one_of_a_cluster_is_the_plans(pair):
    pair.a["rdma"].update(state="no_device", devices=[], cages={}, nic_functions=0)
    assert "rdma.no_cable" not in seen(pair)
    pair.single()
    assert "rdma.no_cable" in seen(pair)


def test_kho_off_is_well_and_an_unknown_command_line_is_not_judged(pair):
    pair.a["kernel"]["running"] = "7.0.0-1019-nvidia"
    pair.a["kernel"]["kho"] = "off"
    assert "kernel.kho" not in seen(pair)
    pair.a["kernel"].update(kho=None, command_line=None)
    assert "kernel.kho" not in seen(pair)


def test_another_machine_is_not_judged_as_a_spark(pair):
    for facts in pair.facts.values():
        facts["platform"].update(is_spark=False)
        facts["gpu"].update(driver="610.57.04", library_version="610.57.04", module_version="610.57.04")
        facts["gpu"]["devices"][0].update(name="NVIDIA H200", gsp_firmware="610.57.04")
        facts["kernel"]["driver_packages"] = []
        facts["rdma"]["devices"][0].update(rate_gbps=100.0, link_speed_mbps=100000, pcie={"speed": "16.0 GT/s", "width": 2})
    assert seen(pair) == {"node.other_machine", "gpu.other"}


def test_machines_of_two_vendors_are_not_compared_by_their_firmware(pair):
    pair.b["platform"].update(vendor="ASUSTeK COMPUTER INC.", product="GX10", oem="asus", bios_version="GX10DGX.0105", bios_date="05/05/2026")
    pair.b["platform"]["firmware"]["devices"][0]["version"] = "0x02000005"
    pair.b["gpu"]["devices"][0]["vbios"] = "9A.0B.2D.00.00"
    assert seen(pair) == set()


def test_what_site_sets_right_is_an_info_until_it_has_run_once(pair):
    for node in (A, B):
        pair.port(node, RAIL).update(netdev_mtu=1500, active_mtu=1024, expected_active_mtu=1024)
    found = {one["id"]: one for one in diagnose(pair)}
    assert (found["mtu.low"]["severity"], found["mtu.twins_differ"]["severity"]) == ("info", "info")
    pair.set_up()
    found = {one["id"]: one for one in diagnose(pair)}
    assert (found["mtu.low"]["severity"], found["mtu.twins_differ"]["severity"]) == ("warn", "fail")
    assert "mtu.twins_differ" in {one["id"] for one in catalogue.counting(found.values())}
    assert catalogue.counting(found.values(), heals=True) == []


def test_rails_of_two_clusters_may_have_the_same_addresses(pair):
    pair.single()
    for facts in pair.facts.values():
        facts["platform"]["interfaces"][2]["addresses"] = ["192.168.100.10/24"]
    assert "names.address_twice" not in seen(pair)


def test_our_own_units_take_their_ports_and_the_gpu(pair):
    pair.a["services"]["units"].append(healthy.unit("gb10-serve@small.service"))
    pair.a["services"]["ports"] = [{"port": 8000, "address": "127.0.0.1", "protocol": "tcp"}]
    pair.a["gpu"]["devices"][0]["processes"] = [{"pid": 1, "name": "vllm", "used_memory_bytes": 96 * 1024**3}]
    assert seen(pair) == set()


def test_a_port_that_is_set_as_text(pair):
    pair.variables[A]["spark_port"] = "9000"
    pair.a["services"]["ports"] = [{"port": 9000, "address": "0.0.0.0", "protocol": "tcp"}]
    assert "services.port_taken" in seen(pair)


def test_findings_of_the_plan_are_among_them_with_their_cluster(pair):
    pair.fleet["findings"] = [catalogue.finding("plan.link_down", "fail", A, "The link is down.", "Put the cable in.")]
    found = diagnose(pair)
    assert (found[0]["id"], found[0]["cluster"], found[0]["node"]) == ("plan.link_down", "pair", A)
    assert {one["node"] for one in found if one["id"] == "node.healthy"} == {B}


def test_versions_compare_by_parts():
    assert doctor.version_key("580.142") < doctor.version_key("580.159.03") < doctor.version_key("590.48.01")
    assert doctor.version_key("6.17.0-1029-nvidia") == (6, 17, 0, 1029)


def test_rows_of_the_site(pair):
    pair.variables[A].update(
        spark_known_bad=[
            {"id": "site.pd", "kind": "firmware", "guid": "dd1a238a-5f8e-46bd-9401-a88da99c5a96", "exact": ["0.5.22"], "severity": "warn",
             "cure": "Update it."},
            {"id": "site.modprobe", "kind": "package", "name": "nvidia-modprobe", "prefix": ["580.142"], "severity": "info", "cure": "Hold it."},
        ],
        spark_floors=[{"id": "driver.floor", "kind": "driver", "minimum": "580.159.03", "severity": "warn", "cure": "Update it."}],
    )
    found = {(one["id"], one["node"]): one for one in diagnose(pair)}
    assert found["site.pd", A]["evidence"] == "firmware 0.5.22"
    assert found["site.modprobe", B]["severity"] == "info"
    assert (found["driver.floor", A]["severity"], found["driver.floor", A]["source"]) == ("warn", "the inventory's spark_floors")


@pytest.mark.parametrize("arguments, swappiness, inert", [("-m 5", 0, True), ("-m 4,2 -s 100,100", 0, False), (None, 1, False)])
def test_earlyoom_that_never_acts(pair, arguments, swappiness, inert):
    pair.a["services"]["earlyoom"] = {"installed": True, "active": True, "arguments": arguments}
    pair.a["memory"]["swappiness"] = swappiness
    found = next(one for one in diagnose(pair) if one["id"] == "services.earlyoom")
    assert ("never acts" in found["what"]) is inert
    assert f"swappiness {swappiness}" in found["evidence"]
