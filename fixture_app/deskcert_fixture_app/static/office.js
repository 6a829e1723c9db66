// The pages' behaviour: every control with `data-act` sends one request, and the page shows what came of it.
// Faults that live in the page (see faults.py) are read from #page-faults and applied where a control is bound.
"use strict";
(() => {
  const faults = JSON.parse(document.getElementById("page-faults").textContent);
  const byId = (id) => document.getElementById(id);
  const actions = new WeakMap(); // element -> {act, url, when…}: what it does now; perturbations may change it

  const faultOf = (name, url) =>
    faults.find((f) => f.do === name && ["POST", "*"].includes(f.method) && new RegExp(`^(?:${f.path})$`).test(url));

  function toast(text, look = "") {
    const note = Object.assign(document.createElement("div"), { className: `toast ${look}`, textContent: text });
    byId("toasts").append(note);
    setTimeout(() => note.remove(), 6000);
  }

  function logActivity(said) {
    const entry = Object.assign(document.createElement("li"), { textContent: said });
    byId("activity").prepend(entry);
    byId("no-activity").hidden = true;
  }

  const WORDS = { waiting: "Waiting", approved: "Approved", shipped: "Shipped", cancelled: "Cancelled", sent: "Sent", kept: "Kept", archived: "Archived", low: "Low", enough: "Enough", reordered: "Reordered", loading: "Loading", ready: "Ready", released: "Released" };
  const BECOMES = { approve: "approved", ship: "shipped", cancel: "cancelled", send: "sent", handled: "handled", archive: "archived", reorder: "reordered", release: "released" };

  function showState(element, state) {
    if (!state) return;
    const row = element.closest("[data-row]");
    const badge = row?.querySelector("[data-state] .badge");
    if (badge && WORDS[state]) Object.assign(badge, { className: `badge ${state}`, textContent: WORDS[state] });
    for (const other of row?.querySelectorAll("[data-when]") ?? [element]) {
      if (other.dataset.when) other.hidden = !other.dataset.when.split(" ").includes(state);
    }
  }

  async function send(element, action, body) {
    const hopeful = faultOf("optimistic_rollback", action.url);
    const busy = element.matches("form") ? element.querySelector("button") : element;
    busy.setAttribute("aria-busy", "true");
    if (hopeful) {
      showState(element, BECOMES[action.act]);
      toast("Saved");
    }
    try {
      const answer = await fetch(action.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const found = await answer.json();
      if (answer.ok) {
        showState(element, found.state);
        logActivity(found.said);
        toast(found.said);
        if (element.matches("form")) element.reset();
      } else if (!hopeful) toast(found.error, "bad"); // the hopeful page swallows it, as such pages do
    } catch {
      toast("The office cannot be reached.", "bad");
    } finally {
      busy.removeAttribute("aria-busy");
    }
  }

  function bodyOf(element) {
    if (element.matches("form")) return Object.fromEntries(new FormData(element));
    return element.dataset.variant ? { variant: element.dataset.variant } : {};
  }

  function ask(element, action) {
    byId("ask-title").textContent = element.dataset.ask;
    byId("ask-text").textContent = "This cannot be undone.";
    byId("ask-yes").textContent = element.dataset.yes;
    byId("ask-no").textContent = element.dataset.no;
    byId("ask-no").onclick = () => byId("ask").close();
    byId("ask-yes").onclick = () => {
      byId("ask").close();
      send(element, action, bodyOf(element));
    };
    byId("ask").showModal();
  }

  function activate(event) {
    const element = event.currentTarget;
    const action = actions.get(element);
    event.preventDefault();
    if (faultOf("trusted_only", action.url) && !event.isTrusted) return;
    const tab = faultOf("new_tab", action.url);
    if (tab) window.open(tab.text ?? "/notes", "_blank");
    const native = faultOf("confirm_dialog", action.url);
    if (native && !confirm(native.text ?? "Are you sure?")) return;
    if (element.dataset.ask && !native) ask(element, action);
    else send(element, action, bodyOf(element));
    const hang = faultOf("hang_handler", action.url);
    for (const end = performance.now() + (hang?.ms ?? 0); performance.now() < end; );
  }

  function cover(element, text) {
    const box = element.getBoundingClientRect();
    const over = Object.assign(document.createElement("div"), { className: "cover", textContent: text });
    Object.assign(over.style, {
      left: `${box.left + scrollX - 8}px`,
      top: `${box.top + scrollY - 6}px`,
      width: `${box.width + 16}px`,
      height: `${box.height + 12}px`,
    });
    document.body.append(over);
  }

  // `twice` is how a careless second initialisation looks: two handlers for one control.
  function bind(element, action) {
    actions.set(element, action);
    const kind = element.matches("form") ? "submit" : "click";
    element.addEventListener(kind, activate);
    if (faultOf("double_bind", action.url)) element.addEventListener(kind, (event) => activate(event));
    const face = kind === "submit" ? element.querySelector("button") : element;
    const late = faultOf("late_enable", action.url);
    if (late) {
      face.disabled = true;
      setTimeout(() => (face.disabled = false), late.ms);
    }
    if (faultOf("read_only", action.url)) for (const field of element.querySelectorAll("input")) field.readOnly = true;
    const covered = faultOf("covered", action.url);
    if (covered && !element.hidden) cover(face, covered.text ?? "Syncing…");
  }

  function bindAll(root) {
    for (const element of root.querySelectorAll("[data-act]")) {
      const url = element.dataset.url ?? new URL(element.action).pathname;
      bind(element, { act: element.dataset.act, url });
      if (element.getAttribute("role") === "button") element.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") element.click();
      });
    }
  }
  bindAll(document);

  // A list that holds only the rows in view.
  const list = byId("virtual");
  if (list) {
    const [above, below] = list.querySelectorAll(".pad");
    const body = list.querySelector("tbody");
    const size = Number(list.dataset.size), height = 42, count = 20;
    let shown = 0, wanted = 0, busy = false;
    const place = () => {
      above.style.height = `${shown * height}px`;
      below.style.height = `${Math.max(0, size - shown - count) * height}px`;
    };
    const load = async () => {
      if (busy || wanted === shown) return;
      busy = true;
      const from = wanted;
      body.innerHTML = await (await fetch(`/api/customers?from=${from}&count=${count}`)).text();
      shown = from;
      place();
      busy = false;
      load();
    };
    list.addEventListener("scroll", () => {
      wanted = Math.max(0, Math.min(size - count, Math.floor(list.scrollTop / height) - 2));
      load();
    });
    place();
  }

  window.larkfield = { actions, bind, bindAll, cover, faultOf, logActivity, showState, toast };
})();
