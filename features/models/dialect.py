"""A wire form: how a request is written for a service and how its answer is read."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

import msgspec

from features.contracts.clock import Clock
from features.contracts.messages import StopReason, Usage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import BlockEvent, PartialMessage
from features.models.catalogue import Catalogue
from features.models.normalise import Target
from features.models.sse import StreamLimits
from features.models.transcript import TranscriptCache, WireEncoder

__all__ = ["AnswerReader", "Dialect", "ProviderServices"]


class ProviderServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the registry hands to each provider. ``slots`` bounds the calls that go on at a time, over all providers."""

    clock: Clock
    ids: Callable[[], str]
    slots: asyncio.Semaphore
    limits: StreamLimits


class AnswerReader(Protocol):
    """Contract.

    - ``feed`` takes the data of one event and returns what it says, in order; it raises UpstreamFailure for an error event.
    - ``ended`` is True once the service's own terminal event was seen.
    - ``settle`` closes what is open and gives the stop reason, or raises UpstreamFailure; ``abandon`` closes it after a failure.
    """

    ended: bool

    def feed(self, data: bytes) -> Iterable[BlockEvent]: ...

    def settle(self) -> tuple[list[BlockEvent], StopReason]: ...

    def abandon(self) -> None: ...


class Dialect(ABC):
    """Keeps what it has written of each session (see ``Transcript``); losing that costs time alone."""

    api: ClassVar[str]

    def __init__(self, provider: str, catalogue: Catalogue, services: ProviderServices, encode: WireEncoder) -> None:
        self._provider = provider
        self._catalogue = catalogue
        self._services = services
        self._transcripts = TranscriptCache(encode, services.clock)

    @abstractmethod
    def path(self, model: Model) -> str:
        """Where to put the request, below the service's base address."""

    @abstractmethod
    def body(self, model: Model, request: ModelRequest, refused_images: frozenset[str]) -> bytes:
        """The whole request."""

    @abstractmethod
    def reader(self, model: Model, partial: PartialMessage) -> AnswerReader: ...

    def clear(self) -> None:
        self._transcripts.clear()

    def _target(self, model: Model, request: ModelRequest, refused_images: frozenset[str]) -> Target:
        return Target(
            provider=self._provider,
            api=self.api,
            model=model.id,
            images="image" in model.input,
            thinking=False,
            time_zone=request.time_zone,
            refused_images=refused_images,
        )

    def _messages(self, request: ModelRequest, target: Target) -> list[bytes | bytearray]:
        return self._transcripts.pieces(request.session_id, target, request.messages)

    def _price(self, model: Model) -> Callable[[Usage], Usage]:
        def price(usage: Usage) -> Usage:
            return msgspec.structs.replace(usage, cost=self._catalogue.cost(model, usage, self._services.clock.now()))

        return price
