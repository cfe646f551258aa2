"use strict";
// Sorts and filters the table, stretches the timeline, and follows a node through all pictures. The page is whole without.
(() => {
  document.documentElement.classList.add("scripted");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const rows = all("#nodes tbody tr");
  const find = document.getElementById("find");
  const chips = all(".chip");

  // The table: rows that hold the words, in one of the pressed statuses.
  const filter = () => {
    const words = find ? find.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const wanted = chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.dataset.status);
    for (const row of rows) {
      const text = words.length ? row.textContent.toLowerCase() : "";
      const fits = words.every((word) => text.includes(word)) && (!wanted.length || wanted.includes(row.dataset.status));
      row.hidden = !fits;
    }
  };
  if (find) find.addEventListener("input", filter);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.ariaPressed = chip.ariaPressed === "true" ? "false" : "true";
      filter();
    });
  }
  for (const table of all("table")) {
    all("th", table).forEach((head, column) => {
      head.tabIndex = 0;
      const sort = () => {
        const down = head.ariaSort === "ascending";
        all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.ariaSort = down ? "descending" : "ascending";
        const value = (row) => row.cells[column].dataset.value;
        const body = table.tBodies[0];
        const ordered = [...body.rows].sort((one, other) => {
          const [a, b] = [value(one), value(other)];
          if (a === undefined && b === undefined)
            return one.cells[column].textContent.localeCompare(other.cells[column].textContent, "en", { numeric: true });
          return (a === undefined ? -1 : Number(a)) - (b === undefined ? -1 : Number(b));
        });
        if (down) ordered.reverse();
        body.append(...ordered);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
  }

  // One node in all pictures: point at it to see it everywhere, press it to go to its row.
  const places = new Map();
  for (const place of all("[data-node]")) {
    const known = places.get(place.dataset.node);
    if (known) known.push(place);
    else places.set(place.dataset.node, [place]);
  }
  let marked = [];
  const mark = (name) => {
    for (const place of marked) place.classList.remove("marked");
    marked = (name !== undefined && places.get(name)) || [];
    for (const place of marked) place.classList.add("marked");
  };
  const named = (event) => event.target.closest("[data-node]")?.dataset.node;
  document.addEventListener("pointerover", (event) => mark(named(event)));
  for (const picture of all(".gantt, .graph")) {
    picture.addEventListener("click", (event) => {
      const row = (places.get(named(event)) || []).find((place) => place.matches("tr"));
      if (!row) return;
      row.hidden = false;
      row.scrollIntoView({ block: "center" });
    });
  }

  // The timeline: wider and narrower, around its middle.
  for (const button of all("[data-zoom]")) {
    button.addEventListener("click", () => {
      for (const gantt of all(".gantt", button.closest("section"))) {
        const plot = gantt.firstElementChild;
        const before = Number(plot.dataset.scale || 1);
        const after = Math.min(64, Math.max(1, button.dataset.zoom === "in" ? before * 2 : before / 2));
        const middle = (gantt.scrollLeft + gantt.clientWidth / 2) / plot.clientWidth;
        plot.dataset.scale = after;
        plot.style.width = `${100 * after}%`;
        gantt.scrollLeft = middle * plot.clientWidth - gantt.clientWidth / 2;
      }
    });
  }
})();
