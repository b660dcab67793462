#!/usr/bin/env python3
"""Puts the licences of the libraries that auditwheel has copied into a wheel beside them (tools/build_wheel.sh).

    tools/wheel_licences.py UNPACKED-WHEEL

Reads auditwheel's bill of materials, *.dist-info/sboms/auditwheel.cdx.json, and writes *.dist-info/licenses/: a folder a
package with its file `copyright`, the texts in `common-licenses` that those refer to, and README.txt.
"""
import json
import pathlib
import re
import shutil
import sys

DOCUMENTATION = pathlib.Path("/usr/share/doc")
COMMON = pathlib.Path("/usr/share/common-licenses")
README = """\
The program is licensed under Apache-2.0. Beside it this wheel holds shared libraries, unchanged but for their names and
search paths. They have licences of their own: the file `copyright` in the folder of each package here, with the texts
in `common-licenses`. Whoever hands the wheel on does so under all of them; that some demand the source (LGPL, GPL) is
met by the packages' sources of these versions, from the distribution that they are of.

"""


def main():
    wheel = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else "")
    info = next(wheel.glob("*.dist-info"), None)
    if len(sys.argv) != 2 or info is None:
        print("usage: tools/wheel_licences.py UNPACKED-WHEEL, a folder with one *.dist-info", file=sys.stderr)
        sys.exit(2)
    libraries = list(wheel.glob("*.libs/*"))
    bill = info / "sboms" / "auditwheel.cdx.json"
    components = json.loads(bill.read_text())["components"][1:] if bill.exists() else []
    if len(components) != len(libraries):
        print(f"wheel_licences.py: {len(libraries) - len(components)} of the libraries copied into the wheel are of no "
              "package; add their licences before you hand it on", file=sys.stderr)
    folder = info / "licenses"
    folder.mkdir(exist_ok=True)
    common, packages = set(), {part["name"]: part["version"] for part in components}
    for name in packages:
        copyright_file = DOCUMENTATION / name / "copyright"
        if not copyright_file.exists():
            print(f"wheel_licences.py: there is no {copyright_file}, the licence of what the wheel holds of {name}", file=sys.stderr)
            return 1
        (folder / name).mkdir(exist_ok=True)
        shutil.copyfile(copyright_file, folder / name / "copyright")
        common.update(re.findall(rf"{COMMON}/([A-Za-z0-9.-]*[A-Za-z0-9])", copyright_file.read_text(errors="replace")))
    for text in sorted(common):
        if (COMMON / text).exists():
            (folder / COMMON.name).mkdir(exist_ok=True)
            shutil.copyfile(COMMON / text, folder / COMMON.name / text)
    (folder / "README.txt").write_text(README + "".join(f"{name} {version}\n" for name, version in sorted(packages.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
