"""Pictures of robots and their motion: figures, and an HTML report that opens offline.

    from phipsi.view import Report, base_motion, picture, save_figure

    motions = {"reaction mode": first, "ordinary Jacobian": second}  # trajectories
    save_figure(picture(motions, frames=["tool"]), "reach.png")
    Report("Reach").animation(motions, frames=["tool"]).figure(
        base_motion(motions), alt="The base turns less in reaction mode."
    ).save("reach.html")

Figures need matplotlib (`pip install "phipsi[plot]"`); a report without figures does not.
"""

from phipsi.view.figures import base_motion, conservation, figure_png, save_figure, tip_error
from phipsi.view.recorded_motion import RecordedMotion
from phipsi.view.report import Report
from phipsi.view.scene import Scene, scene_of
from phipsi.view.still import picture

__all__ = [
    "RecordedMotion",
    "Report",
    "Scene",
    "base_motion",
    "conservation",
    "figure_png",
    "picture",
    "save_figure",
    "scene_of",
    "tip_error",
]
