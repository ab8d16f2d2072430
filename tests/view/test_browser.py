"""A report in a real browser: it plays, turns, zooms, asks no network, and says no wrong word."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import phipsi as pp
from phipsi.view import Report, base_motion
from tests.view.motions import HOSTILE, hostile, swing

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(
    not BROWSER, reason="no chromium on PATH (Debian, Ubuntu: apt install chromium)"
)

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
    "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
WATCH = """window.problems = [];
const note = (...words) => problems.push(words.join(" "));
addEventListener("error", (event) => note(event.message));
addEventListener("unhandledrejection", (event) => note(event.reason));
addEventListener("securitypolicyviolation", (event) => note("policy", event.blockedURI));
Object.assign(console, { error: note, warn: note });
// the browser's clock of tests runs ahead of its frames, but not of timers
// nothing is drawn once the probe has ended, for that clock still has seconds to run
window.requestAnimationFrame = (draw) =>
  setTimeout(() => document.getElementById("probe") ?? draw(performance.now()), 16);
"""


def probed(page: str) -> str:
    """The page with the probe in it, which its policy is told to let pass."""
    probe = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
    for script in (WATCH, probe):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    page = page.replace("<title>", f"<script>{WATCH}</script><title>", 1)
    head, _, tail = page.rpartition("</body>")
    return f"{head}<script>{probe}</script></body>{tail}"


def browse(page: str, folder: Path, *flags: str, size: str = "1000,900") -> str:
    """The page's elements after some seconds in the browser."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [
        BROWSER, *QUIET, *flags, f"--window-size={size}", f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=40000", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    return done.stdout.decode("utf-8", "replace")


def observed(page: str, folder: Path, *flags: str, size: str = "1000,900") -> dict[str, Any]:
    found = re.search(
        r'<pre id="probe">(.*?)</pre>', browse(probed(page), folder, *flags, size=size)
    )
    assert found, "the probe did not end"
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def page() -> str:
    robot = pp.robots.space_arm()
    motions = {"one": swing(robot, 0.3, duration=3.0), "other": swing(robot, 0.1)}
    report = Report("A reach").heading("Motion")
    report.animation(motions, frames=["tool"], targets={"target": motions["one"].frame("tool")[50]})
    return report.figure(base_motion(motions), alt="base").html()


def test_it_plays_turns_and_zooms(page: str, tmp_path: Path) -> None:
    seen = observed(page, tmp_path, "--force-prefers-reduced-motion")
    assert seen["problems"] == [] and seen["requests"] == []
    assert seen["calm"] and seen["start"] == {"time": 0, "playing": False}
    assert seen["pressed"] == "Pause" and seen["paused"]
    assert 0 < seen["played"]["time"] < 3
    assert seen["played"]["slider"] == pytest.approx(seen["played"]["time"], abs=0.03)
    assert seen["played"]["clock"].endswith(" s")
    assert seen["slid"] == pytest.approx(0.5, abs=0.03)
    assert seen["stepped"] == pytest.approx(0.03, rel=0.01)
    assert seen["end"] == 3
    assert seen["colors"] > 50, "the canvas is empty"
    assert seen["turned"] > 0.1 and seen["reset"] < 1e-3 and seen["keyed"] > 0.05
    assert seen["scrolled"] == pytest.approx(1), "the page must scroll over the animation"
    assert seen["zoomed"] > 1.01
    assert seen["hidden"] and seen["stopped"] == {"time": 3, "playing": False}
    assert seen["notice"] == "" and not seen["wide"]


def test_it_starts_by_itself_where_motion_is_welcome(page: str, tmp_path: Path) -> None:
    seen = observed(page, tmp_path)
    assert seen["problems"] == [] and not seen["calm"]
    assert seen["start"]["time"] > 0


def test_it_fits_a_phone(page: str, tmp_path: Path) -> None:
    seen = observed(page, tmp_path, "--force-prefers-reduced-motion", size="390,844")
    assert not seen["wide"] and seen["problems"] == []


def test_names_do_no_harm(tmp_path: Path) -> None:
    motion = swing(hostile())
    (frame,) = motion.robot.frames
    report = (
        Report(HOSTILE).paragraph(HOSTILE).figure(base_motion({HOSTILE: motion}, frame), alt="")
    )
    report.animation(
        {HOSTILE: motion, "b": motion}, frames=[frame], targets={HOSTILE: [1.0, 0.0, 0.0]},
        side_by_side=True,
    )  # fmt: skip
    seen = observed(report.html(), tmp_path, "--force-prefers-reduced-motion")
    assert seen["pwned"] == 0 and seen["images"] == 0 and seen["problems"] == []
    assert seen["colors"] > 50


def test_without_webgl_it_says_so(page: str, tmp_path: Path) -> None:
    seen = observed(page, tmp_path, "--disable-3d-apis")
    assert "has no WebGL 2" in seen["notice"] and seen["problems"] == []
    assert seen["headings"] == 2


def test_without_scripts_it_says_so(page: str, tmp_path: Path) -> None:
    dom = browse(page.replace("'sha256-", "'sha256-no"), tmp_path)
    assert "needs JavaScript" in dom and 'class="animation ready"' not in dom


def test_one_long_motion_of_a_large_robot_opens(tmp_path: Path) -> None:
    motion = swing(pp.robots.chain(25), 0.05, duration=60.0, n=3001)
    text = Report("Long").animation({"x": motion}).html()
    assert len(text) < 6e6
    assert observed(text, tmp_path, "--force-prefers-reduced-motion")["problems"] == []
