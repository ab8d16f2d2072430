"""A report as one HTML file that opens offline: texts, tables, figures and 3-D animations."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phipsi.model.files import write
from phipsi.typing import ArrayLike
from phipsi.view.animation import SPEEDS, animation
from phipsi.view.figures import figure_svg
from phipsi.view.palette import TARGET
from phipsi.view.recorded_motion import RecordedMotion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELP = (
    "Drag to turn; click, then scroll, to zoom, or pinch. Keys: space plays and pauses, arrows "
    "step, shift with arrows turns, + and − zoom, 0 resets the view."
)
_PLAY = (
    '<svg class="resting" viewBox="0 0 16 16" aria-hidden="true"><path d="M4 2l10 6-10 6z"/></svg>'
)
_PAUSE = (
    '<svg class="pausing" viewBox="0 0 16 16" aria-hidden="true">'
    '<path d="M3 2h4v12H3zM9 2h4v12H9z"/></svg>'
)


class Report:
    """A page to which parts are added from top to bottom; the methods that add return the report.

    >>> page = Report("Two ways to reach").heading("What was done").paragraph("The base floats.")
    >>> page.table(["way", "miss [mm]"], [["reaction mode", 0.2], ["plain", 91.0]]).html()[:15]
    '<!DOCTYPE html>'

    Every text is escaped, for names may come from untrusted files. The page makes no network
    requests, and its content security policy forbids them.
    """

    def __init__(self, title: str, subtitle: str = "", *, language: str = "en") -> None:
        self.title, self.subtitle, self.language = title, subtitle, language
        self._parts: list[str] = []
        self._moves = False

    def heading(self, text: str, level: int = 2) -> Report:
        """Add a heading.

        Parameters
        ----------
        text
            The heading.
        level
            2 for a section, 3 for a part of one, at most 6.

        Returns
        -------
        Report
            The report itself.
        """
        level = min(max(int(level), 2), 6)
        return self._add(f"<h{level}>{escape(text)}</h{level}>")

    def paragraph(self, text: str) -> Report:
        """Add a paragraph.

        Parameters
        ----------
        text
            Plain text.

        Returns
        -------
        Report
            The report itself.
        """
        return self._add(f"<p>{escape(text)}</p>")

    def table(
        self, header: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = ""
    ) -> Report:
        """Add a table; floats are shown with four digits, columns of numbers are right-aligned.

        Parameters
        ----------
        header
            Titles of the columns.
        rows
            Cells by row, texts or numbers.
        caption
            Text above the table.

        Returns
        -------
        Report
            The report itself.

        Raises
        ------
        ValueError
            If a row has not as many cells as the header.
        """
        kept = [list(row) for row in rows]
        for row in kept:
            if len(row) != len(header):
                raise ValueError(f"a row of the table has {len(row)} cells, not {len(header)}")
        right = [bool(kept) and all(_is_number(row[k]) for row in kept) for k in range(len(header))]
        head = "".join(
            f'<th scope="col"{_NUMBER if right[k] else ""}>{escape(str(text))}</th>'
            for k, text in enumerate(header)
        )
        body = "".join(
            "<tr>" + "".join(_cell(k, x, right[k]) for k, x in enumerate(row)) + "</tr>\n"
            for row in kept
        )
        told = f"<caption>{escape(caption)}</caption>" if caption else ""
        return self._add(
            f'<div class="scroll" tabindex="0" role="region" '
            f'aria-label="{escape(caption or "table")}">'
            f"<table>{told}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        )

    def figure(self, picture: Figure | bytes, *, alt: str, caption: str = "") -> Report:
        """Add a matplotlib figure (as SVG in the colours of the page), or a PNG.

        Parameters
        ----------
        picture
            The figure, or the bytes of a PNG.
        alt
            What the figure shows, in words.
        caption
            Text below the figure.

        Returns
        -------
        Report
            The report itself.

        Raises
        ------
        ValueError
            If the bytes are no PNG.
        """
        told = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        if isinstance(picture, bytes):
            if not picture.startswith(b"\x89PNG\r\n\x1a\n"):
                raise ValueError("a picture given as bytes must be a PNG")
            data = base64.b64encode(picture).decode("ascii")
            shown = f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'
            return self._add(f'<figure><div class="drawing paper">{shown}</div>{told}</figure>')
        label = f'<svg role="img" aria-label="{escape(alt)}"'
        shown = figure_svg(picture, inline=True).replace("<svg", label, 1)
        return self._add(f'<figure><div class="drawing">{shown}</div>{told}</figure>')

    def animation(
        self,
        motions: Mapping[str, RecordedMotion],
        *,
        frames: Collection[str] = (),
        targets: Mapping[str, ArrayLike] | None = None,
        ghosts: Collection[str] | None = None,
        side_by_side: bool = False,
        caption: str = "",
    ) -> Report:
        """Add motions as one 3-D animation, together or side by side.

        Parameters
        ----------
        motions
            Trajectories by label.
        frames
            Names of frames whose paths are drawn.
        targets : {label: (3,) or (4, 4)}, optional
            Positions or poses in the world [m] that are marked.
        ghosts
            Labels of the motions that are drawn translucent; by default all but the first, when
            they are drawn together.
        side_by_side
            Whether each motion has a pane of its own.
        caption
            Text below the animation.

        Returns
        -------
        Report
            The report itself.
        """
        shown = animation(
            motions, frames=frames, targets=targets, ghosts=ghosts, side_by_side=side_by_side
        )
        speeds = "".join(
            f'<option value="{speed:g}"{" selected" if speed == shown.speed else ""}>'
            f"{speed:g}×</option>"
            for speed in SPEEDS
        )
        duration, step = shown.data["duration"], shown.data["step"]
        panes = "".join(f"<span>{escape(name)}</span>" for name in shown.panes)
        legend = "".join(
            f'<li><label><input type="checkbox" checked data-track="{k}">'
            f'<i style="--swatch:{shown.colors[k]}"{_GHOST if shown.ghosts[k] else ""}></i>'
            f"{escape(label)}</label></li>"
            for k, label in enumerate(shown.labels)
        ) + "".join(
            f'<li><i class="target" style="--swatch:{TARGET}"></i>{escape(name)}</li>'
            for name in targets or {}
        )
        words = "".join(f"<li>{escape(line)}</li>" for line in shown.words)
        told = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        self._moves = True
        return self._add(f"""<figure class="animation">
