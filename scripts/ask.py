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

# The request itself may take 120 s, which curl watches.
LIMIT = 150


def output(*command: str) -> str:
    """Standard output of a command that must succeed; ends the program with what it said when it does not."""
    try:
        finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"No answer within {LIMIT} s. Is every node on? ansible-playbook verify.yml names what is wrong.")
    if finished.returncode:
        sys.exit((finished.stderr + finished.stdout).strip() or f"{command[0]} ended with {finished.returncode}")
    return finished.stdout


def main() -> None:
    """Ask each cluster's head and print its answer."""
    parser = argparse.ArgumentParser(prog="scripts/ask", description=__doc__)
    parser.add_argument("-i", "--inventory", default="spark-pair")
    parser.add_argument("question")
    arguments = parser.parse_args()
    inventory = json.loads(output("ansible-inventory", "-i", arguments.inventory, "--list"))
    for cluster in inventory["spark"]["children"]:
        head = inventory[cluster]["hosts"][0]
        facts = output("ansible", "-i", arguments.inventory, head, "-m", "gb10.fleet.spark_facts", "-a", "gather_subset=!all", "-o")
        proven = json.loads(facts.split("=>", 1)[1])["ansible_facts"]["spark"]["proven"]
        if "served_name" not in proven:
            sys.exit(f"{head} has no record of a served model: run ansible-playbook site.yml -i {arguments.inventory} first.")
        plan = {"profile": {"served_name": proven["served_name"]}}
        card = connection(plan, inventory["_meta"]["hostvars"][head], head, arguments.question)
        print(f"$ {card['curl']}\n", flush=True)
        answer = json.loads(output("bash", "-c", card["curl"]))
        print(json.dumps(answer, indent=2))
        print(f"\n{card['model']} at {card['url']} says: {answer['choices'][0]['message']['content'].strip()}")


if __name__ == "__main__":
    main()
