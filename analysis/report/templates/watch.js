"use strict";
// The packets of a trial as they moved. All that is known is in the page (analysis/report/watch_page.py);
// this draws it, and keeps one instant for all pictures.
const watching = (async () => {
  const $ = (id) => document.getElementById(id);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const element = (name, text = "", attributes = {}) => Object.assign(document.createElement(name), { textContent: text }, attributes);

  // ---- what the page holds
  const inflated = async (id) => {
    const packed = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
    $(id).remove();
    return new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  };
  const data = JSON.parse(new TextDecoder().decode(await inflated("data")));
  const bytes = await inflated("columns");
  const { packets: N, captures: M, paths, flows } = data, C = Math.max(1, data.connections.length);
  let place = 0;
  const number = () => { // zigzag, seven bits a byte, the low ones first
    let value = 0, scale = 1, byte;
    do { byte = bytes[place++]; value += (byte & 127) * scale; scale *= 128; } while (byte > 127);
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  const column = (Kind, each = (value) => value) => {
    const found = new Kind(N);
    for (let i = 0; i < N; i++) found[i] = each(number(), i);
    return found;
  };
  const summed = (group, groups) => {
    const last = new Float64Array(groups);
    return (step, i) => (last[group(i)] += step);
  };
  const unpacked = ({ d, k }) => { let sum = 0; return Float64Array.from(d, (step) => (sum += step) * k); };
  let before = 0;
  const first = column(Float64Array, (step) => (before += step)), last = first.slice();
  const step = (value, i) => (value === 0 ? NaN : last[i] + (value > 0 ? value - 1 : value));
  const times = Array.from({ length: M }, () => {
    const found = column(Float64Array, step);
    for (let i = 0; i < N; i++) if (found[i] === found[i]) last[i] = found[i];
    return found;
  });
  const gone = column(Float64Array, step);
  const [path, connection, payload, flags, marks, duplicate, ce, fate] = Array.from({ length: 8 }, () => column(Int32Array));
  const size = column(Int32Array, (header, i) => header + payload[i]);
  const frame = column(Int32Array, summed((i) => path[i], paths.length));
  const [window_, seq, ack] = Array.from({ length: 3 }, () => column(Float64Array, summed((i) => path[i] * C + connection[i], paths.length * C)));
  const sacks = new Map();
  const [sackRow, sackLeft, sackSize] = data.sacks.map(unpacked);
  sackRow.forEach((row, i) => {
    const left = ack[row] + sackLeft[i];
    if (!sacks.has(row)) sacks.set(row, []);
    sacks.get(row).push([left, left + sackSize[i]]);
  });
  const why = new Map(data.reasons.row.map((row, i) => [row, data.reasons.sentence[i]]));
  const kernel = {};
  for (const [name, found] of Object.entries(data.kernel)) {
    kernel[name] = { state: found.state };
    for (const [what, values] of Object.entries(found)) if (what !== "state") kernel[name][what] = unpacked(values);
    kernel[name].ns = kernel[name].time.map((time) => time * 1e9);
  }
  const isLost = (i) => fate[i] === 1 || fate[i] === 3;
  const isAgain = (i) => paths[path[i]].data && (marks[i] & 15) > 0; // Wireshark's four words for it
  const second = (ns) => ns / 1e9, SYN = 2, FIN = 1, RST = 4, ACK = 16, ECE = 64;
  const START = data.start, STOP = data.stop;

  // ---- places: the ends of each leg between two captures of a path
  const BOX = 46, LANE = 4, LOW = 15; // half a node's width and height in the drawing
  const typical = paths.map(() => new Float64Array(M));
  const counted = paths.map(() => new Float64Array(M));
  for (let i = 0; i < N; i++) for (let k = 0; k + 1 < M; k++) if (counted[path[i]][k] < 200 && times[k + 1][i] === times[k + 1][i] && times[k][i] === times[k][i]) { typical[path[i]][k] += times[k + 1][i] - times[k][i]; counted[path[i]][k]++; }
  const edge = (from, to) => { // a wire from box to box, a lane to the right of its middle
    const [x0, y0] = data.nodes[from], [x1, y1] = data.nodes[to], length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const ux = (x1 - x0) / length, uy = (y1 - y0) / length;
    const cut = Math.min(BOX / Math.max(Math.abs(ux), 1e-9), LOW / Math.max(Math.abs(uy), 1e-9), length / 2.2);
    return { x0: x0 + ux * cut - uy * LANE, y0: y0 + uy * cut + ux * LANE, x1: x1 - ux * cut - uy * LANE, y1: y1 - uy * cut + ux * LANE, ux, uy, length: length - 2 * cut };
  };
  const drawn = Object.keys(data.nodes).length > 0;
  paths.forEach((each, p) => {
    each.legs = each.captured.slice(1).map((to, k) => {
      const from = each.captured[k], wires = [];
      for (let at = from; at < to; at++) if (each.places[at][2]) wires.push({ ...(drawn ? edge(each.places[at][0], each.places[at + 1][0]) : {}), weight: each.wires[at / 2] || 1e-6 });
      const total = wires.reduce((sum, wire) => sum + wire.weight, 0);
      let done = 0;
      for (const wire of wires) { wire.from = done / total; done += wire.weight; wire.to = done / total; }
      const next = each.places[to], onward = each.places[to + 1];
      return { wires, queue: wires.length ? "" : next[1], train: !wires.length && drawn && onward ? edge(next[0], onward[0]) : null };
    });
    each.nodes = [...new Set(each.places.map(([node]) => node))];
    each.colour = each.flow;
    typical[p].forEach((sum, k) => { typical[p][k] = sum / Math.max(1, counted[p][k]); });
  });
  const reached = (i) => { // the last capture that a packet passed
    let k = M - 1;
    while (k > 0 && !(times[k][i] === times[k][i])) k--;
    return k;
  };
  const until = Float64Array.from(last, (time, i) => { // when it is no longer on its way
    if (!isLost(i)) return fate[i] === 2 ? STOP : time;
    const leg = paths[path[i]].legs[reached(i)];
    return leg?.queue ? Math.max(time, gone[i] || 0) : time + typical[path[i]][reached(i)] / 2;
  });
  const BLOCK = 256, blockEnd = new Float64Array(Math.ceil(N / BLOCK));
  for (let i = 0; i < N; i++) blockEnd[i / BLOCK | 0] = Math.max(blockEnd[i / BLOCK | 0], until[i]);
  const after = (xs, value, low = 0, high = xs.length) => { // the first place beyond a value
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= value) low = middle + 1; else high = middle;
    }
    return low;
  };

  // ---- queues: who waits, from entering to leaving
  const queues = data.queues.map((record) => {
    const entries = [];
    for (let i = 0; i < N; i++) {
      const legs = paths[path[i]].legs;
      for (let k = 0; k < legs.length; k++) {
        if (legs[k].queue !== record.interface || !(times[k][i] === times[k][i])) continue;
        const left = times[k + 1][i];
        entries.push([i, times[k][i], left === left ? left : isLost(i) ? gone[i] : STOP + 1]);
      }
    }
    entries.sort((a, b) => a[1] - b[1]);
    const row = Int32Array.from(entries, (each) => each[0]), enter = Float64Array.from(entries, (each) => each[1]), leave = Float64Array.from(entries, (each) => each[2]);
    const ends = new Float64Array(Math.ceil(row.length / BLOCK));
    leave.forEach((time, at) => { ends[at / BLOCK | 0] = Math.max(ends[at / BLOCK | 0], time); });
    const changes = entries.flatMap(([i, from, to]) => (to > from ? [[from, 1, size[i]], [to, -1, -size[i]]] : [])).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const time = Float64Array.from(changes, (each) => each[0]), count = new Float64Array(time.length), held = new Float64Array(time.length);
    let packets = 0, total = 0, most = 0, mostPackets = 0;
    changes.forEach(([, one, bytes_], at) => {
      count[at] = packets += one; held[at] = total += bytes_;
      most = Math.max(most, total); mostPackets = Math.max(mostPackets, packets);
    });
    const each_ = record.unit === "bytes" ? 1 : Math.max(1, most / Math.max(1, mostPackets));
    const bounds = record.bounds.map(([since, limit, thresholds]) => ({ since, limit, bytes: limit * each_, thresholds }));
    const limit = Math.max(...bounds.map(({ bytes }) => bytes));
    const far = Math.max(most * 1.15, 8000, ...bounds.flatMap(({ thresholds }) => thresholds.map(([, at]) => at * 1.05)).filter((at) => at < 4 * most));
    return { ...record, row, enter, leave, ends, time, count, held, bounds, scale: Math.min(far, limit * 1.06) || far, drops: entries.filter(([i, from]) => isLost(i) && reached(i) < M && from === last[i]).map(([i]) => i) };
  }).filter((queue) => queue.row.length);
  const bound = (queue, t) => queue.bounds.findLast(({ since }) => since <= t) ?? queue.bounds[0];
  const waiting = (queue, t) => {
    const found = [], limit = after(queue.enter, t);
    for (let block = 0; block * BLOCK < limit; block++) {
      if (queue.ends[block] <= t) continue;
      for (let at = block * BLOCK; at < Math.min(limit, (block + 1) * BLOCK); at++) if (queue.leave[at] > t) found.push(queue.row[at]);
    }
    return found;
  };
  const occupied = (queue, t) => {
    const at = after(queue.time, t) - 1;
    return at < 0 ? [0, 0] : [queue.count[at], queue.held[at]];
  };

  // ---- the flow that is looked at
  const state = { t: START, speed: 0.01, playing: false, flow: 0, span: 0, packet: -1 };
  let focus = null;
  const flowOf = (i) => paths[path[i]].flow;
  const look = (flow) => { // its packets by when its sender sends or hears them
    const rows = [], at = [], sent = [], heard = [];
    for (let i = 0; i < N; i++) if (flowOf(i) === flow) rows.push(i);
    for (const i of rows) {
      const each = paths[path[i]];
      if (each.data) { if (payload[i] || flags[i] & (SYN | FIN)) sent.push(i); } else if (flags[i] & ACK && each.captured.at(-1) === each.places.length - 1) { if (times[each.captured.length - 1][i] === times[each.captured.length - 1][i]) heard.push(i); }
    }
    const here = (i) => times[paths[path[i]].captured.length - 1][i];
    heard.sort((a, b) => here(a) - here(b));
    const mss = sent.reduce((most, i) => Math.max(most, payload[i]), 1);
    const steps = [...sent.map((i) => [first[i], i]), ...heard.map((i) => [here(i), i])].sort((a, b) => a[0] - b[0]);
    const highest = new Map(), acked = new Map(), base = new Map(), unsure = new Set(), time = [], flight = [];
    let out = 0;
    for (const [t, i] of steps) { // what was sent before this page is not known: until all of it is acknowledged, nor is what is in flight
      const own = connection[i], open = () => Math.max(0, (highest.get(own) ?? 0) - (acked.get(own) ?? Infinity)), was = open();
      if (paths[path[i]].data) {
        if (!base.has(own) && !(flags[i] & SYN)) unsure.add(own);
        if (!base.has(own) && !isAgain(i)) base.set(own, seq[i]);
        highest.set(own, Math.max(highest.get(own) ?? 0, seq[i] + payload[i]));
      } else {
        acked.set(own, Math.max(acked.get(own) ?? 0, ack[i]));
        if (acked.get(own) >= base.get(own)) unsure.delete(own);
      }
      out += open() - was;
      time.push(t); flight.push(unsure.size ? NaN : out / mss);
    }
    const known = kernel[flows[flow].name];
    const starts = Float64Array.from(sent, (i) => first[i]), hears = Float64Array.from(heard, here);
    const start = rows.length ? rows[0] : 0;
    const one = rows.filter((i) => connection[i] === connection[start]); // the ladder and the plane show the first connection
    focus = { flow, rows, sent: sent.filter((i) => connection[i] === connection[start]), heard: heard.filter((i) => connection[i] === connection[start]), one, mss, time: Float64Array.from(time), flight: Float64Array.from(flight), known, starts, hears, here, changes: data.changes.filter((each) => each.flow === flows[flow].name) };
    focus.starts = Float64Array.from(focus.sent, (i) => first[i]);
    focus.hears = Float64Array.from(focus.heard, here);
    focus.firsts = Float64Array.from(one, (i) => first[i]);
    const lost = rows.filter(isLost), again = rows.filter(isAgain);
    focus.trouble = lost.length ? lost.map((i) => [until[i], i]) : again.map((i) => [first[i], i]);
    focus.trouble.sort((a, b) => a[0] - b[0]);
    focus.losses = Float64Array.from(focus.trouble, ([time]) => time);
    const crossed = paths.flatMap((each) => (each.flow === flow && each.data ? each.legs.map((leg) => leg.queue) : []));
    focus.queue = queues.find((queue) => crossed.includes(queue.interface)) ?? queues[0];
    focus.most = Math.max(...flight.length ? [flight.reduce((a, b) => (b > a ? b : a), 1)] : [1], known?.cwnd?.reduce((a, b) => Math.max(a, b), 1) ?? 1);
  };
  const sample = (t) => focus.known && after(focus.known.time, second(t)) - 1;
  const rtt = () => {
    const at = sample(state.t), known = focus.known?.srtt_ms?.[at];
    if (known > 0) return known * 1e6;
    const own = paths.filter((each) => each.flow === focus.flow), sum = own.reduce((total, each) => total + typical[paths.indexOf(each)].reduce((a, b) => a + b, 0), 0);
    return sum || (STOP - START) / 100;
  };

  // ---- colours, from the page's style sheet, light or dark
  const INKS = ["blue", "vermillion", "green", "purple", "orange", "indigo", "sky", "wine", "teal", "brown", "rose", "olive", "steel", "moss"];
  let ink = {};
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of [...INKS, "ink", "muted", "grid", "card", "rule", "wash", "accent", "bad", "bad-wash", "doubt-wash"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
  };
  const inkOf = (flow) => ink[INKS[flow % INKS.length]];
  const pixel = (colour) => { const value = parseInt(colour.slice(1), 16); return (0xff000000 | (value & 255) << 16 | value & 0xff00 | value >> 16) >>> 0; };
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  // ---- where a packet is
  const fall = () => (still.matches ? 0.3 : 0.7) * 1e9 * state.speed; // of trial time: 0.7 s for the eye
  const position = (i, t) => { // null: not in sight; falling: since it was dropped, 0 to 1
    if (t < first[i] || t > until[i] + (isLost(i) ? fall() : 0)) return null;
    const each = paths[path[i]];
    let k = 0;
    while (k + 1 < M && times[k + 1][i] <= t) k++;
    while (!(times[k][i] === times[k][i])) k++;
    const leg = each.legs[k];
    if (!leg) return null;
    const falling = isLost(i) && t >= until[i] ? clamp((t - until[i]) / fall(), 0, 1) : 0;
    if (leg.queue) return { x: leg.train?.x0 ?? 0, y: leg.train?.y0 ?? 0, queue: leg.queue, falling, dropped: isLost(i) && t >= until[i] };
    const end = times[k + 1]?.[i];
    const part = end === end ? (t - times[k][i]) / Math.max(1, end - times[k][i]) : typical[each.p][k] ? Math.min((t - times[k][i]) / typical[each.p][k], isLost(i) ? 0.5 : 1) : 0;
    const wire = leg.wires.find((one) => part <= one.to) ?? leg.wires.at(-1), along = (part - wire.from) / Math.max(1e-9, wire.to - wire.from);
    return { x: wire.x0 + (wire.x1 - wire.x0) * along, y: wire.y0 + (wire.y1 - wire.y0) * along, ux: wire.ux, uy: wire.uy, falling, dropped: isLost(i) && t >= until[i] };
  };
  paths.forEach((each, p) => { each.p = p; });
  const active = (t) => {
    const found = [], limit = after(first, t), margin = fall();
    for (let block = 0; block * BLOCK < limit; block++) {
      if (blockEnd[block] + margin < t) continue;
      for (let i = block * BLOCK; i < Math.min(limit, (block + 1) * BLOCK); i++) if (until[i] >= t || (isLost(i) && until[i] + margin >= t)) found.push(i);
    }
    return found;
  };

  // ---- canvases: each pane keeps its picture, and a line for the instant moves over it
  const fit = (canvas, width, height, clear = true) => {
    const ratio = Math.min(2, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (clear) context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    return context;
  };
  // thousands of small blocks are written as pixels, in a third of the time that fillRect takes
  const board = (canvas, width, height) => {
    const context = fit(canvas, width, height, false), ratio = canvas.width / width;
    if (canvas.image?.width !== canvas.width || canvas.image.height !== canvas.height) {
      canvas.image = new ImageData(canvas.width, canvas.height);
      canvas.words = new Uint32Array(canvas.image.data.buffer);
    }
    const { words } = canvas, across = canvas.width, down = canvas.height;
    words.fill(0);
    const block = (x, y, wide, tall, colour) => {
      const left = Math.max(0, Math.round(x * ratio)), right = Math.min(across, Math.max(left + 1, Math.round((x + wide) * ratio)));
      const top = Math.max(0, Math.round(y * ratio)), bottom = Math.min(down, Math.max(top + 1, Math.round((y + tall) * ratio)));
      if (left >= right) return;
      for (let row = top * across; row < bottom * across; row += across) for (let at = row + left; at < row + right; at++) words[at] = colour;
    };
    return { context, block, show: () => context.putImageData(canvas.image, 0, 0) };
  };
  const panes = [];
  const pane = (id, height, draw, { whole = false, down = false } = {}) => {
    const canvas = $(id), frame_ = element("div", "", { className: `pane-frame ${id}` }), line = element("div", "", { className: down ? "cursor down" : "cursor" });
    canvas.replaceWith(frame_);
    frame_.append(canvas, line);
    const own = { canvas, line, height, draw, whole, down, hits: [] };
    own.limits = () => (whole ? [START, STOP] : down ? state.near : state.sight);
    own.place = (t) => { const [low, high] = own.limits(); return own.low + (t - low) / (high - low) * (own.high - own.low); };
    own.instant = (at) => { const [low, high] = own.limits(); return low + (at - own.low) / (own.high - own.low) * (high - low); };
    canvas.addEventListener("click", (event) => {
      const i = nearest(own, event);
      if (i >= 0) choose(i, down ? undefined : clamp(own.instant(event.offsetX), START, STOP));
      else { state.packet = -1; go(clamp(own.instant(down ? event.offsetY : event.offsetX), START, STOP)); }
    });
    canvas.addEventListener("pointermove", (event) => hover(nearest(own, event)));
    canvas.addEventListener("pointerleave", () => hover(-1));
    panes.push(own);
    return own;
  };
  const nearest = (own, { offsetX, offsetY }) => {
    let best = -1, close = 12 * 12;
    for (const [x, y, i] of own.hits) {
      const apart = (x - offsetX) ** 2 + (y - offsetY) ** 2;
      if (apart < close) [best, close] = [i, apart];
    }
    return best;
  };
  const ticks = (low, high, room) => {
    const rough = (high - low) / Math.max(1, room), power = 10 ** Math.floor(Math.log10(rough));
    const size_ = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough), decimals = Math.max(0, -Math.floor(Math.log10(size_) + 1e-9)), found = [];
    for (let k = Math.ceil(low / size_ - 1e-9); k * size_ <= high + size_ * 1e-9; k++) found.push([k * size_, (k * size_).toFixed(decimals)]);
    return found;
  };
  const short = (text) => { const value = Number(text); return value >= 1e6 ? `${+(value / 1e6).toFixed(3)} M` : value >= 1e4 ? `${+(value / 1e3).toFixed(1)} k` : text; };
  const axes = (own, context, width, [low, high], label) => { // of a pane whose time runs to the right
    own.low = 52; own.high = width - 8;
    const top = 16, bottom = own.height - 18, y = (value) => bottom - (value - low) / (high - low || 1) * (bottom - top);
    context.strokeStyle = ink.grid; context.fillStyle = ink.muted; context.lineWidth = 1;
    context.textAlign = "right"; context.textBaseline = "middle";
    for (const [value, text] of ticks(low, high, own.height / 45)) {
      const at = Math.round(y(value)) + 0.5;
      context.beginPath(); context.moveTo(own.low, at); context.lineTo(own.high, at); context.stroke();
      context.fillText(short(text), own.low - 5, at);
    }
    context.textAlign = "center"; context.textBaseline = "alphabetic";
    for (const [value, text] of ticks(...own.limits().map(second), width / 110)) {
      const at = Math.round(own.place(value * 1e9)) + 0.5;
      context.beginPath(); context.moveTo(at, top); context.lineTo(at, bottom); context.stroke();
      if (at < own.high - 12) context.fillText(text, at, own.height - 4);
    }
    context.textAlign = "left"; context.fillStyle = ink.ink;
    context.fillText(width < 560 ? label.split(":")[0] : label, 4, 10);
    return y;
  };
  const inside = (context, own, draw) => {
    context.save(); context.beginPath(); context.rect(own.low, 14, own.high - own.low, own.height - 31); context.clip();
    draw(); context.restore();
  };
  const curve = (context, own, xs, ys, y, colour, dash = []) => { // holds each value until the next; outside of the page packets are missing
    const low = Math.max(own.limits()[0], START), high = Math.min(own.limits()[1], STOP), from = Math.max(0, after(xs, low) - 1), to = after(xs, high);
    context.strokeStyle = colour; context.lineWidth = 1.6; context.setLineDash(dash); context.beginPath();
    let held = NaN, drawn_ = -1e9;
    for (let at = from; at < to; at++) {
      const x = own.place(Math.max(xs[at], low)), value = ys[at];
      if (at > from && Math.abs(x - drawn_) < 0.35 && at < to - 1) continue;
      if (!(value >= 0)) { held = NaN; continue; }
      if (held === held) context.lineTo(x, y(held));
      if (held === held) context.lineTo(x, y(value)); else context.moveTo(x, y(value));
      held = value; drawn_ = x;
    }
    if (held === held) context.lineTo(own.place(high), y(held));
    context.stroke(); context.setLineDash([]);
  };
  const cross = (context, x, y, r, colour = ink.bad) => {
    context.strokeStyle = colour; context.lineWidth = 2; context.beginPath();
    context.moveTo(x - r, y - r); context.lineTo(x + r, y + r); context.moveTo(x + r, y - r); context.lineTo(x - r, y + r); context.stroke();
  };
  const diamond = (context, x, y, r, colour) => {
    context.fillStyle = colour; context.beginPath();
    context.moveTo(x, y - r); context.lineTo(x + r, y); context.lineTo(x, y + r); context.lineTo(x - r, y); context.fill();
  };

  // ---- the pictures
  pane("overview", 56, (own, context, width) => {
    const y = axes(own, context, width, [0, focus.most], flows[focus.flow].protocol === "tcp" ? `the whole stretch: ━ ${focus.known ? "window" : "not acknowledged"} (segments)  ✕ ${queues.length ? "lost" : "sent again"}` : "the whole stretch: ✕ lost");
    inside(context, own, () => {
      context.fillStyle = ink.wash;
      context.fillRect(own.place(state.sight[0]), 0, Math.max(2, own.place(state.sight[1]) - own.place(state.sight[0])), own.height);
      if (focus.known) curve(context, own, focus.known.ns, focus.known.cwnd, y, inkOf(focus.flow)); else curve(context, own, focus.time, focus.flight, y, ink.muted);
      let drawn_ = -9;
      for (const time of focus.losses) if (own.place(time) - drawn_ > 3) cross(context, drawn_ = own.place(time), own.height - 24, 3);
    });
  }, { whole: true });

  const isTcp = () => flows[focus.flow].protocol === "tcp";
  const shown = (own, when) => { own.canvas.parentElement.hidden = !when; if (!when) own.low = own.high = 0; return when; };
  pane("plane", 300, (own, context, width) => {
    own.hits = [];
    if (!shown(own, isTcp())) return;
    const [low, high] = own.limits(), from = after(focus.starts, low), to = after(focus.starts, high), begin = after(focus.hears, low), end = after(focus.hears, high);
    let least = Infinity, most = -Infinity;
    for (let at = from; at < to; at++) { least = Math.min(least, seq[focus.sent[at]]); most = Math.max(most, seq[focus.sent[at]] + payload[focus.sent[at]]); }
    for (let at = Math.max(0, begin - 1); at < end; at++) { least = Math.min(least, ack[focus.heard[at]]); most = Math.max(most, ack[focus.heard[at]]); }
    if (!(most > least)) [least, most] = [0, 1];
    const margin = (most - least) * 0.06, y = axes(own, context, width, [Math.max(0, least - margin), most + margin], `sequence numbers (bytes): ▮ segment  ◆ sent again  ✕ lost  ― acknowledged  ┆ SACK block`);
    inside(context, own, () => {
      const colour = inkOf(focus.flow), plain = Math.max(1.2, Math.min(4, (own.high - own.low) / Math.max(1, to - from) / 2));
      context.fillStyle = colour;
      for (let at = from; at < to; at++) {
        const i = focus.sent[at], x = own.place(first[i]), top = y(seq[i] + payload[i]), tall = Math.max(1.5, y(seq[i]) - top);
        if (!isAgain(i)) context.fillRect(x - plain / 2, top, plain, tall);
        if (own.hits.length < 20000) own.hits.push([x, top + tall / 2, i]);
      }
      for (let at = from; at < to; at++) {
        const i = focus.sent[at], x = own.place(first[i]), middle = y(seq[i] + payload[i] / 2);
        if (isAgain(i)) diamond(context, x, middle, 5.5, ink.ink);
        if (isLost(i)) cross(context, x, middle, 4);
      }
      context.strokeStyle = ink.purple; context.lineWidth = 1.4; context.setLineDash([3, 2]);
      context.beginPath();
      for (let at = begin; at < end; at++) for (const [left, right] of sacks.get(focus.heard[at]) ?? []) { const x = own.place(focus.hears[at]); context.moveTo(x, y(left)); context.lineTo(x, y(right)); }
      context.stroke(); context.setLineDash([]);
      curve(context, own, focus.hears, focus.heardAck ??= Float64Array.from(focus.heard, (i) => ack[i]), y, ink.muted);
      for (let at = begin; at < end; at++) if (own.hits.length < 20000) own.hits.push([own.place(focus.hears[at]), y(ack[focus.heard[at]]), focus.heard[at]]);
      ring(own, context);
    });
  });
  const ring = (own, context) => {
    const hit = own.hits.find(([, , i]) => i === state.packet);
    if (!hit) return;
    context.strokeStyle = ink.accent; context.lineWidth = 2; context.beginPath(); context.arc(hit[0], hit[1], 9, 0, 7); context.stroke();
  };

  pane("window", 150, (own, context, width) => {
    if (!shown(own, isTcp())) return;
    const known = focus.known, y = axes(own, context, width, [0, focus.most * 1.08], `segments: ${known ? "━ window  ┅ ssthresh  " : ""}· not acknowledged`);
    inside(context, own, () => {
      if (known) {
        const nanoseconds = known.ns, [low, high] = own.limits(), labels = [];
        for (let at = Math.max(0, after(nanoseconds, low) - 1); at < after(nanoseconds, high); at++) {
          const name = known.state[at];
          if (name === "open" || !name) continue;
          const x = own.place(nanoseconds[at]), wide = own.place(nanoseconds[at + 1] ?? STOP) - x;
          context.fillStyle = name === "disorder" ? ink.wash : name === "cwr" ? ink["doubt-wash"] : ink["bad-wash"];
          context.fillRect(Math.floor(x), 14, Math.max(1, Math.ceil(x + wide) - Math.floor(x)), own.height - 31);
          if (known.state[at - 1] !== name && name !== "disorder") labels.push([name, Math.max(x, own.low) + 2]);
        }
        context.fillStyle = ink.ink;
        let free = 0;
        for (const [name, x] of labels) if (x >= free) { context.fillText(name, x, 25); free = x + context.measureText(name).width + 4; }
        curve(context, own, nanoseconds, known.ssthresh, y, ink.muted, [6, 4]);
        curve(context, own, nanoseconds, known.cwnd, y, inkOf(focus.flow));
      }
      curve(context, own, focus.time, focus.flight, y, ink.ink, [1, 2]);
    });
  });

  pane("queue", 130, (own, context, width) => {
    const queue = focus.queue;
    if (!shown(own, queue)) return;
    const y = axes(own, context, width, [0, queue.scale], `queue of ${queue.node} (${queue.interface}), bytes: ╌ limit  ${bound(queue, state.t).thresholds.map(([label]) => `┈ ${label}  `).join("")}✕ dropped`);
    inside(context, own, () => {
      curve(context, own, queue.time, queue.held, y, ink.blue);
      queue.bounds.forEach(({ since, bytes, thresholds }, number) => {
        const from = number ? own.place(since) : own.low, to = number + 1 < queue.bounds.length ? own.place(queue.bounds[number + 1].since) : own.high;
        for (const [dash, at] of [[[7, 3], bytes], ...thresholds.map(([, value]) => [[2, 3], value])]) { context.strokeStyle = ink.ink; context.lineWidth = 1; context.setLineDash(dash); context.beginPath(); context.moveTo(from, y(at)); context.lineTo(to, y(at)); context.stroke(); }
      });
      context.setLineDash([]);
      const [low, high] = own.limits();
      own.hits = [];
      for (const i of queue.drops) if (until[i] >= low && until[i] <= high) { const x = own.place(until[i]); cross(context, x, 22, 4); own.hits.push([x, 22, i]); }
    });
  });

  pane("ladder", 520, (own, context, width) => {
    own.low = 26; own.high = own.height - 8; own.hits = [];
    const [low, high] = own.limits(), nodes = paths.find((each) => each.flow === focus.flow && each.data)?.nodes ?? [], left = 96, right = width - 60, ends = nodes.length > 1;
    const across = (each, at) => { // of a place on a path
      const part = each.places.length > 1 ? Math.ceil(at / 2) / (each.places.length / 2) : 0;
      return left + (each.data ? part : 1 - part) * (right - left);
    };
    context.textAlign = "center"; context.fillStyle = ink.ink; context.strokeStyle = ink.rule; context.lineWidth = 2;
    (ends ? nodes : ["this end", "the other"]).forEach((name, at, { length }) => {
      const x = left + at / Math.max(1, length - 1) * (right - left);
      context.fillText(name, clamp(x, 30, width - 30), 14, 90); context.beginPath(); context.moveTo(x, own.low); context.lineTo(x, own.high); context.stroke();
    });
    context.save(); context.beginPath(); context.rect(0, 20, width, own.height - 20); context.clip();
    const long = 3 * (high - low), from = after(focus.firsts, low - long), to = after(focus.firsts, high);
    const stretch = (x0, t0, x1, t1) => { // what is in sight of it: dashes far outside take as long
      const from_ = clamp(t0, low, high), to_ = clamp(t1, low, high), at = (t) => x0 + (t1 > t0 ? (x1 - x0) * (t - t0) / (t1 - t0) : 0);
      if (from_ === to_ && (t1 > t0 || from_ !== t0)) return;
      context.moveTo(at(from_), own.place(from_)); context.lineTo(t1 > t0 ? at(to_) : x1, own.place(to_));
    };
    let sentAt = -99, heardAt = -99;
    for (let at = from; at < to; at++) {
      const i = focus.one[at], each = paths[path[i]];
      if (until[i] < low) continue;
      context.strokeStyle = each.data ? inkOf(focus.flow) : ink.muted; context.lineWidth = isAgain(i) ? 3 : each.data ? 1.4 : 1;
      context.setLineDash(each.data ? [] : [4, 2]); context.beginPath();
      let x = 0, y = 0, was = NaN;
      each.captured.forEach((place_, k) => {
        if (!(times[k][i] === times[k][i])) return;
        const there = across(each, place_), time = times[k][i];
        if (was === was) stretch(x, was, there, time);
        x = there; was = time; y = own.place(time);
        own.hits.push([x, y, i]);
      });
      if (!ends) { y = own.place(first[i]); context.moveTo(each.data ? left : right, y); x = each.data ? right : left; context.lineTo(x, y); own.hits.push([x, y, i], [(left + right) / 2, y, i]); }
      context.stroke(); context.setLineDash([]);
      if (isLost(i)) { const leg = each.legs[reached(i)]; if (!leg?.queue) x += (each.data ? 1 : -1) * 12; y = own.place(until[i]); cross(context, x, y, 5); } else if (y > 0 && y < own.height) arrow(context, x, y, each.data ? 1 : -1);
      const start = own.place(first[i]), words = !isTcp() ? `${payload[i]} bytes` : each.data || !ack[i] ? payload[i] ? `${seq[i]}` : names(i) : `${ack[i]}${sacks.has(i) ? " SACK" : ""}`;
      if (start < 0 || start > own.height) continue;
      context.font = "10px system-ui, sans-serif"; context.fillStyle = each.data ? ink.ink : ink.muted;
      if (each.data && start - sentAt > 10) { context.textAlign = "right"; context.fillText(words, left - 5, start + 3, left - 8); sentAt = start; }
      if (!each.data && start - heardAt > 10) { context.textAlign = "left"; context.fillText(words, right + 4, start + 3, 56); heardAt = start; }
    }
    ring(own, context);
    context.restore();
  }, { down: true });
  const arrow = (context, x, y, way) => { context.fillStyle = context.strokeStyle; context.beginPath(); context.moveTo(x, y); context.lineTo(x - way * 6, y - 3.5); context.lineTo(x - way * 6, y + 2); context.fill(); };

  // ---- the network, and the queues as stacks
  const stage = $("network"), svg = document.querySelector("svg.network");
  const network = { canvas: stage, hits: [] };
  const strips = queues.map((queue) => {
    const canvas = element("canvas", "", { className: "strip" }), words = element("p", "", { className: "hint" });
    canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", `The packets that wait at ${queue.node}, in the order of their arrival`);
    $("queues")?.append(words, canvas);
    const own = { queue, canvas, words, hits: [] };
    canvas.addEventListener("click", (event) => { const i = nearest(own, event); focus.queue = queue; if (i >= 0) choose(i); else refresh(); });
    canvas.addEventListener("pointermove", (event) => hover(nearest(own, event)));
    return own;
  });
  if (stage) {
    stage.addEventListener("click", (event) => { const i = nearest(network, event); if (i >= 0) choose(i); });
    stage.addEventListener("pointermove", (event) => hover(nearest(network, event)));
  }
  const sized = { width: 0, scale: 1, left: 0, top: 0 };
  const measure = () => {
    if (!svg) return;
    const box = svg.viewBox.baseVal;
    sized.width = svg.clientWidth; sized.scale = svg.clientWidth / box.width; sized.left = box.x; sized.top = box.y; sized.height = box.height * sized.scale;
    stage.style.width = `${sized.width}px`; stage.style.height = `${sized.height}px`;
    for (const each of strips) each.width = Math.max(1, each.canvas.parentElement.clientWidth); // 0 in a window that closes
  };
  // one packet: data a bar along its way, an ACK a dot; a diamond was sent again; a cap is a mark or its echo; a ring has SACK blocks
  const DATA_LONG = 9, DATA_WIDE = 5;
  const isData = (i) => (payload[i] > 0 || flows[flowOf(i)].protocol !== "tcp" ? 1 : 0);
  const special = Uint8Array.from(first, (_, i) => isAgain(i) || ce[i] > 0 || (flags[i] & (SYN | FIN | RST | ECE)) > 0 || sacks.has(i));
  const packet = (context, i, x, y, s, across) => {
    const colour = inkOf(flowOf(i)), data_ = isData(i);
    if (isAgain(i)) diamond(context, x, y, 6.5 * s, colour);
    else {
      context.fillStyle = colour;
      const long = data_ ? DATA_LONG * s : 4 * s, wide = data_ ? DATA_WIDE * s : 4 * s;
      if (across) context.fillRect(x - wide / 2, y - long / 2, wide, long); else context.fillRect(x - long / 2, y - wide / 2, long, wide);
      if (flags[i] & (SYN | FIN | RST)) { context.fillStyle = ink.card; context.fillRect(x - 1.2 * s, y - 1.2 * s, 2.4 * s, 2.4 * s); }
    }
    if (ce[i] || (flags[i] & ECE && !(flags[i] & SYN))) { context.fillStyle = ink.ink; context.beginPath(); context.moveTo(x - 4 * s, y - 4 * s); context.lineTo(x + 4 * s, y - 4 * s); context.lineTo(x, y - 9 * s); context.fill(); }
    if (sacks.has(i)) { context.strokeStyle = ink.ink; context.lineWidth = 1; context.strokeRect(x - 4 * s, y - 4 * s, 8 * s, 8 * s); }
    if (i === state.packet) { context.strokeStyle = ink.accent; context.lineWidth = 2; context.beginPath(); context.arc(x, y, 10 * s, 0, 7); context.stroke(); }
  };
  const drawNetwork = () => {
    if (!svg) return;
    const { context, block, show } = board(stage, sized.width, sized.height), t = state.t, k = sized.scale, s = clamp(k, 0.75, 1.15);
    network.hits.length = 0;
    const rows = active(t), lanes = new Map(), waits = new Map(), odd = [], inks = flows.map((_, flow) => pixel(inkOf(flow)));
    for (const queue of queues) waits.set(queue.interface, waiting(queue, t));
    const hit = (x, y, i) => { if (!state.playing) network.hits.push([x, y, i]); };
    for (const i of rows) {
      const at = position(i, t);
      if (!at || (at.queue && !at.dropped)) continue;
      const x = (at.x - sized.left) * k, y = (at.y - sized.top) * k, across = Math.abs(at.uy ?? 0) > 0.7;
      if (special[i] || at.dropped || i === state.packet) { odd.push([i, x, y, across, at]); continue; }
      const long = (isData(i) ? DATA_LONG : 4) * s, slim = (isData(i) ? DATA_WIDE : 4) * s;
      if (across) block(x - slim / 2, y - long / 2, slim, long, inks[flowOf(i)]); else block(x - long / 2, y - slim / 2, long, slim, inks[flowOf(i)]);
      hit(x, y, i);
    }
    for (const each of paths) for (const leg of each.legs) if (leg.train && !lanes.has(leg.queue)) lanes.set(leg.queue, leg.train);
    for (const [name, train] of lanes) { // those that wait stand before the wire
      const inside_ = waits.get(name) ?? [], pitch = Math.min(7, 0.62 * train.length / Math.max(1, inside_.length));
      inside_.forEach((i, at) => {
        const along = (inside_.length - at) * pitch, x = (train.x0 + train.ux * along - sized.left) * k, y = (train.y0 + train.uy * along - sized.top) * k;
        const wide = Math.max(1, (pitch - 1) * k), tall = isData(i) ? 8 * s : 5 * s;
        block(x - wide / 2, y - tall / 2, wide, tall, inks[flowOf(i)]);
        if (i === state.packet || (pitch > 3 && isAgain(i))) odd.push([i, x, y, true, {}]);
        hit(x, y, i);
      });
    }
    show();
    for (const [i, x, y, across, { dropped, falling }] of odd) {
      const low = dropped ? y + (still.matches ? 14 : falling * 46) * k : y;
      if (dropped && !still.matches) context.globalAlpha = 1 - 0.6 * falling;
      packet(context, i, x, low, s, across);
      if (dropped) cross(context, x, low, 5 * s);
      context.globalAlpha = 1;
      hit(x, low, i);
    }
    for (const each of strips) drawStrip(each, waits.get(each.queue.interface));
  };
  const drawStrip = (own, rows) => { // arrivals at the right, the next to leave at the left
    const { queue } = own, height = 34, { context, block, show } = board(own.canvas, own.width, height), k = (own.width - 24) / queue.scale, [count, held] = occupied(queue, state.t);
    const odd = [], inks = flows.map((_, flow) => pixel(inkOf(flow))), dark = pixel(ink.ink);
    let x = 4;
    own.hits.length = 0;
    for (const i of rows) {
      const wide = size[i] * k;
      block(x, 8, wide - (wide > 3 ? 1 : 0), 20, inks[flowOf(i)]);
      if (wide > 2 && ce[i]) block(x, 4, wide - 1, 3, dark);
      if ((wide > 2 && isAgain(i)) || i === state.packet) odd.push([i, x, wide]);
      if (!state.playing) own.hits.push([x + wide / 2, 18, i]);
      x += wide;
    }
    show();
    for (const [i, left, wide] of odd) {
      if (isAgain(i)) diamond(context, left + wide / 2, 18, clamp(wide / 2, 2, 5), ink.card);
      if (i === state.packet) { context.strokeStyle = ink.accent; context.lineWidth = 2; context.strokeRect(left, 6, wide, 24); }
    }
    context.strokeStyle = ink.rule; context.lineWidth = 1; context.strokeRect(3.5, 5.5, own.width - 8, 25);
    const { limit, bytes, thresholds } = bound(queue, state.t);
    for (const [at, dash, wide] of [[bytes, [], 3], ...thresholds.map(([, value]) => [value, [3, 2], 1.5])]) if (at <= queue.scale) { context.strokeStyle = ink.ink; context.lineWidth = wide; context.setLineDash(dash); context.beginPath(); context.moveTo(4 + at * k, 2); context.lineTo(4 + at * k, height - 1); context.stroke(); context.setLineDash([]); }
    for (let at = after(queue.dropTimes ??= Float64Array.from(queue.drops, (i) => until[i]), state.t - fall()); at < queue.drops.length && queue.dropTimes[at] <= state.t; at++) cross(context, Math.min(x + 8, own.width - 12), 10 + clamp((state.t - queue.dropTimes[at]) / fall(), 0, 1) * 20, 5);
    const text = `${queue.node} → ${queue.interface}: ${queue.label}: ${packetsOf(count)}, ${held} bytes wait or are being sent; limit ${limit} ${queue.unit}`;
    if (!state.playing || state.frames % 6 === 0) own.words.textContent = text;
  };

  // ---- the instant
  const clock = (t) => `${second(t).toFixed(9)} s`;
  const sight = () => { // the stretch of the diagrams, and the ladder's, turn like pages
    const close = () => { // of the ladder: some sixty packets, and no more than two round trips
      const at = after(focus.firsts, state.t), { firsts } = focus;
      const few = (firsts[Math.min(firsts.length - 1, at + 40)] ?? STOP) - (firsts[Math.max(0, at - 20)] ?? START);
      return clamp(few, 1e3, 2 * rtt());
    };
    const turn = (now, span) => {
      const [low, high] = now ?? [0, 0];
      if (high - low === span && state.t >= low + span * 0.05 && state.t <= high - span * 0.1) return now;
      const from = clamp(state.t - span * 0.35, START - span * 0.05, Math.max(START - span * 0.05, STOP - span * 0.9));
      return [from, from + span];
    };
    const { sight: a, near: b } = state;
    state.sight = turn(a, state.span);
    state.near = b && state.t >= b[0] && state.t <= b[1] - 0.1 * (b[1] - b[0]) ? b : turn(null, close());
    return panes.filter((own) => (own.down ? state.near !== b : state.sight !== a));
  };
  const paint = (some) => {
    for (const own of some) {
      own.width = own.canvas.parentElement.clientWidth;
      const context = fit(own.canvas, own.width, own.height);
      own.canvas.style.height = `${own.height}px`;
      own.draw(own, context, own.width);
    }
  };
  const cursors = () => {
    for (const own of panes) {
      const at = own.place(state.t);
      own.line.style.transform = own.down ? `translateY(${at}px)` : `translateX(${at}px)`;
    }
    $("clock").value = clock(state.t);
  };
  const refresh = () => { sight(); paint(panes); cursors(); drawNetwork(); details(); remember(); share(); };
  const tick = () => { state.frames = (state.frames ?? 0) + 1; paint(sight()); cursors(); drawNetwork(); share(); };
  // beside another run: the page that holds both (watch_both.js) hands on what is done in one of them
  let told = false;
  const share = () => { if (parent !== window && !told) parent.postMessage({ t: state.t, speed: state.speed, span: state.span, playing: state.playing, flow: flows[state.flow]?.name }, "*"); };
  addEventListener("message", ({ source, data: other }) => {
    if (parent === window || source !== parent) return;
    told = true;
    if (state.playing) play(false);
    if (other.speed !== state.speed) setSpeed(other.speed);
    if (other.span !== state.span) setSpan(other.span);
    const flow = flows.findIndex(({ name }) => name === other.flow);
    if (flow >= 0 && flow !== state.flow) setFlow(flow);
    state.packet = -1;
    state.t = clamp(Number(other.t) || 0, START, STOP);
    if (other.playing) tick(); else refresh();
    told = false;
  });
  const go = (t, words = "") => {
    state.t = clamp(t, START, STOP);
    if (t < START || t > STOP) words = `${clock(t)} is outside of this page, which goes from ${clock(START)} to ${clock(STOP)}.`;
    refresh();
    say(words || `${clock(state.t)}. ${summary()}`);
  };
  const say = (words) => { if (!state.playing) $("say").textContent = words; };
  const choose = (i, t = first[i]) => { state.packet = i; if (flowOf(i) !== state.flow) setFlow(flowOf(i)); go(t, describe(i).map(([name, words]) => (name ? `${name}: ${words}` : words)).slice(0, 7).join(". ")); };
  const setFlow = (flow) => { state.flow = flow; $("flow").value = flow; look(flow); state.near = null; jumps(); };

  // ---- words
  const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
  const MARKS = ["retransmission", "fast retransmission", "spurious retransmission", "out of order", "duplicate ACK", "previous segment not captured", "ACKed segment not captured", "window update", "window full", "zero window", "zero-window probe", "ACK of a zero-window probe", "keep-alive", "ACK of a keep-alive", "reused ports"];
  const bits = (value, of) => of.filter((_, bit) => (value >> bit) & 1).join(", ");
  const names = (i) => bits(flags[i], FLAGS);
  const packetsOf = (count) => `${count} ${count === 1 ? "packet" : "packets"}`;
  const ms = (ns) => `${+(ns / 1e6).toPrecision(6)} ms`;
  const way = (i) => { // each capture with the time since the one before
    const each = paths[path[i]];
    let was = NaN;
    return each.captured.flatMap((at, k) => {
      const time = times[k][i];
      if (!(time === time)) return [];
      const words = was === was ? `+${ms(time - was)} ${each.legs[k - 1]?.queue ? "in the queue, leaves" : "at"} ${each.places[at][0]}` : each.places[at][0];
      was = time;
      return [words];
    }).join(" → ");
  };
  const end = (i) => {
    if (fate[i] === 0) return paths[path[i]].captured.length < 2 ? "not known: captured at one place" : "passed the last capture";
    if (fate[i] === 2) return "still under way when the captures end";
    const each = paths[path[i]], k = reached(i), leg = each.legs[k], sure = fate[i] === 3 ? " (or another that looks the same)" : "";
    const queue = queues.find((one) => one.interface === leg?.queue);
    if (!queue) return `lost between ${each.places[each.captured[k]][0]} and ${each.places[each.captured[k + 1] ?? each.captured[k]][0]}${sure}`;
    const [count, held] = occupied(queue, until[i] - 1);
    return `dropped by ${queue.node} (${queue.interface})${queue.drops_old ? " when it should have left" : ""}, where ${packetsOf(count)}, ${held} bytes waited${sure}`;
  };
  const captureOf = (i) => { const each = paths[path[i]]; return each.places[each.captured.find((_, k) => times[k][i] === times[k][i])][1]; };
  const describe = (i) => {
    const each = paths[path[i]], tcp = flows[each.flow].protocol === "tcp";
    const found = [["", `${each.data ? "Data" : "ACKs"} of ${flows[each.flow].name}, No. ${frame[i]} of ${captureOf(i) || "the capture"}`], ["sent", clock(first[i])]];
    if (tcp) found.push(["sequence", `${seq[i]}:${seq[i] + payload[i]} (${payload[i]} bytes)`], ["acknowledges", `${ack[i]}${duplicate[i] ? `, duplicate ${duplicate[i]}` : ""}`], ["flags, window", `${names(i)}; ${window_[i]}`]);
    else found.push(["bytes", `${payload[i]}`]);
    if (sacks.has(i)) found.push(["SACK", sacks.get(i).map(([left, right]) => `${left}:${right}`).join(", ")]);
    if (ce[i]) found.push(["mark", ce[i] > 1 ? `CE from ${each.places[each.captured[ce[i] - 1]][0]} on` : "CE"]);
    if (marks[i] & ~16) found.push(["Wireshark", bits(marks[i], MARKS)]);
    found.push(["way", way(i)], ["fate", end(i)]);
    if (why.has(i)) found.push(["why", why.get(i)]);
    return found;
  };
  const knew = (t) => { // by the last sample
    const at = sample(t), known = focus.known;
    if (!(at >= 0)) return [];
    const value = (name, unit = "") => (known[name]?.[at] >= 0 ? `${+known[name][at].toPrecision(5)}${unit}` : "–");
    return [["congestion state", known.state[at] || "–"], ["window, ssthresh", `${value("cwnd")}, ${value("ssthresh")} segments`], ["RTT, least", `${value("srtt_ms")}, ${value("min_rtt_ms", " ms")}`], ["RTO, backoff", `${value("rto_ms", " ms")}, ${value("backoff")}`], ["not acknowledged, lost", `${value("unacked")}, ${value("lost")}`], ["sampled", `${((t / 1e9 - known.time[at]) * 1e3).toFixed(1)} ms before`]];
  };
  const latest = (t) => focus.changes.filter((each) => each.time_s * 1e9 <= t).at(-1);
  const summary = () => {
    const at = sample(state.t), flight = focus.flight[after(focus.time, state.t) - 1], known = focus.known;
    const queue = focus.queue && occupied(focus.queue, state.t);
    return [known && at >= 0 ? `window ${known.cwnd[at]}, state ${known.state[at]}` : "", isTcp() && flight >= 0 ? `${Math.round(flight)} segments not acknowledged` : "", queue ? `${packetsOf(queue[0])} in the queue of ${focus.queue.node}` : ""].filter(Boolean).join("; ");
  };
  const rowsOf = (pairs) => { const list = element("dl", "", { className: "facts" }); for (const [name, words] of pairs) { const row = element("div"); row.append(element("dt", name), element("dd", words)); list.append(row); } return list; };
  let hovered = -1;
  const hover = (i) => { if (i !== hovered) { hovered = i; details(); } };
  const details = () => {
    const i = hovered >= 0 ? hovered : state.packet, box = $("packet"), t = i >= 0 ? first[i] : state.t;
    const change = latest(t), flow = flows[focus.flow];
    box.replaceChildren();
    if (i >= 0) {
      const [[, title], ...pairs] = describe(i), reason = pairs.at(-1)[0] === "why" ? pairs.pop()[1] : "";
      box.append(element("h2", title));
      if (reason) box.append(element("p", `Why? ${reason}`, { className: "why" }));
      box.append(rowsOf(pairs));
    } else box.append(element("h2", `At ${clock(t)}`), element("p", summary()));
    if (i < 0 || flowOf(i) === focus.flow) {
      const facts = knew(t);
      if (facts.length) box.append(element("h3", `What TCP knew (${flow.name}${flow.control ? `, ${flow.control}` : ""})`), rowsOf(facts));
      if (change) box.append(element("p", `${change.time_s.toFixed(3)} s: ${change.sentence}`, { className: "why" }));
    }
  };

  // ---- steps and jumps
  let events = null;
  const eventTimes = () => {
    if (events) return events;
    const all = [];
    for (const each of times) for (let i = 0; i < N; i++) if (each[i] === each[i]) all.push(each[i]);
    for (let i = 0; i < N; i++) if (isLost(i)) all.push(until[i]);
    return (events = Float64Array.from(all).sort());
  };
  const neighbour = (xs, t, back) => {
    const at = back ? after(xs, t - 0.5) - 1 : after(xs, t + 0.5);
    return xs[at];
  };
  const steps = {
    event: (back) => { const t = neighbour(eventTimes(), state.t, back); if (t !== undefined) go(t); else say("There is no other event."); },
    packet: (back) => {
      const own = focus.rows, now = own.indexOf(state.packet);
      const at = now >= 0 ? now + (back ? -1 : 1) : after(own.map((i) => first[i]), state.t) - (back ? 1 : 0);
      if (own[at] === undefined) say("There is no other packet."); else choose(own[at]);
    },
    rtt: (back) => go(clamp(state.t + (back ? -1 : 1) * rtt(), START, STOP)),
    loss: (back) => { const t = neighbour(focus.losses, state.t, back); if (t === undefined) say(`${flows[focus.flow].name} loses nothing ${back ? "before" : "after"} this.`); else choose(focus.trouble.find(([time]) => time === t)[1], t); },
  };
  for (const button of document.querySelectorAll("[data-step]")) button.addEventListener("click", () => steps[button.dataset.step]($("back").checked));
  const KINDS = [["slow-start-end", "end of slow start"], ["recovery", "first recovery"], ["timeout", "first timeout"], ["cwr", "first mark"]];
  const jumps = () => {
    const box = $("jumps");
    box.replaceChildren("go to ");
    for (const [kind, label] of KINDS) {
      const change = focus.changes.find((each) => each.kind === kind);
      const button = element("button", label, { type: "button", disabled: !change });
      if (change) button.addEventListener("click", () => { state.packet = -1; go(change.time_s * 1e9, `${change.time_s.toFixed(3)} s: ${change.sentence}`); });
      box.append(button);
    }
  };
  const SPEEDS = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const setSpeed = (speed) => {
    state.speed = SPEEDS.reduce((best, each) => (Math.abs(Math.log(each / speed)) < Math.abs(Math.log(best / speed)) ? each : best));
    $("speed").value = state.speed;
  };
  for (const each of SPEEDS) $("speed").append(new Option(each === 1 ? "1" : `1/${Math.round(1 / each).toLocaleString("en")}`, each));
  flows.forEach((flow, at) => $("flow").append(new Option(flow.name, at)));
  const SPANS = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 500].filter((each) => each * 1e9 < (STOP - START) * 2.5);
  for (const each of SPANS) $("span").append(new Option(each < 1 ? `${each * 1e3} ms` : `${each} s`, each * 1e9));
  const setSpan = (span) => { state.span = SPANS.map((each) => each * 1e9).reduce((best, each) => (Math.abs(Math.log(each / span)) < Math.abs(Math.log(best / span)) ? each : best)); $("span").value = state.span; state.sight = null; };
  $("speed").addEventListener("change", (event) => { setSpeed(Number(event.target.value)); refresh(); });
  $("span").addEventListener("change", (event) => { setSpan(Number(event.target.value)); refresh(); });
  $("flow").addEventListener("change", (event) => { state.packet = -1; setFlow(Number(event.target.value)); refresh(); say(`Flow ${flows[state.flow].name}. ${summary()}`); });

  let then = 0;
  const run = (now) => {
    if (!state.playing) return;
    if (!still.matches || now - then > 250) { // with reduced motion, four pictures a second
      state.t += Math.min(now - then, still.matches ? 260 : 100) * 1e6 * state.speed;
      then = now;
      if (state.t >= STOP) { state.t = STOP; play(false); return; }
      tick();
    }
    requestAnimationFrame(run);
  };
  const play = (on) => {
    if (on && state.t >= STOP) state.t = START;
    state.playing = on;
    $("play").setAttribute("aria-pressed", on);
    $("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    if (on) { state.packet = -1; then = performance.now(); requestAnimationFrame(run); } else { refresh(); say(`Paused at ${clock(state.t)}. ${summary()}`); }
  };
  $("play").addEventListener("click", () => play(!state.playing));
  const KEYS = {
    " ": () => play(!state.playing), ArrowRight: () => steps.event(false), ArrowLeft: () => steps.event(true), ".": () => steps.packet(false), ",": () => steps.packet(true),
    "]": () => steps.rtt(false), "[": () => steps.rtt(true), l: () => steps.loss(false), k: () => steps.loss(true), "+": () => { setSpan(state.span / 2.2); refresh(); }, "-": () => { setSpan(state.span * 2.2); refresh(); },
    f: () => { setSpeed(state.speed * 2.2); refresh(); }, s: () => { setSpeed(state.speed / 2.2); refresh(); }, Home: () => go(START), End: () => go(STOP), Escape: () => { state.packet = -1; refresh(); },
  };
  $("watch").addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input") || (event.key === " " && event.target.closest("button, summary"))) return;
    event.preventDefault();
    if (state.playing && event.key !== " ") { state.playing = false; play(false); }
    act();
  });

  // ---- the address: #t=3.217&speed=0.001&flow=tcp&packet=812&span=0.5
  const remember = () => {
    const found = new URLSearchParams({ t: second(state.t).toFixed(9), speed: state.speed, flow: flows[state.flow]?.name ?? "", span: second(state.span) });
    if (state.packet >= 0) found.set("packet", state.packet);
    try { history.replaceState(null, "", `#${found}`); } catch { /* some viewers do not let a page have an address */ }
  };
  const recall = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const flow = flows.findIndex((each) => each.name === wanted.get("flow"));
    setFlow(flow >= 0 ? flow : Math.max(0, flows.findIndex((each) => each.name === data.chosen)));
    setSpeed(Number(wanted.get("speed")) > 0 ? Number(wanted.get("speed")) : 0.01);
    setSpan(Number(wanted.get("span")) > 0 ? Number(wanted.get("span")) * 1e9 : Math.min((STOP - START), 12 * rtt()));
    const i = Number(wanted.get("packet") ?? (wanted.has("t") ? -1 : data.asked));
    state.packet = Number.isInteger(i) && i >= 0 && i < N ? i : -1;
    const t = wanted.has("t") ? Number(wanted.get("t")) * 1e9 : state.packet >= 0 ? first[state.packet] : focus.losses[0] ?? START;
    go(Number.isFinite(t) ? t : START);
  };
  addEventListener("hashchange", recall);

  const legend = $("legend");
  if (legend) {
    const canvas = element("canvas"), words = ["data", "ACK", "sent again", "CE mark, or its echo", "with SACK blocks", "dropped"];
    legend.append(canvas);
    state.legend = () => {
      const width = legend.clientWidth, columns = width < 560 ? 2 : width < 720 ? 3 : words.length, height = Math.ceil(words.length / columns) * 20, context = fit(canvas, width, height);
      canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
      let x = 12;
      canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", `Shapes: a bar is data, a dot an ACK, a diamond was sent again, a cap is a CE mark or its echo, a frame has SACK blocks, a cross was dropped`);
      words.forEach((text, at) => {
        const y = 11 + Math.floor(at / columns) * 20;
        if (at % columns === 0) x = 12;
        context.fillStyle = inkOf(state.flow);
        if (at === 2) diamond(context, x, y, 6.5, inkOf(state.flow)); else if (at === 1 || at === 4) context.fillRect(x - 2, y - 2, 4, 4); else context.fillRect(x - 4.5, y - 2.5, 9, 5);
        if (at === 3) { context.fillStyle = ink.ink; context.beginPath(); context.moveTo(x - 4, y - 4); context.lineTo(x + 4, y - 4); context.lineTo(x, y - 9); context.fill(); }
        if (at === 4) { context.strokeStyle = ink.ink; context.strokeRect(x - 4, y - 4, 8, 8); }
        if (at === 5) cross(context, x, y, 5);
        context.fillStyle = ink.muted; context.font = "12px system-ui, sans-serif"; context.textAlign = "left"; context.fillText(text, x + 12, y + 4);
        x += columns < words.length ? width / columns : context.measureText(text).width + 44;
      });
    };
  }
  const lay = () => { colours(); measure(); state.legend?.(); refresh(); };
  $("watch").hidden = false;
  colours();
  measure();
  recall();
  lay();
  addEventListener("resize", lay);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", lay);
  return { go, state, position, waiting, active, queues, play, N, first, until, captureOf, number: (i) => frame[i], lost: isLost };
})();
watching.catch((error) => {
  const box = document.getElementById("failed");
  box.textContent = typeof DecompressionStream === "undefined" ? "This page needs a browser of 2023 or later: it cannot unpack the packets." : `The page could not be drawn: ${error.message}`;
  box.hidden = false;
  throw error;
});
