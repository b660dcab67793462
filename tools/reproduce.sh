#!/usr/bin/env bash
# tools/reproduce.sh PAPER [--data DIR] [--full]: trains what a paper trained, runs its study and writes a page with the
# paper's figures beside ours. tools/reproduce.py does it; --help lists the papers.
exec python3 -B "$(dirname "$0")/reproduce.py" "$@"
