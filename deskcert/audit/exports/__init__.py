"""Runs in other tools' formats, one module a format. What they share is `events`."""
