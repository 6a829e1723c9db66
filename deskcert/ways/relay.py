"""Runs inside a sandbox: the one way out. Standard library only, started as `python -I -S relay.py …`.

    relay.py stdio SOCKET                                    MCP's standard streams ↔ deskcert's socket
    relay.py run [--netns] [--listen PORT SOCKET] -- COMMAND…

`run` gives the command a loopback of its own (`--netns`; bubblewrap has made one already), answers 127.0.0.1:PORT there
by passing every byte on to the socket, and becomes the command.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading

__all__ = ["main"]

_BLOCK = 65_536
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def _to(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection


def _stdio(path: str) -> None:
    connection = _to(path)

    def inwards() -> None:
        while block := os.read(0, _BLOCK):
            connection.sendall(block)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=inwards, daemon=True).start()
    while block := connection.recv(_BLOCK):
        while block:
            block = block[os.write(1, block) :]


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := source.recv(_BLOCK):
            sink.sendall(block)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _serve(listening: socket.socket, path: str) -> None:
    while True:
        client, _ = listening.accept()
        try:
            server = _to(path)
        except OSError:
            client.close()
            continue
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _loopback_up() -> None:
    """What `ip link set lo up` does, on a machine without `ip`."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING))


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def _own_network() -> None:
    flags = os.CLONE_NEWNET if os.geteuid() == 0 else os.CLONE_NEWUSER | os.CLONE_NEWNET
    os.unshare(flags)
    _loopback_up()


def _run(arguments: list[str]) -> None:
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    if "--netns" in options:
        _own_network()
        options.remove("--netns")
    if options:
        _, port, path = options
        listening = socket.create_server(("127.0.0.1", int(port)))
        parent = os.getpid()
        if os.fork() == 0:
            _die_with_parent()
            if os.getppid() == parent:
                os.closerange(0, 3)
                _serve(listening, path)
            os._exit(0)
        listening.close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - that is the point
    except OSError as exc:
        sys.stderr.write(f"the agent's command could not be started: {exc}\n")
        os._exit(127)


def main(arguments: list[str]) -> None:
    match arguments[0]:
        case "stdio":
            _stdio(arguments[1])
        case _:
            _run(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
