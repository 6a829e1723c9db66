"""A session drives the guard: commands in, envelopes out, every step recorded."""

from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.lease import Lease
from deskcert.session.points import AtPoint, Pause, PauseAt, all_of, nothing, pause_from
from deskcert.session.session import Session

__all__ = ["AtPoint", "Budget", "Lease", "Options", "Pause", "PauseAt", "Session", "all_of", "nothing", "pause_from"]
