# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _firmware

RECORDED = Path(__file__).parents[2] / "fixtures" / "host"
SOC = "b488217b-3895-4fc0-b1bf-ab7005a2d45a"


def recorded(name):
    return (RECORDED / name).read_text(encoding="utf-8")


def answer(output="", status=0, error=""):
    return SimpleNamespace(status=status, output=output, error=error, seconds=0.1)


def device(**changes):
    entry = {
        "Name": "UEFI Device Firmware", "DeviceId": "1", "Guid": [SOC], "Plugin": "uefi_capsule", "Vendor": "NVIDIA", "Version": "2.155.11",
        "VersionFormat": "surface", "VersionRaw": 0x02009B0B, "Flags": ["internal", "updatable", "needs-reboot"],
    }
    return {**entry, **changes}


class Notes(list):
    def __call__(self, source, reason, evidence):
        self.append((source, reason, evidence))


@pytest.fixture
def notes():
    return Notes()


def read(notes, devices=None, history=None, **answers):
    """Firmware facts where fwupd answers with these devices and this history."""
    if devices is not None:
        answers["fwupd_devices"] = answer(json.dumps({"Devices": devices}))
    if history is not None:
        answers["fwupd_history"] = answer(json.dumps({"Devices": history}))
    return _firmware.read_firmware(answers, notes)


def test_case_29_json_behind_warnings():
    document, lines = _firmware.find_document(recorded("fwupdagent__unknown__legacy_bios__preamble.txt"))
    assert document == {"a": [{"b": "x"}, {"b": "y"}]}
    assert len(lines) == 3
    assert lines[1] == "WARNING: UEFI firmware can not be updated in legacy BIOS mode"


def test_case_29_another_document_than_devices_is_told(notes):
    firmware = read(notes, fwupd_devices=answer(recorded("fwupdagent__unknown__legacy_bios__preamble.txt")))
    assert (firmware["state"], firmware["devices"], len(firmware["warnings"])) == ("failed", [], 3)
    assert [note[:2] for note in notes] == [("fwupdmgr get-devices", "not_understood")]


@pytest.mark.parametrize(
    "text, document, lines",
    [
        ('{"a": 1}\nWARNING: late\n', {"a": 1}, ["WARNING: late"]),
        ('WARNING: {braces} of prose {\n{"a": 1}', {"a": 1}, ["WARNING: {braces} of prose {"]),
        ("no document", None, ["no document"]),
        ("{" * 100000, None, None),
        ('{"a": ' * 100000, None, None),
        ('{"a":' + "9" * 6000 + "}", None, None),
        ("", None, []),
    ],
)
def test_documents_among_other_lines(text, document, lines):
    found, others = _firmware.find_document(text)
    assert found == document
    assert lines is None or others == lines


def test_case_31_six_devices_and_only_upgrades_count(notes):
    firmware = read(notes, fwupd_devices=answer("WARNING: old metadata\n" + recorded("fwupdmgr_get_devices__fwupd_1.8__hp_workstation.json")))
    devices = {found["name"]: found for found in firmware["devices"]}
    assert (firmware["state"], firmware["reason"], firmware["warnings"]) == ("ok", None, ["WARNING: old metadata"])
    assert len(firmware["devices"]) == len(devices) == 6
    system = devices["System Firmware"]
    assert system["upgrades"] == ["2.91"]
    assert (system["version"], system["version_format"], system["version_raw"]) == ("2.90", "pair", 131162)
    assert (system["update_state"], system["updatable"], system["needs_reboot"]) == ("success", True, False)
    assert system["guids"] == ["37c94477-30f8-42df-96f9-5e417cc49274", "230c8b18-8d9b-53ec-838b-6cfc0383493a"]
    cpu = devices["Core™ i7-9800X CPU @ 3.80GHz"]
    assert (cpu["version"], cpu["guid"], cpu["upgrades"], cpu["updatable"]) == (None, "b9a2dd81-159e-5537-a7db-e7101d164d3f", [], False)
    assert devices["UEFI dbx"]["version_decoded"] is None
    assert notes == []
    assert not any("serial" in key or "id" == key for key in system)
    assert "S4XXNX0NC10001" not in json.dumps(firmware)


