"""Format values as text, and as HTML for notebooks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any, cast

from w2v._errors import printable
from w2v._system.files import PathLike, atomic_write

MAX_CHARACTERS = 200  # length of a value in a table
MAX_ITEMS = 10  # items shown of a list
WIDTH, HEIGHT = 320, 90  # size of a curve in pixels
FRAME_HEIGHT = 720  # height of a page in pixels


def format_value(value: object) -> str:
    """Format a value on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(part)}" for name, part in value.items())
    if isinstance(value, list):
        return " ".join(map(format_value, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def text_table(rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Format rows in aligned columns. With a header, all columns except the first are right-aligned."""
    from rich.console import Console  # slow to import
    from rich.table import Table

    grid = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0))
    for index in range(max(map(len, rows), default=0)):
        title = printable(header[index]) if header else ""
        grid.add_column(title, justify="right" if header and index else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(printable(str(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 1 << 16  # fold lines only for a terminal
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


class Html(str):
    """Text that is already HTML."""


def html_table(rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> Html:
    """Format rows of values as an HTML table. Values of type Html, such as nested tables, are not escaped."""
    head = "".join(f"<th>{_cell(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return Html(f"<table>{f'<thead><tr>{head}</tr></thead>' if header else ''}<tbody>{body}</tbody></table>")


def _cell(value: object) -> str:
    if isinstance(value, Html):
        return value
    shown = printable(format_value(value)[: MAX_CHARACTERS + 1])
    return escape(shown if len(shown) <= MAX_CHARACTERS else shown[: MAX_CHARACTERS - 1] + "…")


def html_curve(points: Sequence[tuple[float, float]], label: str) -> Html:
    """Draw a curve through points (x, y) as inline SVG, without axes. `label` describes it to screen readers."""
    (left, right), (low, high) = ((min(axis), max(axis)) for axis in zip(*points, strict=True))
    scaled = [
        f"{WIDTH * (x - left) / (right - left or 1):.1f},{HEIGHT - HEIGHT * (y - low) / (high - low or 1):.1f}"
        for x, y in points
    ]
    return Html(
        f'<svg width="{WIDTH + 8}" height="{HEIGHT + 8}" viewBox="-4 -4 {WIDTH + 8} {HEIGHT + 8}" role="img" '
        f'aria-label="{escape(label)}"><polyline points="{" ".join(scaled)}" fill="none" stroke="currentColor" '
        'stroke-width="1.5"/></svg>'
    )


class Result:
    """The base class of results. They are dataclasses, and notebooks show them as tables."""

    def _repr_html_(self) -> str:
        """Return a table with one row per field. A list of dataclasses becomes a nested table."""
        names = [field.name for field in fields(cast(Any, self))]  # subclasses are dataclasses
        return html_table([(name.replace("_", " "), _value(getattr(self, name))) for name in names])


def _value(value: object) -> object:
    """Return a value as a table shows it: a list of dataclasses as a nested table, a long list shortened."""
    if isinstance(value, list) and value and is_dataclass(value[0]):
        names = [field.name for field in fields(value[0])]
        return html_table([[_value(getattr(item, name)) for name in names] for item in value], names)
    if isinstance(value, list) and len(value) > MAX_ITEMS:
        return f"{format_value(value[:MAX_ITEMS])} … ({len(value):,} in all)"
    return value


@dataclass(frozen=True, repr=False)
class Page:
    """A self-contained HTML page to explore models. A notebook displays it."""

    html: str

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the page to a file, atomically.

        Raises:
            W2VError: If the file cannot be written, or exists and `force` is False.
        """
        with atomic_write(path, force) as file:
            file.write(self.html.encode())

    def _repr_html_(self) -> str:
        """Return the page in a frame that has no access to the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-forms" title="w2v explore" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Page: {len(self.html):,} characters; a notebook displays it, save(path) writes it>"
