"use strict";
// The parts of a plot: axes with their scales and ticks, and marks (lines, steps, points, bars,
// areas, spans) drawn with a canvas's pen.
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

  // ---- axes: values to a line on which equal steps look equal, and back
  const along = (axis) => {
    if (axis.scale === "log") return { to: (v) => Math.log10(v), from: (t) => 10 ** t };
    if (axis.scale === "symlog") {
      const { bend, room } = axis;
      const flat = room / (1 - 1 / 10);
      return {
        to: (v) => (Math.abs(v) <= bend ? v * flat : Math.sign(v) * bend * (flat + Math.log10(Math.abs(v) / bend))),
        from: (t) => (Math.abs(t) <= bend * flat ? t / flat : Math.sign(t) * bend * 10 ** (Math.abs(t) / bend - flat)),
      };
    }
    return { to: (v) => v, from: (t) => t };
  };
  const scaled = (axis, limits, from, to) => {
    const { to: f, from: g } = along(axis);
    const low = f(limits[0]), span = f(limits[1]) - low || 1;
    const place = (v) => from + ((f(v) - low) / span) * (to - from);
    place.back = (p) => g(low + ((p - from) / (to - from)) * span);
    return place;
  };
  const ticks = (axis, limits, room) => {
    if (!axis.moved && axis.ticks) return axis.ticks;
    const [low, high] = limits;
    if (axis.names) return axis.ticks.filter(([at]) => at >= low && at <= high);
    if (axis.scale !== "linear" && high > 10 * low) return axis.ticks.filter(([at]) => at >= low && at <= high);
    const rough = (high - low) / Math.max(2, room);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push([k * step, (k * step).toFixed(decimals)]);
    return found;
  };

  // ---- marks
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
    if (!mark.sorted || !mark.inData[0]) return [0, mark.x.length];
    return [Math.max(0, first(mark.x, limits[0]) - 1), Math.min(mark.x.length, first(mark.x, limits[1]) + 2)];
  };
  const POLYGONS = { // corners on a circle: how many, the first one's angle, inner radius of stars
    s: [4, 45], D: [4, 0], "^": [3, -90], v: [3, 90], "<": [3, 180], ">": [3, 0], p: [5, -90], h: [6, -90],
    "*": [5, -90, 0.4], P: [4, 0, 0.5], X: [4, 45, 0.5],
  };
  const trace = (pen, marker, x, y, size) => {
    const radius = size / 2;
    pen.beginPath();
    if (marker === "|" || marker === "_" || marker === "+" || marker === "x") {
      const turns = { "|": [90], _: [0], "+": [0, 90], x: [45, 135] }[marker];
      for (const turn of turns) {
        const dx = radius * Math.cos((turn * Math.PI) / 180), dy = radius * Math.sin((turn * Math.PI) / 180);
        pen.moveTo(x - dx, y - dy);
        pen.lineTo(x + dx, y + dy);
      }
      return pen.stroke();
    }
    const [corners, angle, inner] = POLYGONS[marker] ?? [0];
    if (!corners) pen.arc(x, y, marker === "." ? radius / 2 : radius, 0, 2 * Math.PI);
    for (let k = 0; k < corners * (inner ? 2 : 1); k++) {
      const turn = ((angle + (k * 360) / corners / (inner ? 2 : 1)) * Math.PI) / 180;
      const reach = radius * (inner && k % 2 ? inner : 1) * (marker === "s" || inner ? 1.25 : 1);
      pen.lineTo(x + reach * Math.cos(turn), y + reach * Math.sin(turn));
    }
    pen.closePath();
    pen.fill();
    pen.stroke();
  };
  const line = (pen, mark, X, Y, [from, to], columns) => {
    pen.beginPath();
    const steps = mark.kind === "steps";
    const thin = mark.sorted && to - from > 4 * columns;
    let up = true, last = 0, column = NaN, low = 0, high = 0;
    for (let i = from; i < to; i++) {
      if (mark.x[i] === null || mark.y[i] === null || Number.isNaN(mark.y[i])) { up = true; continue; }
      const x = X(mark.x[i]), y = Y(mark.y[i]);
      if (thin && !up && Math.floor(x) === column) { // of a column of pixels: the last, and the span
        low = Math.min(low, y);
        high = Math.max(high, y);
        last = y;
        continue;
      }
      if (thin && !up && high > low) { pen.moveTo(column + 0.5, low); pen.lineTo(column + 0.5, high); pen.moveTo(column + 0.5, last); }
      if (up) pen.moveTo(x, y);
      else { if (steps) pen.lineTo(x, last); pen.lineTo(x, y); }
      up = false;
      column = Math.floor(x);
      low = high = last = y;
    }
    if (thin && !up && high > low) { pen.moveTo(column + 0.5, low); pen.lineTo(column + 0.5, high); pen.moveTo(column + 0.5, last); }
    if (steps && !up && mark.until !== undefined) pen.lineTo(X(mark.until), last);
    pen.stroke();
  };
  const filled = (pen, mark, X, Y) => {
    pen.beginPath();
    let up = true;
    for (let i = 0; i < mark.x.length; i++) {
      if (mark.x[i] === null) { pen.closePath(); up = true; continue; }
      if (up) pen.moveTo(X(mark.x[i]), Y(mark.y[i])); else pen.lineTo(X(mark.x[i]), Y(mark.y[i]));
      up = false;
    }
    pen.closePath();
    pen.fill();
    if (mark.width) pen.stroke();
  };
  const points = (pen, mark, X, Y, [from, to], unit) => {
    const size = mark.size * unit, many = to - from > MANY;
    for (let i = from; i < to; i++) {
      if (mark.x[i] === null || mark.y[i] === null) continue;
      const x = X(mark.x[i]), y = Y(mark.y[i]);
      if (many) pen.fillRect(x - size / 3, y - size / 3, size / 1.5, size / 1.5);
      else trace(pen, mark.marker, x, y, size);
    }
  };
  const bars = (pen, mark, X, Y, [from, to], unit) => {
    const width = Math.max(1, mark.width * unit);
    for (let i = from; i < to; i++) {
      const top = Y(mark.y2[i]), height = Y(mark.y[i]) - top;
      pen.fillRect(X(mark.x[i]) - width / 2, top, width, Math.max(1.5, height));
    }
  };
  const spans = (pen, mark, X, Y, [from, to]) => {
    for (let i = from; i < to; i++) {
      const left = X(mark.x[i]), top = Y(mark.y[i] + mark.half), height = Y(mark.y[i] - mark.half) - top;
      pen.fillRect(left, top, Math.max(1, X(mark.x2[i]) - left), height);
    }
  };

  return { clamp, plain, unpacked, along, scaled, ticks, first, ascending, inSight, trace, line, filled, points, bars, spans };
})();