def test_case_32_devices_of_one_name_are_all_kept():
    devices, others = _firmware.parse_tree(recorded("fwupdmgr_get_devices_tree__fwupd_1.8__lenovo_esrt.txt"))
    assert others == []
    assert [(found["name"], found["guid"], found["version"], found["update_state"], found["update_error"]) for found in devices] == [
        ("UEFI Device Firmware", "ae6f152b-d804-4651-8f31-4782a59ffa5c", "16842769", "success", None),
        ("UEFI Device Firmware", "04cb082c-77e9-4fd8-8832-94e0bdd2dfce", "1410798027", "success", None),
        ("Embedded Controller", "907f1b02-59a6-4b5a-b1ec-288eb7513434", "65548", None, "Not updatable as UEFI ESP partition not detected"),
    ]
    assert devices[2]["guids"] == ["907f1b02-59a6-4b5a-b1ec-288eb7513434", "a8b99c9d-df13-5f6f-bde0-b38689673405"]
    assert devices[0]["flags"] == ["internal", "updatable", "require-ac", "needs-reboot", "usable-during-update"]
    assert [found["updatable"] for found in devices] == [True, False, False]


def test_case_32_the_tree_is_the_answer_of_a_release_without_json(notes):
    firmware = read(notes, fwupd_devices=answer("HP Z2\n" + recorded("fwupdmgr_get_devices_tree__fwupd_1.8__lenovo_esrt.txt")))
    assert (firmware["state"], len(firmware["devices"]), firmware["warnings"]) == ("ok", 3, ["HP Z2"])


def test_devices_of_one_guid_are_all_kept(notes):
    disks = [device(Name="NVMe", Plugin="nvme", DeviceId=number, Guid=["0b4d773a-7ac3-58c1-a541-e22ef1cdfe02"]) for number in "12"]
    assert len(read(notes, [*disks, device(), device(Guid=["dd1a238a-5f8e-46bd-9401-a88da99c5a96"])])["devices"]) == 4


def test_tree_with_nested_devices_and_releases():
    tree = (
        "LENOVO 20\n│\n├─System Firmware:\n│ │   Device ID:          a4\n│ │   Current version:    1.2\n"
        "│ │   Vendor:             NVIDIA (DMI:NVIDIA)\n"
        "│ │   Update State:       Needs reboot\n│ │   Device Flags:       • Needs shutdown after installation\n│ │ \n│ ├─UEFI dbx:\n"
        "│ │     Device ID:          b5\n│ │     Current version:    77\n│ │   \n"
        "│ └─System Firmware Update:\n│       New version:        1.3\n├─Nothing known:\n"
    )
    devices, others = _firmware.parse_tree(tree)
    assert [(found["name"], found["upgrades"]) for found in devices] == [("System Firmware", []), ("UEFI dbx", ["1.3"])]
    assert (devices[0]["update_state"], devices[0]["needs_shutdown"], devices[0]["needs_reboot"]) == ("needs-reboot", True, False)
    assert others == ["LENOVO 20", "Nothing known"]


@pytest.mark.parametrize(
    "raw, version",
    [(0x02009B0B, "2.155.11"), (0x03000508, "3.5.8"), (0x516, "0.5.22"), (0x02000005, "2.0.5"), (None, None), (-1, None), (1 << 32, None)],
)
def test_raw_versions(raw, version):
    assert _firmware.decode_version(raw) == version


