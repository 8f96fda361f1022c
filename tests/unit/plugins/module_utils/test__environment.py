# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _environment

HOME = "/home/user"


def found(tree, home=HOME):
    return [(entry["name"], entry["value"], entry["file"], entry["line"], entry["kind"]) for entry in _environment.read_environment(tree.root, home, print)]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("export NCCL_DEBUG=INFO", [("NCCL_DEBUG", "INFO")]),
        ("NCCL_SOCKET_IFNAME='^lo,docker0'", [("NCCL_SOCKET_IFNAME", "^lo,docker0")]),
        ('export NCCL_IB_GID_INDEX=""  # pinned', [("NCCL_IB_GID_INDEX", "")]),
        ("export A=1 CUDA_VISIBLE_DEVICES=0 VLLM_HOST_IP=10.0.0.1", [("CUDA_VISIBLE_DEVICES", "0"), ("VLLM_HOST_IP", "10.0.0.1")]),
        ("declare -x RAY_ADDRESS=auto; export GLOO_SOCKET_IFNAME=lo", [("RAY_ADDRESS", "auto"), ("GLOO_SOCKET_IFNAME", "lo")]),
        ("  [ -d /opt/x ] && export TORCH_HOME=/opt/x", [("TORCH_HOME", "/opt/x")]),
        ("if true; then NCCL_NET=IB; fi", [("NCCL_NET", "IB")]),
        ("LD_PRELOAD=/opt/libnccl.so.2", [("LD_PRELOAD", "/opt/libnccl.so.2")]),
        ("export LD_LIBRARY_PATH=$HOME/nccl/build/lib:$LD_LIBRARY_PATH", [("LD_LIBRARY_PATH", "$HOME/nccl/build/lib:$LD_LIBRARY_PATH")]),
        ("export LD_LIBRARY_PATH=/usr/lib", []),
        ("# export NCCL_DEBUG=INFO", []),
        ("alias run='NCCL_DEBUG=INFO ./run'", []),
        ("NCCL_DEBUG=INFO ./all_reduce_perf", []),
        ("echo NCCL_DEBUG=INFO", []),
        ("unset NCCL_DEBUG", []),
        ("export MY_NCCL_DEBUG=1 CUDA_VISIBLE_DEVICES_OLD=1", []),
        ('export NCCL_DEBUG="INFO', [("NCCL_DEBUG", "INFO")]),
        ("export NCCL_IB_HCA=$(ls /sys/class/infiniband)", [("NCCL_IB_HCA", "$")]),
    ],
)
def test_lines_of_a_shell(line, expected):
    assert _environment.parse_shell(f"\n{line}\n") == [(2, *pair) for pair in expected]


