from __future__ import annotations

import json
import os
import stat

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.modules import credential


@pytest.fixture
def call(capsys):
    def run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            credential.main()
        return ended.value.code, json.loads(capsys.readouterr().out)

    return run


def test_a_secret_is_made_once_and_only_root_reads_it(call, tmp_path):
    path = tmp_path / "token"
    status, first = call(path=str(path))
    assert status == 0 and first["changed"] is True
    assert len(first["value"]) == 64 and path.read_text(encoding="utf-8").strip() == first["value"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    status, second = call(path=str(path))
    assert (status, second["changed"], second["value"]) == (0, False, first["value"])


def test_two_secrets_differ(call, tmp_path):
    assert call(path=str(tmp_path / "a"))[1]["value"] != call(path=str(tmp_path / "b"))[1]["value"]


def test_a_given_secret_wins_and_never_shows_in_the_diff(call, tmp_path):
    path = tmp_path / "token"
    call(path=str(path))
    _status, result = call(path=str(path), value="given-by-the-vault")
    assert result["changed"] is True and path.read_text(encoding="utf-8") == "given-by-the-vault\n"
    assert "vault" not in json.dumps(result["diff"])
    assert call(path=str(path), value="given-by-the-vault")[1]["changed"] is False


def test_check_mode_writes_nothing_also_without_a_folder(call, tmp_path):
    path = tmp_path / "none" / "token"
    _status, result = call(path=str(path), _ansible_check_mode=True)
    assert result["changed"] is True and len(result["value"]) == 64
    assert not path.parent.exists()


def test_a_file_that_others_read_is_put_right(call, tmp_path):
    path = tmp_path / "token"
    path.write_text("x" * 40, encoding="utf-8")
    path.chmod(0o644)
    _status, result = call(path=str(path))
    assert result["changed"] is True and result["value"] == "x" * 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_empty_file_is_no_secret(call, tmp_path):
    path = tmp_path / "token"
    path.write_text("\n", encoding="utf-8")
    assert len(call(path=str(path))[1]["value"]) == 64


def test_absent_removes_it_once(call, tmp_path):
    path = tmp_path / "token"
    call(path=str(path))
    assert call(path=str(path), state="absent", _ansible_check_mode=True)[1]["changed"] is True
    assert path.exists()
    assert call(path=str(path), state="absent")[1]["changed"] is True
    assert not path.exists()
    assert call(path=str(path), state="absent")[1]["changed"] is False


def test_a_missing_folder_is_said(call, tmp_path):
    status, result = call(path=str(tmp_path / "none" / "token"))
    assert status == 1 and "role host" in result["msg"]


def test_short_and_relative_are_refused(call, tmp_path):
    assert "easily guessed" in call(path=str(tmp_path / "token"), bytes=4)[1]["msg"]
    status, result = call(path="token")
    assert status == 1 and "absolute" in result["msg"]


def test_nothing_half_written_stays(call, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(credential.os, "replace", full)
    status, result = call(path=str(tmp_path / "token"))
    assert status == 1 and "No space left" in result["msg"]
    assert list(tmp_path.iterdir()) == []
