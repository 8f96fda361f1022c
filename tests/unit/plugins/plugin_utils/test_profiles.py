# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.plugin_utils.profiles import FOLDER, ProfileError, load_profile, profile_paths


def write(folder, name, text):
    path = folder / f"{name}.yml"
    path.write_text(text)
    return str(path)


GOOD = "model: small\nserved_name: small\ntensor_parallel: 2\n"


def test_own_profiles_win_over_the_collections(tmp_path):
    ours, own = tmp_path / "ours", tmp_path / "own"
    ours.mkdir()
    own.mkdir()
    write(ours, "tiny", GOOD)
    write(ours, "big", GOOD)
    mine = write(own, "tiny", GOOD)
    (own / "notes.txt").write_text("")
    (own / ".hidden.yml").write_text("")
    assert profile_paths(str(own), str(ours)) == {"big": str(ours / "big.yml"), "tiny": mine}
    assert profile_paths(None, str(tmp_path / "nowhere")) == {}


def test_a_folder_beside_the_target_of_a_link(tmp_path):
    (tmp_path / "inventories" / "pair").mkdir(parents=True)
    (tmp_path / "inventories" / "profiles").mkdir()
    (tmp_path / "pair").symlink_to("inventories/pair")
    write(tmp_path / "inventories" / "profiles", "x", GOOD)
    assert "x" in profile_paths(f"{tmp_path}/pair/../profiles")


def test_the_home_folder_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "x", GOOD)
    assert "x" in profile_paths("~/mine")


def test_the_collections_profiles_are_well_formed():
    assert FOLDER.endswith("roles/serve/profiles")
    for name, path in profile_paths().items():
        assert load_profile(name, path)["name"] == name


def test_optional_fields_are_always_there(tmp_path):
    profile = load_profile("p", write(tmp_path, "p", GOOD))
    assert (profile["toolchains"], profile["engine"], profile["name"]) == ([], {}, "p")
    assert profile["smoke"]["messages"][0]["content"] == "Say hello in one sentence."


@pytest.mark.parametrize(
    "text, words",
    [
        ("- a\n", "must be a mapping with model"),
        ("a: [\n", "cannot be read"),
        (GOOD + "name: q\n", "calls itself q: name the file q.yml"),
        (GOOD.replace("model: small", "model: 7"), "needs model, the name of a model; got: 7"),
        (GOOD.replace("served_name: small\n", ""), "needs served_name, the name that clients ask for; got: None"),
        (GOOD.replace("2", "true"), "needs tensor_parallel, a number of nodes; got: True"),
        (GOOD.replace("2", "0"), "needs tensor_parallel of 1 or more; got: 0"),
        (GOOD + "toolchains: cpu\n", "needs toolchains, a list of toolchain names; got: cpu"),
        (GOOD + "engine: []\n", "needs engine, a mapping"),
    ],
)
def test_a_wrong_profile_is_named(tmp_path, text, words):
    path = write(tmp_path, "p", text)
    with pytest.raises(ProfileError) as caught:
        load_profile("p", path)
    assert words in str(caught.value) and path in str(caught.value)


def test_a_profile_that_is_gone(tmp_path):
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile("p", str(tmp_path / "p.yml"))


def test_a_field_that_no_profile_has(tmp_path):
    with pytest.raises(ProfileError, match="has served_nam, which no profile has; did you mean served_name"):
        load_profile("p", write(tmp_path, "p", GOOD + "served_nam: x\n"))


@pytest.mark.parametrize("name", ["a b", "a@b", "-a", "a/b", "ä"])
def test_a_name_that_cannot_be_a_units(name, tmp_path):
    with pytest.raises(ProfileError, match="names a systemd unit"):
        load_profile(name, write(tmp_path, "p", GOOD))


def test_a_model_that_cannot_be_a_folder(tmp_path):
    with pytest.raises(ProfileError, match="which is no name of a folder"):
        load_profile("p", write(tmp_path, "p", GOOD.replace("model: small", "model: org/small")))
