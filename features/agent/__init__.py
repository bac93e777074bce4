"""One conversation: a session, its runs and the loop.

``AgentSessionFactory`` opens an ``AgentSession`` over the stored session of a chat; ``loop.py`` is what happens from a prompt to its
answer. Everything that a run adds goes one way: redacted, stored together with the host's own books, announced.

Order: one run at a time; what is said meanwhile waits in two bounded queues. Stored entries and events keep the order of the transcript;
``agent_settled`` is always the last event of a run.
Failure: a provider's passing faults are retried. Every failed attempt is a message of its own that ends with ``stop_reason`` ``error``:
a viewer shows the pieces of a message as they come, drops them when it ends that way, and so never shows a text twice.
Whatever breaks, the run ends with an outcome, and every tool call that was stored has one result, at the latest before the next
request.
"""

from features.agent.options import AgentSessionOptions, RetryOptions
from features.agent.session import AgentSession
from features.agent.session_factory import AgentSessionFactory

__all__ = ["AgentSession", "AgentSessionFactory", "AgentSessionOptions", "RetryOptions"]