@pytest.mark.parametrize(
    "changes, version, decoded",
    [
        ({}, "2.155.11", None),
        ({"Version": "0x02000005", "VersionRaw": None}, "0x02000005", "2.0.5"),
        ({"Version": "33594123", "VersionFormat": "number"}, "33594123", "2.155.11"),
        ({"Version": None}, None, "2.155.11"),
        ({"Version": 33594123, "VersionRaw": None}, "33594123", "2.155.11"),
        ({"Version": "20230501", "Plugin": "uefi_dbx", "VersionRaw": None}, "20230501", None),
        ({"Version": "2.90"}, "2.90", None),
        ({"Version": "0x" + "f" * 30, "VersionRaw": "0xzz"}, "0x" + "f" * 30, None),
    ],
)
def test_versions_stay_texts(notes, changes, version, decoded):
    found = read(notes, [device(**changes)])["devices"][0]
    assert (found["version"], found["version_decoded"]) == (version, decoded)


@pytest.mark.parametrize(
    "value, word",
    [
        (0, "unknown"), (1, "pending"), (2, "success"), (3, "failed"), (4, "needs-reboot"), (5, "failed-transient"), (6, None), (-1, None),
        ("2", "success"), ("needs-reboot", "needs-reboot"), ("Needs reboot", "needs-reboot"), ("Transient failure", "failed-transient"),
        ("odd", None), (None, None), (True, None), ([], None),
    ],
)
def test_update_states(value, word):
    assert _firmware.update_state(value) == word


def test_only_an_update_that_waits_needs_a_reboot(notes):
    flags = ["updatable", "needs-reboot"]
    shutdown = ["updatable", "needs-shutdown"]
    found = read(notes, [device(Flags=flags), device(UpdateState=4, Flags=flags), device(UpdateState=1, Flags=shutdown), device(UpdateState=3)])["devices"]
    assert [entry["needs_reboot"] for entry in found] == [False, True, False, False]
    assert [entry["needs_shutdown"] for entry in found] == [False, False, True, False]


def test_history_tells_the_version_that_waits(notes):
    history = [
        device(Version="2.155.10", UpdateState=2, Releases=[{"Version": "2.155.11"}], Modified=5),
        device(UpdateState=4, Releases=[{"Version": "2.156.0"}], Created=7),
        device(Guid=["other"], UpdateState=3, UpdateError="battery", Releases=[]),
        "odd",
    ]
    firmware = read(notes, [device(), device(Guid=["other"])], history)
    assert [found["pending_version"] for found in firmware["devices"]] == ["2.156.0", None]
    assert firmware["history"][1] == {
        "guid": SOC, "name": "UEFI Device Firmware", "version": "2.155.11", "release": "2.156.0", "update_state": "needs-reboot",
        "update_error": None, "modified": 7,
    }
    assert [(past["release"], past["update_error"]) for past in firmware["history"]] == [("2.155.11", None), ("2.156.0", None), (None, "battery")]
    # One that has arrived does not wait, though the history was not told.
    assert read(notes, [device(Version="2.156.0")], history)["devices"][0]["pending_version"] is None


@pytest.mark.parametrize(
    "given, noted",
    [
        (answer("No history", 2), []),
        (answer("", 124, "late"), []),
        (answer("", 1, "Failed to connect to daemon"), [("fwupdmgr get-history", "failed", "Failed to connect to daemon")]),
        (answer("", 1, "Not authorized"), [("fwupdmgr get-history", "denied", "Not authorized")]),
        (answer("odd"), [("fwupdmgr get-history", "not_understood", "odd")]),
        (answer('{"Devices": {}}'), [("fwupdmgr get-history", "not_understood", '{"Devices": {}}')]),
        (None, []),
    ],
)
def test_history_that_is_none(notes, given, noted):
    assert read(notes, [device()], fwupd_history=given)["history"] == []
    assert notes == noted


