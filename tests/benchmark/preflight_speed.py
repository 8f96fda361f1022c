"""Time preflight.yml against a full ansible.builtin.setup on a light lab pair, and on sixteen nodes against two; and
what spark_facts costs a node.

Medians of the rounds are printed and written to tests/output/benchmark-preflight.json. Ends with 1 when something is over its limit.
"""
from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "collections"), str(ROOT / "tests/site")]

from light_lab import LightLab  # noqa: E402

PAIR_LIMIT = 4.0
FLEET_LIMIT = 6.0
FACTS_LIMIT = 0.6
CPU_LIMIT = 0.25
FLEET = 16
# Runs Ansible's own payload of the module and asks the kernel what it and its tools used.
MEASURE = r"""
import json, resource, subprocess, sys
spent = []
for _round in range(int(sys.argv[2])):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, sys.argv[1]], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
print(json.dumps(spent))
"""


def seconds(lab: LightLab, *command: str) -> float:
    """Wall time of a command that must succeed."""
    begin = time.monotonic()
    finished = lab.run(*command)
    if finished.returncode:
        sys.exit(f"{' '.join(command)} ended with {finished.returncode}:\n{finished.stdout}{finished.stderr}")
    return time.monotonic() - begin


def rounds(lab: LightLab, commands: dict[str, tuple[str, ...]], number: int) -> dict[str, list[float]]:
    """Times of each command, round by round, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for name, command in commands.items():
        seconds(lab, *command)
    for _round in range(number):
        for name, command in commands.items():
            times[name].append(seconds(lab, *command))
        print(f"{lab.count:2} nodes: " + ", ".join(f"{name} {values[-1]:.2f} s" for name, values in times.items()), flush=True)
    return times


def node_cpu(lab: LightLab, number: int) -> list[float]:
    """CPU seconds of spark_facts on a node, its tools included, as the login user."""
    lab.environment["ANSIBLE_KEEP_REMOTE_FILES"] = "1"
    seconds(lab, "ansible", "-i", "lab", "spark-a", "-m", "gb10.fleet.spark_facts")
    del lab.environment["ANSIBLE_KEEP_REMOTE_FILES"]
    payload = lab.on_node("spark-a", "ls /home/spark/.ansible/tmp/*/AnsiballZ_spark_facts.py").split()[-1]
    measured = lab.as_user("spark-a", f"python3 -c {shlex.quote(MEASURE)} {payload} {number}\n")
    lab.on_node("spark-a", f"rm -r {shlex.quote(os.path.dirname(payload))}")
    return json.loads(measured)


def main() -> int:
    """Run the rounds and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--name", default=os.environ.get("GB10_LAB", "test"), help="what the labs' names begin with")
    arguments = parser.parse_args()
    preflight = ("ansible-playbook", "-i", "lab", "preflight.yml", "--forks", str(FLEET))
    adhoc = {name: ("ansible", "-i", "lab", "spark", "-m", name) for name in ("ansible.builtin.ping", "ansible.builtin.setup", "gb10.fleet.spark_facts")}
    with LightLab(f"{arguments.name}-pair") as lab:
        pair = rounds(lab, {**{name.split(".")[-1]: command for name, command in adhoc.items()}, "preflight": preflight}, arguments.rounds)
        cpu = node_cpu(lab, arguments.rounds)
    with LightLab(f"{arguments.name}-fleet", FLEET) as lab:
        fleet = rounds(lab, {"preflight": preflight}, max(1, arguments.rounds // 2))
    median = {name: statistics.median(values) for name, values in pair.items()}
    median[f"preflight on {FLEET}"] = statistics.median(fleet["preflight"])
    judged = {
        "preflight / setup": (median["preflight"] / median["setup"], PAIR_LIMIT),
        f"preflight on {FLEET} / on 2": (median[f"preflight on {FLEET}"] / median["preflight"], FLEET_LIMIT),
        "(spark_facts - ping) / (setup - ping)": ((median["spark_facts"] - median["ping"]) / (median["setup"] - median["ping"]), FACTS_LIMIT),
        "CPU seconds of spark_facts on a node": (statistics.median(cpu), CPU_LIMIT),
    }
    for name, value in median.items():
        print(f"{name:16} median {value:6.2f} s")
    for name, (value, limit) in judged.items():
        print(f"{name} = {value:.3f} (limit {limit}): {'ok' if value <= limit else 'TOO SLOW'}")
    output = ROOT / "tests/output/benchmark-preflight.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        json.dumps({"pair": pair, "fleet": fleet, "cpu": cpu, "judged": {name: value for name, (value, _limit) in judged.items()}}, indent=2),
        encoding="utf-8",
    )
    return int(any(value > limit for value, limit in judged.values()))


if __name__ == "__main__":
    sys.exit(main())
