#!/usr/bin/env python3
"""Reads the list of what the program consists of (SPDX 2.3), and compares it with what the program and its modules load.

    tests/install/check_sbom.py INSTALLED-TREE
"""
import json
import pathlib
import re
import subprocess
import sys

# The system's own: the C and C++ libraries, and the loader.
SYSTEM = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "ld-linux")


def check_document(document):
    """Returns what the SPDX specification demands and the document lacks."""
    wrong = []
    for key in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages"):
        if not document.get(key):
            wrong.append(f"{key} is missing")
    if document["spdxVersion"] != "SPDX-2.3" or document["dataLicense"] != "CC0-1.0":
        wrong.append("another version or licence of the document")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"]):
        wrong.append(f"created: found {document['creationInfo']['created']}")
    ids = [package["SPDXID"] for package in document["packages"]] + ["SPDXRef-DOCUMENT"]
    if len(ids) != len(set(ids)):
        wrong.append("two packages have one SPDXID")
    for package in document["packages"]:
        for key in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"):
            if not package.get(key):
                wrong.append(f"{package['name']}: {key} is missing")
        if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]):
            wrong.append(f"{package['name']}: found SPDXID {package['SPDXID']}")
    related = {relation["relatedSpdxElement"] for relation in document["relationships"]}
    for one in (*related, *(relation["spdxElementId"] for relation in document["relationships"])):
        if one not in ids:
            wrong.append(f"a relationship names {one}, which is no package")
    return wrong + [f"{one} is in no relationship" for one in ids[:-1] if one not in related]


def check_libraries(document, tree):
    """Returns the libraries that programs and modules of the tree load and the document does not list."""
    listed = [package["packageFileName"] for package in document["packages"] if "packageFileName" in package]
    wrong = []
    for file in [*tree.glob("bin/*"), *tree.glob("lib/ganymede/*.so")]:
        dynamic = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            if not library.startswith(SYSTEM) and not any(library.startswith(name) for name in listed):
                wrong.append(f"{file.relative_to(tree)} loads {library}, which is not listed")
    return wrong


def check_licences(document, tree):
    """Returns the libraries whose code is in the program and whose licence is not in the file `copyright`."""
    # Names of SPDX, and those of Debian's machine-readable format.
    debian = {"MIT": "Expat", "BSD-3-Clause": "BSD-3-clause"}
    text = (tree / "share/doc/ganymede/copyright").read_text()
    wrong = []
    for package in document["packages"]:
        if "packageFileName" in package:
            continue  # a package of its own, with its own licence
        for licence in package["licenseConcluded"].split(" AND "):
            if f"\nLicense: {debian.get(licence, licence)}\n " not in text:
                wrong.append(f"{package['name']}: the text of {licence} is not in copyright")
    return wrong


def main():
    tree = pathlib.Path(sys.argv[1])
    document = json.loads((tree / "share/doc/ganymede/ganymede.spdx.json").read_text())
    wrong = check_document(document) + check_libraries(document, tree) + check_licences(document, tree)
    for line in wrong:
        print(f"check_sbom.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