@pytest.mark.parametrize(
    "given, state, words, noted",
    [
        (None, "absent", "not installed", None),
        (answer("", 127, "no fwupdmgr"), "absent", "install fwupd", None),
        (answer("", 124, "fwupdmgr get-devices did not end within 10 s"), "failed", "within 10 s", None),
        (answer("", 126, ""), "failed", "ended with 126", None),
        (answer("", 1, "Failed to connect to daemon: The name is not activatable\n"), "failed", "not activatable", "failed"),
        (answer('{"Error": {"Domain": "FwupdError", "Code": 1, "Message": "Cannot start"}}', 1), "failed", "Cannot start", "failed"),
        (answer("", 1, "Failed to obtain auth: Not authorized"), "denied", "Not authorized", "denied"),
        (answer("", 1, "GDBus.Error:org.freedesktop.DBus.Error.AccessDenied: Rejected"), "denied", "AccessDenied", "denied"),
        (answer("", 1), "failed", "ended with 1", "failed"),
        (answer('{"Error": {"Message": "Nothing to do"}}', 2), "ok", None, None),
        (answer("No detected devices", 2), "ok", None, None),
        (answer("x"), "failed", "x", "not_understood"),
        (answer('{"Devices": 3}'), "failed", "Devices", "not_understood"),
    ],
)
def test_states_without_devices(notes, given, state, words, noted):
    firmware = read(notes, fwupd_devices=given)
    assert (firmware["state"], firmware["devices"]) == (state, [])
    assert (words or "") in (firmware["reason"] or "")
    assert [note[1] for note in notes] == ([noted] if noted else [])


def test_an_entry_that_is_no_device_is_told(notes):
    firmware = read(notes, [device(), 7])
    assert len(firmware["devices"]) == 1
    assert notes == [("fwupdmgr get-devices", "not_understood", "7")]


def test_odd_values_of_a_device(notes):
    odd = {"Name": 5, "Guid": "one", "Version": True, "Flags": None, "Releases": [3, {"Flags": "is-upgrade", "Version": "2"}], "VersionRaw": "0x516"}
    found = read(notes, [odd])["devices"][0]
    assert (found["name"], found["guid"], found["version"], found["flags"], found["upgrades"]) == ("5", "one", None, [], ["2"])
    assert (found["version_raw"], found["version_decoded"]) == (0x516, "0.5.22")


def test_case_34_installed_bios_that_does_not_run(notes):
    lines = dict(line.split(": ", 1) for line in recorded("bios__dgx_os__gb10__running_against_installed.txt").splitlines())
    running, installed = lines["dmi/id/bios_version"], lines["firmware inventory (installed)"]
    devices = read(notes, [device(), device(Name="UEFI Device Firmware", Guid=["x"], Version=installed)])["devices"]
    assert _firmware.describe_bios(running, devices) == {"running": "5.36_0ACUM018", "installed": "5.36_0ACUM023", "staged": True}
    assert _firmware.describe_bios(installed, devices) == {"running": installed, "installed": installed, "staged": False}


@pytest.mark.parametrize(
    "running, entries, installed, staged",
    [
        ("5.36_0ACUM023", [device()], "2.155.11", False),
        ("5.36_0ACUM023", [device(UpdateState=4)], "2.155.11", True),
        ("5.36_0ACUM023", [device(UpdateState=1, Flags=["needs-shutdown"])], "2.155.11", True),
        ("1.20.0", [device(Name="Embedded Controller", Guid=["ec"], Version="1.5.2"), device(Name="System Firmware", Version="1.21.0")], "1.21.0", True),
        ("1.20.0", [device(Name="Embedded Controller", Guid=["ec"], Version="1.5.2")], None, None),
        ("R50 Ver. 02.90", [device(Name="System Firmware", Version="2.90", UpdateState=2)], "2.90", False),
        (None, [device(Name="System Firmware")], "2.155.11", False),
        ("5.36_0ACUM023", [device(Name="System Firmware", Version=None)], None, False),
        ("5.36_0ACUM023", [device(Plugin="nvme")], None, None),
        ("5.36_0ACUM023", [], None, None),
    ],
)
def test_bios(notes, running, entries, installed, staged):
    assert _firmware.describe_bios(running, read(notes, entries)["devices"]) == {"running": running, "installed": installed, "staged": staged}
