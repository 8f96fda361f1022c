# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import getpass
import json
import os
import platform
import re
import sys
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _excerpt, _files, _recording, _redact, _run
from ansible_collections.gb10.fleet.plugins.modules import node_recording

sys.path.insert(0, str(Path(__file__).parent))

from replay import Replay, load  # noqa: E402

RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"
FOLDERS = sorted(folder for folder in RECORDED.iterdir() if folder.is_dir())
PLACEHOLDERS = re.compile(r"^(?:00000000-0000-0000-0000-\d{12}|5e[:-].*|feed:.*|0+[0-9a-f]{1,4})$")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recorded_node_gives_the_facts_that_the_recording_says(folder, monkeypatch):
    recording = load(folder)
    replay = Replay(recording, monkeypatch)
    facts = json.loads(json.dumps(replay.gather()))
    for subset, value in recording["facts"].items():
        assert facts[subset] == value, subset
    assert set(facts) == set(recording["facts"])
    assert replay.missed == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recorded_node_gives_nothing_of_itself_away(folder):
    recording = load(folder)
    kinds = _recording._firmware_kinds(recording["commands"]) | set(_recording._SHARED_UUIDS)
    text = json.dumps(recording)
    for pattern in (_redact.UUID, _redact.MAC, _redact.GUID):
        left = {found.group(0) for found in pattern.finditer(text)} - kinds
        assert not [value for value in left if not PLACEHOLDERS.match(value) and len(set(value) - set(":-")) > 1]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_redacted_facts_have_no_id_of_the_node(folder, monkeypatch):
    recording = load(folder)
    replay = Replay(recording, monkeypatch)
    everything = replay.gather(redact=False)
    secrets = {interface["mac"] for interface in everything["platform"]["interfaces"] if interface["name"] != "lo"}
    secrets |= {device[name] for device in everything["rdma"]["devices"] for name in ("node_guid", "sys_image_guid")}
    secrets |= {gid["gid"] for device in everything["rdma"]["devices"] for gid in device["gids"] if gid["ipv4"] is None}
    secrets |= {device["uuid"] for device in everything["gpu"]["devices"]}
    secrets |= {recording["files"]["/etc/machine-id"]["text"]}
    secrets |= set(re.findall(r'SERIAL_NUMBER="?([^"\n]+)', recording["files"]["/etc/dgx-release"]["text"]))
    secrets |= set(re.findall(r"UUID=(\S+)", recording["files"]["/proc/cmdline"]["text"]))
    secrets |= {address.partition("/")[0] for interface in everything["platform"]["interfaces"] for address in interface["addresses"] if "ff:fe" in address}
    assert len(secrets) > 10 and None not in secrets
    redacted = json.dumps(replay.gather())
    assert not [secret for secret in secrets if secret in redacted]
    # The same keys are there, and everything that is no secret.
    whole = json.loads(redacted)
    for subset, facts in everything.items():
        if isinstance(facts, dict):
            assert set(whole[subset]) == set(facts)
    assert [device["twin"] for device in whole["rdma"]["devices"]] == [device["twin"] for device in everything["rdma"]["devices"]]


def module_of(arguments=None):
    with patch_module_args(arguments or {}):
        return AnsibleModule(argument_spec={"time_limit": {"type": "int", "default": 10}}, supports_check_mode=True)


def test_this_machine_recorded_and_replayed(monkeypatch, capsys):
    with patch_module_args({"time_limit": 10}), pytest.raises(SystemExit):
        node_recording.main()
    recording = json.loads(capsys.readouterr().out)["recording"]
    assert (_files._watch, _run._watch) == (None, None)
    replay = Replay(recording, monkeypatch)
    facts = json.loads(json.dumps(replay.gather()))
    for subset, value in recording["facts"].items():
        assert facts[subset] == value, subset
    text = json.dumps(recording)
    host = platform.node()
    assert len(host) < 5 or not re.search(rf"(?<![\w-]){re.escape(host)}(?![\w-])", text)
    machine_id = Path("/etc/machine-id")
    assert not machine_id.exists() or not machine_id.read_text().strip() or machine_id.read_text().strip() not in text
    if getpass.getuser() != "root":
        assert f"/home/{getpass.getuser()}/" not in text


