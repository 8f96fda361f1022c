#!/usr/bin/env python3
"""Ask the served model of an inventory something, by the curl line that site.yml's summary prints."""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.gb10.fleet.plugins.plugin_utils.report import connection  # noqa: E402


def main() -> int:
    """Ask each cluster's head and print its answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", "--inventory", default="spark-pair")
    parser.add_argument("question")
    arguments = parser.parse_args()
    listing = subprocess.run(
        ["ansible-inventory", "-i", arguments.inventory, "--list"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    inventory = json.loads(listing.stdout)
    for cluster in inventory["spark"]["children"]:
        head = inventory[cluster]["hosts"][0]
        variables = inventory["_meta"]["hostvars"][head]
        fact = subprocess.run(
            ["ansible", "-i", arguments.inventory, head, "-m", "gb10.fleet.spark_facts", "-a", "gather_subset=!all", "-o"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )
        proven = json.loads(fact.stdout.split("=>", 1)[1])["ansible_facts"]["spark"]["proven"]
        plan = {"profile": {"served_name": proven["served_name"]}}
        card = connection(plan, variables, head, arguments.question)
        print(f"$ {card['curl']}\n")
        answer = subprocess.run(["bash", "-c", card["curl"]], check=True, capture_output=True, text=True)
        reply = json.loads(answer.stdout)
        print(json.dumps(reply, indent=2))
        print(f"\n{card['model']} at {card['url']} says: {reply['choices'][0]['message']['content'].strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
