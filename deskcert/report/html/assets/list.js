// A list that holds 100,000 steps: only what is in view is in the document.
const ROW = 40;

class StepList {
  constructor(box, onSelect) {
    this.box = box;
    this.onSelect = onSelect;
    this.filler = el("div", { class: "filler" });
    this.rows = new Map();
    this.shown = [];
    this.proofs = new Set();
    this.at = -1;
    this.waiting = false;
    this.printing = false;
    box.replaceChildren(this.filler);
    box.addEventListener("scroll", () => this.later(), { passive: true });
    box.addEventListener("click", (event) => {
      const row = event.target.closest(".step");
      if (row) this.select(Number(row.dataset.at), false);
    });
    new ResizeObserver(() => this.later()).observe(box);
  }

  fill(shown, proofs) {
    this.shown = shown;
    this.proofs = proofs;
    this.at = -1;
    this.rows.forEach((row) => row.remove());
    this.rows.clear();
    this.filler.style.height = shown.length * ROW + "px";
    this.box.removeAttribute("aria-activedescendant");
    this.box.scrollTop = 0;
    this.draw();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const everything = this.printing;
    const height = this.box.clientHeight || 600;
    const first = everything ? 0 : Math.max(0, Math.floor(this.box.scrollTop / ROW) - 8);
    const last = everything ? Math.min(this.shown.length, 2000) : Math.min(this.shown.length, Math.ceil((this.box.scrollTop + height) / ROW) + 8);
    for (const [n, row] of this.rows) if (n < first || n >= last) { row.remove(); this.rows.delete(n); }
    const fresh = document.createDocumentFragment();
    for (let n = first; n < last; n++) if (!this.rows.has(n)) {
      const row = this.make(n);
      this.rows.set(n, row);
      fresh.append(row);
    }
    this.filler.append(fresh);
  }

  make(n) {
    const s = this.shown[n];
    const proof = this.proofs.has(s[STEP.seq]) || this.proofs.has(s[STEP.end]);
    const row = el("div", { class: "step" + (proof ? " proof" : "") + (s[STEP.tone] === "quiet" ? " quiet-row" : ""), role: "option", id: "s" + n, "aria-selected": String(n === this.at), "aria-posinset": n + 1, "aria-setsize": this.shown.length });
    row.dataset.at = n;
    row.style.top = n * ROW + "px";
    const out = s[STEP.rule] ? "denied · " + s[STEP.rule] : [words(s[STEP.outcome]), words(s[STEP.code])].filter(Boolean).join(" · ");
    const wait = s[STEP.waited] > 150 ? " · waited " + clock(s[STEP.waited]) : "";
    row.append(el("span", { class: "n" }, String(s[STEP.seq])), el("span", { class: "at" }, clock(s[STEP.at])),
      el("span", { class: "text" }, el("span", { class: "verb" }, plain(s[STEP.what], 40)), " ", el("bdi", {}, plain(s[STEP.target], 160)), el("span", { class: "quiet" }, wait)),
      out ? el("span", { class: "out " + s[STEP.tone] }, plain(out, 60)) : "");
    return row;
  }

  select(n, scroll = true) {
    if (this.shown.length === 0) return;
    n = Math.max(0, Math.min(this.shown.length - 1, n));
    const before = this.rows.get(this.at);
    if (before) before.setAttribute("aria-selected", "false");
    this.at = n;
    if (scroll) {
      const top = n * ROW, height = this.box.clientHeight;
      if (top < this.box.scrollTop || top + ROW > this.box.scrollTop + height) this.box.scrollTop = top - height / 3;
    }
    this.draw();
    const row = this.rows.get(n);
    if (row) { row.setAttribute("aria-selected", "true"); this.box.setAttribute("aria-activedescendant", row.id); }
    this.onSelect(this.shown[n]);
  }

  find(from, wanted, back = false) {
    for (let i = 1; i <= this.shown.length; i++) {
      const n = (from + (back ? -i : i) + this.shown.length * 2) % this.shown.length;
      if (wanted(this.shown[n])) return n;
    }
    return -1;
  }
}
