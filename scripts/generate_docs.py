"""Write the generated parts of README.md, docs/variables.md and docs/findings.md from argument specs, documentation and data files.

`--check` writes nothing and ends with 1 when a page is out of date.
"""
from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def module_documentation(path: Path) -> dict:
    """The DOCUMENTATION of a plugin file, without importing it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(node.value))
    raise SystemExit(f"{path} has no DOCUMENTATION")


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines)


def sentences(value: str | list[str]) -> str:
    """A description as one paragraph of Markdown."""
    text = " ".join([value] if isinstance(value, str) else value)
    return re.sub(r"\b[A-Z]+\(([^)]*)\)", r"`\1`", text)


def plugin_rows(kind: str) -> list[list[str]]:
    """Name and short description of each plugin of a kind."""
    rows = []
    for path in sorted((ROOT / "plugins" / kind).glob("[!_]*.py")):
        documentation = module_documentation(path)
        rows.append([f"`{path.stem}`", documentation["short_description"] + "."])
    return rows


def role_specs() -> dict[str, dict]:
    """The main argument spec of each role."""
    return {
        path.parent.parent.name: yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]
        for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))
    }


def option_rows(options: dict) -> list[list[str]]:
    """Name, type with default, and description of each option."""
    rows = []
    for name, option in options.items():
        default = option.get("default")
        kind = option.get("type", "str") + (f" of {option['elements']}" if "elements" in option else "")
        shown = "" if default is None else f", default `{default}`"
        rows.append([f"`{name}`", kind + shown, sentences(option.get("description", ""))])
    return rows


def finding_parts() -> dict[str, str]:
    """The kinds of findings, and what is known of versions."""
    folder = ROOT / "plugins/plugin_utils"
    kinds = yaml.safe_load((folder / "findings.yml").read_text(encoding="utf-8"))
    known = yaml.safe_load((folder / "known.yml").read_text(encoding="utf-8"))
    rooms: dict[str, list[list[str]]] = {}
    for name, row in kinds.items():
        cure = row.get("cure") or ("(in the finding)" if row["visible"] in ("plan", "rails", "gate") else "nothing")
        severity = row["severity"] + (", cured by site.yml" if row.get("cured_by") == "site" else "")
        rooms.setdefault(name.partition(".")[0], []).append(
            [f"`{name}`", severity, f"**{row['title']}.** {row['rule']}", row.get("cause", ""), cure, row["source"]]
        )
    header = ["id", "severity", "what and when", "cause", "cure", "source"]

    def matches(row: dict) -> str:
        which = [*row.get("exact", []), *(f"{start}*" for start in row.get("prefix", []))]
        which += [f"{word} {row[word]}" for word in ("from", "below") if word in row]
        only = f", {' and '.join(row['oem'])} only" if "oem" in row else ""
        return f"{row['kind'].replace('_', ' ')} {', '.join(which)}{only}{', unless kho=off' if row.get('unless') else ''}"

    bad = [
        [f"`{row['id']}`", row["severity"], matches(row), row["symptom"], row["cure"], row["source"], row["strength"]] for row in known["known_bad"]
    ]
    floors = [
        [f"`{row.get('finding', row['id'])}`", row["severity"], row["kind"].replace("_", " ") + (f" of {row['path']}" if "path" in row else ""),
         str(row["minimum"]), row["cure"], row["source"]]
        for row in known["floors"]
    ]
    return {
        "findings": "".join(f"### {room}\n\n{table(header, rows)}\n" for room, rows in rooms.items()),
        "known_bad": table(["id", "severity", "versions", "symptom", "cure", "source", "strength of the source"], bad),
        "floors": table(["id", "severity", "of", "lowest", "cure", "source"], floors),
        "counter_limits": table(["counter", "highest"], [[f"`{name}`", str(limit)] for name, limit in known["counter_limits"].items()]),
    }


def parts() -> dict[str, str]:
    """Every generated part by its name."""
    specs = role_specs()
    roles = [[f"`{name}`", spec["short_description"].rstrip(".") + "."] for name, spec in specs.items()]
    fleet = yaml.safe_load((ROOT / "playbooks/preflight.meta.yml").read_text(encoding="utf-8"))
    options = "".join(
        f"### {name}\n\n{sentences(spec.get('description', spec['short_description']))}\n\n"
        + table(["variable", "type", "what it says"], option_rows(spec.get("options", {})))
        + "\n"
        for name, spec in specs.items()
    )
    return {
        "roles": table(["role", "its one job"], roles),
        "modules": table(["module", "what it does"], plugin_rows("modules")),
        "filters": table(["filter or lookup", "what it computes"], plugin_rows("filter") + plugin_rows("lookup")),
        "fleet": table(["variable", "type", "what it says"], option_rows(fleet["argument_specs"]["preflight"]["options"])),
        "options": options,
        **finding_parts(),
    }


def main() -> int:
    """Write or check the pages."""
    check = "--check" in sys.argv[1:]
    generated = parts()
    stale = []
    for page in (ROOT / "README.md", ROOT / "docs/variables.md", ROOT / "docs/findings.md"):
        old = page.read_text(encoding="utf-8")
        new = MARKED.sub(lambda match: match[1] + generated[match[2]] + match[3], old)
        if new != old:
            stale.append(page.name)
            if not check:
                page.write_text(new, encoding="utf-8")
    if stale and check:
        print(f"out of date: {', '.join(stale)}; run: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
