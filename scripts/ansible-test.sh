#!/usr/bin/env bash
# Run ansible-test (sanity, units, integration) on a copy of this checkout.
#
# ansible-test insists on a physical path .../ansible_collections/gb10/fleet, and inside a git
# work tree it lists files with git and silently tests none: so the copy lies outside of any.
set -euo pipefail
cd "$(dirname "$0")/.."
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
target=$stage/ansible_collections/gb10/fleet
mkdir -p "$target"
git ls-files -co --exclude-standard -z -- . ':!collections' ':!spark-pair' ':!spark-fleet' ':!lab' ':!molecule' |
    (while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done) |
    tar --null -cf - -T - | tar -xf - -C "$target"

# Sanity builds virtual environments of its own and would download pip's installer from the web.
# Python carries a pip: this stand-in uses it, so that the tests run without that download.
mkdir -p ~/.ansible/test/cache
for version in 24.0 25.2 26.0; do
    installer=~/.ansible/test/cache/get_pip_${version//./_}.py
    [ -e "$installer" ] || cp scripts/bundled_pip.py "$installer"
done

cd "$target"
files=$(ansible-test env --list-files 2>/dev/null | wc -l)
[ "$files" -gt 0 ] || { echo "ansible-test sees no file in $target" >&2; exit 1; }
echo "ansible-test: $files files staged"
ansible-test "$@" --local --python "$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
