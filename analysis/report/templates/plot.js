"use strict";
// Figures that can be zoomed and asked, from the data of analysis/figures/figure.py. uPlot has the
// scales, axes, selection and canvases, one for each panel; the marks are drawn here.
const drawing = (() => {
  const MANY = 3000; // points of a mark in sight; beyond, they are plain squares
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const plain = (value, digits = 4) => { // all digits of whole numbers, or four
    if (value === null || Number.isNaN(value)) return "–";
    return String(Math.abs(value) >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits)));
  };
  const unpacked = (value) => { // whole units, as differences
    if (!value?.d) return value;
    const found = new Float64Array(value.d.length);
    let sum = 0;
    value.d.forEach((step, i) => { sum += step; found[i] = sum * value.k; });
    return found;
  };

  // ---- scales: values to a line on which equal steps look equal, and back
  const along = (axis) => {
    if (axis.scale === "log") return { to: Math.log10, from: (t) => 10 ** t };
    if (axis.scale === "symlog") return { to: (v) => Math.asinh(v / axis.bend), from: (t) => axis.bend * Math.sinh(t) };
    return { to: (v) => v, from: (t) => t };
  };
  const scaled = (axis, limits, from, to) => {
    const { to: f } = along(axis);
    const low = f(limits[0]), span = f(limits[1]) - low || 1;
    return (v) => from + ((f(v) - low) / span) * (to - from);
  };
  const ticks = (axis, [low, high], room, moved) => { // places with what is written there
    const [least, most] = [Math.min(low, high), Math.max(low, high)];
    const within = ([at]) => at >= least && at <= most;
    if (axis.ticks && (!moved || axis.names)) return axis.ticks.filter(within);
    if (axis.scale !== "linear" && most > 10 * least) {
      const found = axis.ticks ?? [];
      if (axis.scale === "log") {
        const steps = most > 200 * least ? [1] : [1, 2, 5];
        for (let power = Math.floor(Math.log10(least)); 10 ** power <= most; power++) for (const step of steps) found.push([step * 10 ** power, plain(step * 10 ** power)]);
      }
      return found.filter(within);
    }
    const rough = (most - least) / Math.max(2, room), power = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    if (axis.integer) step = Math.max(1, step);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), found = [];
    for (let k = Math.ceil(least / step - 1e-9); k * step <= most + step * 1e-9; k++) found.push([k * step, (k * step).toFixed(decimals)]);
    return found;
  };

  // ---- what is in sight
  const first = (xs, value) => { // the first place whose x is not below the value
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  };
  const ascending = (xs) => xs.every((x, i) => x !== null && (i === 0 || xs[i - 1] <= x));
  const inSight = (mark, limits) => {
    if (!mark.sorted || mark.xIn === "panel") return [0, mark.x.length];
    return [Math.max(0, first(mark.x, limits[0]) - 1), Math.min(mark.x.length, first(mark.x, limits[1]) + 2)];
  };

  // ---- marks, drawn with a canvas's pen; X and Y give pixels
  const POLYGONS = { // corners on a circle: how many, the first one's angle, inner radius of stars
    s: [4, 45], D: [4, 0], d: [4, 0], "^": [3, -90], v: [3, 90], "<": [3, 180], ">": [3, 0], p: [5, -90], h: [6, -90],
    "*": [5, -90, 0.4], P: [4, 0, 0.5], X: [4, 45, 0.5],
  };
  const STROKES = { "|": [90], tickup: [90], _: [0], "+": [0, 90], x: [45, 135] };
  const marker = (pen, kind, x, y, size) => {
    const radius = size / 2;
    pen.beginPath();
    if (kind in STROKES) {
      for (const turn of STROKES[kind]) {
        const dx = radius * Math.cos((turn * Math.PI) / 180), dy = radius * Math.sin((turn * Math.PI) / 180);
        pen.moveTo(x - dx, y - dy);
        pen.lineTo(x + dx, y + dy);
      }
      return pen.stroke();
    }
    const [corners, angle, inner] = POLYGONS[kind] ?? [0];
    if (!corners) pen.arc(x, y, kind === "." ? radius / 2 : radius, 0, 2 * Math.PI);
    for (let k = 0; k < corners * (inner ? 2 : 1); k++) {
      const turn = ((angle + (k * 360) / corners / (inner ? 2 : 1)) * Math.PI) / 180;
      const reach = radius * (inner && k % 2 ? inner : 1) * (kind === "s" || inner ? 1.25 : 1);
      pen.lineTo(x + reach * Math.cos(turn), y + reach * Math.sin(turn));
    }
    pen.closePath();
    pen.fill();
    return pen.stroke();
  };
  const known = (mark, i) => mark.x[i] !== null && mark.y[i] !== null && !Number.isNaN(mark.y[i]);
  const line = (pen, mark, X, Y, [from, to]) => {
    pen.beginPath();
    const steps = mark.kind === "steps", thin = mark.sorted && to - from > 4 * MANY;
    let up = true, last = 0, column = NaN, low = 0, high = 0;
    const column_ends = () => { // of a column of pixels: its span, and then its last point
      if (thin && !up && high > low) { pen.moveTo(column + 0.5, low); pen.lineTo(column + 0.5, high); pen.moveTo(column + 0.5, last); }
    };
    for (let i = from; i < to; i++) {
      if (!known(mark, i)) { column_ends(); up = true; continue; }
      const x = X(mark.x[i]), y = Y(mark.y[i]);
      if (thin && !up && Math.floor(x) === column) {
        low = Math.min(low, y);
        high = Math.max(high, y);
        last = y;
        continue;
      }
      column_ends();
      if (up) pen.moveTo(x, y);
      else { if (steps) pen.lineTo(x, last); pen.lineTo(x, y); }
      up = false;
      column = Math.floor(x);
      low = high = last = y;
    }
    column_ends();
    pen.stroke();
  };
  const area = (pen, mark, X, Y) => { // there along the upper end, back along the lower
    const corners = [];
    for (let i = 0; i < mark.x.length; i++) {
      if (!known(mark, i) || mark.y2[i] === null) continue;
      if (mark.steps && corners.length) corners.push([X(mark.x[i]), corners.at(-1)[1], corners.at(-1)[2]]);
      corners.push([X(mark.x[i]), Y(mark.y2[i]), Y(mark.y[i])]);
    }
    pen.beginPath();
    for (const [x, high] of corners) pen.lineTo(x, high);
    for (const [x, , low] of corners.reverse()) pen.lineTo(x, low);
    pen.fill();
  };
  const of = (what, i) => (Array.isArray(what) ? what[i] : what);
  const points = (pen, mark, X, Y, [from, to], unit, paper) => {
    const size = mark.size * unit, many = to - from > MANY, colour = pen.fillStyle;
    for (let i = from; i < to; i++) {
      if (!known(mark, i)) continue;
      const x = X(mark.x[i]), y = Y(mark.y[i]), low = mark.low?.[i] ?? null, high = mark.high?.[i] ?? null;
      if (low !== null && high !== null) {
        const opacity = pen.globalAlpha;
        pen.globalAlpha = 0.5;
        pen.lineWidth = mark.barWidth * unit;
        pen.beginPath();
        pen.moveTo(mark.along === "x" ? X(low) : x, mark.along === "x" ? y : Y(low));
        pen.lineTo(mark.along === "x" ? X(high) : x, mark.along === "x" ? y : Y(high));
        pen.stroke();
        pen.globalAlpha = opacity;
        pen.lineWidth = mark.width * unit;
      }
      pen.fillStyle = of(mark.hollow, i) ? paper : colour;
      if (many) pen.fillRect(x - size / 3, y - size / 3, size / 1.5, size / 1.5);
      else marker(pen, mark.marker, x, y, size);
    }
  };
  const segments = (pen, mark, X, Y, [from, to], unit) => {
    const least = unit; // of a short one
    pen.beginPath();
    for (let i = from; i < to; i++) {
      const x = X(mark.x[i]), y = Y(mark.y[i]), x2 = X(mark.x2[i]), y2 = Y(mark.y2[i]);
      pen.moveTo(x, y);
      pen.lineTo(x2, x === x2 && Math.abs(y2 - y) < least ? y - least : y2);
    }
    pen.stroke();
  };
  const boxes = (pen, mark, X, Y, [from, to], unit, colour, family) => {
    for (let i = from; i < to; i++) {
      const x = X(mark.x[i]), y = Y(mark.y[i]), width = X(mark.x2[i]) - x, height = Y(mark.y2[i]) - y;
      pen.globalAlpha = of(mark.opacities, i);
      pen.fillStyle = colour(of(mark.colours, i));
      pen.fillRect(x, y, Math.abs(width) < 1 ? 1 : width, height);
      pen.globalAlpha = 1;
      if (!mark.texts) continue;
      const rows = mark.texts[i].split("\n"), size = mark.textSize * unit;
      pen.font = `${size}px ${family}`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = colour(mark.inks?.[i] ?? "ink");
      rows.forEach((row, place) => pen.fillText(row, x + width / 2, y + height / 2 + (place - (rows.length - 1) / 2) * size * 1.2));
    }
  };
  const polygon = (pen, mark, X, Y) => {
    pen.beginPath();
    mark.x.forEach((x, i) => pen.lineTo(X(x), Y(mark.y[i])));
    pen.closePath();
    pen.fill();
    if (!mark.edge) return;
    pen.globalAlpha = Math.min(1, 4 * pen.globalAlpha);
    pen.stroke();
  };
  const text = (pen, mark, x, y, unit, family) => {
    const size = mark.size * unit, rows = mark.words.split("\n"), height = rows.length * size * 1.25;
    pen.save();
    pen.translate(x + mark.dx * unit, y - mark.dy * unit);
    pen.rotate((-mark.rotation * Math.PI) / 180);
    pen.font = `${mark.bold ? "600 " : ""}${size}px ${family}`;
    pen.textAlign = mark.across;
    pen.textBaseline = "middle";
    const top = { top: 0, bottom: -height, baseline: -height }[mark.up] ?? -height / 2;
    rows.forEach((row, place) => pen.fillText(row, 0, top + (place + 0.5) * size * 1.25));
    pen.restore();
  };

  return { clamp, plain, unpacked, along, scaled, ticks, first, ascending, inSight, marker, line, area, points, segments, boxes, polygon, text };
})();

