// A run while it goes on: asked for every second, until it is over.
(() => {
  const PAUSE = 1000; // ms
  const { make } = plotting;
  const place = (id) => document.getElementById(id);
  const words = {
    running: "", finishing: "All trials have ended: drawing the finished page …",
    complete: "The run is complete.", interrupted: "The run was interrupted. Complete trials are kept.",
  };
  const span = (seconds) => {
    const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
    if (minutes < 1) return `${whole} s`;
    return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  };
  const row = (...cells) => make("tr", {}, ...cells.map((each) => make("td", {}, each)));
  const badge = (status) => make("span", { class: `badge ${status}` }, status);
  const write = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  let have = -1, plot = null;
  const draw = (figure) => {
    const host = document.querySelector(".plotted");
    const zoomed = plot?.spec.panels[0].moved ? plot.spec.panels[0].x.lim : null;
    host.replaceChildren();
    host.closest("figure").hidden = false;
    place("none").hidden = true;
    plot = host.plot = new plotting.Plot(host, figure);
    if (zoomed) plot.zoom(plot.spec.panels[0], ...zoomed);
  };
  const busy = () => plot && (plot.at || plot.drag || plot.frame.contains(document.activeElement)); // a hand is on it

  const show = (told) => {
    const { total, done } = told;
    const state = place("state");
    write(state, told.state);
    state.className = `badge ${{ complete: "ok", interrupted: "failed" }[told.state] ?? ""}`;
    write(place("said"), words[told.state] ?? "");
    place("progress").max = Math.max(1, total);
    place("progress").value = done;
    const counts = Object.entries(told.counts).map(([status, number]) => `${number} ${status}`).join(", ");
    write(place("counts"), `${done} of ${total} trials${counts ? ` (${counts})` : ""}`);
    const left = told.left_s === null ? "" : `, about ${span(told.left_s)} left`;
    write(place("times"), `after ${span(told.elapsed_s)}${left}`);
    document.title = `${done}/${total} ${told.experiment} · TCP testbed`;
    place("running").replaceChildren(...told.running.map((each) => row(each.name, each.where, span(each.for_s))));
    for (const each of place("running").rows) each.cells[2].className = "number";
    place("ended").replaceChildren(...told.ended.map((each) => row(each.name, badge(each.status), each.said)));
    place("notes").replaceChildren(...told.notes.map((each) => make("li", {}, each)));
    place("finished").hidden = !told.page;
    write(place("file"), told.page);
    if (told.figure && (!busy() || told.over)) {
      have = told.figure_number;
      draw(told.figure);
    }
  };
  let missed = 0; // answers in a row
  const ask = async () => {
    let over = false;
    try {
      const answer = await fetch(`now?have=${have}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const told = await answer.json();
      show(told);
      over = told.over;
      missed = 0;
    } catch {
      missed += 1;
      if (missed < 3) { setTimeout(ask, PAUSE); return; }
      over = true;
      write(place("state"), "ended");
      write(place("said"), "The run no longer answers. This is what was last known; the terminal says how it ended.");
    }
    if (!over) setTimeout(ask, PAUSE);
  };
  ask();
})();
