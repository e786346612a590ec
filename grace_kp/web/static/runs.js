"use strict";
/* Search inside a run: the steps are filtered as one types. Enter goes to the first hit; there, n and p go to the next and the one before.
   Without this script the form does the search. */
(() => {
  const form = document.querySelector(".search-steps");
  const field = document.getElementById("q");
  const status = document.getElementById("hits");
  const list = document.querySelector(".steps");
  if (!form || !field || !status || !list) return;
  const steps = [...list.children];
  const texts = steps.map((step) => step.textContent.toLowerCase());
  // A page with a part of the run, or with what the server found, is searched by the server.
  const complete = !document.querySelector(".pages") && !field.value;
  const keys = "Enter: first match; then n: next, p: previous.";
  let hits = steps.filter((step) => step.querySelector("mark"));
  let place = -1;
  let timer = 0;

  function filter() {
    const sought = field.value.trim().toLowerCase();
    hits = [];
    place = -1;
    steps.forEach((step, number) => {
      const found = !sought || texts[number].includes(sought);
      step.hidden = !found;
      if (sought && found) hits.push(step);
    });
    status.textContent = sought ? `${hits.length} of ${steps.length} entries. ${hits.length ? keys : ""}` : "";
    mark(sought);
  }

  function mark(sought) {
    if (!window.CSS?.highlights || !window.Highlight) return;
    const ranges = [];
    for (const step of hits) {
      const walker = document.createTreeWalker(step, NodeFilter.SHOW_TEXT);
      while (walker.nextNode() && ranges.length < 2000) {
        const words = walker.currentNode.data.toLowerCase();
        if (words.length !== walker.currentNode.length) continue;
        for (let at = words.indexOf(sought); at >= 0; at = words.indexOf(sought, at + sought.length)) {
          const range = new Range();
          range.setStart(walker.currentNode, at);
          range.setEnd(walker.currentNode, at + sought.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("hits", new Highlight(...ranges));
  }

  function go(to) {
    if (!hits.length) return;
    place = (to + hits.length) % hits.length;
    const step = hits[place];
    step.querySelectorAll("details").forEach((folded) => { folded.open = true; });
    step.tabIndex = -1;
    step.focus({ preventScroll: true });
    step.scrollIntoView({ block: "center" });
    status.textContent = `${place + 1} of ${hits.length}. ${keys}`;
  }

  if (complete) {
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(filter, 120);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      filter();
      go(0);
    });
  } else if (hits.length) {
    status.textContent += `. ${keys}`;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && field.value === field.defaultValue) {
        event.preventDefault();
        go(0);
      }
    });
  }
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n") go(place + 1);
    if (event.key === "p") go(place - 1);
  });
})();
