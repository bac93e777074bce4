"""What the extensions of a session need of it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from features.contracts.agent import Prompt
from features.contracts.events import ExtensionError
from features.contracts.extensions import ExecResult, SessionView
from features.contracts.messages import CustomMessage, UserBlock
from features.contracts.models import Model, Provider, ThinkingLevel

__all__ = ["Deliver", "SessionPort"]

Deliver = Literal["now", "steer", "follow_up", "next_turn"]


class SessionPort(SessionView, Protocol):
    """Contract.

    - ``owner`` says whether an owner of the host asked for the run that is going on; False where none is.
    - ``add_entry`` stores a custom entry at the end of the branch and gives its id; ``clean`` takes secrets out of JSON data.
    - ``send`` puts a message into the conversation as ``deliver`` says: into the run that is going on; where none is, a run begins with it
      once this has returned, except for ``next_turn``. ``hooked`` is False for one that no handler of ``message_end`` may see,
      ``chained`` True for one that follows from a run.
    - ``follow_up_waits`` is told when a follow-up has come; the session takes it once it has settled.
    - ``abort`` with ``wait`` False returns at once.
    """

    @property
    def owner(self) -> bool: ...

    def clean(self, value: Any) -> Any: ...

    def report(self, error: ExtensionError) -> None: ...

    async def add_entry(self, custom_type: str, data: Any) -> str: ...

    def new_id(self) -> str: ...

    async def send(self, message: CustomMessage, deliver: Deliver, *, extension: str, owner: bool, hooked: bool, chained: bool) -> None: ...

    def new_message(self, custom_type: str, content: str | list[UserBlock], *, display: bool, details: Any) -> CustomMessage: ...

    def follow_up_waits(self) -> None: ...

    async def start(self, prompt: Prompt, *, extension: str, id: str) -> None: ...

    async def set_model(self, reference: str) -> None: ...

    async def set_thinking(self, level: ThinkingLevel) -> None: ...

    async def set_name(self, name: str) -> None: ...

    async def set_label(self, entry_id: str, label: str | None) -> None: ...

    async def compact(self, instructions: str) -> None: ...

    async def move_to(self, entry_id: str | None) -> None: ...

    async def fork(self, entry_id: str | None) -> str: ...

    async def new_session(self, name: str) -> str: ...

    async def switch_session(self, session_id: str) -> None: ...

    async def reload(self) -> None: ...

    async def abort(self, *, wait: bool) -> None: ...

    def system_prompt(self) -> str: ...

    def add_provider(self, provider: Provider, models: Sequence[Model]) -> None:
        """Raises ValueError for a name that is taken."""

    def remove_provider(self, name: str) -> None: ...

    async def exec(
        self, argv: Sequence[str], *, timeout: timedelta, cwd: Path | None, environment: Mapping[str, str], owner: bool
    ) -> ExecResult: ...
