// Items of the stock list as web components: an open shadow root for each, a closed one for what is held back.
"use strict";
(() => {
  const { bind, toast, logActivity } = window.larkfield;
  const sheet = () => Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/office.css" });
  const piece = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });

  customElements.define("stock-item", class extends HTMLElement {
    connectedCallback() {
      const { item, name, sku, level, target, state } = this.dataset;
      const root = this.attachShadow({ mode: "open" });
      const card = piece("section", "card shelf");
      card.dataset.row = item;
      card.setAttribute("aria-label", `Item ${item}`);
      const head = piece("div", "split");
      const mark = piece("span", `badge ${state}`, { low: "Low", enough: "Enough", reordered: "Reordered" }[state]);
      const holder = piece("span", "");
      holder.dataset.state = "";
      holder.append(mark);
      head.append(piece("small", "mono", sku), holder);
      const meter = piece("div", `meter ${state}`);
      meter.setAttribute("role", "meter");
      meter.setAttribute("aria-label", `Level of item ${item}`);
      for (const [key, value] of [["valuemin", 0], ["valuemax", target], ["valuenow", level]]) meter.setAttribute(`aria-${key}`, value);
      const fill = document.createElement("i");
      fill.style.width = `${Math.min(100, (100 * level) / target)}%`;
      meter.append(fill);
      const foot = piece("div", "split");
      const button = piece("button", "btn primary", "Reorder");
      Object.assign(button, { type: "button", hidden: state !== "low" });
      Object.assign(button.dataset, { act: "reorder", url: `/api/stock/${item}/reorder`, when: "low" });
      const actions = piece("div", "actions");
      actions.append(button);
      foot.append(piece("span", "dim", `${level} of ${target}`), actions);
      card.append(head, piece("h3", "", name), meter, foot);
      root.append(sheet(), card);
      bind(button, { act: "reorder", url: button.dataset.url });
    }
  });

  customElements.define("price-lock", class extends HTMLElement {
    connectedCallback() {
      const { item, product, price } = this.dataset;
      const root = this.attachShadow({ mode: "closed" });
      const line = piece("div", "split");
      const words = piece("div", "lockline");
      words.append(piece("b", "", price), piece("span", "dim", product));
      const button = piece("button", "btn", "Release price");
      button.type = "button";
      button.addEventListener("click", async () => {
        const answer = await fetch(`/api/stock/${item}/price`, { method: "POST", body: "{}" });
        const found = await answer.json();
        if (answer.ok) { logActivity(found.said); line.remove(); }
        toast(answer.ok ? found.said : found.error, answer.ok ? "" : "bad");
      });
      line.append(words, button);
      root.append(sheet(), line);
    }
  });
})();
