"use strict";
(() => {
  const natural = new Intl.Collator("en", { numeric: true });
  const words = { yes: 1, "–": 0, "": null };

  /** What a cell is worth when it is sorted: a number if it is one. */
  const worth = (cell) => {
    const text = cell.textContent.trim();
    if (text in words) return words[text];
    const number = Number(text.replace(/,/g, "").replace("−", "-").replace(/ (s|%)$/, ""));
    return Number.isNaN(number) ? text : number;
  };

  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return natural.compare(String(a), String(b));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const given = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        const rows = [...given];
        if (next !== "none") {
          const sign = next === "ascending" ? 1 : -1;
          const key = new Map(rows.map((row) => [row, worth(row.cells[column])]));
          rows.sort((a, b) => sign * compare(key.get(a), key.get(b)));
        }
        body.append(...rows);
      });
    });
  }

  for (const find of document.querySelectorAll(".find")) {
    const input = find.querySelector("input");
    const said = find.querySelector("output");
    const rows = [...document.getElementById(input.getAttribute("aria-controls")).tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    find.hidden = false;
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, k) => {
        row.hidden = !texts[k].includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      said.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
    });
  }

  for (const chart of document.querySelectorAll(".chart")) {
    const readout = chart.querySelector(".readout");
    for (const svg of chart.querySelectorAll("svg")) {
      const stops = [...svg.querySelectorAll("desc")].map((stop) => ({ x: Number(stop.dataset.x), say: stop.textContent }));
      const cursor = svg.querySelector(".cursor");
      if (!stops.length || !readout) continue;
      let at = stops.length;
      const show = (k) => {
        at = Math.max(0, Math.min(stops.length - 1, k));
        cursor.setAttribute("x1", stops[at].x);
        cursor.setAttribute("x2", stops[at].x);
        cursor.classList.add("on");
        readout.textContent = stops[at].say;
      };
      svg.addEventListener("pointermove", (event) => {
        const box = svg.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
        const after = stops.findIndex((stop) => stop.x > x);
        show(after < 0 ? stops.length - 1 : after - 1);
      });
      svg.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1, Home: -stops.length, End: stops.length }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        show(at + step);
      });
    }
  }
})();
