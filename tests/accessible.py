"""What people with other eyes, or none, meet on a page: contrast (WCAG 2.1, 1.4.3 and 1.4.11), and
the names that a screen reader says."""

from __future__ import annotations

from typing import Any

from tests.browser import Tab

OPEN = (
    "document.querySelectorAll('details').forEach(each => { each.open = true; });"
    "new Promise(done => setTimeout(done, 200))"
)
LIGHT = """
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ratio = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
"""
FAINT_WORDS = f"""(() => {{ {LIGHT}
  const behind = (each) => {{
    for (; each; each = each.parentElement) {{
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }}
    return [255, 255, 255];
  }};
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {{
    const own = node.parentElement;
    if (!node.textContent.trim() || !own.checkVisibility() || own.closest("svg, option")) continue;
    const contrast = ratio(parse(getComputedStyle(own).color), behind(own));
    if (contrast < 4.5) found.push(`${{node.textContent.trim().slice(0, 40)}}: ${{contrast}}`);
  }}
  return found;
}})()"""
FAINT_LINES = f"""(() => {{ {LIGHT}
  const style = getComputedStyle(document.documentElement);
  const hex = (name) => style.getPropertyValue(`--${{name}}`).trim();
  const bytes = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const names = ["orange", "sky", "green", "blue", "vermillion", "purple", "indigo", "brown",
    "olive", "teal", "wine", "rose", "steel", "moss", "muted", "accent", "ink"];
  return names.map((name) => [name, ratio(bytes(hex(name)), bytes(hex("card")))])
    .filter(([, contrast]) => contrast < 3);
}})()"""
NAMED = {"button", "combobox", "searchbox", "textbox", "image", "link"}


def faint(tab: Tab) -> list[Any]:
    """Words below 4.5 to 1 against what is behind them, and lines of figures below 3 to 1."""
    tab.run(OPEN)
    return [*tab.run(FAINT_WORDS), *tab.run(FAINT_LINES)]


def nameless(tab: Tab) -> list[str]:
    """Controls and pictures for which a screen reader has no name."""
    tab.run(OPEN)
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    return [
        f"{role}: {node.get('backendDOMNodeId')}"
        for node in nodes
        if not node["ignored"]
        and (role := node["role"]["value"]) in NAMED
        and not node.get("name", {}).get("value")
    ]
