// deskcert over JSON lines, in JavaScript: no packages. As a program it reads the task and says what it sees.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export class Desk {
  #lines; #write; #last = 0;
  static async open(input = process.stdin, output = process.stdout) {
    const desk = new Desk();
    desk.#lines = createInterface({ input })[Symbol.asyncIterator]();
    desk.#write = (text) => output.write(text);
    desk.task = await desk.#receive(); // {"type": "task", "task": …, "budget": …, "start_url": …}
    return desk;
  }
  // One command, its envelope: ask("click", {ref: "@s8f3k2p9:e8"}). Throws when the run is over.
  async ask(command, args = {}) {
    const id = ++this.#last;
    this.#write(JSON.stringify({ id, command, args }) + "\n");
    for (;;) {
      const answer = await this.#receive();
      if (answer.id === id) return answer;
    }
  }
  async #receive() {
    const { value, done } = await this.#lines.next();
    const message = done ? { type: "end", reason: "error" } : JSON.parse(value);
    if (message.type === "end") throw new Error(`the run is over: ${message.reason}`);
    return message;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const desk = await Desk.open();
  const page = await desk.ask("snapshot", { interactive_only: true });
  console.error(page.ok ? page.data.text : page.error);
  await desk.ask("finish", { outcome: "unsure", message: `looked only; the task was: ${desk.task.task}` });
  process.exit(0);
}
