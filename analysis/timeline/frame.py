"""The words around a flow's figures: two lines above, what ran below, all at fixed distances."""

from __future__ import annotations

from matplotlib.figure import Figure

from analysis import style

TITLE_INCHES, ABOUT_INCHES, FOOT_INCHES = 0.06, 0.25, 0.06  # from the figure's edge


def write_words(figure: Figure, title: str, about: str, foot: str) -> None:
    """Write them; who draws the panels leaves the room."""
    inches = float(figure.get_figheight())
    for text, below, look in (
        (title, TITLE_INCHES, {"fontsize": 9, "fontweight": "bold"}),
        (about, ABOUT_INCHES, {"fontsize": 7}),
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