<div class="stage" data-part="stage" tabindex="0" role="application" \
aria-label="3-D animation. {escape(HELP)}">
<canvas data-part="canvas"></canvas><div class="labels" data-part="labels" aria-hidden="true"></div>
<div class="panes">{panes}</div>
<p class="notice" data-part="notice">The 3-D animation needs JavaScript; \
its description is below.</p></div>
<div class="controls">
<button type="button" class="play" data-part="play" aria-label="Play">{_PLAY}{_PAUSE}</button>
<input type="range" data-part="time" aria-label="Time" min="0" max="{duration!r}" \
step="{step or 1!r}" value="0">
<output data-part="clock">0 s</output>
<label>Speed <select data-part="speed">{speeds}</select></label>
<label><input type="checkbox" data-part="loop"> Repeat</label>
<button type="button" data-part="reset">Reset view</button>
</div>
<ul class="legend">{legend}</ul>
<p class="help">{escape(HELP)}</p>
{told}<details><summary>The motion in words</summary><ul>{words}</ul></details>
<script type="application/json">{_json(shown.data)}</script>
</figure>""")

    def html(self) -> str:
        """The whole page.

        Returns
        -------
        str
            HTML.
        """
        script = _asset("scene.js") if self._moves else ""
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        subtitle = f'<p class="subtitle">{escape(self.subtitle)}</p>' if self.subtitle else ""
        policy = (
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        parts = "\n".join(self._parts)
        return f"""<!DOCTYPE html>
<html lang="{escape(self.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(self.title)}</title>
<link rel="icon" href="data:,">
<style>
{_asset("page.css")}</style>
</head>
<body>
<main>
<header><h1>{escape(self.title)}</h1>{subtitle}</header>
{parts}
<footer>Written by phipsi. This page is one file: it needs no network.</footer>
</main>
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all.

        Parameters
        ----------
        path
            Name of the file.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        OSError
            If the file cannot be written; the message is one sentence.
        """
        return write(path, self.html().encode("utf-8", "replace"))

    def _add(self, part: str) -> Report:
        self._parts.append(part)
        return self


_NUMBER = ' class="number"'
_GHOST = ' class="ghost"'


def _cell(column: int, value: object, right: bool) -> str:
    """A cell of a table, of the first column as the header of its row."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    tag = 'th scope="row"' if column == 0 else "td"
    return f"<{tag}{_NUMBER if right else ''}>{escape(text)}</{tag[:2]}>"


def _is_number(value: object) -> bool:
    """Whether the value is a number, or a text that begins with one: "0.2 mm"."""
    return bool(re.match(r"\s*[-+−<≤]?\s*[\d.]", str(value)))


def _json(data: Mapping[str, Any]) -> str:
    """JSON without characters that an HTML parser takes for markup."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    """The text of a file that is part of every page."""
    return (resources.files("phipsi.view") / "assets" / name).read_text(encoding="utf-8")
