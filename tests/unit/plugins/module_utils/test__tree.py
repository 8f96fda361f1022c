# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import struct

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _tree


def safetensors(size=16, cut=0, **tensors):
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}, **tensors}
    text = json.dumps(header).encode()
    return (struct.pack("<Q", len(text)) + text + bytes(range(256))[:size])[: -cut or None]


@pytest.fixture
def model(tmp_path):
    """A whole model in a folder."""
    root = tmp_path / "model"
    (root / "extra").mkdir(parents=True)
    (root / "config.json").write_text("{}", encoding="utf-8")
    (root / "extra" / "chat.jinja").write_text("{{ x }}", encoding="utf-8")
    (root / "model-1.safetensors").write_bytes(safetensors())
    (root / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}), encoding="utf-8")
    return root


def total(text):
    return hashlib.sha256(text).hexdigest()


def entry(path, content=b"x"):
    return {"path": path, "size": len(content), "sha256": total(content)}


def test_a_whole_model_has_no_problem(model):
    found = _tree.scan(str(model), {})
    assert found["exists"] and found["problems"] == [] and found["readable"]
    assert [file["path"] for file in found["files"]] == [
        "config.json", "extra/chat.jinja", "model-1.safetensors", "model.safetensors.index.json",
    ]
    assert found["files"][0] == entry("config.json", b"{}")
    assert found["bytes"] == sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    assert found["digest"] == _tree.tree_digest(reversed(found["files"]))


@pytest.mark.parametrize("change", [entry("b"), {**entry("a"), "size": 2}, entry("a", b"y")])
def test_the_digest_tells_names_sizes_and_contents_apart(change):
    assert _tree.tree_digest([change]) != _tree.tree_digest([entry("a")])


def test_nothing_there_and_nothing_in_it(tmp_path):
    missing = _tree.scan(str(tmp_path / "none"), {})
    assert (missing["exists"], missing["digest"], missing["problems"]) == (False, None, [])
    assert _tree.scan(str(tmp_path), {})["problems"] == ["it holds no file"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("w.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "w.bin is a git-LFS pointer instead of the file, which git lfs pull fetches"),
        ("w.incomplete", b"", "w.incomplete is a download that did not end"),
        ("w.safetensors", safetensors(cut=3), "w.safetensors has 117 bytes instead of the 120 that its header tells"),
        ("w.safetensors", b"", "w.safetensors is cut off or no safetensors file"),
        ("w.safetensors", b"x" * 99, "w.safetensors is cut off or no safetensors file"),
        ("w.safetensors", struct.pack("<Q", 4) + b"nope", "w.safetensors is no safetensors file"),
        ("w.safetensors", struct.pack("<Q", 8) + b'{"a": 1}', "w.safetensors is no safetensors file"),
        ("x.safetensors.index.json", b"[]", "x.safetensors.index.json is no index of shards"),
        ("x.safetensors.index.json", b'{"weight_map": {"a": "gone", "b": "gone"}}', "gone, which x.safetensors.index.json names, is missing"),
    ],
)
def test_what_a_broken_download_leaves(model, name, content, problem):
    (model / name).write_bytes(content)
    seen = {}
    assert _tree.scan(str(model), seen)["problems"] == [problem]
    assert _tree.scan(str(model), seen)["problems"] == [problem]


def test_a_problem_in_the_left_out_folders_counts_and_their_files_do_not(model):
    whole = _tree.scan(str(model), {})["digest"]
    for folder in (".git", ".cache/huggingface/download"):
        (model / folder).mkdir(parents=True)
        (model / folder / "state").write_text("x", encoding="utf-8")
    assert _tree.scan(str(model), {})["digest"] == whole
    (model / ".cache" / "huggingface" / "download" / "w.incomplete").touch()
    assert _tree.scan(str(model), {})["problems"] == [".cache/huggingface/download/w.incomplete is a download that did not end"]


def test_links_count_as_the_files_and_must_lead_to_some(model, tmp_path):
    whole = _tree.scan(str(model), {})["digest"]
    (tmp_path / "blob").write_text("{}", encoding="utf-8")
    (model / "config.json").unlink()
    (model / "config.json").symlink_to("../blob")
    (tmp_path / "link").symlink_to(model)
    assert _tree.scan(str(tmp_path / "link"), {})["digest"] == whole
    (tmp_path / "blob").unlink()
    assert _tree.scan(str(model), {})["problems"] == ["config.json is a link to nothing"]
    (tmp_path / "blob").mkdir()
    assert _tree.scan(str(model), {})["problems"] == ["config.json is neither a file nor a link to one"]


