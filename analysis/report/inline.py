"""A figure's SVG as an element of the page: its colours are the page's, light or dark."""

from __future__ import annotations

import re

from analysis.figures import style

# What the page's style sheet calls the figures' colours.
INKS = {
    "#000000": "ink",
    "#e4e4e4": "grid",
    "#f2f2f2": "grid",
    "#ffffff": "card",
    style.GREY: "muted",
    style.ORANGE: "orange",
    style.SKY: "sky",
    style.GREEN: "green",
    style.BLUE: "blue",
    style.VERMILLION: "vermillion",
    style.PURPLE: "purple",
    style.INDIGO: "indigo",
    style.BROWN: "brown",
    style.OLIVE: "olive",
    style.TEAL: "teal",
    style.WINE: "wine",
    style.ROSE: "rose",
    style.STEEL: "steel",
    style.MOSS: "moss",
}
_NAMES = {colour.lower(): name for colour, name in INKS.items()}
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b(?=[;\"'])")
_ID = re.compile(r"(?<=\bid=\")[^\"]+(?=\")|(?<=url\(#)[^)]+(?=\))|(?<=href=\"#)[^\"]+(?=\")")
_OWN_ID = re.compile(r" id=\"([^\"]+)\"")
_REFERENCE = re.compile(r"(?:url\(#|href=\"#)([^\")]+)")
_UNTURNED = re.compile(r" transform=\"rotate\(-?0 [^)]*\)\"")
_FONT = re.compile(r"font: (?:(\d+) )?([\d.]+)px [^;\"]*")
_LINES = re.compile(r"(?<= d=\")M [-MLz\d. ]+(?=\")")  # paths of straight lines, without curves
_STYLE = re.compile(r" style=\"([^\"]*)\"")


def element(text: str, key: str, alt: str) -> str:
    """Make an element of a page of an SVG; `key` keeps its ids apart from other figures'."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S)
    text = _COLOUR.sub(_variable, text)
    used = set(_REFERENCE.findall(text))
    text = _OWN_ID.sub(lambda match: match[0] if match[1] in used else "", text)
    text = _UNTURNED.sub("", text)
    text = _ID.sub(lambda match: f"{key}-{match[0]}", text)
    text = _FONT.sub(_font, text)
    text = re.sub(r"<style\b.*?</style>", "", text, flags=re.S)  # the page's style sheet has it
    text = _STYLE.sub(_attributes, text)
    text = re.sub(r"\n\s*", " ", text)
    text = _LINES.sub(_brief, text)
    head = f'<svg class="plot" role="img" aria-label="{_escaped(alt)}" viewBox='
    return re.sub(r"<svg\b.*?viewBox=(\"[^\"]*\")[^>]*>", lambda m: f"{head}{m[1]}>", text, count=1)


def ink(colour: str) -> str:
    """Return the style sheet's name of a colour, or the colour itself."""
    return _NAMES.get(colour.lower(), colour)


def _variable(match: re.Match[str]) -> str:
    name = ink(match[0])
    return match[0] if name.startswith("#") else f"var(--{name})"


def _font(match: re.Match[str]) -> str:
    """Keep a font's size and weight; the family is the page's."""
    weight = f"font-weight: {match[1]}; " if match[1] else ""
    return f"{weight}font-size: {match[2]}px"


def _attributes(match: re.Match[str]) -> str:
    """Write a style as attributes: the page's policy allows no styles within elements."""
    pairs = (each.split(":", 1) for each in match[1].split(";") if each.strip())
    known = {name.strip(): value.strip() for name, value in pairs}
    known.pop("font-family", None)  # the page's
    return "".join(f' {name}="{value}"' for name, value in known.items())


def _brief(match: re.Match[str]) -> str:
    """Leave out each L, which SVG implies between points, and points that repeat the one before."""
    parts = list[str]()
    for part in re.findall(r"[Mz]|[-\d.]+ [-\d.]+", match[0]):
        if not parts or part != parts[-1]:
            parts.append(part)
    return " ".join(parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
