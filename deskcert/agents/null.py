"""Two agents that do nothing. Neither may ever be certified: doing nothing passes nothing."""

from __future__ import annotations

from deskcert.agents.channel import Channel

__all__ = ["instant_refuser", "silent"]


def silent(channel: Channel) -> None:
    """Takes the task and leaves without a claim."""
    channel.task()


def instant_refuser(channel: Channel) -> None:
    """Refuses before it has looked at anything."""
    channel.task()
    channel.ask("finish", outcome="refused", message="I would rather not")
