# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from xml.etree import ElementTree
from pathlib import Path

import pytest
from gb10_lab import answers, layout, state, system

STAND_INS = Path(__file__).resolve().parents[3] / "roles" / "lab" / "files" / "stand_ins"


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


class Node:
    """A folder of answers, and the stand-ins that read it instead of the node's."""

    def __init__(self, folder):
        self.folder = folder
        self.state = state.healthy("pair", "spark-a")

    def run(self, tool, *words, limit=10):
        for name, text in answers.files(self.state, nic_present=True).items():
            path = self.folder / "answers" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        serial = self.folder / "product_serial"
        serial.write_text("1\n")
        script = (STAND_INS / tool).read_text().replace("/usr/lib/gb10-lab", str(self.folder / "answers"))
        path = self.folder / tool
        path.write_text(script.replace("/sys/class/dmi/id/product_serial", str(serial)))
        return subprocess.run(["sh", str(path), *words], capture_output=True, text=True, check=False, timeout=limit)


def test_query_of_any_fields_with_header_and_units(node):
    result = node.run("nvidia-smi", "--query-gpu=name,memory.total,utilization.gpu,power.draw,temperature.gpu,clocks.sm", "--format=csv")
    assert result.stdout == (
        "name, memory.total [MiB], utilization.gpu [%], power.draw [W], temperature.gpu, clocks.current.sm [MHz]\n"
        "NVIDIA GB10, [N/A], 0 %, 4.02 W, 36, 208 MHz\n"
    )


def test_query_without_header_and_units(node):
    result = node.run("nvidia-smi", "--query-gpu=name, compute_cap,driver_version,power.draw", "--format=csv,noheader,nounits")
    assert result.stdout == "NVIDIA GB10, 12.1, 580.142, 4.02\n"


def test_every_field_that_the_real_program_names_has_an_answer(node):
    names = answers.field_names(answers.FIELD_NAMES.read_text())
    asked = [name for line in names for name in line]
    assert len(names) > 200
    result = node.run("nvidia-smi", f"--query-gpu={','.join(asked)}", "--format=csv,noheader")
    assert result.returncode == 0
    assert len(result.stdout.split(", ")) == len(asked)


def test_an_unknown_field_ends_with_2(node):
    result = node.run("nvidia-smi", "--query-gpu=name,nosuchfield", "--format=csv")
    assert (result.returncode, result.stdout) == (2, 'Field "nosuchfield" is not a valid field to query.\n\n')


def test_a_query_needs_a_format(node):
    assert node.run("nvidia-smi", "--query-gpu=name").returncode == 2


