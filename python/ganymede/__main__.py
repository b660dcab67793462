"""`python -m ganymede ...` runs the program with these arguments."""

import os
import sys

from ._errors import GanymedeError
from ._program import find_program

try:
    found = str(find_program())
except GanymedeError as error:
    sys.exit(f"ganymede: {error}")
os.execv(found, [found, *sys.argv[1:]])
