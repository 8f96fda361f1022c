# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from xml.etree import ElementTree
from pathlib import Path

import pytest
from gb10_lab import answers, layout, state

STAND_INS = Path(__file__).resolve().parents[3] / "roles" / "lab" / "files" / "stand_ins"


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


class Node:
    """A folder of answers, and the stand-ins that read it instead of the node's."""

    def __init__(self, folder):
        self.folder = folder
        self.state = state.healthy("pair", "spark-a")

    def run(self, tool, *words):
        for name, text in answers.files(self.state, nic_present=True).items():
            path = self.folder / "answers" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        serial = self.folder / "product_serial"
        serial.write_text("1\n")
        script = (STAND_INS / tool).read_text().replace("/usr/lib/gb10-lab", str(self.folder / "answers"))
        path = self.folder / tool
        path.write_text(script.replace("/sys/class/dmi/id/product_serial", str(serial)))
        return subprocess.run(["sh", str(path), *words], capture_output=True, text=True, check=False)


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
