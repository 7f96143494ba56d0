"""The text around a flow's figures: title, outcome and any doubt above, the footer below."""

from __future__ import annotations

from matplotlib.figure import Figure

from analysis.figures.plotting import style

TITLE_INCHES, ABOUT_INCHES, FOOT_INCHES = 0.06, 0.25, 0.06  # from the figure's edge
DOUBT_INCHES = 0.15  # the line's height


def doubt_inches(doubt: str) -> float:
    """The height of the line about the verdict; zero if there is none."""
    return DOUBT_INCHES if doubt else 0.0


def write_words(figure: Figure, title: str, about: str, foot: str, doubt: str = "") -> None:
    """Write the lines at fixed distances; the panels must leave room for them."""
    inches = float(figure.get_figheight())
    for text, below, look in (
        (title, TITLE_INCHES, {"fontsize": 9, "fontweight": "bold"}),
        (about, ABOUT_INCHES, {"fontsize": 7}),
        (doubt, ABOUT_INCHES + DOUBT_INCHES, {"fontsize": 7, "color": style.VERMILLION}),
    ):
        figure.text(0.01, 1 - below / inches, text, va="top", **look)
    figure.text(
        0.01,
        FOOT_INCHES / inches,
        foot,
        fontsize=5.5,
        color=style.GREY,
        va="bottom",
        linespacing=1.4,
    )
