"""Time a second site.yml and spark_facts against a full ansible.builtin.setup on the same served lab, in the same run.

Medians of the rounds are printed and written to tests/output/benchmark.json. Ends with 1 when a ratio is over its limit.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
SITE_LIMIT = 12.0
FACTS_LIMIT = 0.6


def seconds(*command: str) -> float:
    """Wall time of a command that must succeed."""
    begin = time.monotonic()
    finished = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"{' '.join(command)} ended with {finished.returncode}:\n{finished.stdout}{finished.stderr}")
    if command[0] == "ansible-playbook" and "changed=0" not in finished.stdout:
        sys.exit(f"{' '.join(command)} changed something:\n{finished.stdout}")
    return time.monotonic() - begin


def main() -> int:
    """Run the rounds and judge the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inventory", default="lab")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    inventory = ("-i", arguments.inventory)
    commands = {
        "ping": ("ansible", *inventory, "spark", "-m", "ansible.builtin.ping"),
        "setup": ("ansible", *inventory, "spark", "-m", "ansible.builtin.setup"),
        "spark_facts": ("ansible", *inventory, "spark", "-m", "gb10.fleet.spark_facts"),
        "site": ("ansible-playbook", *inventory, "site.yml"),
    }
    seconds(*commands["site"])
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(arguments.rounds):
        for name, command in commands.items():
            times[name].append(seconds(*command))
        print(f"round {number + 1}: " + ", ".join(f"{name} {values[-1]:.2f} s" for name, values in times.items()), flush=True)
    median = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        "site / setup": (median["site"] / median["setup"], SITE_LIMIT),
        "(spark_facts - ping) / (setup - ping)": (
            (median["spark_facts"] - median["ping"]) / (median["setup"] - median["ping"]),
            FACTS_LIMIT,
        ),
    }
    for name, value in median.items():
        print(f"{name:12} median {value:6.2f} s of {arguments.rounds}")
    for name, (value, limit) in ratios.items():
        print(f"{name} = {value:.2f} (limit {limit}): {'ok' if value <= limit else 'TOO SLOW'}")
    output = ROOT / "tests/output/benchmark.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        json.dumps({"seconds": times, "median": median, "ratios": {name: value for name, (value, _limit) in ratios.items()}}, indent=2),
        encoding="utf-8",
    )
    return int(any(value > limit for value, limit in ratios.values()))


if __name__ == "__main__":
    sys.exit(main())
