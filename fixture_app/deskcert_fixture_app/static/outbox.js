// The page hands a note to its service worker, and says what the worker says.
"use strict";
(() => {
  const { toast, logActivity } = window.larkfield;
  const form = document.getElementById("outbox");
  const sign = document.getElementById("wire");
  const button = form.querySelector("button");
  const shown = document.getElementById("sent");

  async function start() {
    await navigator.serviceWorker.register("/outbox-worker.js", { scope: "/outbox" });
    const ready = await navigator.serviceWorker.ready;
    sign.className = "wire on";
    sign.textContent = "The outbox is ready";
    button.disabled = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { port1, port2 } = new MessageChannel();
      button.setAttribute("aria-busy", "true");
      port1.onmessage = ({ data }) => {
        button.removeAttribute("aria-busy");
        toast(data.said ?? data.error, data.said ? "" : "bad");
        if (!data.said) return;
        logActivity(data.said);
        const entry = document.createElement("li");
        entry.append(Object.assign(document.createElement("p"), { textContent: data.body }));
        shown.prepend(entry);
        form.reset();
      };
      ready.active.postMessage({ body: new FormData(form).get("body") }, [port2]);
    });
  }
  start().catch(() => (sign.textContent = "This browser has no outbox"));
})();
