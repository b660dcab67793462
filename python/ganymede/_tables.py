"""What all results share: frames for pandas, tables for notebooks, and the report's first screen."""

from __future__ import annotations

import html
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ._errors import GanymedeError
from ._program import execute

if TYPE_CHECKING:
    import pandas

Row = Dict[str, Any]

_SHOWN_ROWS = 20

_STYLE = """<style>
.ganymede-first { font: 14px/1.5 system-ui, sans-serif; max-width: 100ch; }
.ganymede-first h1 { font-size: 15px; font-weight: 500; margin: 0; opacity: .75; }
.ganymede-first .answer { font-size: 17px; line-height: 1.4; margin: 4px 0 8px; }
.ganymede-first .badges { display: flex; flex-wrap: wrap; gap: 4px 8px; list-style: none; margin: 0 0 8px; padding: 0; }
.ganymede-first .badge { border: 1px solid; border-radius: 99px; padding: 0 10px; font-size: 12.5px; opacity: .85; }
.ganymede-first .badge.good { color: #2f8f57; } .ganymede-first .badge.warn { color: #b07514; }
.ganymede-first .badge.bad { color: #c8402d; }
.ganymede-first .cards { display: flex; flex-wrap: wrap; gap: 10px; margin: 8px 0; }
.ganymede-first .card { border: 1px solid rgba(128,128,128,.4); border-radius: 8px; padding: 8px 12px; }
.ganymede-first .card dt { font-weight: 600; } .ganymede-first .card dd { margin: 0; }
.ganymede-first small { opacity: .75; } .ganymede-first .card small { display: block; }
.ganymede-first .pair { display: flex; gap: 18px; } .ganymede-first .pair b { font-size: 17px; }
.ganymede-first .about, .ganymede-first .brand { font-size: 12.5px; opacity: .75; margin: 0 0 6px; }
</style>"""


def frame(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """A pandas.DataFrame of these rows."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas: pip install 'ganymede[pandas]', or Debian's python3-pandas") from error
    table: pandas.DataFrame = pandas.DataFrame(list(rows))
    # A column without a single value would be of Python's objects, with which nothing can be computed.
    objects = table.columns[table.dtypes == object]
    empty = {column: float for column in objects if table[column].isna().all()}
    return table.astype(empty) if empty else table


def html_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The first rows as a table for a notebook."""

    def cell(value: Any) -> str:
        return "" if value is None else html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))

    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(row[column])}</td>" for column in columns) + "</tr>" for row in rows[:_SHOWN_ROWS]
    )
    more = f"<p>{len(rows) - _SHOWN_ROWS} more rows</p>" if len(rows) > _SHOWN_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def first_screen(document: Mapping[str, Any]) -> Optional[str]:
    """The first screen of the page that `ganymede report` makes of a document: the answer, how sure it is, and its
    figures. None if the program cannot make it, because whoever only looks at a result wants no error.
    """
    with tempfile.TemporaryDirectory(prefix="ganymede-") as folder:
        result, page = Path(folder, "result.json"), Path(folder, "page.html")
        result.write_text(json.dumps(document), encoding="utf-8")
        try:
            output = execute(["report", str(result), "-o", str(page)], progress=False)
        except GanymedeError:
            return None
        return _first_screen_of(page.read_text(encoding="utf-8")) if output.code == 0 else None


def _first_screen_of(page: str) -> Optional[str]:
    header = re.search(r"<header>(.*?)<nav.*?</header>", page, re.DOTALL)
    if header is None:
        return None
    parts: List[str] = [header[1]]
    if "class=cards" not in header[1]:
        cards = re.search(r"<dl class=cards>.*?</dl>", page, re.DOTALL)
        parts += [cards[0]] if cards else []
    return f'{_STYLE}<div class="ganymede-first">{"".join(parts)}</div>'
