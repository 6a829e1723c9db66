// Changes to this page in the middle of an action, asked for over /live and answered when they are done (perturb.py).
"use strict";
(() => {
  const { actions, bind, bindAll, cover } = window.larkfield;

  const rowOf = (number) => {
    const row = document.querySelector(`main [data-row="${number}"]`);
    if (!row) throw new Error(`no row ${number} on this page`);
    return row;
  };
  const shown = (element) => !element.hidden;
  const face = (element) => (element.matches("form") ? element.querySelector("button") : element);

  function control({ row, control: name }) {
    const scope = row === undefined ? document.querySelector("main") : rowOf(row);
    const found = [...scope.querySelectorAll(name ? `[data-act="${name}"]` : "[data-act]")].find(shown);
    if (!found) throw new Error(`no control ${name ?? ""} ${row === undefined ? "on this page" : `in row ${row}`}`);
    return found;
  }

  const renumber = (url, from, to) => url.replace(`/${from}/`, `/${to}/`);

  function actionFor(element, row, other) {
    const action = actions.get(element);
    return other === undefined ? action : { ...action, url: renumber(action.url, row ?? "", other) };
  }

  // Swap what two rows show and do, and keep every node where it is: what a recycling list does on a scroll.
  function swapContent(one, two) {
    const texts = (row) => {
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      const found = [];
      while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("button")) found.push(walker.currentNode);
      return found.filter((node) => node.data.trim());
    };
    const left = texts(one), right = texts(two);
    left.forEach((node, i) => ([node.data, right[i].data] = [right[i].data, node.data]));
    const [a, b] = [one.dataset.row, two.dataset.row];
    for (const [row, from, to] of [[one, a, b], [two, b, a]]) {
      row.dataset.row = to;
      for (const link of row.querySelectorAll("a[href]")) {
        link.setAttribute("href", link.getAttribute("href").replace(`/${from}`, `/${to}`));
      }
      for (const button of row.querySelectorAll("[data-act]")) {
        button.dataset.url = renumber(button.dataset.url, from, to);
        if (button.dataset.ask) button.dataset.ask = button.dataset.ask.replace(from, to);
        actions.set(button, { ...actions.get(button), url: button.dataset.url });
      }
    }
    const [badgeA, badgeB] = [one, two].map((row) => row.querySelector(".badge"));
    if (badgeA && badgeB) [badgeA.className, badgeB.className] = [badgeB.className, badgeA.className];
    for (const row of [one, two]) {
      const state = row.querySelector(".badge")?.className.replace("badge", "").trim();
      for (const button of row.querySelectorAll("[data-when]")) {
        button.hidden = !button.dataset.when.split(" ").includes(state);
      }
    }
  }

  const changes = {
    reorder_rows() {
      const body = document.querySelector("main tbody");
      if (!body) throw new Error("no table on this page");
      body.append(...[...body.children].reverse());
    },
    recycle_row: ({ row, with: other }) => swapContent(rowOf(row), rowOf(other)),
    replace_by_twin({ row, with: other, control: name }) {
      const old = control({ row, control: name });
      const twin = old.cloneNode(true);
      bind(twin, actionFor(old, row, other));
      old.replaceWith(twin);
    },
    rename: ({ name, ...where }) => void (face(control(where)).textContent = name),
    remove({ row, control: name }) {
      (name === undefined && row !== undefined ? rowOf(row) : control({ row, control: name })).remove();
    },
    cover: (where) => cover(face(control(where)), "Syncing…"),
    disable: (where) => void (face(control(where)).disabled = true),
    rerender() {
      const body = document.querySelector("main tbody");
      if (!body) throw new Error("no table on this page");
      const fresh = body.cloneNode(true);
      for (const button of fresh.querySelectorAll("[data-act]")) button.removeAttribute("aria-busy");
      body.replaceWith(fresh);
      bindAll(fresh);
    },
    insert_before({ row, name = "New" }) {
      if (row === undefined) {
        const button = Object.assign(document.createElement("button"), { type: "button", className: "btn", textContent: name });
        const target = control({});
        target.before(button);
        return;
      }
      const target = rowOf(row);
      const fresh = target.cloneNode(true);
      fresh.removeAttribute("data-row");
      fresh.querySelector("th").textContent = name;
      target.before(fresh);
    },
    navigate: ({ url }) => void setTimeout(() => location.assign(new URL(url, location.href)), 0),
    lookalike({ row, control: name, with: other, name: label }) {
      const real = control({ row, control: name });
      const copy = real.cloneNode(true);
      if (label !== undefined) face(copy).textContent = label;
      bind(copy, actionFor(real, row, other));
      real.before(copy);
    },
  };

  const line = new EventSource(`/live?page=${document.body.dataset.page}`);
  line.onerror = () => line.close();
  line.onmessage = (event) => {
    const { ask, do: name, args } = JSON.parse(event.data);
    const answer = new URLSearchParams({ ask, applied: "1" });
    try {
      const { on, ...how } = args;
      if (on === undefined) changes[name](how);
      // In the middle of a sequence of events: by its first one of this kind the change has been made.
      else addEventListener(on, () => changes[name](how), { capture: true, once: true });
    } catch (error) {
      answer.set("applied", "0");
      answer.set("why", error.message);
    }
    fetch(`/live/answer?${answer}`, { keepalive: true });
  };
})();
