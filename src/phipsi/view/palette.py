"""A few colours that colour-blind people can tell apart (Okabe and Ito), on light and on dark."""

TRACKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d1f")
"""The colours of motions, used in turn."""
TARGET = "#e69f00"


def track_color(number: int) -> str:
    """The colour of the motion of that number."""
    return TRACKS[number % len(TRACKS)]
