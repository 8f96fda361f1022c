"""The start gate, with Ray's account of its nodes stood in for by what Ray 2.60 returns."""
from __future__ import annotations

import importlib.machinery
import importlib.util
import socket
import sys
import types
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "roles/ray/files/gb10-start-gate"
ALIVE, DEAD = 0, 1


def load():
    loader = importlib.machinery.SourceFileLoader("start_gate", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("start_gate", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture
def gate(monkeypatch):
    module = load()
    monkeypatch.setattr(module, "PAUSE", 0.01)
    return module


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def ray(monkeypatch):
    """A cluster's nodes as [(address, port, state)] and its free GPUs, to be set by the test."""
    cluster = types.SimpleNamespace(nodes=[], free=[])

    class GcsClient:
        def __init__(self, address):
            self.address = address

        def get_all_node_info(self, timeout):
            if cluster.nodes is None:
                raise RuntimeError("RPC error")
            return {
                number: types.SimpleNamespace(state=state, node_manager_address=address, node_manager_port=port)
                for number, (address, port, state) in enumerate(cluster.nodes)
            }

        def get_all_resource_usage(self, timeout):
            batch = [types.SimpleNamespace(resources_available={"GPU": free} if free else {}) for free in cluster.free]
            return types.SimpleNamespace(resource_usage_data=types.SimpleNamespace(batch=batch))

    info = types.SimpleNamespace(GcsNodeInfo=types.SimpleNamespace(ALIVE=ALIVE))
    monkeypatch.setitem(sys.modules, "ray", types.ModuleType("ray"))
    monkeypatch.setitem(sys.modules, "ray._raylet", types.SimpleNamespace(GcsClient=GcsClient))
    monkeypatch.setitem(sys.modules, "ray.core", types.ModuleType("ray.core"))
    monkeypatch.setitem(sys.modules, "ray.core.generated", types.SimpleNamespace(gcs_pb2=info))
    return cluster


def test_two_alive_reachable_nodes_with_free_gpus_may_serve(gate, ray, listener):
    ray.nodes, ray.free = [("127.0.0.1", listener, ALIVE), ("127.0.0.1", listener, ALIVE)], [1, 1]
    assert gate.Cluster(f"127.0.0.1:{listener}").lacks(["127.0.0.1", "127.0.0.1"], 2) is None


@pytest.mark.parametrize(
    ("nodes", "free", "words"),
    [
        ([("127.0.0.1", None, ALIVE)], [1], "alive are 127.0.0.1 instead of"),
        ([("127.0.0.1", None, ALIVE), ("127.0.0.1", None, DEAD)], [1, 1], "alive are 127.0.0.1 instead of"),
        ([("127.0.0.1", None, ALIVE), ("127.0.0.9", None, ALIVE)], [1, 1], "instead of 127.0.0.1, 127.0.0.1"),
        ([("127.0.0.1", None, ALIVE), ("127.0.0.1", 1, ALIVE)], [1, 1], "the raylet on 127.0.0.1 does not answer"),
        ([("127.0.0.1", None, ALIVE), ("127.0.0.1", None, ALIVE)], [1, 0], "1 of 2 GPUs are free"),
        (None, [], "Ray does not tell its nodes: RuntimeError: RPC error"),
    ],
)
def test_what_the_cluster_lacks(gate, ray, listener, nodes, free, words):
    ray.nodes = nodes and [(address, listener if port is None else port, state) for address, port, state in nodes]
    ray.free = free
    assert words in gate.Cluster(f"127.0.0.1:{listener}").lacks(["127.0.0.1", "127.0.0.1"], 2)


def test_no_head_is_said_before_ray_is_imported(gate):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert gate.Cluster(f"127.0.0.1:{port}").lacks([], 0) == f"no Ray head answers at 127.0.0.1:{port}"


def test_rails_are_asked_for_mtu_and_address(gate):
    mtu = int(Path("/sys/class/net/lo/mtu").read_text(encoding="ascii"))
    assert gate.node_lacks(["lo=127.0.0.1"], mtu, []) is None
    assert gate.node_lacks(["lo=127.0.0.1"], mtu - 1, []) == f"lo has MTU {mtu} instead of {mtu - 1}"
    assert gate.node_lacks(["lo=192.0.2.1"], mtu, []) == "lo has not the address 192.0.2.1"
    assert gate.node_lacks(["no0=127.0.0.1"], mtu, []) == "no0 is missing"


def test_release_and_model_must_be_readable(gate, tmp_path):
    assert gate.node_lacks([], 0, [str(tmp_path)]) is None
    assert gate.node_lacks([], 0, [str(tmp_path / "none")]) == f"{tmp_path / 'none'} cannot be read"


def test_it_gives_up_at_the_limit_and_says_why(gate, monkeypatch, capsys):
    monkeypatch.setenv("GB10_RAILS", "no0=127.0.0.1")
    monkeypatch.setenv("GB10_MTU", "9000")
    monkeypatch.setattr(sys, "argv", ["gb10-start-gate", "node", "--limit", "0.05"])
    assert gate.main() == 1
    said = capsys.readouterr()
    assert said.out.count("waiting, no0 is missing") == 1
    assert said.err == "start gate: gave up after 0.05 s, no0 is missing\n"


def test_it_waits_until_all_is_there(gate, ray, listener, monkeypatch, capsys):
    ray.nodes, ray.free = [], [1]
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{listener}")
    monkeypatch.setenv("GB10_NODES", "127.0.0.1")
    monkeypatch.setattr(sys, "argv", ["gb10-start-gate", "cluster", "--limit", "20"])
    monkeypatch.setattr(gate.time, "sleep", lambda _seconds: ray.nodes.append(("127.0.0.1", listener, ALIVE)))
    assert gate.main() == 0
    assert capsys.readouterr().out == "start gate: waiting, alive are none instead of 127.0.0.1\nstart gate: cluster is ready\n"
