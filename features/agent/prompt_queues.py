"""What people say while a run is going on."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from features.agent.options import QueueMode
from features.contracts.agent import Prompt
from features.contracts.errors import SessionBusyError

__all__ = ["PromptQueues"]

_MAX_WAITING = 64


class PromptQueues:
    """Two queues in the order of arrival.

    Steering joins the run before its next model call; a follow-up when the run would otherwise stop. What is left when a run ends stays
    for the next one, unless somebody takes it. ``next_turn`` are messages of extensions that join the next run's prompt.

    Args:
        changed: called after every change.
    """

    def __init__(self, *, steering_mode: QueueMode, follow_up_mode: QueueMode, changed: Callable[["PromptQueues"], None]) -> None:
        self._steering: deque[Prompt] = deque()
        self._follow_ups: deque[Prompt] = deque()
        self.next_turn: deque[Prompt] = deque()
        self._steering_mode = steering_mode
        self._follow_up_mode = follow_up_mode
        self._changed = changed

    @property
    def steering(self) -> tuple[Prompt, ...]:
        return tuple(self._steering)

    @property
    def follow_ups(self) -> tuple[Prompt, ...]:
        return tuple(self._follow_ups)

    def put(self, prompt: Prompt, how: Literal["steer", "follow_up"]) -> None:
        """Let a prompt wait.

        Raises:
            SessionBusyError: 64 of its kind wait already.
        """
        queue = self._steering if how == "steer" else self._follow_ups
        if len(queue) >= _MAX_WAITING:
            raise SessionBusyError(f"{_MAX_WAITING} messages wait for this run already; try again once it has taken some")
        queue.append(prompt)
        self._changed(self)

    def take_steering(self) -> tuple[Prompt, ...]:
        return self._take(self._steering, self._steering_mode)

    def take_follow_ups(self) -> tuple[Prompt, ...]:
        return self._take(self._follow_ups, self._follow_up_mode)

    def put_back(self, prompts: Sequence[Prompt], how: Literal["steer", "follow_up"]) -> None:
        """Return what was taken and could not be stored to the front."""
        queue = self._steering if how == "steer" else self._follow_ups
        queue.extendleft(reversed(prompts))
        self._changed(self)

    def put_for_next_turn(self, prompt: Prompt) -> None:
        """
        Raises:
            SessionBusyError: 64 wait already.
        """
        if len(self.next_turn) >= _MAX_WAITING:
            raise SessionBusyError(f"{_MAX_WAITING} messages wait for the next prompt already")
        self.next_turn.append(prompt)

    def take_all(self) -> tuple[Prompt, ...]:
        """What people said; messages of extensions stay."""
        return self._take_where(lambda prompt: prompt.custom is None)

    def take_custom(self) -> tuple[Prompt, ...]:
        """The messages of extensions."""
        return self._take_where(lambda prompt: prompt.custom is not None)

    @property
    def has_custom(self) -> bool:
        return any(prompt.custom is not None for prompt in (*self._steering, *self._follow_ups))

    def _take_where(self, wanted: Callable[[Prompt], bool]) -> tuple[Prompt, ...]:
        taken = tuple(prompt for prompt in (*self._steering, *self._follow_ups) if wanted(prompt))
        if taken:
            for queue in (self._steering, self._follow_ups):
                left = [prompt for prompt in queue if not wanted(prompt)]
                queue.clear()
                queue.extend(left)
            self._changed(self)
        return taken

    def _take(self, queue: deque[Prompt], mode: QueueMode) -> tuple[Prompt, ...]:
        if not queue:
            return ()
        taken = (queue.popleft(),) if mode == "one" else tuple(queue)
        if mode == "all":
            queue.clear()
        self._changed(self)
        return taken
