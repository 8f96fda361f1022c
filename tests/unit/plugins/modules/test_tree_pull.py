# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import shutil
import stat

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _tree
from ansible_collections.gb10.fleet.plugins.module_utils._lock import locked
from ansible_collections.gb10.fleet.plugins.module_utils._tree import read_record, scan
from ansible_collections.gb10.fleet.plugins.modules import tree_pull

URL = "rsync://192.168.100.10:8730/tree/"


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    (root / "extra").mkdir(parents=True)
    (root / "config.json").write_text("{}", encoding="utf-8")
    (root / "extra" / "weights.bin").write_bytes(b"0123456789")
    (root / "config.json").chmod(0o600)
    return root


class Rsync:
    """Stands for the rsync client: appends to what is there, as told by the names on standard input."""

    def __init__(self, root):
        self.root = root
        self.names = []
        self.fail = None
        self.spoil = 0

    def run(self, command, data=None, binary_data=False, pass_fds=(), environ_update=None, **_options):
        assert command[:4] == ["/usr/bin/timeout", "-k", "5", "86400"]
        command = command[4:]
        assert command[0] == "/usr/bin/rsync" and "--append" in command and command[-2] == URL
        assert binary_data and environ_update["LC_ALL"] == "C"
        assert os.path.basename(os.readlink(f"/proc/self/fd/{pass_fds[0]}")) == "manifests"
        names = data.rstrip("\0").split("\0")
        self.names.append(names)
        received = 0
        for name in names:
            with open(os.path.join(command[-1], name), "ab") as stream:
                rest = (self.root / name).read_bytes()[stream.tell():]
                received += stream.write(b"?" * len(rest) if self.spoil else rest)
            if self.fail is not None:
                return self.fail
        self.spoil -= bool(self.spoil)
        return 0, f"Total bytes received: {received:,}\n", ""


@pytest.fixture
def rsync(source, monkeypatch):
    client = Rsync(source)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda _module, name: f"/usr/bin/{name}")
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda _module, command, **options: client.run(command, **options))
    return client


@pytest.fixture
def call(capsys, tmp_path, source):
    def run(**arguments):
        wanted = {
            "path": str(tmp_path / "models" / "tiny"), "source": str(source),
            "record": str(tmp_path / "manifests" / "tiny.json"),
        }
        if "files" not in arguments:
            wanted["files"] = scan(str(source), {})["files"]
        with patch_module_args({**wanted, **arguments}), pytest.raises(SystemExit) as ended:
            tree_pull.main()
        return ended.value.code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def installed(tmp_path):
    return tmp_path / "models" / "tiny"


def contents(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_folder_is_installed_once(call, source, installed, tmp_path, monkeypatch):
    status, result = call()
    assert status == 0 and result["changed"] is True
    assert (result["bytes"], result["received"]) == (12, 12) and result["digest"] == scan(str(source), {})["digest"]
    assert contents(installed) == contents(source)
    assert stat.S_IMODE((installed / "config.json").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "manifests").stat().st_mode) == 0o700
    record = read_record(str(tmp_path / "manifests" / "tiny.json"))
    assert (record["path"], record["digest"], record["bytes"]) == (str(installed), result["digest"], 12)
    assert sorted(record["seen"]) == sorted(f"{root}/{name}" for root in (source, installed) for name in ("config.json", "extra/weights.bin"))
    assert scan(str(installed), dict(record["seen"]))["digest"] == scan(str(installed), {})["digest"] == result["digest"]
    monkeypatch.setattr(_tree, "file_digest", None)
    status, result = call(files=record["files"])
    assert (status, result["changed"], result["bytes"], result["gigabytes_per_second"]) == (0, False, 0, None)
    assert os.listdir(installed.parent) == ["tiny"]


def test_one_run_at_a_time(call, installed, tmp_path, monkeypatch):
    monkeypatch.setattr(tree_pull, "LOCK_SECONDS", 0)
    records = tmp_path / "manifests"
    records.mkdir()
    with locked(str(records), 0):
        assert call()[1]["msg"].startswith(f"Another run has held the lock on {records}") and not installed.exists()


def test_later_edits_of_the_source_do_not_reach_it(call, source, installed):
    call()
    with open(source / "extra" / "weights.bin", "r+b") as stream:
        stream.write(b"edit")
    assert (installed / "extra" / "weights.bin").read_bytes() == b"0123456789"


def test_check_mode_on_a_bare_node_predicts_and_writes_nothing(call, source, tmp_path):
    status, result = call(_ansible_check_mode=True)
    assert (status, result["changed"], result["bytes"], result["received"]) == (0, True, 12, None)
    assert call(_ansible_check_mode=True, source=None)[1]["changed"] is True
    assert list(tmp_path.iterdir()) == [source]


def test_an_update_fetches_what_is_new_only(call, rsync, source, installed):
    assert call(source=URL)[1]["received"] == 12
    inode = (installed / "extra" / "weights.bin").stat().st_ino
    (source / "config.json").write_text("[1]", encoding="utf-8")
    (source / "extra" / "weights.bin").rename(source / "moved.bin")
    _status, result = call(source=URL)
    assert rsync.names == [["config.json", "extra/weights.bin"], ["config.json"]]
    assert (result["changed"], result["bytes"], result["received"]) == (True, 3, 3)
    assert contents(installed) == contents(source) and (installed / "moved.bin").stat().st_ino == inode