def test_every_place_with_its_line(tree):
    tree.write("etc/environment", '\nPATH="/usr/bin"\nNCCL_NET="IB"\n')
    tree.write("etc/environment.d/60.conf", "VLLM_API_KEY=sk-secret\n#NCCL_X=1\n")
    tree.write("etc/environment.d/README", "NCCL_X=1\n")
    tree.write("etc/profile", "export NCCL_P2P_DISABLE=1\n")
    tree.write("etc/profile.d/nccl.sh", "\n\nexport NCCL_DEBUG=WARN\n")
    tree.write("etc/profile.d/nccl.csh", "setenv NCCL_DEBUG WARN\n")
    tree.write("etc/bash.bashrc", "export RAY_memory_monitor_refresh_ms=0\n")
    tree.write("home/user/.profile", "export CUDA_VISIBLE_DEVICES=0\n")
    tree.write("home/user/.bashrc", "export VLLM_HF_TOKEN=hf_x TORCH_CUDA_ARCH_LIST='12.1a'\n")
    tree.write("home/user/.zshrc", "export NCCL_ZSH=1\n")
    tree.write("home/user/.config/environment.d/a.conf", "NCCL_USER=1\n")
    tree.write("etc/nccl.conf", "NCCL_IB_HCA=mlx5_0\n\nNCCL_IB_TC=106\n")
    tree.write("home/user/.nccl.conf", "NCCL_ALGO=Ring\n")
    tree.write(
        "etc/systemd/system/vllm.service",
        '[Service]\nEnvironment="NCCL_A=1 2" NCCL_B=2 \\\n  OTHER=3\nEnvironment=VLLM_API_KEY=sk\nEnvironmentFile=-/etc/default/vllm\n'
        "EnvironmentFile=/etc/gb10/nccl.env\nEnvironmentFile=/etc/%i.env\nExecStart=/bin/x NCCL_C=1\n",
    )
    tree.write("etc/default/vllm", "NCCL_FILE=1\nRAY_URL=https://me:pw@host/x\n")
    tree.write("etc/gb10/nccl.env", "NCCL_OURS=1\n")
    tree.write("etc/systemd/system/ray.service.d/own.conf", "[Service]\nEnvironment=RAY_X=1\nEnvironmentFile=/etc/default/vllm\n")
    tree.write("etc/systemd/system/ray.service.d/own.bak", "[Service]\nEnvironment=RAY_Y=1\n")
    tree.write("etc/systemd/system/gb10-ray.service", "[Service]\nEnvironment=NCCL_OURS=1\n")
    tree.write("etc/systemd/system/multi-user.target.wants/x", "")
    tree.write("etc/systemd/system.conf", "[Manager]\n#DefaultEnvironment=NCCL_N=1\n")
    tree.write("etc/systemd/system.conf.d/own.conf", "[Manager]\nDefaultEnvironment=GLOO_SOCKET_IFNAME=eth0\n")
    assert found(tree) == [
        ("NCCL_NET", "IB", "/etc/environment", 3, "system"),
        ("VLLM_API_KEY", None, "/etc/environment.d/60.conf", 1, "system"),
        ("NCCL_IB_HCA", "mlx5_0", "/etc/nccl.conf", 1, "nccl_conf"),
        ("NCCL_IB_TC", "106", "/etc/nccl.conf", 3, "nccl_conf"),
        ("NCCL_ALGO", "Ring", "/home/user/.nccl.conf", 1, "nccl_conf"),
        ("NCCL_USER", "1", "/home/user/.config/environment.d/a.conf", 1, "system"),
        ("NCCL_P2P_DISABLE", "1", "/etc/profile", 1, "shell"),
        ("NCCL_DEBUG", "WARN", "/etc/profile.d/nccl.sh", 3, "shell"),
        ("RAY_memory_monitor_refresh_ms", "0", "/etc/bash.bashrc", 1, "shell"),
        ("CUDA_VISIBLE_DEVICES", "0", "/home/user/.profile", 1, "shell"),
        ("VLLM_HF_TOKEN", None, "/home/user/.bashrc", 1, "shell"),
        ("TORCH_CUDA_ARCH_LIST", "12.1a", "/home/user/.bashrc", 1, "shell"),
        ("NCCL_ZSH", "1", "/home/user/.zshrc", 1, "shell"),
        ("RAY_X", "1", "/etc/systemd/system/ray.service.d/own.conf", 2, "unit"),
        ("NCCL_FILE", "1", "/etc/default/vllm", 1, "unit"),
        ("RAY_URL", "https://REDACTED@host/x", "/etc/default/vllm", 2, "unit"),
        ("NCCL_A", "1 2", "/etc/systemd/system/vllm.service", 2, "unit"),
        ("NCCL_B", "2", "/etc/systemd/system/vllm.service", 2, "unit"),
        ("VLLM_API_KEY", None, "/etc/systemd/system/vllm.service", 4, "unit"),
        ("GLOO_SOCKET_IFNAME", "eth0", "/etc/systemd/system.conf.d/own.conf", 2, "system"),
    ]


