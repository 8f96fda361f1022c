"""Bad input ends before any change, with one sentence that names host, variable and cure."""
from __future__ import annotations

import pytest
from conftest import lab_inventory, on_node, playbook

PAIR = {"pair": ["spark-a", "spark-b"]}


def refused(*words: str, inventory: str = "lab", arguments: tuple[str, ...] = ()) -> None:
    """site.yml fails before the first change and its message holds the words."""
    finished = playbook("site.yml", *arguments, inventory=inventory)
    assert finished.status != 0, finished.text
    said = " ".join(finished.text.replace("''", "'").split())
    for word in words:
        assert word in said, said
    assert "PLAY [Prepare the nodes]" not in finished.text
    assert all(counters["changed"] == 0 for counters in finished.recap.values())


def test_host_in_two_clusters(served, tmp_path):
    inventory = lab_inventory(tmp_path, {**PAIR, "other": ["spark-a"]})
    refused("spark-a", "clusters other and pair", "Leave it in one of them", inventory=inventory)


def test_cluster_of_one_with_tensor_parallel_two(served, tmp_path):
    refused("spark-a", "spark_tensor_parallel", inventory=lab_inventory(tmp_path, {"alone": ["spark-a"]}))


def test_equal_addresses(served, tmp_path):
    same = {"spark_rail_addresses": {"enp1s0f0np0": "192.168.100.10/24", "enP2p1s0f0np0": "192.168.101.10/24"}}
    inventory = lab_inventory(tmp_path, PAIR, {"spark-a": same, "spark-b": same})
    refused("192.168.100.10", "spark-a", "spark-b", "spark_rail_addresses", inventory=inventory)


def test_a_rail_that_does_not_exist(served, tmp_path):
    wrong = {"spark_rail_addresses": {"enp9s0f0np0": "192.168.100.10/24"}}
    refused("spark-b", "enp9s0f0np0", "spark_rail_addresses", inventory=lab_inventory(tmp_path, PAIR, {"spark-b": wrong}))


def test_unknown_profile(served):
    refused("spark_profile", "tyny", "tiny", arguments=("-e", "spark_profile=tyny"))


def test_model_path_missing_on_the_head(served):
    refused("spark-a", "spark_model_source", "/srv/models/absent", arguments=("-e", "spark_model_source=/srv/models/absent"))


@pytest.fixture(scope="module")
def wheelhouses(served):
    """Folders on the nodes: one without vLLM, one whose vLLM is of another architecture."""
    commands = [
        "mkdir -p /tmp/without /tmp/foreign",
        "cp /srv/wheelhouse/uv-*.whl /tmp/without/",
        "cp /srv/wheelhouse/uv-*.whl /tmp/foreign/",
        "grep -A1 '^uv==' /srv/wheelhouse/requirements.txt > /tmp/without/requirements.txt",
        "cp /srv/wheelhouse/requirements.txt /tmp/foreign/",
        "for wheel in /srv/wheelhouse/vllm-[0-9]*.whl; do ln -s $wheel /tmp/foreign/$(basename $wheel | sed s/x86_64/aarch64/); done",
    ]
    on_node("spark", " && ".join(commands))
    yield
    on_node("spark", "rm -r /tmp/without /tmp/foreign")


def test_wheelhouse_without_vllm(wheelhouses):
    refused("spark-a", "spark_wheelhouse", "/tmp/without", "vllm", arguments=("-e", "spark_wheelhouse=/tmp/without"))


def test_wheels_of_another_architecture(wheelhouses):
    refused("spark-a", "spark_wheelhouse", "/tmp/foreign", "aarch64", "x86_64", arguments=("-e", "spark_wheelhouse=/tmp/foreign"))


@pytest.fixture
def user_without_sudo(served):
    """A login user on the nodes that sudo does not know."""
    on_node("spark", "useradd -m nosudo && cp -r /home/spark/.ssh /home/nosudo/ && chown -R nosudo: /home/nosudo/.ssh")
    yield "nosudo"
    on_node("spark", "pkill -u nosudo; sleep 1; userdel -r nosudo")


def test_no_sudo(user_without_sudo):
    refused("spark-a", "sudo", "ansible_become_password", arguments=("-e", f"ansible_user={user_without_sudo}"))


def test_an_inventory_that_cannot_be_read_is_an_error(tmp_path):
    broken = tmp_path / "hosts.yml"
    broken.write_text("all: [", encoding="utf-8")
    assert playbook("site.yml", inventory=str(broken)).status != 0
    assert playbook("site.yml", inventory=str(tmp_path / "none")).status != 0


def test_an_inventory_without_the_group_spark_is_an_error(tmp_path):
    other = tmp_path / "hosts.yml"
    other.write_text("all: {hosts: {somebody: {}}}\n", encoding="utf-8")
    refused("has no host in the group spark", inventory=str(other))


def test_a_port_that_cannot_be(served):
    refused("spark-a", "spark_port is 99999999", arguments=("-e", "spark_port=99999999"))
