"use strict";
// Two runs side by side: what is done in one page (watch.js) is done in the other.
addEventListener("message", ({ source, data }) => {
  const both = [...document.querySelectorAll("iframe")].map((frame) => frame.contentWindow);
  if (both.includes(source)) for (const other of both) if (other !== source) other.postMessage(data, "*");
});
