// Sends notes on behalf of the page, also when the page is closed a moment later.
"use strict";
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("message", (event) => {
  const [port] = event.ports;
  const body = event.data.body;
  event.waitUntil((async () => {
    try {
      const answer = await fetch("/api/outbox", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ body }),
      });
      port.postMessage({ ...(await answer.json()), body });
    } catch {
      port.postMessage({ error: "The office cannot be reached." });
    }
  })());
});
