"""The smallest family: broadcast among nodes that can each send to one other per round, in the fewest rounds."""

from toy_broadcast.family import FAMILY

__all__ = ["FAMILY"]
