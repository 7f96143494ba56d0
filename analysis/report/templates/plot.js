// Figures that answer the hand, on one canvas each: what is drawn comes as data. A figure has
// panels (a box, two axes), marks, texts and a legend.
const plotting = (() => {
  const { clamp, plain, along, scaled, ticks, first, ascending, inSight, trace, line, filled, points, bars, spans } = drawing;
  const NEAR = 16; // px around the pointer within which a point is found
  const LEAST = 6; // px that a drag must cover to be a zoom

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // ---- a figure in its place
  class Plot {
    constructor(host, spec) {
      this.host = host;
      this.spec = spec;
      this.hidden = new Set();
      for (const mark of spec.marks) {
        mark.inData ??= [true, true];
        mark.sorted = mark.sorted ?? (mark.kind !== "fill" && ascending(mark.x));
      }
      spec.panels.forEach((panel, place) => {
        panel.whole = [...panel.x.lim];
        panel.marks = spec.marks.filter((mark) => mark.panel === place);
      });
      this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": spec.name });
      this.tip = make("div", { class: "tip", role: "status", hidden: "" });
      this.frame = make("div", { class: "live" }, this.canvas, this.tip);
      this.buttons();
      host.append(this.frame);
      this.listen();
      this.resize();
      new ResizeObserver(() => this.resize()).observe(this.frame);
      for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", () => this.draw());
    }

    buttons() {
      const { legend } = this.spec;
      if (legend.entries.length) {
        this.legend = make("div", { class: "legend", role: "group", "aria-label": "Series: press to hide or show" });
        for (const entry of legend.entries) {
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
        if (legend.box) this.frame.append(this.legend);
        else this.frame.prepend(this.legend);
      }
      if (!this.spec.panels.some((panel) => panel.zooms)) return;
      const tools = make("div", { class: "zoom", role: "group", "aria-label": "Zoom" });
      const acts = [
        ["−", "Zoom out", () => this.by(2)], ["+", "Zoom in", () => this.by(0.5)],
        ["←", "Earlier", () => this.by(1, -0.25)], ["→", "Later", () => this.by(1, 0.25)],
        ["whole", "Show all of it", () => this.reset()],
      ];
      for (const [words, name, act] of acts) {
        const button = make("button", { type: "button", "aria-label": name, title: name }, words);
        button.addEventListener("click", act);
        tools.append(button);
      }
      this.frame.append(tools);
    }

    // ---- sizes
    resize() {
      const width = this.frame.clientWidth;
      if (!width || width === this.width) return;
      this.width = width;
      this.unit = this.spec.unit ?? width / this.spec.width;
      this.height = this.spec.height ?? width * this.spec.ratio;
      const dense = devicePixelRatio || 1;
      this.canvas.width = Math.round(width * dense);
      this.canvas.height = Math.round(this.height * dense);
      this.canvas.style.height = `${this.height}px`;
      this.dense = dense;
      if (this.legend) {
        const { box, size } = this.spec.legend;
        this.legend.style.fontSize = `${size * this.unit}px`;
        if (box) {
          this.legend.classList.add("placed");
          this.legend.style.left = `${box[0] * 100}%`;
          this.legend.style.top = `${box[1] * 100}%`;
          this.legend.style.maxWidth = `${(1 - box[0]) * width}px`;
        }
      }
      this.draw();
    }

    box(panel) {
      const [left, top, width, height] = panel.box;
      if (this.spec.height) return { left, top, right: this.width - width, bottom: top + height };
      return {
        left: left * this.width, top: top * this.height,
        right: (left + width) * this.width, bottom: (top + height) * this.height,
      };
    }

    scales(panel) {
      const { left, top, right, bottom } = this.box(panel);
      const limits = panel.fits ? this.fitted(panel) : panel.y.lim;
      return { X: scaled(panel.x, panel.x.lim, left, right), Y: scaled(panel.y, limits, bottom, top), limits };
    }

    fitted(panel) { // the range of what is in sight
      let low = Infinity, high = -Infinity;
      for (const mark of this.seen(panel)) {
        if (mark.aside) continue;
        const [from, to] = inSight(mark, panel.x.lim);
        for (let i = from; i < to; i++) {
          if (mark.x[i] < panel.x.lim[0] || mark.x[i] > panel.x.lim[1]) continue;
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
    draw() {
      if (!this.width) return;
      const style = getComputedStyle(this.host);
      const named = new Map();
      this.colour = (name) => {
        if (name.startsWith("#")) return name;
        if (!named.has(name)) named.set(name, style.getPropertyValue(`--${name}`).trim() || "#888");
        return named.get(name);
      };
      const pen = this.canvas.getContext("2d");
      this.family = style.fontFamily;
      pen.setTransform(this.dense, 0, 0, this.dense, 0, 0);
      pen.clearRect(0, 0, this.width, this.height);
      for (const panel of this.spec.panels) this.panel(pen, panel);
      for (const text of this.spec.texts ?? []) if (text.panel < 0) this.text(pen, text, text.x * this.width, (1 - text.y) * this.height);
      for (const entry of this.spec.legend.entries) this.swatch(entry);
      if (this.at) this.ring(pen);
      if (this.drag?.moved) this.selection(pen);
    }

    panel(pen, panel) {
      const box = this.box(panel), { X, Y, limits } = this.scales(panel);
      this.axes(pen, panel, box, X, Y, limits);
      for (const mark of this.seen(panel)) {
        const room = panel.bare ? this.width : mark.kind === "points" ? 4 * this.unit : 0; // markers at the edge are whole
        pen.save();
        pen.beginPath();
        pen.rect(box.left - (panel.moved ? 0 : room), box.top - room, box.right - box.left + (panel.moved ? 0 : 2 * room), box.bottom - box.top + 2 * room);
        pen.clip();
        this.mark(pen, mark, panel, box, X, Y);
        pen.restore();
      }
      for (const text of panel.texts ?? this.spec.texts ?? []) {
        if (text.panel !== this.spec.panels.indexOf(panel)) continue;
        const x = text.inData ? X(text.x) : box.left + text.x * (box.right - box.left);
        if (text.inData && !panel.bare && (x < box.left - 1 || x > box.right + 1)) continue;
        this.text(pen, text, x, box.bottom - text.y * (box.bottom - box.top));
      }
    }

    axes(pen, panel, box, X, Y, limits) {
      if (panel.bare) return;
      const { unit } = this, size = 7 * unit;
      pen.lineWidth = Math.max(0.6, 0.5 * unit);
      pen.font = `${size}px ${this.family}`;
      const across = ticks({ ...panel.x, moved: panel.moved }, panel.x.lim, (box.right - box.left) / (55 * Math.max(1, unit)));
      const up = ticks({ ...panel.y, moved: panel.fits }, limits, (box.bottom - box.top) / (22 * Math.max(1, unit)));
      const rule = (x0, y0, x1, y1, colour) => {
        pen.strokeStyle = this.colour(colour);
        pen.beginPath();
        pen.moveTo(x0, y0);
        pen.lineTo(x1, y1);
        pen.stroke();
      };
      pen.fillStyle = this.colour("ink");
      for (const [at, words] of across) {
        const x = X(at);
        if (x < box.left - 1 || x > box.right + 1) continue;
        if (panel.x.grid) rule(x, box.top, x, box.bottom, "grid");
        pen.textAlign = "center";
        pen.textBaseline = "top";
        if (panel.x.shown !== false) pen.fillText(words, x, box.bottom + 3 * unit);
      }
      for (const [at, words] of up) {
        const y = Y(at);
        if (y < box.top - 1 || y > box.bottom + 1) continue;
        if (panel.y.grid) rule(box.left, y, box.right, y, "grid");
        pen.textAlign = "right";
        pen.textBaseline = "middle";
        pen.fillText(words, box.left - 3.5 * unit, y);
      }
      rule(box.left, box.bottom, box.right, box.bottom, "muted");
      rule(box.left, box.top, box.left, box.bottom, "muted");
      for (const [words, align, x] of [[panel.title, "left", box.left], [panel.right, "right", box.right]]) {
        if (!words) continue;
        pen.font = `${align === "left" ? "600 " : ""}${size}px ${this.family}`;
        pen.textAlign = align;
        pen.textBaseline = "bottom";
        pen.fillText(words, x, box.top - 4 * unit);
      }
      pen.font = `${7.5 * unit}px ${this.family}`;
      pen.textAlign = "center";
      pen.textBaseline = "top";
      if (panel.x.label) pen.fillText(panel.x.label, (box.left + box.right) / 2, box.bottom + 13 * unit);
      if (!panel.y.label) return;
      const widest = Math.max(0, ...up.map(([, words]) => pen.measureText(words).width));
      const rows = panel.y.label.split("\n");
      pen.save();
      pen.translate(Math.max(2, box.left - widest - 7 * unit - rows.length * 9 * unit), (box.top + box.bottom) / 2);
      pen.rotate(-Math.PI / 2);
      rows.forEach((row, place) => pen.fillText(row, 0, place * 9 * unit));
      pen.restore();
    }

    mark(pen, mark, panel, box, X, Y) {
      const x = mark.inData[0] ? X : (v) => box.left + v * (box.right - box.left);
      const y = mark.inData[1] ? Y : (v) => box.bottom - v * (box.bottom - box.top);
      const sight = inSight(mark, panel.x.lim);
      const colour = this.colour(mark.colour);
      pen.globalAlpha = mark.opacity ?? 1;
      pen.strokeStyle = mark.edge ? this.colour(mark.edge) : colour;
      pen.fillStyle = mark.hollow ? this.colour("card") : colour;
      pen.lineWidth = (mark.width || 0.8) * this.unit;
      pen.lineJoin = "round";
      pen.setLineDash((mark.dash ?? []).map((each) => each * pen.lineWidth));
      if (mark.kind === "line" || mark.kind === "steps") line(pen, mark, x, y, sight, box.right - box.left);
      else if (mark.kind === "fill") filled(pen, mark, x, y);
      else if (mark.kind === "points") points(pen, mark, x, y, sight, this.unit);
      else if (mark.kind === "bars") bars(pen, mark, x, y, sight, this.unit);
      else spans(pen, mark, x, y, sight);
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    }

    text(pen, text, x, y) {
      const size = text.size * this.unit, rows = text.words.split("\n");
      pen.font = `${text.bold ? "600 " : ""}${size}px ${this.family}`;
      pen.fillStyle = this.colour(text.colour);
      pen.textAlign = text.across;
      pen.textBaseline = "middle";
      const height = rows.length * size * 1.25;
      const top = { top: 0, bottom: -height, baseline: -height }[text.up] ?? -height / 2;
      rows.forEach((row, place) => pen.fillText(row, x, y + top + (place + 0.5) * size * 1.25));
    }

    swatch(entry) {
      const { swatch } = entry, size = 12 * this.dense;
      swatch.width = 2 * size;
      swatch.height = size;
      const pen = swatch.getContext("2d");
      pen.scale(this.dense, this.dense);
      pen.strokeStyle = pen.fillStyle = this.colour(entry.colour);
      pen.lineWidth = 2;
      pen.setLineDash((entry.dash ?? []).map((each) => each * 2));
      pen.beginPath();
      pen.moveTo(0, 6);
      pen.lineTo(24, 6);
      if (entry.line !== false) pen.stroke();
      pen.setLineDash([]);
      if (entry.marker) trace(pen, entry.marker, 12, 6, 8);
    }

    ring(pen) {
      const [x, y] = this.pixel(this.at);
      pen.strokeStyle = this.colour("ink");
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(x, y, 7, 0, 2 * Math.PI);
      pen.stroke();
    }

    selection(pen) {
      const { panel, from, to } = this.drag, box = this.box(panel);
      pen.fillStyle = this.colour("accent");
      pen.globalAlpha = 0.15;
      for (const each of this.together(panel)) {
        const own = this.box(each);
        if (own.left === box.left) pen.fillRect(Math.min(from, to), own.top, Math.abs(to - from), own.bottom - own.top);
      }
      pen.globalAlpha = 1;
    }

    // ---- finding
    pixel({ panel, mark, i }) {
      const { X, Y } = this.scales(panel);
      return [X(mark.x[i]), Y(mark.y2 ? (mark.y[i] + mark.y2[i]) / 2 : mark.y[i])];
    }

    under(x, y) {
      return this.spec.panels.find((panel) => {
        const box = this.box(panel);
        return !panel.bare && x >= box.left - NEAR && x <= box.right + NEAR && y >= box.top - NEAR && y <= box.bottom + NEAR;
      });
    }

    nearest(panel, x, y) {
      const { X, Y } = this.scales(panel);
      const sides = [X.back(x - NEAR), X.back(x + NEAR)];
      let best = null, least = NEAR * NEAR;
      for (const mark of this.tellable(panel)) {
        const [from, to] = mark.kind === "spans" || mark.kind === "steps" ? [Math.max(0, inSight(mark, sides)[0]), inSight(mark, sides)[1]] : inSight(mark, sides);
        for (let i = from; i < to; i++) {
          if (mark.x[i] === null || mark.y[i] === null) continue;
          const right = mark.x2 ? X(mark.x2[i]) : X(mark.x[i]);
          const dx = clamp(x, X(mark.x[i]), Math.max(right, X(mark.x[i]))) - x;
          const low = Y(mark.y[i]), high = mark.y2 ? Y(mark.y2[i]) : low;
          const dy = clamp(y, Math.min(low, high), Math.max(low, high)) - y;
          const far = dx * dx + dy * dy + (mark.told ? 0 : 1); // of two in one place, the one that knows more
          if (far < least) { least = far; best = { panel, mark, i }; }
        }
      }
      return best;
    }

    tellable(panel) {
      return this.seen(panel).filter((mark) => mark.kind !== "fill" && mark.inData[0] && mark.inData[1] && !mark.mute);
    }

    // ---- telling
    tell(at) {
      const { panel, mark, i } = at;
      if (mark.tell) return mark.tell(i);
      const word = (axis, value) => {
        const named = axis.names && axis.ticks.find(([place]) => Math.abs(place - value) < 0.5);
        return named ? named[1] : plain(value, axis.digits);
      };
      const column = this.spec.panels.filter((each) => each.box[0] === panel.box[0]);
      const labelled = column.find((each) => each.x.label)?.x.label ?? ""; // below the last panel
      const rows = [];
      for (const [axis, value] of [[panel.x, mark.x[i]], [panel.y, mark.y[i]]]) {
        const label = axis.label || (axis === panel.x ? labelled : "");
        rows.push([label.replace("\n", " "), word(axis, value)]);
      }
      const told = mark.told, of = (what) => (Array.isArray(what) ? what[i] : what);
      if (told) {
        const low = of(told.low), high = of(told.high), count = of(told.n);
        if (low !== null && low !== undefined && high > low) rows.push(["95 % interval", `${plain(low)} … ${plain(high)}`]);
        if (count !== null && count !== undefined) rows.push(["n", String(count)]);
        if (of(told.trials)) rows.push(["trials", of(told.trials).replaceAll(" ", ", ").replaceAll("-", "–")]);
      }
      return rows;
    }

    show(at, quiet = false) {
      this.at = at;
      this.tip.hidden = !at;
      if (at) {
        const rows = this.tell(at);
        const title = [at.panel.title, at.mark.series].filter(Boolean).join(" · ");
        const list = make("dl");
        for (const [name, words] of rows) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, words)));
        this.tip.replaceChildren(...(title ? [make("b", {}, title)] : []), list);
        if (this.trials(at)) this.tip.append(make("small", {}, "click or Enter: these trials"));
        else if (at.mark.hint) this.tip.append(make("small", {}, at.mark.hint));
        const [x, y] = this.pixel(at), wide = this.tip.offsetWidth, view = this.host.scrollLeft + this.host.clientWidth;
        this.tip.style.left = `${clamp(x + 14 + wide > view ? x - 14 - wide : x + 14, 0, Math.max(0, this.width - wide))}px`;
        this.tip.style.top = `${clamp(y - this.tip.offsetHeight / 2, 0, Math.max(0, this.height - this.tip.offsetHeight))}px`;
      }
      this.canvas.style.cursor = at && (this.trials(at) || at.mark.pick) ? "pointer" : "";
      if (!quiet) this.draw();
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
      const limits = [from(a + shift), from(b + shift)];
      for (const each of this.together(panel)) {
        each.x.lim = [...limits];
        each.moved = limits[0] > each.whole[0] || limits[1] < each.whole[1];
      }
      this.show(null);
      this.spec.zoomed?.(limits);
    }

    by(factor, shift = 0, panel = this.last ?? this.spec.panels.find((each) => each.zooms), at = 0.5) {
      const { to, from } = along(panel.x), [a, b] = panel.x.lim.map(to), span = b - a;
      const middle = a + span * at, move = span * shift;
      this.zoom(panel, from(middle - span * factor * at + move), from(middle + span * factor * (1 - at) + move));
    }

    reset() {
      for (const panel of this.spec.panels) if (panel.zooms) this.zoom(panel, ...panel.whole);
    }

    // ---- the hand
    listen() {
      const place = (event) => {
        const at = this.canvas.getBoundingClientRect();
        return [event.clientX - at.left, event.clientY - at.top];
      };
      const { canvas } = this;
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = place(event);
        if (this.drag) return this.dragged(x);
        const panel = this.under(x, y);
        const at = panel ? this.nearest(panel, x, y) : null;
        if (at?.mark !== this.at?.mark || at?.i !== this.at?.i) this.show(at);
      });
      canvas.addEventListener("pointerleave", () => { if (!this.drag && this.at) this.show(null); });
      canvas.addEventListener("pointerdown", (event) => {
        const [x, y] = place(event), panel = this.under(x, y);
        this.touched = event.pointerType === "touch" && panel ? this.nearest(panel, x, y) : null;
        if (!panel?.zooms || event.button !== 0 || event.pointerType === "touch") return;
        this.last = panel;
        this.drag = { panel, from: x, to: x, pan: event.shiftKey, lim: [...panel.x.lim] };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointerup", () => {
        const { drag } = this;
        this.drag = null;
        if (!drag?.moved || drag.pan) return;
        const { X } = this.scales(drag.panel);
        this.zoom(drag.panel, X.back(Math.min(drag.from, drag.to)), X.back(Math.max(drag.from, drag.to)));
        this.zoomedNow = true;
      });
      canvas.addEventListener("pointercancel", () => { this.drag = null; });
      canvas.addEventListener("click", (event) => {
        if (this.zoomedNow) { this.zoomedNow = false; return; }
        const [x, y] = place(event), panel = this.under(x, y), at = panel && this.nearest(panel, x, y);
        if (this.touched && at && this.shownTouch !== `${at.i} ${at.mark.series}`) { // a finger's first tap shows
          this.shownTouch = `${at.i} ${at.mark.series}`;
          return this.show(at);
        }
        if (at) this.pick(at);
      });
      canvas.addEventListener("dblclick", () => this.reset());
      canvas.addEventListener("wheel", (event) => {
        const [x, y] = place(event), panel = this.under(x, y);
        if (!panel?.zooms || !(event.ctrlKey || event.metaKey)) return; // else the page scrolls
        event.preventDefault();
        const box = this.box(panel);
        this.by(1.2 ** Math.sign(event.deltaY), 0, panel, clamp((x - box.left) / (box.right - box.left), 0, 1));
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => this.key(event));
      canvas.addEventListener("blur", () => this.show(null));
    }

    dragged(x) {
      const { drag } = this, box = this.box(drag.panel);
      drag.to = clamp(x, box.left, box.right);
      drag.moved ||= Math.abs(drag.to - drag.from) > LEAST;
      if (!drag.moved) return;
      if (!drag.pan) return this.draw();
      const { to, from } = along(drag.panel.x), [a, b] = drag.lim.map(to);
      const shift = ((drag.from - drag.to) / (box.right - box.left)) * (b - a);
      this.zoom(drag.panel, from(a + shift), from(b + shift));
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

    step(along, across) { // from point to point of a mark; up and down from mark to mark
      const all = this.spec.panels.flatMap((panel) => this.tellable(panel).map((mark) => ({ panel, mark })));
      if (!all.length) return;
      const now = this.at ? all.findIndex((each) => each.mark === this.at.mark) : -1;
      const { panel, mark } = all[(Math.max(now, 0) + (now < 0 ? 0 : across) + all.length) % all.length];
      const [from, to] = mark.sorted ? [first(mark.x, panel.x.lim[0]), first(mark.x, panel.x.lim[1] * (1 + 1e-12))] : [0, mark.x.length];
      const start = this.at && mark === this.at.mark ? this.at.i + along : from;
      this.show({ panel, mark, i: clamp(start, from, Math.max(from, Math.min(to, mark.x.length) - 1)) });
    }
  }

  return { Plot, make };
})();
