"use strict";
// What a real browser runs in place of the model's player: the same requests in the same order,
// but the browser's own network and its own media element, whose events are the measures.
// The address ends in #rule=RUNG&cap=SECONDS. Times are in seconds since the navigation.
const watching = (() => {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const now = () => performance.now() / 1000;
  const seen = {
    why: "", page_s: null, startup_s: null, loaded_s: null, ended_s: null,
    stalls: [], segments: [], levels: [],
  };
  let video = null;

  const happened = (target, name) =>
    new Promise((resolve) => target.addEventListener(name, resolve, {once: true}));

  function ahead() { // seconds that are loaded and not yet played
    const ranges = video.buffered;
    return ranges.length ? Math.max(0, ranges.end(ranges.length - 1) - video.currentTime) : 0;
  }

  function note() { seen.levels.push([now(), ahead()]); }

  function listen() {
    video.addEventListener("playing", () => {
      if (seen.startup_s === null) seen.startup_s = now();
      const last = seen.stalls.at(-1);
      if (last && last[1] === null) last[1] = now();
    });
    video.addEventListener("waiting", () => {
      if (seen.startup_s === null) return; // it has not begun
      note();
      seen.stalls.push([now(), null]);
    });
    video.addEventListener("ended", () => { note(); seen.ended_s = now(); });
    video.addEventListener("error", () => end(`the video: ${video.error.message}`));
  }

  async function load(path, load) {
    Object.assign(load, {path, requested_s: now(), first_byte_s: null, last_byte_s: null, bytes: 0});
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(`${path}: status ${answer.status}`);
    const parts = [];
    const reader = answer.body.getReader();
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      load.first_byte_s ??= now();
      load.bytes += value.length;
      parts.push(value);
    }
    load.last_byte_s = now();
    return new Blob(parts).arrayBuffer();
  }

  function read(text) {
    const xml = new DOMParser().parseFromString(text, "text/xml");
    const template = xml.querySelector("SegmentTemplate");
    const rung = xml.querySelector(`Representation[id="${wanted.get("rule")}"]`);
    const each = template.getAttribute("duration") / template.getAttribute("timescale");
    const whole = parseFloat(
      xml.documentElement.getAttribute("mediaPresentationDuration").slice(2));
    return {
      each, whole, count: Math.ceil(whole / each - 1e-9),
      bit_per_s: Number(rung.getAttribute("bandwidth")),
      path: (number) => template.getAttribute("media")
        .replace("$RepresentationID$", rung.id).replace("$Number$", number),
    };
  }

  async function opened(manifest) {
    const source = new MediaSource();
    video.src = URL.createObjectURL(source);
    await happened(source, "sourceopen");
    source.duration = manifest.whole;
    return [source, source.addSourceBuffer('video/webm; codecs="vp8"')];
  }

  async function room(seconds) {
    const excess = () => ahead() + seconds - Number(wanted.get("cap"));
    while (excess() > 0) await new Promise((go) => setTimeout(go, 1000 * excess()));
  }

  async function watch() {
    video = document.querySelector("video");
    seen.page_s = now();
    const manifest = read(new TextDecoder().decode(await load("manifest.mpd", {})));
    const [source, buffer] = await opened(manifest);
    listen();
    video.muted = true;
    video.play().catch(() => {}); // begins when it can; an end before that is told elsewhere
    for (let number = 1; number <= manifest.count; number++) {
      const seconds = Math.min(manifest.each, manifest.whole - (number - 1) * manifest.each);
      await room(seconds);
      const segment = {
        number, rung: wanted.get("rule"), bit_per_s: manifest.bit_per_s, duration_s: seconds,
        load: {},
      };
      seen.segments.push(segment);
      const data = await load(manifest.path(number), segment.load);
      note();
      buffer.appendBuffer(data);
      await happened(buffer, "updateend");
      note();
    }
    seen.loaded_s = seen.segments.at(-1).load.last_byte_s;
    source.endOfStream();
    if (!video.ended) await happened(video, "ended");
    end("");
  }

  function pageLoads() { // everything but the segments, which are timed above
    const entries = [
      ...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource"),
    ];
    const paths = (entry) => new URL(entry.name).pathname.slice(1);
    return entries.filter((entry) => !paths(entry).startsWith("video/")).map((entry) => ({
      path: paths(entry), requested_s: entry.startTime / 1000,
      first_byte_s: entry.responseStart ? entry.responseStart / 1000 : null,
      last_byte_s: entry.responseEnd ? entry.responseEnd / 1000 : null,
      bytes: entry.encodedBodySize,
    }));
  }

  function end(why) { // tells the testbed, once
    if (seen.stopped_s) return;
    const [visit] = performance.getEntriesByType("navigation");
    seen.why = why;
    seen.stopped_s = now();
    const quality = video && video.getVideoPlaybackQuality();
    report(JSON.stringify({
      ...seen, page: pageLoads(), origin_s: performance.timeOrigin / 1000,
      connected_s: visit.requestStart / 1000, protocol: visit.nextHopProtocol,
      pictures: quality ? quality.totalVideoFrames : 0,
      dropped_pictures: quality ? quality.droppedVideoFrames : 0,
    }));
  }

  performance.setResourceTimingBufferSize(100000);
  addEventListener("load", () => watch().catch((error) => end(`${error.message}`)));
  return {end};
})();
