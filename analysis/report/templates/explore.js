// A scenario whose fields are moved: each position is a run, asked for or within the page.
(() => {
  const PAUSE = 150; // ms between questions while a trial runs
  const { make } = plotting;
  const place = (id) => document.getElementById(id);
  const data = JSON.parse(place("data").textContent), known = new Map(Object.entries(data.positions ?? {}));
  const host = place("plot"), state = place("state");

  // ---- the sliders; words are chosen from a list
  const controls = data.sliders.map(({ label, values, first }, number) => {
    const isNumber = values.every((each) => each !== "" && Number.isFinite(Number(each)));
    const control = isNumber
      ? make("input", { type: "range", min: 0, max: values.length - 1, step: 1 })
      : make("select", {}, ...values.map((each, i) => make("option", { value: i }, each)));
    const value = make("output", {});
    const write = () => {
      const text = values[control.value];
      if (isNumber) { value.textContent = text; control.setAttribute("aria-valuetext", text); }
    };
    control.value = first;
    control.addEventListener("input", () => { write(); move(); });
    place("sliders").append(make("label", {}, make("span", {}, label), control, value));
    return { number, control, write };
  });
  const position = () => controls.map(({ control }) => control.value).join(".");
  const value = (number) => data.sliders[number].values[controls[number].control.value];

  // ---- what is known of a position
  const show = async (at, { series, rows, grade, why, fault }) => {
    const spoiled = fault || (grade === "invalid" && `This run is invalid: ${why}`);
    const found = series ? await overlay.unpack(series) : null;
    if (at !== position()) return;
    state.textContent = spoiled || (grade === "suspect" ? `This run is suspect: ${why}` : "");
    const choice = (name) => ({ flow: name, words: `${name}: ${rows.find(([flow]) => flow === name)?.[1]}`, trials: [["", 1]] });
    host.replaceChildren();
    if (found) {
      const [one, other] = data.flows.map((name) => found[name]);
      for (const what of ["packets", "kilobytes"]) if (String(one?.[what]?.y) === String(other?.[what]?.y)) delete other?.[what]; // one queue
      const spec = overlay.specOf({ a: choice(data.flows[0]), b: choice(data.flows[1]) }, { a: [found], b: [found] });
      host.plot = new plotting.Plot(host, spec);
    }
    const cells = (line, name) => make("tr", {}, ...line.map((each, i) => make(name, i > 1 ? { class: "number" } : {}, each)));
    place("numbers").tHead.replaceChildren(cells(data.header, "th"));
    place("numbers").tBodies[0].replaceChildren(...(rows ?? []).map((line) => cells(line, "td")));
  };
  const ask = async (at) => {
    while (at === position() && !known.has(at)) {
      try {
        const answer = await fetch(`now?at=${at}`, { cache: "no-store" });
        if (!answer.ok) throw new Error(answer.statusText);
        const told = await answer.json();
        if (!told.waiting) known.set(at, told);
      } catch {
        state.textContent = "testbed explore no longer answers: it has ended.";
        return;
      }
      if (!known.has(at)) await new Promise((done) => setTimeout(done, PAUSE));
    }
    if (at === position()) show(at, known.get(at));
  };

  const move = () => {
    const at = position();
    history.replaceState(null, "", `#${at}`);
    place("command").textContent = ["testbed run explore.json", ...data.sliders.map(({ place: field }, i) => `--set ${field}=${value(i)}`)].join(" \\\n    ");
    if (known.has(at)) show(at, known.get(at));
    else if (data.positions) show(at, { fault: "The page does not have this position." });
    else { state.textContent = "running …"; ask(at); }
  };
  const follow = () => { // the address names a position
    const at = location.hash.slice(1).split(".");
    if (at.length === controls.length && at.every((each, i) => each in data.sliders[i].values)) controls.forEach(({ control }, i) => { control.value = at[i]; });
    for (const { write } of controls) write();
    move();
  };
  addEventListener("hashchange", follow);
  follow();
})();
