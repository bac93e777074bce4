"""Whether and when a failed model call is repeated."""

from random import Random

from features.agent.model_call import CallFailure
from features.agent.options import RetryOptions

__all__ = ["Retries"]

_PASSING = frozenset({"rate_limit", "overloaded", "server", "network"})


class Retries:
    def __init__(self, options: RetryOptions, random: Random) -> None:
        self.options = options
        self._random = random

    def delay(self, failure: CallFailure, attempt: int) -> float | None:
        """Seconds until the call is repeated, None when it is not.

        Args:
            attempt: which repetition it would be, from 1.
        """
        if failure.kind not in _PASSING or attempt > self.options.max_attempts or self.asks_too_much(failure):
            return None
        backoff = min(self.options.base_delay_s * 2.0 ** min(attempt - 1, 32), self.options.max_delay_s) * self._random.uniform(0.75, 1.0)
        if failure.retry_after_s is None:
            return backoff
        # A little later than asked for, since everybody else was told the same moment.
        return max(backoff, failure.retry_after_s * self._random.uniform(1.0, 1.1))

    def asks_too_much(self, failure: CallFailure) -> bool:
        """Whether the service wants a longer wait than this host grants."""
        return failure.kind in _PASSING and failure.retry_after_s is not None and failure.retry_after_s > self.options.max_delay_s
