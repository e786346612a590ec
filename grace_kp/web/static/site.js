"use strict";
// Comfort for pages that work without it: local times, distances that count on, news of requests, and keys. It never submits a form, and
// its messages never move other content.
(() => {
  const root = document.body.dataset.root || "";
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, text = "", attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // Background requests do not prolong the session, which ends when its person has been idle for long enough.
  const read = (address, kind) => fetch(address, {headers: {Accept: kind, "X-Background": "1"}});

  // Times in the reader's zone. The time in UTC stays as the title.
  const showTimes = (within = document) => {
    const zone = new Intl.DateTimeFormat(undefined, {timeZoneName: "short"});
    for (const time of all("time[datetime]", within)) {
      const moment = new Date(time.dateTime);
      if (time.dataset.local || Number.isNaN(moment.getTime())) continue;
      const two = (number) => String(number).padStart(2, "0");
      const name = zone.formatToParts(moment).find((part) => part.type === "timeZoneName");
      time.title = time.textContent;
      time.dataset.local = "1";
      time.textContent = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
        `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())} ${name ? name.value : ""}`.trim();
    }
  };

  const span = (seconds) => {
    const left = Math.floor(Math.abs(seconds));
    const units = [[86400, "d"], [3600, "h"], [60, "m"]];
    for (const [place, [size, unit]] of units.entries()) {
      if (left < size) continue;
      const count = Math.floor(left / size);
      const next = units[place + 1];
      const smaller = next ? Math.floor((left % size) / next[0]) : 0;
      return `${count} ${unit}${smaller && count < 10 ? ` ${smaller} ${next[1]}` : ""}`;
    }
    return `${left} s`;
  };
  const distance = (at) => {
    const seconds = at - Date.now() / 1000;
    return seconds > 0 ? `in ${span(seconds)}` : `${span(seconds)} ago`;
  };
  const showDistances = () => {
    for (const element of all("[data-distance]")) {
      const words = distance(Number(element.dataset.distance));
      if (element.textContent !== words) element.textContent = words;
    }
  };

  // News arrive as ids. A line with reserved space tells them; rows and controls stay where they are.
  const live = find("[data-live]");
  const title = document.title;
  const say = (words, link) => {
    const parts = [make("strong", words)];
    if (link) parts.push(make("a", link, {href: live.dataset.here || location.href.split("#")[0], class: "button small", "data-reload": ""}));
    live.replaceChildren(...parts);
    live.classList.add("news");
  };
  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  const inboxNews = () => {
    const asked = new Set();
    const changed = new Set();
    const pending = find("[data-pending]");
    const before = pending ? Number(pending.textContent.replaceAll(",", "")) : 0;
    return (event) => {
      if (!event.id) return;
      const row = all("[data-row][data-id]").find((each) => each.dataset.id === event.id);
      if (event.kind === "requested") {
        asked.add(event.id);
      } else {
        changed.add(event.id);
        asked.delete(event.id);
      }
      if (row && event.kind !== "joined") {
        const news = find("[data-news]", row);
        if (news) news.textContent = `changed: ${event.kind.replaceAll("_", " ")}`;
        row.classList.toggle("gone", ["decided", "expired", "withdrawn", "claimed", "settled", "reconciled"].includes(event.kind));
      }
      const words = [];
      if (asked.size) words.push(counted(asked.size, "new request"));
      if (changed.size) words.push(`${counted(changed.size, "request")} changed`);
      if (words.length) say(words.join(", "), "Show");
      document.title = asked.size ? `(${before + asked.size}) ${title}` : title;
    };
  };

  const requestNews = () => {
    const {id, digest, revision} = live.dataset;
    const readState = async () => {
      const answer = await read(`${root}/approvals/${encodeURIComponent(id)}/state`, "application/json");
      return answer.ok ? answer.json() : null;
    };
    // A process that dies does not change the store, so no event reports it.
    const watch = live.dataset.awaited === undefined ? 0 : setInterval(async () => {
      const state = document.hidden ? null : await readState().catch(() => null);
      if (!state || state.awaited) return;
      clearInterval(watch);
      if (state.awaited === false) say("The process that waited for this decision has ended. Your decision is kept for the next process that asks.", "Reload");
    }, 5000);
    return async (event) => {
      if (event.id !== id) return;
      const state = await readState();
      if (!state || String(state.revision) === revision) return;
      clearInterval(watch);
      const by = state.by ? ` by ${state.by}` : "";
      say(`This request changed ${distance(state.at)}: ${state.event || state.words}${by}.`, "Reload");
      if (state.state !== "pending" || state.digest !== digest) {
        for (const button of all("[data-decides]")) button.disabled = true;
      }
    };
  };

  if (live && window.EventSource) {
    const tell = live.dataset.live === "request" ? requestNews() : inboxNews();
    // A stream that ends is opened again by the browser, unless another page answers, such as the login.
    let alarm = 0;
    let isLost = false;
    const calm = () => {
      clearTimeout(alarm);
      alarm = 0;
    };
    const lose = (words, link) => {
      isLost = true;
      say(words, link);
    };
    const open = () => {
      const source = new EventSource(`${root}/events?after=${encodeURIComponent(live.dataset.seq || "")}`);
      source.addEventListener("change", (event) => {
        try {
          tell(JSON.parse(event.data));
        } catch {
          // Ignore an event that is not JSON.
        }
      });
      source.addEventListener("error", () => {
        if (source.readyState === EventSource.CLOSED) {
          calm();
          lose("This page is no longer updated. You may have to log in again.", "Reload");
        } else if (!alarm && !isLost) {
          alarm = setTimeout(lose, 5000, "The server cannot be reached. This page may be out of date.");
        }
      });
      source.addEventListener("open", () => {
        calm();
        if (isLost) say("The server is back. This page may be out of date.", "Reload");
        isLost = false;
      });
      return source;
    };
    let source = open();
    window.addEventListener("pagehide", () => {
      calm();
      source.close();
    });
    // A page that comes back as it was left asks for what has happened since.
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) source = open();
    });
  }

  // A page that waits for work in the background replaces the part that tells its progress.
  const refresh = async () => {
    const part = find("[data-refresh='running']");
    if (!part || !part.id) return;
    const answer = await read(location.href, "text/html");
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.dataset.refresh !== "running") {
        location.reload();
        return;
      }
      if (fresh) part.replaceWith(fresh);
    }
    setTimeout(refresh, 2000);
  };

  // Selecting rows.
  const selection = find("[data-selection]");
  if (selection) {
    const boxes = all("input[name=id]", selection);
    const label = find("[data-select-all]", selection);
    const words = find("[data-selected]", selection);
    const plain = words ? words.textContent : "";
    const count = () => {
      const chosen = boxes.filter((box) => box.checked).length;
      if (words) words.textContent = chosen ? `${chosen} selected. ${plain}` : plain;
      if (label) {
        const box = find("input", label);
        box.checked = chosen > 0 && chosen === boxes.length;
        box.indeterminate = chosen > 0 && chosen < boxes.length;
      }
    };
    if (label) {
      label.hidden = false;
      find("input", label).addEventListener("change", (event) => {
        for (const box of boxes) box.checked = event.target.checked;
        count();
      });
    }
    selection.addEventListener("change", count);
    window.addEventListener("pageshow", count);
  }

  // Copying a text.
  for (const text of all("[data-copy]")) {
    if (!navigator.clipboard) break;
    const button = make("button", "Copy", {type: "button", class: "plain small"});
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text.dataset.copy || text.textContent);
      button.textContent = "Copied";
    });
    text.after(button);
  }

  // Keys. They move, open, select and focus; none of them decides.
  const keys = [
    ["j, k", "next row, previous row", "[data-row]"], ["Enter, o", "open the row", "[data-row] a"],
    ["x", "select the row", "[data-row] input[type=checkbox]"], ["/", "focus the search", "[data-search]"],
    ["a", "focus Approve (does not approve)", "[data-key=a]:enabled"], ["r", "focus Reject (does not reject)", "[data-key=r]"],
    ["e", "open the form that edits the arguments", "#edit-form"], ["?", "this list", "body"],
  ];  // the last of each is present on pages where the key works
  const rows = () => all("[data-row]");
  let here = -1;
  const move = (step) => {
    const list = rows();
    if (!list.length) return;
    list.forEach((row) => row.classList.remove("here"));
    here = Math.min(Math.max(here + step, 0), list.length - 1);
    const row = list[here];
    row.classList.add("here");
    const link = find("h2 a, h3 a, a", row) || row;
    link.focus({preventScroll: true});
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    row.scrollIntoView({block: "nearest", behavior: calm ? "auto" : "smooth"});
  };
  const focus = (element) => {
    if (!element) return false;
    for (let outer = element.parentElement; outer; outer = outer.parentElement) {
      if (outer.tagName === "DETAILS" && element.tagName !== "SUMMARY") outer.open = true;
    }
    element.focus();
    element.scrollIntoView({block: "nearest"});
    return true;
  };
  const help = () => {
    let dialog = find("dialog[data-keys]");
    if (!dialog) {
      dialog = make("dialog", "", {"data-keys": "", "aria-labelledby": "keys-title"});
      const list = make("dl", "", {class: "facts"});
      for (const [key, words] of keys.filter(([, , needs]) => find(needs))) {
        const name = make("dt");
        name.append(make("kbd", key));
        list.append(name, make("dd", words));
      }
      const form = make("form", "", {method: "dialog"});
      form.append(make("button", "Close"));
      dialog.append(make("h2", "Keys", {id: "keys-title"}), list, form);
      document.body.append(dialog);
    }
    dialog.showModal();
    return true;
  };
  const act = {
    j: () => move(1) || true,
    k: () => move(-1) || true,
    o: () => {
      const link = here >= 0 && find("h2 a, h3 a, a", rows()[here]);
      if (link) link.click();
      return Boolean(link);
    },
    x: () => {
      const box = here >= 0 && find("input[type=checkbox]", rows()[here]);
      if (box) box.click();
      return Boolean(box);
    },
    "/": () => focus(find("[data-search]")),
    "?": help,
    a: () => focus(find("[data-key=a]")),
    r: () => focus(find("[data-key=r]")),
    e: () => {
      const edit = find("#edit-form");
      if (edit) edit.open = true;
      return edit ? focus(find("input:not([type=hidden]), textarea, select", edit)) : false;
    },
  };
  document.addEventListener("keydown", (event) => {
    const at = event.target;
    const isField = at.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) && at.type !== "checkbox");
    if (isField || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || find("dialog[open]")) return;
    if (Object.hasOwn(act, event.key) && act[event.key]()) event.preventDefault();
  });
  document.addEventListener("focusin", (event) => {
    const row = event.target.closest && event.target.closest("[data-row]");
    if (!row) return;
    rows().forEach((each, place) => {
      each.classList.toggle("here", each === row);
      if (each === row) here = place;
    });
  });
  for (const link of all("a[href='#edit']")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      act.e();
    });
  }

  showTimes();
  showDistances();
  setInterval(showDistances, 1000);
  refresh();
})();
