// The dispatch board: vans are released over a line that stays open, and what anybody does is shown to all.
"use strict";
(() => {
  const { toast, logActivity, showState, faultOf } = window.larkfield;
  const sign = document.getElementById("wire");
  const row = (van) => document.querySelector(`main [data-row="${van}"]`);
  const line = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/dispatch/live`);
  const buttons = document.querySelectorAll("[data-release]");
  line.onopen = () => {
    sign.className = "wire on";
    sign.textContent = "Live";
    for (const button of buttons) button.disabled = false;
  };
  line.onclose = () => {
    sign.className = "wire";
    sign.textContent = "Connection lost";
    for (const button of buttons) button.disabled = true;
  };
  line.onmessage = (event) => {
    const { van, state, said, error } = JSON.parse(event.data);
    const button = row(van)?.querySelector("[data-release]");
    button?.removeAttribute("aria-busy");
    if (error) return toast(error, "bad");
    if (button) showState(button, state);
    logActivity(said);
    toast(said);
  };
  for (const button of buttons) {
    button.addEventListener("click", (event) => {
      if (faultOf("trusted_only", "/dispatch/live") && !event.isTrusted) return;
      button.setAttribute("aria-busy", "true");
      line.send(JSON.stringify({ release: Number(button.dataset.release) }));
    });
  }
})();
