#!/usr/bin/env python3
"""Makes what repeats the descriptions of documents/: the tables of members in docs/formats.md, and the types of the
Python package in python/ganymede/_documents.py.

  tools/document_types.py            renews both
  tools/document_types.py --check    fails if one of them is not current

The schemas come from the program, GANYMEDE or build/release/bin/ganymede.
"""
import json
import keyword
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLES, TYPES = ROOT / "docs/formats.md", ROOT / "python/ganymede/_documents.py"
DOCUMENTS = ("result", "cluster-result", "recipe", "diff", "forecast", "own-or-rent")
WIDEST_ROW = 170


def schema_of(name):
    program = os.environ.get("GANYMEDE", str(ROOT / "build/release/bin/ganymede"))
    return json.loads(subprocess.run([program, "schema", name], check=True, capture_output=True, text=True).stdout)


def definition(schema):
    """The name of the definition that a schema refers to."""
    return schema.get("$ref", "").rpartition("/")[2]


def without_null(schema):
    """The schema without null, and whether it allows null."""
    if "anyOf" in schema:
        return next(one for one in schema["anyOf"] if one != {"type": "null"}), True
    if isinstance(schema.get("type"), list):
        return {**schema, "type": schema["type"][0]}, True
    return schema, False


class Table:
    """The members of a document, as the rows of a table: neighbours of one type that need no words share a row."""

    def __init__(self, schema):
        self.schema, self.rows, self.shown = schema, [], set()
        self.add(schema, "")

    def text(self):
        head = "| member | type | meaning |\n|---|---|---|\n"
        return head + "".join(f"| {', '.join(f'`{name}`' for name in names)} | {kind} | {says} |\n"
                              for names, kind, says in self.rows)

    def add(self, schema, prefix):
        for name, member in schema["properties"].items():
            if not name.endswith("_number"):
                self.add_member(prefix, name, member)

    def add_member(self, prefix, name, member):
        path, says = prefix + name, member.get("description", "")
        kind, (inner, _) = self.kind(member), without_null(member)
        while inner.get("type") == "array" and without_null(inner["items"])[0].get("type") in ("object", None):
            path, inner = path + "[]", without_null(inner["items"])[0]
        known = definition(inner)
        if known and known != "decimal" and known not in self.shown:
            self.shown.add(known)
            inner = self.schema["definitions"][known]
        if "properties" in inner:
            if says:
                self.rows.append(([prefix + name], kind, says))
            self.add(inner, path + ".")
            return
        if self.rows and not says and self.rows[-1][1:] == (kind, "") and self.rows[-1][0][0].startswith(prefix):
            names = self.rows[-1][0]
            beside = "." not in names[0][len(prefix):] and len(str(names)) + len(path) + len(kind) < WIDEST_ROW
            if beside:
                names.append(name)
                return
        self.rows.append(([path], kind, says))

    def kind(self, member):
        inner, nullable = without_null(member)
        name = definition(inner)
        if name:
            kind = "amount" if name == "decimal" else "object" if name not in self.shown else f"as `{name}`"
        elif "const" in inner:
            kind = f"`{inner['const']}`"
        elif "enum" in inner:
            kind = ", ".join(f"`{value}`" for value in inner["enum"])
        elif inner.get("maxItems") == 2:
            kind = "two amounts" if inner["items"] == {"type": "string"} else "low and high end"
        elif inner.get("type") == "array":
            kind = "list"
        else:
            kind = {"string": "text"}.get(inner.get("type", "any value"), inner.get("type", "any value"))
        return kind + (" or null" if nullable else "")


class Types:
    """A TypedDict for each object of a document, those that others refer to first."""

    def __init__(self, name, schema):
        self.stem = "".join(part.title() for part in re.split("[-_]", name))
        self.schema, self.classes = schema, {}
        self.add(f"{self.stem}Document", self.stem, schema)

    def add(self, name, stem, schema):
        if name in self.classes:
            return name
        members = {key: self.type_of(stem, key, member) for key, member in schema["properties"].items()}
        total = "" if set(members) == set(schema.get("required", ())) else ", total=False"
        if any(keyword.iskeyword(key) for key in members):  # which no class can have as a member
            self.classes[name] = f'{name} = TypedDict("{name}", {{\n' + "".join(
                f'    "{key}": {kind},\n' for key, kind in members.items()) + f"}}{total})\n"
        else:
            self.classes[name] = f"class {name}(TypedDict{total}):\n" + "".join(
                f"    {key}: {kind}\n" for key, kind in members.items())
        return name

    def object_type(self, name, schema):
        """A class; or a dict, of an object of equal members, over which one goes."""
        if len({json.dumps(member) for member in schema["properties"].values()}) > 1:
            return self.add(name, name, schema)
        return f"Dict[str, {self.type_of(name, 'value', next(iter(schema['properties'].values())))}]"

    def type_of(self, stem, key, schema):
        inner, nullable = without_null(schema)
        kind = self.plain_type(stem, key, inner)
        return f"Optional[{kind}]" if nullable else kind

    def plain_type(self, stem, key, schema):
        known = definition(schema)
        if known:
            target = self.schema["definitions"][known]
            stem = self.stem + "".join(part.title() for part in known.split("_"))
            return self.object_type(stem, target) if "properties" in target else "str"
        if "const" in schema or "enum" in schema:
            return "str"
        kind = schema.get("type")
        if kind == "array" and schema.get("maxItems", 2) > 2:  # the cells of a row
            return "List[Any]"
        if kind == "array":
            return f"List[{self.type_of(stem, key[:-1] if key.endswith('s') else key, schema['items'])}]"
        if kind == "object" and "properties" in schema:
            return self.object_type(stem + "".join(part.title() for part in key.split("_")), schema)
        if kind == "object":
            inner = schema.get("additionalProperties")
            return f"Dict[str, {self.type_of(stem, key, inner) if inner else 'Any'}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", None: "Any"}[kind]


def renewed():
    """The files as they should be."""
    schemas = {name: schema_of(name) for name in DOCUMENTS}
    page = TABLES.read_text(encoding="utf-8")
    for name, schema in schemas.items():
        begin, end = f"<!-- members of {name}, by tools/document_types.py -->\n", f"<!-- end of members of {name} -->\n"
        before, _, rest = page.partition(begin)
        page = before + begin + "\n" + Table(schema).text() + "\n" + end + rest.partition(end)[2]
    types = ('"""The types of the documents that the program prints; tools/document_types.py writes this file."""\n\n'
             "from __future__ import annotations\n\nfrom typing import Any, Dict, List, Optional, TypedDict\n")
    for name, schema in schemas.items():
        types += "".join(f"\n\n{text}" for text in Types(name, schema).classes.values())
    return {TABLES: page, TYPES: types}


def main():
    stale = [(path, text) for path, text in renewed().items()
             if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path, _ in stale:
            print(f"{path.relative_to(ROOT)} is not current: tools/document_types.py renews it", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale:
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
