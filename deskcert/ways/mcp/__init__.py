"""Model Context Protocol: one server object for one guarded session, over stdio, HTTP or a socket."""
