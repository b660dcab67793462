"""What repeats the descriptions of documents is current: the types of this package, and tables of the documentation."""
import os
import subprocess
import sys
import unittest

from support import ROOT


class Documents(unittest.TestCase):
    def test_types_and_tables_are_current(self):
        tool = os.path.join(ROOT, "tools", "document_types.py")
        done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
