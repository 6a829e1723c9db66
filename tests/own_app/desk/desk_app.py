"""A small ticket desk with a log-in, on the standard library: what a user's own application looks like to deskcert.

It is a bad keeper of its key: it prints it, shows it on its page and repeats it in its errors. It also leaves a process
behind that has a session of its own and no environment.
"""

import json
import os
import sqlite3
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

PORT, PLACE = int(sys.argv[1]), sys.argv[2]
KEY = os.environ["DESK_KEY"]
STRAY = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def database():
    return sqlite3.connect(PLACE)


PAGE = """<!doctype html><title>Desk</title><h1>Tickets</h1><p>Your key is {key}</p>
<ul>{rows}</ul>"""
ROW = """<li aria-label="Ticket {id}">Ticket {id} is {state}
<form method=post action=/close/{id}><button>Close</button></form></li>"""
LOGIN = """<!doctype html><title>Log in</title><form method=post action=/login>
<label>Password <input name=password type={kind}></label><button>Log in</button></form>"""


class Desk(BaseHTTPRequestHandler):
    def answer(self, status, body, kind="text/html; charset=utf-8", **headers):
        content = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/health":
            return self.answer(200, "well")
        if self.path == "/api/tickets":
            if self.headers.get("X-Key") != KEY:
                return self.answer(403, "wrong key")
            rows = database().execute("select id, state from tickets order by id").fetchall()
            closed = [i for i, state in rows if state == "closed"]
            return self.answer(200, json.dumps({"closed": closed, "count": len(closed)}), "application/json")
        if self.path == "/":
            if "in=yes" not in self.headers.get("Cookie", ""):
                return self.answer(200, LOGIN.format(kind="text"))
            rows = database().execute("select id, state from tickets order by id").fetchall()
            return self.answer(200, PAGE.format(key=KEY, rows="".join(ROW.format(id=i, state=s) for i, s in rows)))
        return self.answer(404, f"nothing here for {KEY}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path == "/reset":
            if self.headers.get("X-Key") != KEY:
                return self.answer(403, f"the key is {KEY}, not {self.headers.get('X-Key')}")
            with database() as d:
                d.execute("update tickets set state = 'open'")
            return self.answer(200, "done")
        if self.path == "/login":
            good = parse_qs(body).get("password") == [KEY]
            return self.answer(303, "", Location="/", **({"Set_Cookie": "in=yes"} if good else {}))
        if self.path.startswith("/close/"):
            number = int(self.path.rpartition("/")[2])
            with database() as d:
                d.execute("update tickets set state = 'closed' where id = ?", (number,))
            with open("closed.txt", "a") as file:
                file.write(f"ticket {number}\n")
            return self.answer(303, "", Location="/")
        return self.answer(404, "nothing here")

    def log_message(self, *args):
        print("asked with", KEY, *args, flush=True)


stray = subprocess.Popen(
    [sys.executable, "-c", STRAY], env={}, start_new_session=True, stdout=subprocess.PIPE, text=True
)
print("stray", stray.stdout.readline().strip(), flush=True)
server = ThreadingHTTPServer(("127.0.0.1", PORT), Desk)
print("listening with the key", KEY, flush=True)
server.serve_forever()
