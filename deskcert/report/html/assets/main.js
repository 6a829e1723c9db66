// Which run is open, its filters, the address (#run=3&seq=17), and the keyboard.
const state = { run: -1, steps: [], list: null, groups: new Set(), asked: 0, seq: -1 };
const GROUPS = [["action", "Actions"], ["denial", "Denials"], ["refusal", "Refusals"], ["look", "Looks"], ["network", "Network"], ["oracle", "Oracle"], ["claim", "Claim"], ["change", "Changes"], ["agent", "Agent"]];

async function openRun(number, seq) {
  const run = DATA.runs[number];
  if (!run || !run.count) return overview();
  document.querySelectorAll("main > section").forEach((s) => { s.hidden = s.id !== "run"; });
  if (state.run !== number) {
    state.run = number;
    state.groups.clear();
    state.steps = await piece(run.steps);
    if (state.run !== number) return;
    build(run, number);
    filter();
    scrollTo(0, 0);
  }
  const wanted = (s) => s[STEP.seq] === seq || s[STEP.end] === seq;
  let at = seq === null ? Math.max(0, state.list.shown.findIndex((s) => proofsOf(number).has(s[STEP.seq]))) : state.list.shown.findIndex(wanted);
  if (at < 0 && state.steps.some(wanted)) { clearFilters(); at = state.list.shown.findIndex(wanted); }
  if (at >= 0 && (seq !== state.seq || state.list.at < 0)) state.list.select(at);
  if (seq !== null && at < 0) $("detail").replaceChildren(el("p", {}, "This run has no record " + seq + "."));
}

const proofsOf = (number) => new Set(DATA.findings.filter((f) => f.run === number).flatMap((f) => f.seqs));

function build(run, number) {
  const box = $("run"), ledger = run.ledger || {};
  const tone = ledger.word === "complete" ? "good" : ledger.word === "tampered" || ledger.word === "unverifiable" ? "bad" : "warn";
  const head = el("div", { id: "run-head" }, el("h2", { id: "run-title", tabindex: "-1" }, plain(run.scenario)), el("span", { class: "chip " + run.outcome }, words(run.outcome)), el("span", { class: "quiet" }, plain(DATA.agents[run.campaign]) + " · trial " + run.trial + " · seed " + run.seed));
  const fact = (name, value) => el("li", {}, name + " ", el("b", {}, value));
  const facts = el("ul", { class: "facts" }, fact("expected", words(run.expected)), run.attribution ? fact("attribution", words(run.attribution)) : null, el("li", {}, "ledger ", el("b", { class: "out " + tone }, ledger.word)), fact("records", run.count.toLocaleString("en")), ledger.root ? el("li", {}, "root ", el("code", {}, ledger.root)) : null);
  const task = el("details", {}, el("summary", {}, "Task, policy, what was verified"), el("h3", {}, foreign(run.title)), el("p", {}, foreign(run.instruction, 4000)), pairs({ ...run.environment, ...run.versions }), ...(ledger.problems || []).map((p) => el("div", { class: "note bad" }, foreign(p))), el("p", {}, "Checked: " + (ledger.checked || []).join("; ")), el("p", { class: "quiet" }, "Not checked: " + (ledger.not_checked || []).join("; ")), policyTable(run.policy));
  const search = el("input", { type: "search", id: "search", placeholder: "Search steps", "aria-label": "Search steps" });
  const tools = el("div", { class: "tools", role: "group", "aria-label": "Filters" }, search);
  for (const [key, name] of GROUPS) {
    const n = state.steps.reduce((sum, s) => sum + (s[STEP.group] === key), 0);
    if (n === 0) continue;
    const button = el("button", { type: "button", class: "toggle", "aria-pressed": "false", "data-group": key }, name + " " + n.toLocaleString("en"));
    button.addEventListener("click", () => { state.groups[state.groups.has(key) ? "delete" : "add"](key); filter(); });
    tools.append(button);
  }
  tools.append(choice("outcome", "Any outcome", run.outcomes), choice("rule", "Any rule", run.rules));
  const proving = el("button", { type: "button", class: "toggle", id: "only-proofs", "aria-pressed": "false" }, "Proves a finding");
  proving.addEventListener("click", () => { proving.setAttribute("aria-pressed", String(proving.getAttribute("aria-pressed") !== "true")); filter(); });
  if (proofsOf(number).size) tools.append(proving);
  tools.append(el("span", { id: "found", class: "quiet", role: "status" }));
  search.addEventListener("input", () => filter());
  const list = el("div", { id: "list", class: "pane", role: "listbox", tabindex: "0", "aria-label": "Steps of the run" });
  box.replaceChildren(head, facts, task, el("p", {}), tools, el("div", { class: "panes" }, list, el("div", { id: "detail", class: "pane", tabindex: "0", role: "region", "aria-label": "The chosen step", "aria-live": "off" })));
  box.querySelector("p:empty").remove();
  state.list = new StepList(list, show);
  document.title = plain(run.scenario) + " · deskcert report";
}

function policyTable(policy) {
  const rules = [...((policy.content || {}).deny || []).map((r) => ["deny", r]), ...((policy.content || {}).allow || []).map((r) => ["allow", r])];
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...["Rule", "Effect", "Asks for", "Reason"].map((h) => el("th", { scope: "col" }, h)))));
  const body = el("tbody", {});
  for (const [side, rule] of rules) {
    const { id, reason, effect, ...asks } = rule;
    body.append(el("tr", {}, el("th", { scope: "row" }, plain(id)), el("td", {}, effect || side), el("td", {}, foreign(JSON.stringify(asks))), el("td", {}, foreign(reason || ""))));
  }
  table.append(body);
  return el("details", {}, el("summary", {}, "Policy, " + rules.length + " rules"), table);
}

