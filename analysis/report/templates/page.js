const reportPage = (() => {
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

  const open = (numbers) => {
    showTrials(numbers);
    list.scrollIntoView();
    list.querySelector("summary").focus({ preventScroll: true });
  };
  liveFigures({ open });

  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let each = target; each; each = each.parentElement) {
      if (each instanceof HTMLDetailsElement) each.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  return { open };
})();
