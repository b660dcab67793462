#!/usr/bin/env python3
"""Which check each rule of the documents has: every sentence of four of them is named in rules.txt.

    tests/reference/rules.py         # prints what lacks one
"""
import pathlib
import re
import sys

# The properties of properties.py, with their shares of the cases. One of `plan`, `exhaustive`, `why` and `goal` runs several plans.
SHARES = {"bill": 4.0, "one_job": 3, "transfer": 2, "cluster": 4, "losses": 3, "crashes": 2, "relations": 2, "pools": 1, "choiceless": 2,
          "deadline": 2, "plan": 0.5, "exhaustive": 1, "why": 0.5, "goal": 0.5, "curve": 1, "prices": 1, "spot": 1, "quality": 0.5}

# Differences that are known and not mended yet, with their causes: they are not searched for, unless --open asks for them.
OPEN = {
    "time of the last checkpoint's event": "the event has the time at which the stretch of training ended (end_segment in "
                                           "sim/run/training_control.cpp)",
}

HERE = pathlib.Path(__file__).parent
DOCS, TESTS = HERE.parent.parent / "docs", HERE.parent


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """The heading and the sentences of each paragraph and bullet, or the rows of each table; no code."""
    text = re.sub(r"^ *```.*?^ *```", "\n", text, flags=re.M | re.S)
    found: list[tuple[str, list[str]]] = []
    heading, lines = "", list[str]()

    def flush() -> None:
        if lines and lines[0].startswith("|"):
            found.append((heading, lines.copy()))
        elif lines:
            found.append((heading, re.split(r"(?<=[.!?])\)?\*{0,2}\s+(?=[A-Z`*\[0-9])", " ".join(lines))))
        lines.clear()

    for line in (*text.splitlines(), ""):
        row = line.strip().startswith("|")
        if re.match(r"#+ |\s*([-*]|\d+\.) ", line) or not line.strip() or bool(lines and lines[0].startswith("|")) != row:
            flush()
        if line.startswith("#"):
            heading = line.strip("# ")
        elif line.strip() and not re.match(r"\s*\|[-| ]+\|$", line):
            lines.append(re.sub(r"^([-*]|\d+\.) ", "", line.strip()))
    return found


def missing() -> list[str]:
    """What is wrong with rules.txt, in sentences; empty if each rule has a check."""
    named: dict[str, tuple[str, list[str]]] = {}
    skipped: dict[str, set[str]] = {}
    wrong = []
    for line in (HERE / "rules.txt").read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        document, checks, quote = (part.strip() for part in line.split("|", 2))
        if checks.startswith("no rules:"):
            skipped.setdefault(document, set()).add(quote)
            continue
        named[f"{document}: {quote}"] = document, checks.split()
        wrong += [f"rules.txt: '{check}' is no property and no test" for check in checks.split()
                  if not (check.strip("*") in SHARES.keys() | {"decisions", ".", "?"} or check.startswith("=") and (TESTS / check[1:].rstrip("*")).exists())]
    used = set()
    for document in ("money", "cluster", "policies", "quality"):
        for heading, sentences in blocks((DOCS / f"{document}.md").read_text()):
            if heading in skipped.get(document, ()):
                continue
            key = next((key for key, (place, _) in named.items() if place == document and sentences[0].startswith(key[len(place) + 2:])
                        and key not in used), None)
            if key is None:
                wrong.append(f"docs/{document}.md: no line of rules.txt names the check of: {sentences[0]}")
                continue
            used.add(key)
            given = named[key][1]
            if not given[0].endswith("*") and len(given) != len(sentences):
                wrong.append(f"docs/{document}.md: {len(sentences)} sentences, {len(given)} checks in rules.txt: {sentences[0]}")
    return wrong + [f"rules.txt: no longer in the document: {key}" for key in named.keys() - used]


if __name__ == "__main__":
    print(*missing(), sep="\n")
    sys.exit(bool(missing()))
