"""A user interface in memory: deterministic, hostile on request; it knows the truth about every delivery."""

from deskcert.adapters.simulator.adapter import Simulator
from deskcert.adapters.simulator.world import Delivered, Element, Fault, World

__all__ = ["Delivered", "Element", "Fault", "Simulator", "World"]
