"""deskcert over JSON lines, in Python: standard library only. As a program it reads the task and says what it sees."""

import json
import sys


class Desk:
    def __init__(self, read=sys.stdin, write=sys.stdout):
        self._read, self._write, self._last = read, write, 0
        self.task = self._receive()  # {"type": "task", "task": …, "budget": …, "start_url": …}

    def ask(self, command, **args):
        """One command, its envelope. `ask("click", ref="@s8f3k2p9:e8")`; raises EOFError when the run is over."""
        self._last += 1
        message = {"id": self._last, "command": command, "args": args}
        self._write.write(json.dumps(message) + "\n")
        self._write.flush()
        while (answer := self._receive()).get("id") != self._last:
            pass
        return answer

    def _receive(self):
        line = self._read.readline()
        message = json.loads(line) if line else {"type": "end", "reason": "error"}
        if message.get("type") == "end":
            raise EOFError(message["reason"])
        return message


if __name__ == "__main__":
    desk = Desk()
    page = desk.ask("snapshot", interactive_only=True)
    print(page["data"]["text"] if page["ok"] else page["error"], file=sys.stderr)
    desk.ask("finish", outcome="unsure", message=f"looked only; the task was: {desk.task['task']}")
