"""A provider of models, in the smallest form: it repeats what was said last. Choose it with ``/model parrot/loud``.

A provider is asked with the whole conversation and answers with a stream of events. It never raises: what goes wrong is its last event,
a ``StreamFailed``, whose kind says whether trying again makes sense. Keep to the order of ``features/contracts/stream.py``.
"""

from collections.abc import AsyncGenerator

from features.contracts.clock import Clock, unix_ms
from features.contracts.extensions import ExtensionApi
from features.contracts.messages import UserMessage, message_text
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import (
    PartialMessage,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamStarted,
    TextDelta,
    TextEnded,
    TextStarted,
)

MODELS = [
    Model(provider="parrot", id="quiet", api="parrot", name="Parrot, quiet", context_window=32_000, max_output=4_000),
    Model(provider="parrot", id="loud", api="parrot", name="Parrot, loud", context_window=32_000, max_output=4_000),
]


async def activate(api: ExtensionApi) -> None:
    api.register_provider(ParrotProvider(api.clock), MODELS)


class ParrotProvider:
    """Implements ``features.contracts.models.Provider``."""

    name = "parrot"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        said = next((message_text(message) for message in reversed(request.messages) if isinstance(message, UserMessage)), "")
        partial = PartialMessage(api=model.api, provider=self.name, model=model.id, timestamp=unix_ms(self._clock.now()))
        yield StreamStarted(partial=partial)
        if not said.strip():
            failed = partial.finish("error", error_message="A parrot repeats texts, and there is none.")
            yield StreamFailed(message=failed, kind="invalid")
            return
        index = partial.open("text")
        yield TextStarted(content_index=index)
        for word in (said.upper() if model.id == "loud" else said.lower()).split(" "):
            piece = f"{word} "
            partial.append(index, piece)
            yield TextDelta(content_index=index, delta=piece)
        yield TextEnded(content_index=index)
        yield StreamDone(message=partial.finish("stop"))

    async def close(self) -> None:
        """Nothing is held."""