def test_a_broken_off_copy_goes_on(call, rsync, source, installed, tmp_path):
    (source / "a.bin").write_bytes(b"first")
    rsync.fail = (30, "", "timeout in data send/receive\n")
    status, result = call(source=URL)
    assert status == 1 and "timeout in data" in result["msg"] and "role fabric" in result["msg"]
    assert not installed.exists() and read_record(str(tmp_path / "manifests" / "tiny.json"))["digest"] is None
    partial = tmp_path / "models" / "tiny.partial"
    assert contents(partial) == {"a.bin": b"first"}
    (partial / "extra").mkdir(exist_ok=True)
    (partial / "extra" / "weights.bin").write_bytes(b"01234")
    rsync.fail = None
    _status, result = call(source=URL)
    assert rsync.names[-1] == ["config.json", "extra/weights.bin"] and result["received"] == 7
    assert contents(installed) == contents(source) and not partial.exists()
    assert call(source=URL)[1]["changed"] is False


def test_a_killed_rsync_is_named(call, rsync):
    rsync.fail = (-9, "", "")
    assert "rsync ended with -9" in call(source=URL)[1]["msg"]


def test_a_start_of_something_else_is_fetched_anew(call, rsync, source, installed, tmp_path):
    rsync.fail = (-9, "", "")
    call(source=URL)
    (tmp_path / "models" / "tiny.partial" / "extra" / "weights.bin").write_bytes(b"XXXX")
    rsync.fail = None
    status, _result = call(source=URL)
    assert status == 0 and rsync.names[-1] == ["extra/weights.bin"]
    assert contents(installed) == contents(source)


def test_what_arrives_spoilt_twice_is_refused(call, rsync, installed):
    rsync.spoil = 2
    status, result = call(source=URL)
    assert status == 1 and result["msg"].startswith("config.json, extra/weights.bin arrived with another content")
    assert not installed.exists()
    assert call(source=URL)[0] == 0


def test_a_link_into_the_installed_tree_is_not_written_through(call, rsync, source, installed, tmp_path):
    call(source=URL)
    partial = tmp_path / "models" / "tiny.partial"
    partial.mkdir()
    os.link(installed / "config.json", partial / "config.json")
    before = (installed / "config.json").read_bytes()
    (source / "config.json").write_bytes(before + b"more")
    rsync.fail = (-9, "", "")
    call(source=URL)
    assert (installed / "config.json").read_bytes() == before


def test_modes_and_left_overs_are_put_right(call, installed, tmp_path):
    call()
    (installed / "config.json").chmod(0o600)
    (tmp_path / "models" / "tiny.old").mkdir()
    assert call(_ansible_check_mode=True)[1]["changed"] is True
    _status, result = call()
    assert (result["changed"], result["bytes"]) == (True, 0)
    assert stat.S_IMODE((installed / "config.json").stat().st_mode) == 0o644 and os.listdir(installed.parent) == ["tiny"]


def test_what_somebody_else_put_there_is_left_alone(call, installed):
    installed.mkdir(parents=True)
    (installed / "mine").touch()
    for check in (True, False):
        status, result = call(_ansible_check_mode=check)
        assert status == 1 and "was not installed by this collection: move it away" in result["msg"]
    assert contents(installed) == {"mine": b""}


def test_a_source_that_is_written_meanwhile_is_refused(call, source, installed):
    files = scan(str(source), {})["files"]
    (source / "config.json").write_text("[]", encoding="utf-8")
    status, result = call(files=files)
    assert status == 1 and "changed while it was copied" in result["msg"] and not installed.exists()


def test_a_full_disk_is_foreseen(call, source, installed, monkeypatch):
    monkeypatch.setattr(tree_pull, "free_bytes", lambda _path: 11)
    for check in (True, False):
        status, result = call(_ansible_check_mode=check)
        assert status == 1 and "needs 0.0 GB more" in result["msg"]
    monkeypatch.setattr(tree_pull, "free_bytes", lambda _path: 12)
    assert call()[0] == 0


def test_what_cannot_be_is_said(call, rsync, tmp_path, monkeypatch):
    assert "source is missing" in call(source=None)[1]["msg"]
    assert "not a path inside" in call(files=[{"path": "../x", "size": 1, "sha256": "0"}])[1]["msg"]
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_arguments: None)
    assert "run the role host" in call(source=URL)[1]["msg"]
    shutil.rmtree(tmp_path / "models")
    (tmp_path / "models").touch()
    status, result = call()
    assert status == 1 and result["msg"].startswith(f"{tmp_path}/models cannot be written or read: File exists.")


def test_absent_removes_what_is_recorded_only(call, installed, tmp_path):
    records = tmp_path / "manifests"
    call()
    (tmp_path / "models" / "tiny.partial").mkdir()
    (tmp_path / "models" / "mine").mkdir()
    for check in (True, False):
        _status, result = call(state="absent", record=str(records), _ansible_check_mode=check)
        assert (result["changed"], result["removed"]) == (True, [str(installed)])
        assert installed.exists() is check
    assert os.listdir(tmp_path / "models") == ["mine"] and not records.exists()
    assert call(state="absent", record=str(records))[1]["changed"] is False


def test_absent_of_one_model(call, installed, tmp_path):
    record = tmp_path / "manifests" / "tiny.json"
    call()
    assert call(state="absent")[1]["removed"] == [str(installed)]
    assert not record.exists() and record.parent.is_dir()
    assert call(state="absent")[1]["changed"] is False