class Entry:
    """A link of a user, found in a folder."""

    def __init__(self, link_owner, owner, mode):
        self.link, self.target = ((stat.S_IFREG | mode, 1, 1, 1, owner, owner, 5, 0, 0, 0) for owner in (link_owner, owner))

    def stat(self, follow_symlinks=True):
        return os.stat_result(self.target if follow_symlinks else self.link)

    def is_symlink(self):
        return True


@pytest.mark.parametrize(
    ("link_owner", "owner", "mode", "refused"),
    [(1000, 0, 0o600, True), (1000, 1000, 0o600, False), (1000, 0, 0o644, False), (0, 1000, 0o600, False)],
)
def test_a_link_does_not_publish_what_its_owner_cannot_read(tmp_path, link_owner, owner, mode, refused):
    tree = _tree.Tree(str(tmp_path))
    tree._read_entry("w", Entry(link_owner, owner, mode))
    assert bool(tree.problems) is refused and ("w" in tree.files) is not refused


def test_what_cannot_be_read_is_said(model, monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(_tree, "file_digest", refuse)
        problems = _tree.scan(str(model), {})["problems"]
    assert "config.json cannot be read: Input/output error" in problems
    (model / os.fsdecode(b"\xff")).touch()
    assert _tree.scan(str(model), {})["problems"] == [r"'\udcff' has a name that is not UTF-8"]
    monkeypatch.setattr(_tree.os, "scandir", refuse)
    assert _tree.scan(str(model), {})["problems"] == [f"{model} cannot be read: Input/output error"]


def test_only_what_changed_is_read_again(model, monkeypatch):
    seen = {"/elsewhere/a": [1, 2, 3, "sum"], f"{model}/gone": [1, 2, 3, "sum"]}
    first = _tree.scan(str(model), seen)
    assert len(seen) == 5 and "/elsewhere/a" in seen and f"{model}/gone" not in seen
    read, whole = [], _tree.file_digest
    monkeypatch.setattr(_tree, "file_digest", lambda path: read.append(path) or whole(path))
    assert _tree.scan(str(model), seen) == first and read == []
    (model / "config.json").write_text("[]", encoding="utf-8")
    os.utime(model / "config.json", (1, 1))
    changed = _tree.scan(str(model), seen)
    assert read == [f"{model}/config.json"] and changed["digest"] != first["digest"]


def test_modes_tell_who_can_read(model):
    for path in [model, *model.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert (_tree.scan(str(model), {})["readable"], _tree.scan(str(model), {})["plain"]) == (True, True)
    (model / "extra").chmod(0o775)
    assert (_tree.scan(str(model), {})["readable"], _tree.scan(str(model), {})["plain"]) == (True, False)
    (model / "extra").chmod(0o750)
    assert _tree.scan(str(model), {})["readable"] is False
    (model / "extra").chmod(0o755)
    (model / "config.json").chmod(0o640)
    assert _tree.scan(str(model), {})["readable"] is False
    assert _tree.make_tree_plain(str(model)) == [f"{model}/config.json"]
    assert _tree.scan(str(model), {})["plain"] is True
    (model / "link").symlink_to("config.json")
    assert _tree.make_plain(str(model / "link")) is False


def test_a_copy_is_its_own(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"weights")
    assert _tree.copy_file(str(source), str(target)) == total(b"weights")
    source.write_bytes(b"later!!")
    assert target.read_bytes() == b"weights"


def test_a_shared_copy_is_read_back(tmp_path, monkeypatch):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"weights")
    monkeypatch.setattr(_tree.fcntl, "ioctl", lambda handle, _request, _source: os.write(handle, b"weights"))
    assert _tree.copy_file(str(source), str(target)) == total(b"weights")


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a//b", "a/./b", ""])
def test_a_manifest_does_not_lead_out(path):
    with pytest.raises(ValueError, match="not a path inside"):
        _tree.check_paths([{"path": path}])


def test_a_plan_takes_what_is_there_by_content():
    wanted = [entry("kept", b"1"), entry("moved", b"2"), entry("new", b"3"), entry("stale", b"4")]
    plan = _tree.pull_plan(wanted, [entry("kept", b"1"), entry("stale", b"old")], [entry("earlier", b"2"), entry("new", b"other")])
    assert plan == (["kept"], [("moved", "earlier")], [wanted[2], wanted[3]])


def test_preparing_keeps_what_helps_only(tmp_path):
    installed, partial = tmp_path / "m", tmp_path / "m.partial"
    installed.mkdir()
    (partial / "empty").mkdir(parents=True)
    (partial / "folder").mkdir()
    for path, content in (
        (installed / "earlier", b"22"), (partial / "kept", b"1"), (partial / "start", b"33"), (partial / "long", b"4" * 9),
        (partial / "odd", b"5"), (partial / "folder" / "odd", b"6"),
    ):
        path.write_bytes(content)
    os.link(installed / "earlier", partial / "linked")
    (partial / "pointer").symlink_to(installed / "earlier")
    fetch = [entry(name, b"3333") for name in ("start", "long", "linked", "pointer", "odd/deep", "folder")]
    _tree.prepare(str(partial), str(installed), _tree.Plan(["kept"], [("new/moved", "earlier")], fetch))
    assert sorted(str(path.relative_to(partial)) for path in partial.rglob("*")) == ["kept", "new", "new/moved", "odd", "start"]
    assert (partial / "new" / "moved").samefile(installed / "earlier")
    _tree.remove(str(partial))
    partial.symlink_to(installed)
    _tree.prepare(str(partial), str(installed), _tree.Plan([], [], []))
    assert not partial.is_symlink() and list(installed.iterdir()) == [installed / "earlier"]


@pytest.mark.parametrize("left_over", [False, True])
def test_a_built_tree_takes_its_place(tmp_path, left_over):
    for name in ("m", "m.partial", *(["m.old"] if left_over else [])):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    _tree.take_place(str(tmp_path / "m"))
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["m", "m/m.partial"]


def test_what_is_installed(model, tmp_path):
    path = str(tmp_path / "none")
    assert _tree.installed_state(path, None, {}) == {"exists": False, "digest": None, "foreign": False, "sound": False}
    assert _tree.installed_state(str(model), None, {}) == {"exists": True, "digest": None, "foreign": True, "sound": False}
    _tree.make_tree_plain(str(model))
    record = {"digest": _tree.scan(str(model), {})["digest"]}
    assert _tree.installed_state(str(model), record, {}) == {"exists": True, "digest": record["digest"], "foreign": False, "sound": True}
    assert _tree.installed_state(str(model), {"digest": None}, {})["sound"] is False
    (tmp_path / "model.partial").mkdir()
    assert _tree.installed_state(str(model), record, {})["sound"] is False
    assert _tree.installed_state(str(model), None, {})["foreign"] is True
    (model / "w.safetensors").touch()
    assert _tree.installed_state(str(model), record, {})["digest"] is None


def test_records(tmp_path, monkeypatch):
    path = tmp_path / "manifests" / "tiny.json"
    assert _tree.read_record(str(path)) is None and _tree.read_record(None) is None
    path.parent.mkdir()
    _tree.write_record(str(path), {"path": "/m", "digest": None, "seen": {}})
    assert _tree.read_record(str(path)) == {"path": "/m", "digest": None, "seen": {}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for damaged in ("{", "[]", '{"path": "/m"}', '{"path": 1, "seen": {}}'):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(ValueError, match="tiny.json is damaged"):
            _tree.read_record(str(path))

    def full(_source, _target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_tree.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        _tree.write_record(str(path), {})
    assert list(path.parent.iterdir()) == [path]


def test_removing(tmp_path, model):
    (tmp_path / "link").symlink_to(model)
    assert _tree.remove(str(tmp_path / "link")) is True and model.is_dir()
    assert _tree.remove(str(model)) is True and not model.exists()
    assert _tree.remove(str(model)) is False


def test_free_space_of_a_folder_to_be(tmp_path):
    assert _tree.free_bytes(str(tmp_path / "a" / "b")) > 0


def test_pages_are_let_go(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x")
    calls = []
    monkeypatch.setattr(_tree.os, "sync", lambda: calls.append("sync"))
    monkeypatch.setattr(_tree.os, "posix_fadvise", lambda *arguments: calls.append(arguments[1:]))
    _tree.drop_cached([str(tmp_path / "a")])
    assert calls == ["sync", (0, 0, os.POSIX_FADV_DONTNEED)]
