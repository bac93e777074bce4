"""Commands and web addresses that are told what happens in a session.

Owns a queue and a worker per hook; entries come from the configuration.
Order: one hook hears the events of the host in order, one at a time.
Failure: a hook never delays or fails what it is told about. It is cut after its time, events that its queue cannot hold are dropped, and
its trouble is logged once when it begins and once when it is over.
"""

from features.hooks.hook import Hook
from features.hooks.hooks import Hooks

__all__ = ["Hook", "Hooks"]
