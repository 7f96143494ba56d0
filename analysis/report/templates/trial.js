(() => {
  const SHOWN = 0.05; // s around a loss
  const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
  const { unpacked } = drawing;
  const words = ({ columns: packets, labels }, i) => { // Wireshark's Info
    const said = typeof labels === "string" ? labels : labels?.[i];
    const flags = FLAGS.filter((_, bit) => (packets.flags[i] >> bit) & 1).join(", ");
    const numbers = `Seq=${packets.relative_seq[i]} Ack=${packets.relative_ack[i]} Win=${packets.window[i]} Len=${packets.payload[i]}`;
    return `${said ? `${said} ` : ""}${packets.src_port[i]} → ${packets.dst_port[i]} [${flags}] ${numbers}`;
  };
  const filter = (packets, i) => `frame.number == ${packets.frame[i]}`;

  const kept = document.getElementById("packet");
  const keep = (mark, i, wireshark) => {
    const packets = mark.columns;
    document.getElementById("packet-filter").textContent = [
      `No. ${packets.frame[i]} of ${wireshark.file}`, words(mark, i), filter(packets, i), `${wireshark.command} -Y '${filter(packets, i)}'`,
    ].join("\n");
    kept.hidden = false;
  };
  const readable = (mark, wireshark) => {
    const packets = mark.columns;
    if (mark.series === "SACK block" || mark.series === "receiver's window" || mark.series === "lost") mark.mute = true;
    if (!packets) return;
    for (const name of Object.keys(packets)) packets[name] = unpacked(packets[name]);
    mark.told = {};
    mark.hint = "click or Enter: keep its filter";
    mark.pick = (i) => keep(mark, i, wireshark);
    mark.tell = (i) => [
      ["time (s)", mark.x[i].toFixed(6)], ["No.", packets.frame[i]], ["length", packets.length[i]],
      ["info", words(mark, i)], ["filter", filter(packets, i)],
    ];
  };

  const start = (host) => {
    if (host.plot) return host.plot;
    const [spec, wireshark] = all("script", host).map((each) => JSON.parse(each.textContent));
    for (const mark of spec.marks) readable(mark, wireshark);
    spec.troubles = unpacked(spec.troubles);
    host.plot = new plotting.Plot(host, spec);
    return host.plot;
  };
  const hosts = all(".plotted");
  const shown = () => hosts.find((host) => !host.closest("figure").hidden);
  const tools = document.getElementById("flow-tools");
  if (!tools) return;
  tools.hidden = hosts[0].closest("figure").hidden = false;
  document.getElementById("static").open = false;
  start(hosts[0]);
  const choice = document.getElementById("flow");
  choice?.addEventListener("change", () => {
    const limits = shown().plot.spec.panels[0].x.lim;
    for (const host of hosts) host.closest("figure").hidden = host.closest("figure").dataset.flow !== choice.value;
    const plot = start(shown());
    plot.resize();
    plot.zoom(plot.spec.panels[0], ...limits); // the same stretch of time
  });
  const go = (way) => {
    const { plot } = shown(), panel = plot.spec.panels[0], [from, to] = panel.x.lim;
    const times = [...plot.spec.troubles], near = to - from < 4 * SHOWN;
    const middle = (from + to) / 2;
    const next = !near ? times[0] : way > 0 ? times.find((each) => each > middle + SHOWN / 10) : times.findLast((each) => each < middle - SHOWN / 10);
    if (next !== undefined) plot.zoom(panel, next - SHOWN / 2, next + SHOWN / 2);
  };
  document.getElementById("before").addEventListener("click", () => go(-1));
  document.getElementById("after").addEventListener("click", () => go(1));
})();
