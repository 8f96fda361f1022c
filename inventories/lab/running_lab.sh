#!/bin/sh
# Inventory of the lab that runs on this machine (`-i lab`); an error when none runs. GB10_LAB names another than `pair`.
PYTHONPATH=$(dirname "$(readlink -f "$0")")/../../roles/lab/files exec python3 -m gb10_lab.inventory "$@"