def test_a_node_without_any(tree):
    assert found(tree) == []
    assert found(tree, None) == []
    assert _environment.login_path(tree.root, None) == []


@pytest.mark.parametrize("name", ["VLLM_API_KEY", "RAY_auth_token", "NCCL_SECRET_X", "VLLM_PASSWORD", "RAY_PASSWD", "VLLM_CREDENTIALS"])
def test_secrets_are_never_told(tree, name):
    tree.write("etc/environment", f"{name}=s3cr3t\n")
    assert found(tree) == [(name, None, "/etc/environment", 1, "system")]


def test_a_file_for_root_alone_is_told(tree, monkeypatch):
    notes = []
    tree.write("etc/systemd/system/vllm.service", "[Service]\nEnvironmentFile=/etc/default/vllm\nEnvironment=NCCL_A=1\n")
    monkeypatch.setattr(_environment, "is_denied", lambda root, path: path == "etc/default/vllm")
    found_there = _environment.read_environment(tree.root, None, lambda *note: notes.append(note))
    assert [entry["name"] for entry in found_there] == ["NCCL_A"]
    assert [note[:2] for note in notes] == [("/etc/default/vllm", "denied")]


def test_home_of_who_logs_in(tree):
    tree.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\nodd:x\nnone:x:1:1:::\n")
    assert _environment.login_home(tree.root, {"HOME": "/root", "SUDO_USER": "user"}) == "/home/user"
    assert _environment.login_home(tree.root, {"HOME": "/root", "SUDO_USER": "odd"}) == "/root"
    assert _environment.login_home(tree.root, {"HOME": "/root", "SUDO_USER": "none"}) == "/root"
    assert _environment.login_home(tree.root, {"HOME": "/home/spark"}) == "/home/spark"
    assert _environment.login_home(tree.root, {}) is None


def test_path_of_a_login(tree):
    for folder in ("usr/bin", "usr/local/bin", "home/user/.local/bin", "home/user/bin", "opt/conda/bin", "usr/local/cuda/bin"):
        tree.write(f"{folder}/x", "")
    assert _environment.login_path(tree.root, HOME) == ["/usr/local/bin", "/usr/bin"]
    tree.write("etc/environment", 'PATH="/usr/bin:/usr/bin:/none:relative"\n')
    tree.write("etc/profile", 'PATH="/sbin"\n')
    tree.write("etc/profile.d/cuda.sh", "# PATH=/x\nexport PATH=/usr/local/cuda/bin${PATH:+:${PATH}}\n")
    tree.write("home/user/.profile", 'if [ -d "$HOME/bin" ] ; then\n    PATH="$HOME/bin:$PATH"\nfi\n')
    tree.write("home/user/.bashrc", "export A=1 PATH=~/.local/bin:/opt/conda/bin:$PATH\nexport PATH=$OTHER/x:$PATHS:${PATH}\n")
    assert _environment.login_path(tree.root, HOME) == [
        "/home/user/.local/bin", "/opt/conda/bin", "/home/user/bin", "/usr/local/cuda/bin", "/usr/bin",
    ]
    tree.write("home/user/.bash_profile", "PATH=/usr/local/bin\n")
    tree.write("home/user/.bashrc", "")
    assert _environment.login_path(tree.root, HOME) == ["/usr/local/bin"]


def test_a_path_that_doubles_itself_stays_short(tree):
    tree.write("usr/bin/x", "")
    tree.write("etc/profile.d/a.sh", "PATH=$PATH:$PATH\n" * 200)
    assert _environment.login_path(tree.root, HOME) == ["/usr/bin"]


def test_a_unit_with_an_open_quote_still_tells():
    assert _environment.parse_unit('[Service]\nEnvironment="NCCL_A=1 NCCL_B=2\n', ("Environment",)) == ([(2, "NCCL_A", "1"), (2, "NCCL_B", "2")], [])
