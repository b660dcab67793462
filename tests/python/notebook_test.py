"""Runs the code of the documentation's notebook, cell after cell, and of the examples of docs/python.md."""
import ast
import json
import os
import re
import unittest

from support import ROOT, need, working_folder

need("pandas", "matplotlib")


def run_cell(code, names, where):
    """Runs code as a notebook does. Returns the value of its last line, if that is an expression."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return eval(compile(ast.Expression(last.value), where, "eval"), names) if last else None


class Notebook(unittest.TestCase):
    def test_every_cell_runs(self):
        with open(os.path.join(ROOT, "docs", "python.ipynb"), encoding="utf-8") as file:
            notebook = json.load(file)
        self.assertEqual(notebook["nbformat"], 4)
        names, shown = {}, []
        with working_folder():
            for number, cell in enumerate(notebook["cells"]):
                self.assertEqual(cell.get("outputs", []), [], "the notebook is kept without outputs")
                if cell["cell_type"] == "code":
                    value = run_cell("".join(cell["source"]), names, f"cell {number}")
                    page = getattr(value, "_repr_html_", lambda: None)()
                    shown.append(page or repr(value))
        self.assertIn("Rent", "".join(shown))
        self.assertEqual(sum("Axes" in text for text in shown), 3)

    def test_the_pages_examples_run(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 2)
        names = {}
        with working_folder():
            for number, block in enumerate(blocks):
                run_cell(block, names, f"docs/python.md, block {number + 1}")


if __name__ == "__main__":
    unittest.main()
