// Figures become plots when they come into sight; the static ones stay for print.
const liveFigures = (handlers = {}) => {
  const sight = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      const data = JSON.parse(target.querySelector("script").textContent);
      target.plot = new plotting.Plot(target, { ...data, ...handlers });
      target.classList.add("is-live");
    }
  }, { rootMargin: "400px" });
  for (const data of all(".plotted > script")) sight.observe(data.parentElement);
};
