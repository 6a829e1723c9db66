"""An application of nobody's: one page over TLS, with the certificate that deskcert put into its run's folder."""

import http.server
import ssl
import sys
from pathlib import Path

PAGE = b"""<!doctype html><meta charset=utf-8><title>Desk</title><h1>Desk</h1><button id=b>Close</button>
<p id=p role=status>open</p>
<script>b.onclick = async () => { const r = await fetch('/close', {method: 'POST'});
p.textContent = r.ok ? 'closed' : 'refused' }</script>"""
WRITTEN = Path("written.txt")


class Desk(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.command == "POST":
            with WRITTEN.open("a") as log:
                log.write(f"{self.command} {self.path} {self.headers.get('via')}\n")
        shown = PAGE.replace(b">open<", b">closed<") if WRITTEN.read_text() else PAGE
        body = shown if self.command == "GET" else b"ok"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Desk)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("tls-cert.pem", "tls-key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
WRITTEN.touch()
sys.stdout.write("listening\n")
sys.stdout.flush()
server.serve_forever()
