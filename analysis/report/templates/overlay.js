// Two trials on one time axis, or two settings over their seeds, with the differences in metrics.
const overlay = (() => {
  const HEIGHT = 140, AXIS = 36; // px
  const GRID = 400; // times at which seeds are averaged
  const PANELS = [ // what the series are called, the axis, how they are drawn
    ["throughput", "throughput\n(Mbit/s)", "line"], ["window", "window\n(segments)", "steps"], ["rtt", "smoothed RTT\n(ms)", "steps"],
    ["delay", "one-way delay\n(ms)", "line"], ["packets", "queue\n(packets)", "steps"], ["kilobytes", "queue\n(kB)", "steps"],
  ];
  const LOOKS = { a: { colour: "blue", dash: [] }, b: { colour: "vermillion", dash: [5, 2] } };
  const AXIS_LOOK = { scale: "linear", grid: true, line: true, marks: true, shown: true, digits: 4 };
  const { make } = plotting;

  // ---- statistics: analysis/statistics/intervals.py, on Student's quantiles from there
  const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
  const deviation = (values) => {
    const middle = mean(values);
    return Math.sqrt(values.reduce((sum, each) => sum + (each - middle) ** 2, 0) / (values.length - 1));
  };
  const quantile = (quantiles, freedom) => {
    const place = (quantiles.length - 1) / freedom, below = Math.min(Math.floor(place), quantiles.length - 2);
    return quantiles[below] + (place - below) * (quantiles[below + 1] - quantiles[below]);
  };
  const around = (middle, half) => ({ difference: middle, low: middle - half, high: middle + half });
  const paired = (a, b, quantiles) => { // values by seed; B less A
    const found = [...a.keys()].filter((seed) => b.has(seed)).map((seed) => b.get(seed) - a.get(seed));
    const n = found.length, words = `${n} seed${n === 1 ? "" : "s"}`;
    if (n < 2) return { difference: n ? found[0] : NaN, n: words };
    return { ...around(mean(found), (quantile(quantiles, n - 1) * deviation(found)) / Math.sqrt(n)), n: words };
  };
  const welch = (a, b, quantiles) => {
    const [n, m] = [a.length, b.length], words = `${n} + ${m}`;
    if (!n || !m) return { difference: NaN, n: words };
    const difference = mean(b) - mean(a);
    if (n < 2 || m < 2) return { difference, n: words };
    const first = deviation(a) ** 2 / n, second = deviation(b) ** 2 / m, whole = first + second;
    if (!whole) return { ...around(difference, 0), n: words };
    const freedom = 1 / ((first / whole) ** 2 / (n - 1) + (second / whole) ** 2 / (m - 1));
    return { ...around(difference, quantile(quantiles, freedom) * Math.sqrt(whole)), n: words };
  };
  const pairs = (a, b) => { // seeds of both, if they are several or all that there are
    const shared = a.filter((seed) => b.includes(seed)).length;
    return shared > 1 || (shared === a.length && shared === b.length);
  };

  // ---- a trial's series: analysis/results/page_series.py
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const found = JSON.parse(await new Response(plain).text());
    for (const flow of Object.values(found)) for (const each of Object.values(flow)) for (const name of ["x", "y"]) each[name] = drawing.unpacked(each[name]);
    return found;
  };

  // ---- drawing
  const at = ({ x, y }, time, kind) => {
    const after = drawing.first(x, time);
    if (x[after] === time) return y[after];
    if (after === 0 || after === x.length) return NaN;
    const part = kind === "steps" ? 0 : (time - x[after - 1]) / (x[after] - x[after - 1]);
    return y[after - 1] + part * (y[after] - y[after - 1]);
  };
  const averaged = (series, [low, high], kind) => {
    const x = [], y = [];
    for (let k = 0; k <= GRID; k++) {
      const time = low + ((high - low) * k) / GRID, known = series.map((each) => at(each, time, kind)).filter((each) => !Number.isNaN(each));
      if (known.length) { x.push(time); y.push(mean(known)); }
    }
    return { x, y };
  };
  const marksOf = (side, choice, found, what, kind, label, panel, limits) => {
    const look = { panel, kind, series: choice.words, ...LOOKS[side], sorted: true };
    const own = choice.trials.map(([number, seed], i) => ({ number, seed, ...found[i][choice.flow]?.[what] })).filter((each) => each.x);
    const several = own.length > 1;
    const marks = own.map(({ number, seed, x, y }) => ({
      ...look, x, y, width: several ? 0.5 : 1.1, opacity: several ? 0.35 : 1, dash: several ? [] : look.dash, told: { trials: String(number) },
      tell: (i) => [["seed", seed], ["trial", number], ["time (s)", drawing.plain(x[i], 6)], [label.replace("\n", " "), drawing.plain(y[i])]],
    }));
    if (several) {
      const middle = averaged(own, limits, kind);
      marks.push({ ...look, ...middle, width: 1.5, tell: (i) => [["mean of", own.length], ["time (s)", drawing.plain(middle.x[i])], [label.replace("\n", " "), drawing.plain(middle.y[i])]] });
    }
    return marks;
  };
  const specOf = (choices, found) => {
    const every = (what) => ["a", "b"].flatMap((side) => found[side].map((trial) => trial[choices[side].flow]?.[what]).filter(Boolean));
    const present = PANELS.filter(([what]) => every(what).length);
    const ends = present.flatMap(([what]) => every(what).flatMap(({ x }) => [x[0], x.at(-1)]));
    const limits = [Math.min(...ends), Math.max(...ends)], marks = [];
    const panels = present.map(([what, label, kind], place) => {
      const top = Math.max(...every(what).map(({ y }) => y.reduce((high, each) => Math.max(high, each), 0)));
      for (const side of ["a", "b"]) marks.push(...marksOf(side, choices[side], found[side], what, kind, label, place, limits));
      const last = place === present.length - 1;
      return {
        row: place, column: 0, height: HEIGHT + (last ? AXIS : 0), title: "", right: "", zooms: true,
        x: { ...AXIS_LOOK, lim: [...limits], label: last ? "time (s)" : "", shown: last, digits: 9 },
        y: { ...AXIS_LOOK, lim: [0, 1.08 * top || 1], label },
      };
    });
    const legend = ["a", "b"].map((side) => ({ name: choices[side].words, ...LOOKS[side], kind: "line" }));
    return {
      name: `${choices.a.words}, and ${choices.b.words}, over time. Arrow keys go from point to point, plus and minus zoom.`,
      widths: [1], panels, marks, legend,
    };
  };

  const section = document.getElementById("compare");
  if (!section) return { paired, welch, unpack, specOf };
  const data = JSON.parse(document.getElementById("overlay-data").textContent);
  const { settings, values, metrics, quantiles } = data;
  const host = document.getElementById("overlay-plot");
  section.querySelector(".unscripted").hidden = true;
  section.querySelector(".scripted").hidden = false;

  // ---- from a file beside the page or from within it
  const waiting = new Map(), kept = new Map();
  globalThis.testbedSeries = (number, text) => waiting.get(number)?.(text);
  const packed = (number) => {
    const within = document.getElementById(`series-${number}`);
    if (within) return Promise.resolve(within.textContent);
    return new Promise((done, failed) => {
      waiting.set(number, done);
      const script = make("script", { src: `${encodeURIComponent(data.folder)}/t${number}.js` });
      script.addEventListener("error", () => failed(new Error(`${data.folder}/t${number}.js is not beside this page`)));
      script.addEventListener("load", () => script.remove());
      document.head.append(script);
    });
  };
  const load = (number) => {
    if (!kept.has(number)) {
      kept.set(number, packed(number).then(unpack));
    }
    return kept.get(number);
  };

  // ---- the choice: a setting, one of its flows, and a seed (a trial) or all
  const sides = Object.fromEntries(all("fieldset", section).map((each) => [each.dataset.side, each]));
  const box = (side, name) => sides[side].querySelector(`[name=${name}]`);
  const option = (words, value) => make("option", { value }, words);
  const counted = (setting) => setting.trials.filter(([, , invalid]) => !invalid);
  const fill = (side, { place, flow, trial }) => {
    const setting = settings[place];
    box(side, "setting").value = place;
    box(side, "flow").replaceChildren(...setting.flows.map((name) => option(name, name)));
    box(side, "flow").value = setting.flows.includes(flow) ? flow : setting.flows[0];
    const seeds = setting.trials.map(([number, seed, invalid]) => option(`${seed}: trial ${number}${invalid ? " (invalid)" : ""}`, number));
    const many = counted(setting).length;
    box(side, "seed").replaceChildren(...(many > 1 ? [option(`all ${many}`, "all")] : []), ...seeds);
    if (setting.trials.some(([number]) => String(number) === String(trial))) box(side, "seed").value = trial;
  };
  const chosen = (side) => {
    const setting = settings[box(side, "setting").value], trial = box(side, "seed").value, flow = box(side, "flow").value;
    const trials = trial === "all" ? counted(setting) : setting.trials.filter(([number]) => String(number) === trial);
    const words = `${side.toUpperCase()}: ${setting.name}, ${flow}, ${trial === "all" ? `${trials.length} seeds` : `seed ${trials[0][1]}`}`;
    return { setting, trial, flow, trials, words };
  };
  const address = (side) => {
    const { setting, trial, flow } = chosen(side);
    return `${trial === "all" ? `${setting.trials[0][0]}*` : trial}:${encodeURIComponent(flow)}`;
  };
  const fromAddress = (text) => { // `12*:tcp`: the setting of trial 12; `12:tcp`: the trial
    const found = /^(\d+)(\*?):(.*)$/.exec(text);
    const place = found ? settings.findIndex((each) => each.trials.some(([number]) => number === Number(found[1]))) : -1;
    return place < 0 ? null : { place, flow: decodeURIComponent(found[3]), trial: found[2] ? "all" : found[1] };
  };

  // ---- the differences
  const byMetric = (choice, place) => new Map(choice.trials.map(([number, seed]) => [seed, values[number]?.[choice.flow]?.[place]]).filter(([, value]) => value !== null && value !== undefined));
  const table = document.getElementById("differences");
  const differences = ({ a, b }) => {
    const single = a.trials.length === 1 && b.trials.length === 1;
    const together = pairs(...[a, b].map((each) => each.trials.map(([, seed]) => seed)));
    table.caption.textContent = single
      ? "One trial each: a difference without an interval. Choose all seeds to learn what chance does."
      : `B less A, with Student's 95 % interval, ${together ? "paired by seed" : "by Welch: the seeds do not pair"}. Each line stands for itself: of twenty without a difference, one may seem to differ by chance.`;
    const rows = metrics.map(({ head, unit }, place) => {
      const [first, second] = [a, b].map((each) => byMetric(each, place));
      if (!first.size && !second.size) return null;
      const found = together ? paired(first, second, quantiles) : welch([...first.values()], [...second.values()], quantiles);
      const known = found.low !== undefined, word = (value) => (Number.isNaN(value) ? "–" : drawing.plain(value));
      const apart = known && (found.low > 0 || found.high < 0);
      const numbers = [first.size ? word(mean([...first.values()])) : "–", second.size ? word(mean([...second.values()])) : "–", word(found.difference), known ? `${word(found.low)} … ${word(found.high)}` : "–", found.n];
      const badge = make("span", { class: `badge ${apart ? "apart" : ""}` }, apart ? (found.difference > 0 ? "▲ B is more" : "▼ B is less") : "not told apart");
      return make("tr", {}, make("th", { scope: "row" }, head, ...(unit ? [" ", make("small", {}, unit)] : [])), ...numbers.map((each) => make("td", { class: "number" }, each)), make("td", {}, ...(known ? [badge] : [])));
    });
    table.tBodies[0].replaceChildren(...rows.filter(Boolean));
  };

  // ---- showing what is chosen
  const status = document.getElementById("overlaid");
  let turn = 0;
  const show = async ({ noted = true } = {}) => {
    const own = ++turn, choices = { a: chosen("a"), b: chosen("b") };
    if (noted) history.replaceState(null, "", `#compare/${address("a")}/${address("b")}`);
    differences(choices);
    status.textContent = "";
    try {
      const [a, b] = await Promise.all(["a", "b"].map((side) => Promise.all(choices[side].trials.map(([number]) => load(number)))));
      if (own !== turn) return;
      const spec = { ...specOf(choices, { a, b }), open: reportPage.open };
      const before = host.plot?.spec.panels[0];
      host.replaceChildren();
      host.plot = spec.panels.length ? new plotting.Plot(host, spec) : null;
      if (!host.plot) status.textContent = "Nothing was sampled of these.";
      else if (before?.moved) host.plot.zoom(spec.panels[0], ...before.x.lim); // the same stretch of time
    } catch (error) {
      if (own === turn) status.textContent = `${error.message}: the page was moved without its folder. The metrics below are in the page.`;
    }
  };

  const groups = new Map();
  settings.forEach((setting, place) => groups.set(setting.part, [...(groups.get(setting.part) ?? []), option(setting.name, place)]));
  for (const side of ["a", "b"]) {
    for (const [part, options] of groups) {
      const copies = options.map((each) => each.cloneNode(true));
      box(side, "setting").append(...(groups.size > 1 ? [make("optgroup", { label: part }, ...copies)] : copies));
    }
    box(side, "setting").addEventListener("change", () => { fill(side, { place: Number(box(side, "setting").value), flow: box(side, "flow").value, trial: "all" }); show(); });
    for (const name of ["flow", "seed"]) box(side, name).addEventListener("change", () => show());
  }
  const state = (side) => ({ place: Number(box(side, "setting").value), flow: box(side, "flow").value, trial: box(side, "seed").value });
  document.getElementById("swap").addEventListener("click", () => {
    const [a, b] = [state("a"), state("b")];
    fill("a", b);
    fill("b", a);
    show();
  });

  const first = settings[0], other = settings.length > 1 ? { place: 1 } : first.flows.length > 1 ? { place: 0, flow: first.flows[1] } : { place: 0, trial: first.trials.at(-1)[0] };
  fill("a", { place: 0, ...(other.trial ? { trial: first.trials[0][0] } : {}) });
  fill("b", other);
  const follow = () => {
    const [name, ...parts] = location.hash.slice(1).split("/");
    const found = name === "compare" ? parts.map(fromAddress) : [];
    if (found.length !== 2 || !found.every(Boolean)) return;
    fill("a", found[0]);
    fill("b", found[1]);
    show({ noted: false });
    section.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    observer.disconnect();
    if (!turn) show({ noted: false });
  }, { rootMargin: "400px" }).observe(section);
  follow();

  // ---- from the list of trials
  const list = document.getElementById("trial-table");
  list.addEventListener("toggle", () => {
    for (const row of all("tbody tr", list)) {
      const number = Number(row.id.slice(1));
      if (!values[number]) continue;
      for (const side of ["a", "b"]) {
        const button = make("button", { type: "button", class: "side", "aria-label": `Trial ${number} as ${side.toUpperCase()} of the comparison` }, side.toUpperCase());
        button.addEventListener("click", () => { fill(side, fromAddress(`${number}:`)); show(); section.scrollIntoView(); box(side, "seed").focus({ preventScroll: true }); });
        row.lastElementChild.append(" ", button);
      }
    }
  }, { once: true });
  return { paired, welch, quantiles };
})();
