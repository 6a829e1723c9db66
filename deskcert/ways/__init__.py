"""The ways in: MCP, a command-line session, JSON lines, Python. All end at one `Session.handle`."""
