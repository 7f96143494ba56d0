"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
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

  const filter = document.getElementById("ledger-filter");
  if (filter) {
    const search = filter.querySelector("input"), choices = all("select", filter);
    const claims = all("details.claim"), papers = all("details.paper");
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = choices.filter((each) => each.value);
      for (const claim of claims) {
        const text = words.length ? claim.textContent.toLowerCase() : "";
        claim.hidden = !words.every((word) => text.includes(word)) || chosen.some((each) => claim.dataset[each.dataset.of] !== each.value);
      }
      const asked = words.length + chosen.length > 0;
      for (const paper of papers) {
        paper.hidden = asked && !paper.querySelector("details.claim:not([hidden])");
        paper.open = asked;
      }
      const left = claims.filter((claim) => !claim.hidden).length;
      filter.querySelector("output").textContent = asked ? `${left} of ${claims.length} answers` : "";
    };
    filter.addEventListener("input", apply);
    filter.hidden = false;
  }

  const list = document.getElementById("trial-table");
  const reset = list.querySelector(".reset");
  const only = (wanted) => {
    for (const row of all("tbody tr", list)) row.hidden = !wanted(Number(row.id.slice(1)));
  };
  const showTrials = (numbers) => {
    const ranges = numbers.split(" ").map((part) => part.split("-").map(Number));
    only((number) => ranges.some(([first, last = first]) => number >= first && number <= last));
    list.open = true;
    list.querySelector("input").value = "";
    reset.hidden = false;
  };
  for (const link of all("a.show")) link.addEventListener("click", () => showTrials(link.dataset.trials));
  reset.addEventListener("click", () => { only(() => true); reset.hidden = true; });

  // figures become plots when they come into sight; the static ones stay for print
  const open = (numbers) => {
    showTrials(numbers);
    list.scrollIntoView();
    list.querySelector("summary").focus({ preventScroll: true });
  };
  const sight = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      const data = JSON.parse(target.querySelector("script").textContent);
      target.plot = new plotting.Plot(target, { ...data, open });
      target.classList.add("is-live");
    }
  }, { rootMargin: "400px" });
  for (const data of all(".plotted > script")) sight.observe(data.parentElement);

  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let each = target; each; each = each.parentElement) {
      if (each instanceof HTMLDetailsElement) each.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  addEventListener("beforeprint", () => all("details.claim, details.paper, details.more").forEach((each) => { each.open = true; }));
})();