function choice(id, none, values) {
  if (!values || values.length === 0) return "";
  const made = el("select", { id, "aria-label": none }, el("option", { value: "" }, none), ...values.map((v) => el("option", { value: v }, plain(words(v), 60))));
  made.addEventListener("change", () => filter());
  return made;
}

const valueOf = (id) => ($(id) ? $(id).value : "");

function filter() {
  const wanted = valueOf("search").trim().toLowerCase().split(/\s+/).filter(Boolean);
  const outcome = valueOf("outcome"), rule = valueOf("rule"), proofs = proofsOf(state.run);
  const only = $("only-proofs") && $("only-proofs").getAttribute("aria-pressed") === "true";
  document.querySelectorAll(".toggle[data-group]").forEach((b) => b.setAttribute("aria-pressed", String(state.groups.has(b.dataset.group))));
  const shown = state.steps.filter((s) => {
    if (state.groups.size && !state.groups.has(s[STEP.group])) return false;
    if ((outcome && s[STEP.outcome] !== outcome) || (rule && s[STEP.rule] !== rule)) return false;
    if (only && !proofs.has(s[STEP.seq]) && !proofs.has(s[STEP.end])) return false;
    if (wanted.length === 0) return true;
    const text = (s[STEP.seq] + " " + s[STEP.what] + " " + s[STEP.target] + " " + s[STEP.outcome] + " " + s[STEP.code] + " " + s[STEP.rule]).toLowerCase();
    return wanted.every((w) => text.includes(w));
  });
  state.list.fill(shown, proofs);
  $("found").textContent = shown.length === state.steps.length ? shown.length.toLocaleString("en") + " steps" : shown.length.toLocaleString("en") + " of " + state.steps.length.toLocaleString("en") + " steps";
}

function clearFilters() {
  for (const id of ["search", "outcome", "rule"]) if ($(id)) $(id).value = "";
  if ($("only-proofs")) $("only-proofs").setAttribute("aria-pressed", "false");
  state.groups.clear();
  filter();
}

async function show(step) {
  const asked = ++state.asked, run = DATA.runs[state.run];
  state.seq = step[STEP.seq];
  history.replaceState(null, "", "#run=" + state.run + "&seq=" + step[STEP.seq]);
  const made = await detailOf(run, state.steps, step);
  if (asked !== state.asked) return;
  $("detail").replaceChildren(made);
  $("detail").scrollTop = 0;
}

function overview(anchor) {
  state.run = -1;
  document.querySelectorAll("main > section").forEach((s) => { s.hidden = s.id === "run"; });
  const target = anchor && $(anchor);
  if (target) target.scrollIntoView();
}

function route() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.has("run")) return overview(location.hash.slice(1));
  return openRun(Number(asked.get("run")), asked.has("seq") ? Number(asked.get("seq")) : null);
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  named();
}

// The button says where it leads.
function named() {
  const set = document.documentElement.dataset.theme;
  $("theme").textContent = (set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches) ? "Light" : "Dark";
}

function nextRun(by) {
  for (let n = state.run + by; n >= 0 && n < DATA.runs.length; n += by) if (DATA.runs[n].count) { location.hash = "#run=" + n; return; }
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape") { if (typing) { $("list") && $("list").focus(); } else location.hash = "#overview"; return; }
  if (typing) return;
  const list = state.list, open = state.run >= 0 && list, inList = event.target === $("list") || event.target === document.body;
  const page = open ? Math.max(1, Math.floor(list.box.clientHeight / ROW) - 1) : 1, proofs = open ? proofsOf(state.run) : null;
  const move = (n) => { if (n >= 0) list.select(n); };
  const acts = {
    "?": () => $("help").showModal(), t: theme, o: () => { location.hash = "#overview"; },
    "/": () => open && $("search").focus(), "]": () => nextRun(1), "[": () => open && nextRun(-1),
    j: () => open && move(list.at + 1), k: () => open && move(Math.max(0, list.at - 1)),
    n: () => open && move(list.find(list.at, (s) => proofs.has(s[STEP.seq]) || proofs.has(s[STEP.end]))),
    p: () => open && move(list.find(list.at, (s) => proofs.has(s[STEP.seq]) || proofs.has(s[STEP.end]), true)),
    d: () => open && move(list.find(list.at, (s) => s[STEP.group] === "denial" || s[STEP.group] === "refusal")),
  };
  const arrows = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
  if (open && inList && event.key in arrows) move(Math.max(0, list.at + arrows[event.key]));
  else if (open && inList && event.key === "Home") move(0);
  else if (open && inList && event.key === "End") move(list.shown.length - 1);
  else if (acts[event.key]) acts[event.key]();
  else return;
  event.preventDefault();
}

addEventListener("hashchange", route);
addEventListener("keydown", key);
for (const [when, printing] of [["beforeprint", true], ["afterprint", false]]) addEventListener(when, () => {
  if (state.run < 0) return;
  state.list.printing = printing;
  state.list.draw();
});
$("theme").addEventListener("click", theme);
$("help-button").addEventListener("click", () => $("help").showModal());
named();
route();
document.documentElement.dataset.ready = "yes";