def test_a_limit_that_is_none_fails(capsys):
    with patch_module_args({"time_limit": 0}), pytest.raises(SystemExit):
        node_recording.main()
    assert "give the whole seconds" in json.loads(capsys.readouterr().out)["msg"]


def test_a_failure_stops_the_recorder(monkeypatch):
    monkeypatch.setattr(_recording._gather.Gatherer, "gather", lambda self, subsets: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        _recording.record(module_of(), 10)
    assert (_files._watch, _run._watch) == (None, None)


def test_every_kind_of_read_is_kept(tree):
    tree.write("a/text", "x\n")
    tree.write("a/empty", "")
    tree.link("a/link", "text")
    recorder = _recording.Recorder()
    recorder.start()
    try:
        _files.read_text(tree.root, "a/text")
        _files.read_text(tree.root, "a/empty")
        _files.read_text(tree.root, "a/missing")
        _files.read_bytes(tree.root, "a/text", offset=1, size=5)
        _files.list_names(tree.root, "a")
        _files.link_target_name(tree.root, "a/link")
        _files.is_directory(tree.root, "a")
        _files.is_file(tree.root, "a/text")
        _files.file_status(tree.root, os.devnull.lstrip("/"))
        _files.is_denied(tree.root, "a/text")
    finally:
        recorder.stop()
    rows = {path[len(tree.root):]: row for path, row in recorder.files.items()}
    assert rows["/a/text"]["text"] == "x"
    assert rows["/a/text"]["bytes"] == {"1": "Cg=="}
    assert rows["/a/text"]["status"]["kind"] == "file" and rows["/a/text"]["status"]["size"] == 2
    assert rows["/a/empty"] == {"text": ""}
    assert rows["/a"]["names"] == ["empty", "link", "text"] and rows["/a"]["status"]["kind"] == "directory"
    assert rows["/a/link"] == {"link": "text"}
    assert "/a/missing" not in rows


def replaced(*texts, kept=()):
    replacements = _recording.Replacements(kept)
    return [replacements.text(text) for text in texts]


def test_the_same_is_replaced_by_the_same():
    assert replaced(
        "GPU-0a1b2c3d-1111-2222-3333-444455556666", "x 0A1B2C3D-1111-2222-3333-444455556666", "0a1b2c3d-1111-2222-3333-444455556667",
    ) == ["GPU-00000000-0000-0000-0000-000000000001", "x 00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]
    assert replaced("5c0a:1103:0077:1c16", "5c0a:1103:0077:1c17", "5c0a:1103:0077:1c16", "0000:0000:0000:0000") == [
        "feed:0000:0000:0001", "feed:0000:0000:0002", "feed:0000:0000:0001", "0000:0000:0000:0000",
    ]


def test_a_mac_and_what_is_made_of_it_stay_together():
    assert replaced(
        "5e:0a:11:e8:9f:30", "fe80::5c0a:11ff:fee8:9f30/64", "fe80:0000:0000:0000:5c0a:11ff:fee8:9f30", "enx5e0a11e89f30", "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
    ) == [
        "5e:00:00:00:00:01", "fe80::5c00:ff:fe00:1/64", "fe80:0000:0000:0000:5c00:00ff:fe00:0001", "enx5e0000000001", "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
    ]
    assert replaced("02:00:00:00:00:07", "fe80::ff:fe00:7/64") == ["5e:00:00:00:00:01", "fe80::5c00:ff:fe00:1/64"]


def test_kinds_stay():
    kind = "3d13c989-e6a8-4ead-95ee-921f09868f65"
    assert replaced(kind, "192.168.100.10/24", "0000:01:00.0", "::1/128", "<serial>N/A</serial>", "Serial Number: N/A", kept=[kind.upper()]) == [
        kind, "192.168.100.10/24", "0000:01:00.0", "::1/128", "<serial>N/A</serial>", "Serial Number: N/A",
    ]
    assert replaced("<serial>1650000000001</serial>", 'DGX_SERIAL_NUMBER="1650000000001"', "systemd.machine_id=" + "ab" * 16) == [
        "<serial>00000001</serial>", 'DGX_SERIAL_NUMBER="00000001"', "systemd.machine_id=" + "1".zfill(32),
    ]


def test_a_secret_of_each_kind_of_file_stays_on_the_node():
    secret = "hf_abcdefghijk"
    for path, text in {
        "/etc/passwd": f"root:x:0:0:{secret}:/root:/bin/sh\nmax:x:1:1:{secret}:/home/max:/bin/sh",
        "/etc/netplan/a.yaml": f'network:\n  renderer: networkd\n  wifis:\n    a:\n      access-points:\n        "{secret}":\n          password: "{secret}"\n',
        "/proc/self/mounts": f"{secret}:/export /mnt nfs4 rw,addr=1.2.3.4,username={secret} 0 0",
        "/etc/docker/daemon.json": f'{{"token": "{secret}"}}',
        "/var/lib/dpkg/status": f"Package: nvidia-a\nStatus: install ok installed\nMaintainer: A <{secret}>\nVersion: 1\n\n",
    }.items():
        assert secret not in _excerpt.excerpt(path, text, "max", {"/mnt"}), path
    for path, text in {
        "/home/max/.bashrc": f"alias a='ssh {secret}@host'\nexport HF_TOKEN={secret}\nexport NCCL_DEBUG=INFO",
        "/etc/environment": f'NCCL_DEBUG=INFO\nVLLM_API_KEY="{secret}"',
        "/etc/systemd/system/a.service": f"[Service]\nExecStart=/bin/a --token {secret}\nEnvironment=NCCL_DEBUG=INFO VLLM_API_KEY={secret}\n",
    }.items():
        left = _excerpt.excerpt_as_written(path, text)
        assert secret not in left and "NCCL_DEBUG" in left and "INFO" in left, path


def test_a_password_in_an_address_stays_on_the_node():
    (left,) = replaced("deb https://max:word@ports.ubuntu.com/x noble main")
    assert "word" not in left and "max" not in left and left.endswith("/x noble main")


def test_a_text_that_changes_reads_the_same_twice():
    recorder = _recording.Recorder()
    assert [recorder.keep_file("text", "/a", text) for text in ("one two", "one", "one two three", "other", None)] == [
        "one two", "one", "one two three", "one two three", None,
    ]
    assert recorder.files == {"/a": {"text": "one two three"}}


def test_what_the_facts_need_stays():
    assert _excerpt.excerpt("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nmax:x:1:1:Max M:/home/max:/bin/sh", "max") == "max:x:1000:1000::/home/max:/bin/bash"
    assert _excerpt.excerpt("/proc/self/mounts", "server:/export /mnt nfs4 rw,addr=1.2.3.4 0 0", None, {"/mnt"}) == "device /mnt nfs4 rw 0 0"
    status = "Package: nvidia-a\nStatus: install ok installed\nVersion: 1\n\n"
    assert _excerpt.excerpt("/var/lib/dpkg/status", status).split() == status.split()


def test_relations_and_names(monkeypatch):
    recording = load(FOLDERS[0])
    twins = {}
    for path, row in recording["files"].items():
        if path.endswith("/sys_image_guid") and "text" in row:
            twins.setdefault(row["text"], []).append(path)
    assert [len(paths) for paths in twins.values()] == [4]
    recording["files"]["/home/max/.bashrc"] = {"text": "export PATH=/home/max/bin:$PATH\nssh max@me"}
    recording["machine"]["variables"] = {"HOME": "/home/max"}
    recording["facts"]["platform"]["hostname"] = "spark-box"
    recording["commands"].append({"argv": ["getent", "ahostsv4", "spark-box"], "status": 0, "output": "127.0.1.1 STREAM spark-box\n", "error": ""})
    recording["facts"]["platform"]["machine_id_digest"] = "of another"
    redacted = _recording.redact(copy.deepcopy(recording))
    assert "max" not in json.dumps(redacted).replace("max_", "").replace("maxi", "").replace("_max", "") or "/home/max" not in json.dumps(redacted)
    assert "spark-box" not in json.dumps(redacted)
    assert redacted["files"]["/home/user/.bashrc"]["text"].startswith("export PATH=/home/user/bin:$PATH")
    assert redacted["facts"]["platform"]["machine_id_digest"] != "of another"


def test_a_recording_is_described(monkeypatch):
    recording = load(FOLDERS[0])
    recording["commands"].append({"argv": ["nvcc"], "status": 127, "output": "", "error": ""})
    described = dict(_recording.describe(recording))
    assert described["driver"] == "580.142"
    assert described["not installed"] == "nvcc"
    assert _recording.dump({"b": 1, "a": "é"}) == '{\n "a": "é",\n "b": 1\n}\n'
