"""`python -m ganymede ...` runs the program with these arguments; `python -m ganymede mlflow` sends runs to MLflow."""

import os
import sys

from . import mlflow
from ._errors import GanymedeError
from ._program import find_program

if sys.argv[1:2] == ["mlflow"]:
    sys.exit(mlflow.main(sys.argv[2:]))
try:
    found = str(find_program())
except GanymedeError as error:
    sys.exit(f"ganymede: {error}")
os.execv(found, [found, *sys.argv[1:]])
