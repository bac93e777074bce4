"""What all providers behind HTTP have in common: one call from the request to its terminal event."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from features.contracts.clock import Clock, unix_ms
from features.contracts.messages import ImageBlock, Message, StopReason, ToolResultMessage, UserMessage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import BlockEvent, PartialMessage, StreamDone, StreamEvent, StreamFailed, StreamStarted
from features.models.catalogue import Catalogue
from features.models.client_lanes import ClientLanes
from features.models.config import ProviderConfig
from features.models.failures import UpstreamFailure, is_image_refusal, status_failure
from features.models.normalise import Target
from features.models.sse import StreamLimits, StreamStalled, event_data
from features.models.transcript import TranscriptCache, WireEncoder

if TYPE_CHECKING:
    import httpx2

__all__ = ["AnswerReader", "HttpProvider", "ProviderServices"]

log = logging.getLogger("pumice.models")
_DRAIN_S = 0.25
_MAX_REFUSED_IMAGES = 64


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


class HttpProvider(ABC):
    """Implements ``Provider`` over an official SDK's client.

    The SDK gives connections, authentication and errors. The body is joined from bytes that are kept between calls (``Transcript``) and the
    events are decoded here, because the SDKs walk every message before they send and build a model object for every event.

    When the service cannot take an image of the conversation, the request is put once more with a note in its place, now and from then
    on; otherwise one bad image would fail every later call of its session.
    """

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices, encode: WireEncoder) -> None:
        self.name = config.name
        self._config = config
        self._catalogue = catalogue
        self._services = services
        self._transcripts = TranscriptCache(encode, services.clock)
        self._refused_images: dict[str, frozenset[str]] = {}
        self._lanes = ClientLanes(self._open_client)

    @abstractmethod
    def _body(self, model: Model, request: ModelRequest) -> bytes:
        """The whole request."""

    @abstractmethod
    def _reader(self, model: Model, partial: PartialMessage) -> AnswerReader: ...

    @abstractmethod
    def _open_client(self) -> Any:
        """Import the SDK and build a client; called on a worker thread."""

    @abstractmethod
    async def _send(self, client: Any, body: bytes) -> "httpx2.Response":
        """Put the request and return the streamed response; the SDK's errors pass through."""

    @property
    @abstractmethod
    def _sdk_errors(self) -> tuple[type[Exception], type[Exception]]:
        """The SDK's status error and its connection error."""

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = PartialMessage(api=model.api, provider=self.name, model=model.id, timestamp=unix_ms(self._services.clock.now()))
        reader = self._reader(model, partial)
        request = msgspec.structs.replace(request, messages=list(request.messages))  # the list is the agent's and may grow
        started = False
        try:
            self._check_key()
            body = self._body(model, request)
            started = True
            yield StreamStarted(partial=partial)
            async with self._services.slots, aclosing(self._answer(model, request, body, reader)) as events:
                async for event in events:
                    yield event
            closing, stop_reason = reader.settle()
            for event in closing:
                yield event
            message = partial.finish(stop_reason)
        except Exception as error:
            failure = self._understand(error)
            if not started:
                yield StreamStarted(partial=partial)
            reader.abandon()
            yield StreamFailed(
                message=partial.finish("error", error_message=str(failure)), kind=failure.kind, retry_after_s=failure.retry_after_s
            )
            return
        yield StreamDone(message=message)

    async def close(self) -> None:
        self._transcripts.clear()
        await self._lanes.close()

    def _messages(self, model: Model, request: ModelRequest, target: Target) -> list[bytes | bytearray]:
        refused = self._refused_images.get(request.session_id)
        if refused:
            target = msgspec.structs.replace(target, refused_images=refused)
        return self._transcripts.pieces(request.session_id, target, request.messages)

    async def _answer(self, model: Model, request: ModelRequest, body: bytes, reader: AnswerReader) -> AsyncGenerator[BlockEvent, None]:
        async with self._lanes.client() as client:
            response = await self._respond(client, model, request, body)
            try:
                async with aclosing(self._read(response, reader)) as events:
                    async for event in events:
                        yield event
            finally:
                await response.aclose()

    async def _read(self, response: "httpx2.Response", reader: AnswerReader) -> AsyncGenerator[BlockEvent, None]:
        chunks = response.aiter_bytes()
        heard = False
        async with aclosing(event_data(chunks, self._services.limits)) as payloads:
            async for data in payloads:
                heard = True
                for event in reader.feed(data):
                    yield event
                if reader.ended:
                    break
        if not heard:
            self._check_type(response)
        if reader.ended:
            await _drain(chunks)

    async def _respond(self, client: Any, model: Model, request: ModelRequest, body: bytes) -> "httpx2.Response":
        try:
            return await self._sent(client, body)
        except self._sdk_errors[0] as error:
            failure = status_failure(error, self._services.clock.now())
            images = _images(request.messages) - self._refused_images.get(request.session_id, frozenset())
            if (
                not images
                or "image" not in model.input
                or failure.kind not in ("invalid", "overflow")
                or not is_image_refusal(str(failure))
            ):
                raise failure from error
            log.warning("image refused", extra={"facts": {"provider": self.name, "model": model.id, "images": len(images)}})
        self._remember_refused(request.session_id, images)
        return await self._sent(client, self._body(model, request))

    async def _sent(self, client: Any, body: bytes) -> "httpx2.Response":
        try:
            async with asyncio.timeout(self._services.limits.first_event_s):
                return await self._send(client, body)
        except TimeoutError:
            raise StreamStalled(f"the service did not answer within {self._services.limits.first_event_s:g} s") from None

    def _remember_refused(self, session_id: str, images: frozenset[str]) -> None:
        known = self._refused_images.pop(session_id, frozenset())
        self._refused_images[session_id] = known | images
        while len(self._refused_images) > _MAX_REFUSED_IMAGES:
            del self._refused_images[next(iter(self._refused_images))]

    def _check_key(self) -> None:
        """Raise before anything is sent when the configuration has no key and the service wants one."""
        if not self._config.api_key:
            raise UpstreamFailure(
                "auth",
                f"no API key for {self.name}; set providers.{self.name}.api_key, for example to env:{self._config.kind.upper()}_API_KEY",
            )

    def _check_type(self, response: "httpx2.Response") -> None:
        kind = response.headers.get("content-type", "no content type")
        if "event-stream" not in kind:
            raise UpstreamFailure(
                "invalid",
                f"{response.request.url.host} answered with {kind} where events were expected; check providers.{self.name}.base_url",
            )

    def _understand(self, error: Exception) -> UpstreamFailure:
        if isinstance(error, UpstreamFailure):
            return error
        if isinstance(error, StreamStalled):
            return UpstreamFailure("network", str(error))
        if isinstance(error, ImportError):
            extra = "anthropic" if self._config.kind == "anthropic" else "openai"
            return UpstreamFailure("invalid", f"the {extra} package is not installed ({error}); install pumice[{extra}]")
        if self._lanes.opened:
            import httpx2

            status_error, connection_error = self._sdk_errors
            if isinstance(error, status_error):
                return status_failure(error, self._services.clock.now())
            if isinstance(error, (connection_error, httpx2.HTTPError)):
                cause = error.__cause__ or error
                return UpstreamFailure("network", f"connection to {self.name} failed: {type(cause).__name__} {cause}".rstrip())
        error_id = self._services.ids()
        log.error("model call broke", exc_info=error, extra={"facts": {"provider": self.name, "error_id": error_id}})
        return UpstreamFailure("unknown", f"unexpected {type(error).__name__} (error {error_id})")


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can be used again."""
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass


def _images(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset(
        block.data
        for message in messages
        if isinstance(message, (UserMessage, ToolResultMessage)) and not isinstance(message.content, str)
        for block in message.content
        if isinstance(block, ImageBlock)
    )
