// Tables: sorted by a click on a heading, filtered, copied.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.key ?? cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };

  for (const table of all("table.sortable")) {
    all("th button", table).forEach((button) => {
      const head = button.parentElement;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = all("tr", table.tBodies[0]);
        const column = head.cellIndex;
        // what is not known stays at the end, whichever way
        rows.sort((a, b) => {
          const x = key(a, column), y = key(b, column);
          return x === "" || y === "" || !down ? compare(x, y) : compare(y, x);
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  const shown = (table) => all("tr", table).filter((row) => !row.hidden);
  const asText = (table) =>
    shown(table).map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\s+/g, " ")).join("\t")).join("\n");

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea"); // pages from disk may have no clipboard
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  for (const button of all("button.copy")) {
    const words = button.textContent;
    button.addEventListener("click", async () => {
      const from = button.dataset.from;
      await copy(from ? document.getElementById(from).textContent : asText(button.closest("details").querySelector("table")));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = words; }, 1500);
    });
  }

  for (const input of all("details .tools input")) {
    const rows = all("tbody tr", input.closest("details"));
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
      }
    });
  }

  addEventListener("beforeprint", () => all("details.claim, details.paper, details.more").forEach((each) => { each.open = true; }));
})();
// what scrolls sideways can be scrolled by keys
addEventListener("load", () => {
  for (const box of all(".scroll")) if (box.scrollWidth > box.clientWidth && !box.querySelector("a, button, [tabindex]")) box.tabIndex = 0;
});
