# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils._tree import read_record, write_record
from ansible_collections.gb10.fleet.plugins.modules import tree_manifest


@pytest.fixture
def call(capsys):
    def run(**arguments):
        with patch_module_args({name: value if name.startswith("_") else str(value) for name, value in arguments.items()}):
            with pytest.raises(SystemExit) as ended:
                tree_manifest.main()
        return ended.value.code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def model(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")
    return tmp_path / "model"


def test_a_folder_is_listed_and_nothing_is_written(call, model, tmp_path):
    status, result = call(path=model, record=tmp_path / "none.json", installed=tmp_path / "installed")
    assert status == 0 and result["changed"] is False
    assert (result["exists"], result["bytes"], result["problems"]) == (True, 2, [])
    assert [file["path"] for file in result["files"]] == ["config.json"]
    assert result["installed"] == {"exists": False, "digest": None, "foreign": False, "sound": False}
    assert list(tmp_path.iterdir()) == [model]


def test_a_missing_folder_is_no_failure(call, tmp_path):
    status, result = call(path=tmp_path / "none")
    assert (status, result["exists"], result["digest"], "installed" in result) == (0, False, None, False)


def test_what_was_read_is_remembered_other_than_in_check_mode(call, model, tmp_path):
    record = tmp_path / "model.json"
    write_record(str(record), {"path": str(model), "digest": "d", "seen": {}})
    assert call(path=model, record=record, _ansible_check_mode=True)[1]["changed"] is False
    assert read_record(str(record))["seen"] == {}
    _status, result = call(path=model, record=record)
    remembered = read_record(str(record))
    assert remembered["digest"] == "d" and remembered["seen"][f"{model}/config.json"][3] == result["files"][0]["sha256"]
    written = record.stat().st_mtime_ns
    call(path=model, record=record)
    assert record.stat().st_mtime_ns == written


def test_what_is_installed_meanwhile_stays_recorded(call, model, tmp_path, monkeypatch):
    record = tmp_path / "model.json"
    write_record(str(record), {"path": str(model), "digest": None, "seen": {}})
    whole = tree_manifest.scan

    def slow(path, seen):
        write_record(str(record), {"path": str(model), "digest": "d", "seen": {"/other": [1, 2, 3, "s"]}})
        return whole(path, seen)

    monkeypatch.setattr(tree_manifest, "scan", slow)
    call(path=model, record=record)
    assert read_record(str(record))["digest"] == "d"
    assert sorted(read_record(str(record))["seen"]) == sorted(["/other", f"{model}/config.json"])


def test_a_damaged_record_is_said(call, model, tmp_path):
    (tmp_path / "model.json").write_text("{", encoding="utf-8")
    status, result = call(path=model, record=tmp_path / "model.json")
    assert status == 1 and "damaged" in result["msg"]


def test_a_record_that_cannot_be_read_is_said(call, model, tmp_path):
    (tmp_path / "model.json").mkdir()
    status, result = call(path=model, record=tmp_path / "model.json")
    assert status == 1 and result["msg"].startswith(f"{tmp_path}/model.json cannot be read or written: Is a directory.")