const plotting = (() => {
  const { clamp, plain, unpacked, along, scaled, ticks, first, ascending, inSight } = drawing;
  const NEAR = 16; // px around the pointer within which a point is found
  const STACKED_AXIS = 40; // px: of a panel's own times, where it had none
  const NARROW = 560; // px: panels of a narrower figure are one below the other
  const LEAST = 6; // px that a drag must cover to be a zoom
  const UNIT = 1.6; // px of a point
  const LETTERS = 11; // px, of the axes
  const PACKED = ["x", "x2", "y", "y2", "low", "high"];

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const measure = make("canvas").getContext("2d");

  class Plot {
    constructor(host, spec) {
      this.host = host;
      this.spec = spec;
      this.hidden = new Set();
      for (const mark of spec.marks) {
        for (const name of PACKED) if (mark[name]) mark[name] = unpacked(mark[name]);
        mark.sorted ??= mark.x !== undefined && ascending(mark.x);
      }
      spec.panels.forEach((panel, place) => {
        panel.whole = [...panel.x.lim];
        panel.marks = spec.marks.filter((mark) => mark.panel === place);
      });
      this.stage = make("div", { class: "panels", tabindex: "0", role: "img", "aria-label": spec.name });
      this.ring = make("div", { class: "ring", hidden: "" });
      this.tip = make("div", { class: "tip", role: "status", hidden: "" });
      this.frame = make("div", { class: "live" });
      this.words("plot-title", spec.title);
      this.words("plot-line", spec.subtitle);
      this.words("plot-line warning", spec.warning);
      this.buttons();
      this.frame.append(this.stage, this.ring, this.tip);
      this.words("plot-foot", spec.foot);
      host.append(this.frame);
      this.stacked = host.clientWidth < NARROW && spec.panels.every((panel) => !panel.bare && !(panel.x.names && panel.x.ticks.length > 8));
      this.cells();
      this.listen();
      this.resize();
      new ResizeObserver(() => this.resize()).observe(this.frame);
      for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", () => this.draw());
    }

    words(name, text) {
      if (text) this.frame.append(make("p", { class: name }, text));
    }

    buttons() {
      const row = make("div", { class: "plot-tools" });
      if (this.spec.legend.length) {
        this.legend = make("div", { class: "legend", role: "group", "aria-label": "Series: press to hide or show" });
        for (const entry of this.spec.legend) {
          const swatch = make("canvas", { class: "swatch", "aria-hidden": "true" });
          const button = make("button", { type: "button", "aria-pressed": "true" }, swatch, entry.name);
          button.addEventListener("click", () => {
            const off = !this.hidden.delete(entry.name);
            if (off) this.hidden.add(entry.name);
            button.setAttribute("aria-pressed", String(!off));
            this.draw();
          });
          entry.swatch = swatch;
          this.legend.append(button);
        }
        row.append(this.legend);
      }
      if (this.spec.panels.some((panel) => panel.zooms)) {
        const tools = make("div", { class: "zoom", role: "group", "aria-label": "Zoom" });
        const acts = [
          ["−", "Zoom out", () => this.by(2)], ["+", "Zoom in", () => this.by(0.5)],
          ["←", "Earlier", () => this.by(1, -0.25)], ["→", "Later", () => this.by(1, 0.25)],
          ["whole", "Show the whole", () => this.reset()],
        ];
        for (const [words, name, act] of acts) {
          const button = make("button", { type: "button", "aria-label": name, title: name }, words);
          button.addEventListener("click", act);
          tools.append(button);
        }
        row.append(tools);
      }
      this.frame.append(row);
    }

    cells() { // a place in the grid for each panel, with the words above it
      const { panels } = this.spec, widths = this.stacked ? [1] : this.spec.widths;
      if (this.stacked) this.stack();
      this.stage.style.gridTemplateColumns = widths.map((each) => `minmax(0, ${each}fr)`).join(" ");
      for (const panel of panels) {
        const cell = make("div", { class: "panel" });
        cell.style.gridColumn = panel.column + 1;
        cell.style.gridRow = panel.row + 1;
        if (panel.heading) {
          const heading = make("div", { class: "heading" }, make("b", {}, panel.heading.words), make("small", {}, panel.heading.right));
          heading.firstChild.style.color = `var(--${panel.heading.colour}, ${panel.heading.colour})`;
          cell.append(heading, make("small", {}, panel.heading.note));
        }
        if (panel.title || panel.right) cell.append(make("div", { class: "heading" }, make("b", {}, panel.title), make("small", {}, panel.right)));
        if (panel.note) cell.append(make("small", {}, panel.note));
        panel.cell = make("div", { class: panel.empty ? "empty" : "" }, panel.empty ?? "");
        cell.append(panel.cell);
        this.stage.append(cell);
      }
    }

    stack() { // panels one below the other, on a phone: each with the words that it shared
      this.frame.classList.add("stacked");
      const { panels } = this.spec;
      for (const panel of panels) {
        const beside = panels.filter((each) => each.row === panel.row), above = panels.filter((each) => each.column === panel.column);
        if (!panel.x.shown) panel.height += STACKED_AXIS;
        panel.x = { ...panel.x, shown: true, label: panel.x.label || (above.findLast((each) => each.x.label)?.x.label ?? "") };
        panel.y = { ...panel.y, shown: true, label: panel.y.label || (beside.find((each) => each.y.label)?.y.label ?? "") };
        if (!panel.title && !panel.heading && above.length > 1 && beside.length > 1) panel.title = above[0].title || above[0].heading?.words || "";
      }
      panels.sort((one, other) => one.row - other.row || one.column - other.column).forEach((panel, place) => { panel.row = place; });
      for (const panel of panels) panel.column = 0;
      this.spec.widths = [1];
    }

    // ---- sizes
    resize() {
      const width = this.frame.clientWidth;
      if (!width || width === this.width) return;
      this.width = width;
      this.family = getComputedStyle(this.host).fontFamily;
      measure.font = `${LETTERS}px ${this.family}`;
      const sides = this.spec.widths.map((_, column) => this.sides(this.spec.panels.filter((panel) => panel.column === column)));
      for (const panel of this.spec.panels) {
        if (panel.empty) { panel.cell.style.height = `${panel.height - 24}px`; continue; }
        const [left, right] = this.stacked ? this.sides([panel]) : sides[panel.column];
        let across = panel.cell.clientWidth;
        if (panel.equal) across = Math.min(across, (panel.height - 40) * Math.abs((panel.x.lim[1] - panel.x.lim[0]) / (panel.y.lim[1] - panel.y.lim[0])) + left + right);
        if (panel.u) panel.u.setSize({ width: across, height: panel.height });
        else this.begin(panel, across, left, right);
      }
      this.draw();
    }

    sides(panels) { // px at the left, for the widest number or name, and at the right of a column's panels
      const letters = (words) => measure.measureText(words).width;
      const left = panels.filter((panel) => !panel.bare).flatMap(({ y, height }) => ticks(y, y.lim, height / 35).map(([, words]) => letters(words)));
      const beside = panels.flatMap((panel) => panel.marks.filter((mark) => mark.kind === "text" && mark.xIn === "panel" && mark.x[0] >= 1 && mark.across === "left"));
      return [Math.max(20, ...left) + 10, Math.max(12, ...beside.map((mark) => (letters(mark.words) * mark.size * UNIT) / LETTERS + mark.dx * UNIT + 4))];
    }

    begin(panel, width, left, right) {
      const { x, y } = panel, font = `${LETTERS}px ${this.family}`, distributions = { linear: 1, log: 3, symlog: 4 };
      const scale = (axis, range) => ({ time: false, auto: true, range, distr: distributions[axis.scale], asinh: axis.bend, dir: axis.lim[0] > axis.lim[1] ? -1 : 1 });
      const common = (axis, room, limits) => {
        const blank = axis === y && this.spec.panels.some((each) => each.column === panel.column && each.y.label) ? " " : null; // so that panels are one below the other
        const shown = (u) => ticks(axis, limits(), room(u), panel.moved || axis.fits);
        return {
          show: !panel.bare, font, labelFont: `${LETTERS + 1}px ${this.family}`, stroke: () => this.colour("ink"), label: axis.label.replaceAll("\n", " ") || blank, labelSize: 18, labelGap: 0, gap: 4,
          grid: { show: axis.grid, stroke: () => this.colour("grid"), width: 1 },
          ticks: { show: axis.marks && axis.shown, stroke: () => this.colour("muted"), width: 1, size: 4 },
          border: { show: axis.line, stroke: () => this.colour("muted"), width: 1 },
          splits: (u) => shown(u).map(([at]) => at),
          filter: (u, splits) => splits,
          values: (u, splits) => { const words = new Map(shown(u)); return splits.map((at) => (axis.shown ? words.get(at) ?? "" : "")); },
          rotate: axis.rotation ? (axis.opposite ? axis.rotation : -axis.rotation) : 0,
        };
      };
      const tall = Math.max(0, ...(x.rotation ? x.ticks.map(([, words]) => measure.measureText(words).width * 0.75) : []));
      panel.u = new uPlot({
        width, height: panel.height, padding: [panel.x.opposite ? 0 : 8, right, panel.x.label || panel.x.shown ? 0 : 4, panel.bare ? right : 0], legend: { show: false }, pxAlign: false,
        scales: { x: scale(x, () => ends(panel.x.lim)), y: scale(y, () => ends(this.limits(panel))) },
        series: [{}, { paths: () => null, points: { show: false } }],
        axes: [
          { ...common(x, (u) => u.bbox.width / uPlot.pxRatio / 60, () => panel.x.lim), side: x.opposite ? 0 : 2, size: x.shown ? 22 + tall : 6 },
          { ...common(y, (u) => u.bbox.height / uPlot.pxRatio / 26, () => this.limits(panel)), size: left },
        ],
        cursor: { x: false, y: false, points: { show: false }, drag: { x: panel.zooms, y: false, setScale: false, dist: LEAST }, bind: { mousedown: (u, target, handler) => (event) => (event.shiftKey ? null : handler(event)), dblclick: () => () => this.reset() } },
        hooks: { draw: [(u) => this.paint(panel, u)], setSelect: [(u) => this.selected(panel, u)] },
      }, [panel.x.lim.toSorted((a, b) => a - b), [null, null]], panel.cell);
      this.listenTo(panel);
    }

    limits(panel) { // of the vertical axis
      return panel.y.fits && panel.moved ? this.fitted(panel) : panel.y.lim;
    }

    fitted(panel) { // the range of what is in sight
      let low = Infinity, high = -Infinity;
      for (const mark of this.seen(panel)) {
        if (mark.x === undefined || mark.yIn === "panel" || mark.kind === "text" || mark.series === "receiver's window") continue;
        const [from, to] = inSight(mark, panel.x.lim);
        for (let i = from; i < to; i++) {
          if (mark.x[i] < panel.x.lim[0] || mark.x[i] > panel.x.lim[1] || mark.y[i] === null) continue;
          low = Math.min(low, mark.y[i]);
          high = Math.max(high, (mark.y2 ?? mark.y)[i]);
        }
      }
      if (low > high) return panel.y.lim;
      const room = 0.06 * (high - low) || 1;
      return [low - room, high + room];
    }

    seen(panel) {
      return panel.marks.filter((mark) => !this.hidden.has(mark.series));
    }

    // ---- drawing
    colour(name) {
      if (name.startsWith("#")) return name;
      return (getComputedStyle(this.host).getPropertyValue(`--${name}`).trim()) || "#888";
    }

    draw() {
      for (const panel of this.spec.panels) panel.u?.redraw(true, true);
      for (const entry of this.spec.legend) this.swatch(entry);
    }

    paint(panel, u) {
      const pen = u.ctx, { left, top, width, height } = u.bbox, unit = UNIT * uPlot.pxRatio;
      const X = scaled(panel.x, panel.x.lim, left, left + width), Y = scaled(panel.y, this.limits(panel), top + height, top);
      const colours = new Map(), colour = (name) => colours.get(name) ?? colours.set(name, this.colour(name)).get(name);
      for (const mark of this.seen(panel)) {
        const x = mark.xIn === "panel" ? (v) => left + v * width : X, y = mark.yIn === "panel" ? (v) => top + height - v * height : Y;
        const room = mark.kind === "points" && !panel.moved ? 4 * unit : panel.bare ? width : 0; // markers at the edge are whole
        pen.save();
        pen.beginPath();
        if (mark.kind !== "text") { pen.rect(left - room, top - 4 * unit, width + 2 * room, height + 8 * unit); pen.clip(); }
        pen.globalAlpha = mark.opacity ?? 1;
        pen.fillStyle = colour(mark.colour ?? "ink");
        pen.strokeStyle = colour(mark.edge || mark.colour || "ink");
        pen.lineWidth = (mark.width || 0.8) * unit;
        pen.lineJoin = "round";
        pen.setLineDash((mark.dash ?? []).map((each) => each * pen.lineWidth));
        const sight = mark.x ? inSight(mark, panel.x.lim) : [];
        if (mark.kind === "line" || mark.kind === "steps") drawing.line(pen, mark, x, y, sight);
        else if (mark.kind === "area") drawing.area(pen, mark, x, y);
        else if (mark.kind === "points") drawing.points(pen, mark, x, y, sight, unit, colour("card"));
        else if (mark.kind === "segments") drawing.segments(pen, mark, x, y, sight, unit);
        else if (mark.kind === "boxes") drawing.boxes(pen, mark, x, y, [0, mark.x.length], unit, colour, this.family);
        else if (mark.kind === "polygon") drawing.polygon(pen, mark, x, y);
        else if (mark.kind === "text") this.text(panel, pen, mark, x, y, unit);
        else this.across(pen, mark, x, y, u.bbox, unit);
        pen.restore();
      }
    }

    text(panel, pen, mark, x, y, unit) {
      if (mark.xIn !== "panel" && (mark.x[0] < panel.x.lim[0] || mark.x[0] > panel.x.lim[1])) return;
      if (mark.xIn === "panel" && mark.yIn !== "panel" && panel.y.fits && panel.moved) return; // their places are of the whole range
      const [low, high] = ends(this.limits(panel));
      if (mark.yIn !== "panel" && (mark.y[0] < low || mark.y[0] > high)) return;
      drawing.text(pen, mark, x(mark.x[0]), y(mark.y[0]), unit, this.family);
    }

    across(pen, mark, x, y, { left, top, width, height }, unit) { // a range or a value of one axis
      const place = mark.axis === "x" ? x : y;
      if (mark.kind === "span") {
        const [from, to] = [place(mark.from), place(mark.to)];
        if (mark.axis === "x") pen.fillRect(from, top, to - from, height); else pen.fillRect(left, from, width, to - from);
        return;
      }
      const at = place(mark.at);
      pen.beginPath();
      pen.moveTo(mark.axis === "x" ? at : left, mark.axis === "x" ? top : at);
      pen.lineTo(mark.axis === "x" ? at : left + width, mark.axis === "x" ? top + height : at);
      pen.stroke();
      if (!mark.label) return;
      pen.font = `${5.8 * unit}px ${this.family}`;
      pen.fillStyle = this.colour("muted");
      pen.textAlign = mark.axis === "x" ? "center" : "right";
      pen.textBaseline = "bottom";
      pen.fillText(mark.label, mark.axis === "x" ? at : left + 0.97 * width, mark.axis === "x" ? top : at - 2 * unit);
    }

    swatch(entry) {
      const { swatch } = entry, dense = devicePixelRatio || 1;
      swatch.width = 24 * dense;
      swatch.height = 12 * dense;
      const pen = swatch.getContext("2d");
      pen.scale(dense, dense);
      pen.strokeStyle = pen.fillStyle = this.colour(entry.colour);
      pen.lineWidth = 2;
      pen.setLineDash((entry.dash ?? []).map((each) => each * 2));
      pen.beginPath();
      pen.moveTo(0, 6);
      pen.lineTo(24, 6);
      if (entry.kind === "line") pen.stroke();
      pen.setLineDash([]);
      if (entry.hollow) pen.fillStyle = this.colour("card");
      const shape = entry.kind === "area" ? "s" : entry.marker;
      if (shape) drawing.marker(pen, shape, 12, 6, 8);
    }

    // ---- finding
    pixel({ panel, mark, i }) { // of a point, from the stage's corner
      const own = panel.u.over.getBoundingClientRect(), stage = this.stage.getBoundingClientRect();
      const X = scaled(panel.x, panel.x.lim, 0, own.width), Y = scaled(panel.y, this.limits(panel), own.height, 0);
      const middle = mark.y2 ? (mark.y[i] + mark.y2[i]) / 2 : mark.y[i];
      return [own.left - stage.left + X(mark.x[i]), own.top - stage.top + Y(middle)];
    }

    nearest(panel, x, y) { // px within the panel
      const { clientWidth: width, clientHeight: height } = panel.u.over;
      const X = scaled(panel.x, panel.x.lim, 0, width), Y = scaled(panel.y, this.limits(panel), height, 0);
      const sides = [x - NEAR, x + NEAR].map((each) => panel.u.posToVal(each, "x"));
      let best = null, least = NEAR * NEAR;
      for (const mark of this.tellable(panel)) {
        const [from, to] = mark.kind === "boxes" ? [0, mark.x.length] : inSight(mark, sides);
        for (let i = from; i < to; i++) {
          if (mark.x[i] === null || mark.y[i] === null) continue;
          const ends = mark.x2 ? [X(mark.x[i]), X(mark.x2[i])] : [X(mark.x[i]), X(mark.x[i])], low = Y(mark.y[i]), high = mark.y2 ? Y(mark.y2[i]) : low;
          const dx = clamp(x, Math.min(...ends), Math.max(...ends)) - x, dy = clamp(y, Math.min(low, high), Math.max(low, high)) - y;
          const far = dx * dx + dy * dy + (mark.told ? 0 : 1); // of two in one place, the one that knows more
          if (far < least) { least = far; best = { panel, mark, i }; }
        }
      }
      return best;
    }

    tellable(panel) {
      const kinds = ["line", "steps", "points", "segments", "boxes"];
      return this.seen(panel).filter((mark) => kinds.includes(mark.kind) && mark.xIn !== "panel" && mark.yIn !== "panel" && !mark.mute && mark.x.length);
    }

    // ---- telling
    tell(at) {
      const { panel, mark, i } = at;
      if (mark.tell) return mark.tell(i);
      const word = (axis, value) => {
        const named = axis.names && axis.ticks.find(([place]) => Math.abs(place - value) < 0.5);
        return named ? named[1] : plain(value, axis.digits);
      };
      const column = this.spec.panels.filter((each) => each.column === panel.column);
      const labelled = column.findLast((each) => each.x.label)?.x.label ?? ""; // below the last panel
      const rows = [];
      for (const [axis, value] of [[panel.x, mark.x[i]], [panel.y, mark.y[i]]]) {
        const label = axis.label || (axis === panel.x ? labelled : "");
        rows.push([label.replaceAll("\n", " "), word(axis, value)]);
      }
      if (mark.labels?.[i]) rows.push(["", mark.labels[i]]);
      const { told } = mark, of = (what) => (Array.isArray(what) ? what[i] : what);
      if (told) {
        const low = of(told.low), high = of(told.high), count = of(told.n);
        if (low !== null && low !== undefined && high > low) rows.push(["95 % interval", `${plain(low)} … ${plain(high)}`]);
        if (count !== null && count !== undefined) rows.push(["n", String(count)]);
        if (of(told.trials)) rows.push(["trials", of(told.trials).replaceAll(" ", ", ").replaceAll("-", "–")]);
      }
      return rows;
    }

    show(at) {
      this.at = at;
      this.tip.hidden = this.ring.hidden = !at;
      if (!at) return;
      const title = [at.panel.title, at.mark.series].filter(Boolean).join(" · ");
      const list = make("dl");
      for (const [name, words] of this.tell(at)) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, words)));
      this.tip.replaceChildren(...(title ? [make("b", {}, title)] : []), list);
      if (this.trials(at)) this.tip.append(make("small", {}, "click or Enter: these trials"));
      else if (at.mark.hint) this.tip.append(make("small", {}, at.mark.hint));
      const [x, inner] = this.pixel(at), y = inner + this.stage.offsetTop, wide = this.tip.offsetWidth, view = this.host.scrollLeft + this.host.clientWidth;
      this.ring.style.left = `${x}px`;
      this.ring.style.top = `${y}px`;
      this.tip.style.left = `${clamp(x + 14 + wide > view ? x - 14 - wide : x + 14, 0, Math.max(0, this.width - wide))}px`;
      this.tip.style.top = `${clamp(y - this.tip.offsetHeight / 2, 0, Math.max(0, this.frame.offsetHeight - this.tip.offsetHeight))}px`;
      at.panel.u.over.style.cursor = this.trials(at) || at.mark.pick ? "pointer" : "";
    }

    trials(at) {
      const told = at.mark.told?.trials;
      return Array.isArray(told) ? told[at.i] : told;
    }

    pick(at) {
      if (at.mark.pick) at.mark.pick(at.i);
      else if (this.trials(at)) this.spec.open?.(this.trials(at));
    }

    // ---- zooming: panels with the same range across move together
    together(panel) {
      return this.spec.panels.filter((each) => each.zooms && each.whole[0] === panel.whole[0] && each.whole[1] === panel.whole[1]);
    }

    zoom(panel, low, high) {
      const { to, from } = along(panel.x), whole = panel.whole.map(to);
      const least = (whole[1] - whole[0]) * 1e-7;
      let [a, b] = [to(low), to(high)];
      if (b - a < least) return;
      if (b - a > whole[1] - whole[0]) [a, b] = whole;
      const shift = Math.max(0, whole[0] - a) - Math.max(0, b - whole[1]);
      const full = a + shift <= whole[0] && b + shift >= whole[1];
      const limits = full ? [...panel.whole] : [from(a + shift), from(b + shift)];
      for (const each of this.together(panel)) {
        each.x.lim = [...limits];
        each.moved = !full;
        each.u?.setScale("x", { min: limits[0], max: limits[1] });
      }
      this.show(null);
    }

    by(factor, shift = 0, panel = this.last ?? this.spec.panels.find((each) => each.zooms), at = 0.5) {
      const { to, from } = along(panel.x), [a, b] = panel.x.lim.map(to), span = b - a;
      const middle = a + span * at, move = span * shift;
      this.zoom(panel, from(middle - span * factor * at + move), from(middle + span * factor * (1 - at) + move));
    }

    reset() {
      for (const panel of this.spec.panels) if (panel.zooms) this.zoom(panel, ...panel.whole);
    }

    selected(panel, u) { // what a drag covers
      const { left, width } = u.select;
      if (width < LEAST) return;
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.last = panel;
      this.zoomedNow = true;
      this.zoom(panel, u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    }

    // ---- the hand
    listen() {
      this.stage.addEventListener("keydown", (event) => this.key(event));
      this.stage.addEventListener("blur", () => this.show(null));
    }

    listenTo(panel) {
      const { over } = panel.u;
      const found = (event) => this.nearest(panel, event.offsetX, event.offsetY);
      over.addEventListener("pointermove", (event) => {
        if (this.pan) return this.panned(event.clientX);
        if (event.buttons) return this.show(null);
        const at = found(event);
        if (at?.mark !== this.at?.mark || at?.i !== this.at?.i) this.show(at);
      });
      over.addEventListener("pointerleave", () => { if (!this.pan && this.at) this.show(null); });
      over.addEventListener("pointerdown", (event) => {
        this.touched = event.pointerType === "touch" ? found(event) : null;
        if (!event.shiftKey || !panel.zooms || event.pointerType === "touch") return;
        this.pan = { panel, from: event.clientX, lim: [...panel.x.lim] };
        over.setPointerCapture(event.pointerId);
      });
      over.addEventListener("pointerup", () => { this.pan = null; });
      over.addEventListener("pointercancel", () => { this.pan = null; });
      over.addEventListener("click", (event) => {
        if (this.zoomedNow) { this.zoomedNow = false; return; }
        const at = found(event);
        if (this.touched && at && this.shownTouch !== `${at.i} ${at.mark.series}`) { // a finger's first tap shows
          this.shownTouch = `${at.i} ${at.mark.series}`;
          this.show(at);
        } else if (at) this.pick(at);
      });
      over.addEventListener("wheel", (event) => {
        if (!panel.zooms || !(event.ctrlKey || event.metaKey)) return; // else the page scrolls
        event.preventDefault();
        this.by(1.2 ** Math.sign(event.deltaY), 0, panel, clamp(event.offsetX / over.clientWidth, 0, 1));
      }, { passive: false });
    }

    panned(x) {
      const { panel, from: start, lim } = this.pan, { to, from } = along(panel.x), [a, b] = lim.map(to);
      const shift = ((start - x) / panel.u.over.clientWidth) * (b - a);
      this.zoom(panel, from(a + shift), from(b + shift));
      this.zoomedNow = true;
    }

    key(event) {
      const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
      const acts = { "+": () => this.by(0.5), "-": () => this.by(2), 0: () => this.reset(), Escape: () => this.show(null) };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in steps) this.step(...steps[event.key]);
      else if (event.key === "Enter" && this.at) this.pick(this.at);
      else if (event.key in acts && (event.key === "Escape" || this.spec.panels.some((each) => each.zooms))) acts[event.key]();
      else return;
      event.preventDefault();
    }

    step(forward, across) { // from point to point of a mark; up and down from mark to mark
      const every = this.spec.panels.filter((panel) => panel.u).flatMap((panel) => this.tellable(panel).map((mark) => ({ panel, mark })));
      if (!every.length) return;
      const now = this.at ? every.findIndex((each) => each.mark === this.at.mark) : -1;
      const { panel, mark } = every[(Math.max(now, 0) + (now < 0 ? 0 : across) + every.length) % every.length];
      const [from, to] = mark.sorted ? [first(mark.x, panel.x.lim[0]), first(mark.x, panel.x.lim[1] * (1 + 1e-12))] : [0, mark.x.length];
      const start = this.at && mark === this.at.mark ? this.at.i + forward : from;
      this.show({ panel, mark, i: clamp(start, from, Math.max(from, Math.min(to, mark.x.length) - 1)) });
    }
  }
  const ends = ([a, b]) => (a < b ? [a, b] : [b, a]);

  return { Plot, make };
})();
