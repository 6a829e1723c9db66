"""Agents with one defect each: a subclass of `Decisions` that overrides one method."""