@pytest.mark.parametrize(
    ("condition", "code", "text"),
    [
        ("driver_mismatch", 18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.159\n"),
        ("no_module", 9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
        ("no_device", 6, "No devices were found\n"),
    ],
)
def test_failures_are_the_real_ones(node, condition, code, text):
    node.state = state.set_value(state.set_value(node.state, "gpu.state", condition), "gpu.library", "580.159.03")
    result = node.run("nvidia-smi", "--query-gpu=name", "--format=csv")
    assert result.returncode == code and result.stdout.startswith(text)


def test_a_gpu_that_needs_a_reset_says_so_in_all_three_reports(node):
    node.state = state.set_value(node.state, "gpu.state", "needs_reset")
    assert node.run("nvidia-smi", "--query-gpu=gpu_recovery_action", "--format=csv,noheader").stdout == "Reset\n"
    assert "    GPU Recovery Action                                : Reset\n" in node.run("nvidia-smi", "-q").stdout
    assert ElementTree.fromstring(node.run("nvidia-smi", "-q", "-x").stdout).findtext("gpu/gpu_recovery_action") == "Reset"


def test_reports_know_no_framebuffer(node):
    document = ElementTree.fromstring(node.run("nvidia-smi", "-q", "-x").stdout)
    assert document.findtext("gpu/fb_memory_usage/total") == "N/A"
    assert document.findtext("gpu/addressing_mode") == "ATS"
    assert document.findtext("driver_version") == "580.142"
    text = node.run("nvidia-smi", "-q").stdout
    assert "    FB Memory Usage\n        Total                                          : N/A\n" in text
    assert "    GSP Firmware Version                               : 580.142\n" in text


def test_the_table_is_the_captured_one(node):
    lines = node.run("nvidia-smi").stdout.splitlines()
    assert "| NVIDIA-SMI 580.142                Driver Version: 580.142        CUDA Version: 13.0     |" in lines
    assert "|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |" in lines
    assert "| N/A   36C    P8              4W /  N/A  | Not Supported          |      0%      Default |" in lines
    assert {len(line) for line in lines[1:] if line} == {91}


def test_the_list_and_the_topology(node):
    assert node.run("nvidia-smi", "-L").stdout == f"GPU 0: NVIDIA GB10 (UUID: {node.state['gpu']['uuid']})\n"
    topology = node.run("nvidia-smi", "topo", "-m").stdout
    assert "NIC0\tNODE\t X \tPIX\tNODE\tNODE\n" in topology
    assert "  NIC2: roceP2p1s0f0\n" in topology


def test_a_module_that_is_not_loaded_has_no_files(node):
    assert answers.kernel_module(node.state["gpu"])["nvidia-module/version"] == "580.142\n"
    assert answers.kernel_module({**node.state["gpu"], "state": "no_module"}) == {}


def test_firmware_devices_by_guid_and_the_card_only_while_it_is_there(node):
    devices = json.loads(node.run("fwupdmgr", "get-devices", "--json").stdout)["Devices"]
    assert len({device["DeviceId"] for device in devices}) == len(devices) == 5
    assert [device["Name"] for device in devices].count("UEFI Device Firmware") == 2
    absent = answers.firmware_devices(node.state["firmware"], nic_firmware="28.45.4028", nic_present=False)
    assert "ConnectX-7" not in [device["Name"] for device in absent]


def test_firmware_updates(node):
    result = node.run("fwupdmgr", "get-updates", "--json")
    assert result.returncode == 2 and "No updates available" in json.loads(result.stdout)["Error"]["Message"]
    node.state = state.set_value(node.state, "firmware.0.Releases", [{"Version": "3.5.9", "Flags": ["is-upgrade"]}])
    result = node.run("fwupdmgr", "get-updates", "--json")
    assert result.returncode == 0
    assert [device["Name"] for device in json.loads(result.stdout)["Devices"]] == ["Embedded Controller"]


def test_dmidecode_keywords_and_tables(node):
    assert node.run("dmidecode", "-s", "bios-version").stdout == "5.36_0ACUM023\n"
    assert "\tProduct Name: NVIDIA_DGX_Spark\n" in node.run("dmidecode", "-t", "system").stdout
    result = node.run("dmidecode", "-s", "nonsense")
    assert (result.returncode, result.stderr) == (2, "Invalid string keyword: nonsense\n")


def test_the_release_file_repeats_the_updates(node):
    text = answers.dgx_release(node.state["dgx_release"])
    assert text.count("DGX_OTA_VERSION=") == 2
    assert text.rindex('DGX_OTA_VERSION="7.5.0"') > text.index('DGX_OTA_VERSION="7.4.0"')


def test_meminfo_changes_only_what_it_is_told():
    real = "MemTotal:       24684096 kB\nMemFree:        20000000 kB\nHugePages_Total:       0\n"
    assert answers.meminfo(real, {"MemTotal": 127500000}) == "MemTotal:       127500000 kB\nMemFree:        20000000 kB\nHugePages_Total:       0\n"


def test_the_card_has_one_port_name_for_each_cage():
    assert sorted({function.cage for function in layout.FUNCTIONS}) == ["p0", "p1"]


def test_processes_show_in_every_report(node):
    node.state = state.set_value(node.state, "gpu.processes", [{"pid": 6330, "name": "sglang::scheduler", "used_mib": 96073}])
    rows = node.run("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv").stdout
    assert rows == "pid, process_name, used_gpu_memory [MiB]\n6330, sglang::scheduler, 96073 MiB\n"
    rows = node.run("nvidia-smi", "--query-compute-apps=used_gpu_memory,gpu_name,pid", "--format=csv,noheader,nounits").stdout
    assert rows == "96073, NVIDIA GB10, 6330\n"
    process = ElementTree.fromstring(node.run("nvidia-smi", "-q", "-x").stdout).find("gpu/processes/process_info")
    assert (process.findtext("pid"), process.findtext("used_memory")) == ("6330", "96073 MiB")
    assert "            Used GPU Memory                            : 96073 MiB\n" in node.run("nvidia-smi", "-q").stdout
    lines = node.run("nvidia-smi").stdout.splitlines()
    assert "|    0   N/A  N/A            6330      C   sglang::scheduler                     96073MiB |" in lines
    assert {len(line) for line in lines[1:] if line} == {91}


def test_without_processes_there_are_none(node):
    assert node.run("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader").stdout == ""
    assert ElementTree.fromstring(node.run("nvidia-smi", "-q", "-x").stdout).find("gpu/processes").findall("*") == []


def test_a_damaged_inforom_is_a_warning_and_14_but_not_in_the_report(node):
    node.state = state.set_value(node.state, "gpu.inforom", "corrupted")
    warning = "WARNING: infoROM is corrupted at gpu 000F:01:00.0\n"
    query = node.run("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    assert (query.returncode, query.stdout) == (14, warning + "NVIDIA GB10\n")
    table = node.run("nvidia-smi")
    assert table.returncode == 14 and table.stdout.endswith("-+\n" + warning)
    report = node.run("nvidia-smi", "-q", "-x")
    assert report.returncode == 0 and "WARNING" not in report.stdout


def test_a_gpu_that_is_off_the_bus_is_no_device(node):
    node.state = state.set_value(node.state, "gpu.present", False)
    assert node.run("nvidia-smi", "-L").stdout == "No devices were found\n"
    assert "000f:01:00.0/vendor" not in answers.other_pci_files(node.state["gpu"])
    assert not any("gpus" in name for name in answers.kernel_module(node.state["gpu"]))


def test_the_version_follows_the_state(node):
    node.state = state.set_value(node.state, "gpu.cuda", "13.1")
    assert "CUDA Version        : 13.1\n" in node.run("nvidia-smi", "--version").stdout


@pytest.mark.parametrize("tool", ["nvidia-smi", "fwupdmgr", "dmidecode", "ibdev2netdev", "ibv_devinfo"])
def test_a_tool_can_be_made_to_hang_and_to_fail(node, tool):
    node.state = state.set_value(node.state, "tools.hang", [tool])
    with pytest.raises(subprocess.TimeoutExpired):
        node.run(tool, limit=0.3)
    node.state = state.set_value(state.set_value(node.state, "tools.hang", []), f"tools.fail.{tool}", "Failed to connect to daemon")
    (node.folder / "answers" / "hang" / tool).unlink()
    result = node.run(tool)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "Failed to connect to daemon\n")


def test_every_stand_in_can_hang():
    assert state.STAND_INS == tuple(sorted(path.name for path in STAND_INS.iterdir()))
    for path in STAND_INS.iterdir():
        assert f'[ -e "$lab/hang/{path.name}" ] && exec sleep 86400\n' in path.read_text()


def test_firmware_history(node):
    result = node.run("fwupdmgr", "get-history", "--json")
    assert result.returncode == 2 and json.loads(result.stdout)["Error"]["Message"] == "No history"
    node.state = state.set_value(node.state, "firmware_history", [{"Name": "Embedded Controller", "Guid": ["x"], "UpdateState": 3}])
    result = node.run("fwupdmgr", "get-history", "--json")
    assert result.returncode == 0 and json.loads(result.stdout)["Devices"][0]["UpdateState"] == 3


def test_a_failed_update_shows_in_the_device(node):
    node.state = state.set_value(state.set_value(node.state, "firmware.0.UpdateState", 3), "firmware.0.UpdateError", "battery level is too low")
    device = json.loads(node.run("fwupdmgr", "get-devices", "--json").stdout)["Devices"][0]
    assert (device["UpdateState"], device["UpdateError"]) == (3, "battery level is too low")


def test_a_function_tells_its_pcie_link_and_the_other_cards_are_on_the_bus():
    healthy = state.healthy("pair", "spark-a")
    narrow = state.set_value(healthy, "rails.enP2p1s0f0np0.pcie.width", 2)
    function = layout.FUNCTIONS[2]
    assert answers.pci_files(healthy, function)["current_link_width"] == "4\n"
    assert answers.pci_files(narrow, function)["current_link_width"] == "2\n"
    assert answers.pci_files(narrow, function)["max_link_width"] == "4\n"
    others = answers.other_pci_files(healthy["gpu"])
    assert (others["000f:01:00.0/vendor"], others["000f:01:00.0/device"]) == ("0x10de\n", "0x2e12\n")
    assert others["0007:01:00.0/device"] == "0x8127\n"


def test_an_mtu_that_rdma_keeps_is_told_for_that_device_alone():
    stuck = state.set_value(state.healthy("pair", "spark-a"), "rails.enP2p1s0f0np0.active_mtu", 1024)
    found = {name: text for name, text in answers.files(stuck, nic_present=True).items() if name.startswith("active_mtu/")}
    assert found == {"active_mtu/roceP2p1s0f0": "1024\n"}


def test_swap_shows_in_both_files_of_the_kernel():
    healthy = state.healthy("pair", "spark-a")
    assert answers.swaps([]) == "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    assert answers.memory_changes(healthy) == {}
    swapping = state.set_value(healthy, "proc.swaps", [{"path": "/swap.img", "type": "file", "size_kb": 16777212, "used_kb": 1024}])
    assert answers.swaps(swapping["proc"]["swaps"]).splitlines()[1].split() == ["/swap.img", "file", "16777212", "1024", "-2"]
    assert answers.memory_changes(swapping) == {"SwapTotal": 16777212, "SwapFree": 16776188}


def test_the_disk_of_dgx_os_boots_its_newest_kernel_with_its_module():
    disk = system.files()
    assert f"boot/vmlinuz-{state.KERNEL}" in disk
    assert f"usr/lib/modules/{state.KERNEL}/kernel/nvidia-580-open/nvidia.ko" in disk
    first = next(line for line in disk["boot/grub/grub.cfg"].splitlines() if line.startswith("\tlinux"))
    assert f"vmlinuz-{state.KERNEL} " in first
    assert len(disk["boot/grub/grubenv"]) == 1024
    records = system.package_records()
    assert records.count("Package: ") == records.count("Status: install ok installed") == len(system.PACKAGES) == len(system.package_files())
    assert f"/boot/vmlinuz-{state.KERNEL}\n" in system.package_files()[f"linux-image-{state.KERNEL}"]
