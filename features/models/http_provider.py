"""What all providers behind HTTP have in common: one call from the request to its terminal event."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from features.contracts.clock import unix_ms
from features.contracts.messages import ImageBlock, Message, ToolResultMessage, UserMessage
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import BlockEvent, PartialMessage, StreamDone, StreamEvent, StreamFailed, StreamStarted
from features.models.call_hooks import HeaderChanges, hooked_body, hooked_headers, public_headers
from features.models.client_lanes import ClientLanes
from features.models.config import ProviderConfig
from features.models.dialect import AnswerReader, Dialect, ProviderServices
from features.models.failures import UpstreamFailure, is_image_refusal, status_failure
from features.models.sse import StreamStalled, event_data

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpCall", "HttpProvider"]

log = logging.getLogger("pumice.models")
_DRAIN_S = 0.25
_MAX_REFUSED_IMAGES = 64


class HttpCall:
    """A call on its way. ``body`` and ``reader`` change when the request has to be put in another way."""

    def __init__(self, model: Model, request: ModelRequest, partial: PartialMessage, dialect: Dialect) -> None:
        self.model = model
        self.request = request
        self.partial = partial
        self.body = b""
        self.speak(dialect)

    def speak(self, dialect: Dialect) -> None:
        """Use this dialect; nothing of an answer has been read yet."""
        self.dialect = dialect
        self.partial.api = dialect.api
        self.reader: AnswerReader = dialect.reader(self.model, self.partial)

    def write(self, refused_images: frozenset[str]) -> None:
        self.body = self.dialect.body(self.model, self.request, refused_images)


class HttpProvider(ABC):
    """Implements ``Provider`` over an official SDK's client.

    The SDK gives connections, authentication and errors. The body is joined from bytes that are kept between calls (``Transcript``) and the
    events are decoded here, because the SDKs walk every message before they send and build a model object for every event.

    When the service cannot take an image of the conversation, the request is put once more with a note in its place, now and from then
    on; otherwise one bad image would fail every later call of its session.
    """

    extra: str
    """The extra of this package that brings the SDK."""

    def __init__(self, config: ProviderConfig, services: ProviderServices, dialects: Sequence[Dialect]) -> None:
        self.name = config.name
        self._config = config
        self._services = services
        self._dialects = tuple(dialects)
        self._refused_images: dict[str, frozenset[str]] = {}
        self._lanes = ClientLanes(self._open_client)

    @abstractmethod
    def _open_client(self) -> Any:
        """Import the SDK and build a client; called on a worker thread."""

    @abstractmethod
    async def _send(self, client: Any, path: str, body: bytes, headers: HeaderChanges) -> "httpx2.Response":
        """Put the request and return the streamed response; the SDK's errors pass through."""

    @abstractmethod
    def _headers(self, client: Any) -> dict[str, Any]:
        """The headers that the SDK sends with every request, the key among them."""

    @property
    @abstractmethod
    def _sdk_errors(self) -> tuple[type[Exception], type[Exception]]:
        """The SDK's status error and its connection error."""

    def _dialect(self, model: Model) -> Dialect:
        return self._dialects[0]

    def _status_failure(self, error: Any) -> UpstreamFailure:
        return status_failure(error.status_code, error.body, error.response.headers, self._services.clock.now())

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        partial = PartialMessage(api=model.api, provider=self.name, model=model.id, timestamp=unix_ms(self._services.clock.now()))
        request = msgspec.structs.replace(request, messages=list(request.messages))  # the list is the agent's and may grow
        call = HttpCall(model, request, partial, self._dialect(model))
        started = False
        try:
            self._check_key()
            call.write(self._refused(call))
            started = True
            yield StreamStarted(partial=partial)
            async with self._services.slots, aclosing(self._answer(call)) as events:
                async for event in events:
                    yield event
            closing, stop_reason = call.reader.settle()
            for event in closing:
                yield event
            message = partial.finish(stop_reason)
        except Exception as error:
            failure = self._understand(error)
            if not started:
                yield StreamStarted(partial=partial)
            call.reader.abandon()
            yield StreamFailed(
                message=partial.finish("error", error_message=str(failure)), kind=failure.kind, retry_after_s=failure.retry_after_s
            )
            return
        yield StreamDone(message=message)

    async def close(self) -> None:
        for dialect in self._dialects:
            dialect.clear()
        await self._lanes.close()

    async def _answer(self, call: HttpCall) -> AsyncGenerator[BlockEvent, None]:
        async with self._lanes.client() as client:
            response = await self._respond(client, call)
            try:
                async with aclosing(self._read(response, call.reader)) as events:
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

    async def _respond(self, client: Any, call: HttpCall) -> "httpx2.Response":
        try:
            return await self._put(client, call)
        except self._sdk_errors[0] as error:
            failure = self._status_failure(error)
            if not self._adapt(call, failure, error):
                raise failure from error
        return await self._put(client, call)

    def _adapt(self, call: HttpCall, failure: UpstreamFailure, error: Exception) -> bool:
        """Whether the request, changed by this, is worth putting once more."""
        images = _images(call.request.messages) - self._refused(call)
        if (
            not images
            or "image" not in call.model.input
            or failure.kind not in ("invalid", "overflow")
            or not is_image_refusal(str(failure))
        ):
            return False
        log.warning("image refused", extra={"facts": {"provider": self.name, "model": call.model.id, "images": len(images)}})
        self._remember_refused(call.request.session_id, images)
        call.write(self._refused(call))
        return True

    async def _put(self, client: Any, call: HttpCall) -> "httpx2.Response":
        hooks, key = call.request.hooks, self._config.api_key
        body, headers = call.body, HeaderChanges()
        if hooks is not None:
            body = await hooked_body(hooks, call.dialect.api, body)
            headers = await hooked_headers(hooks, self._headers(client), key)
        patience = self._services.limits.first_event_s
        try:
            async with asyncio.timeout(patience):
                response = await self._send(client, call.dialect.path(call.model), body, headers)
        except Exception as error:
            stalled = isinstance(error, TimeoutError)
            if hooks is not None:
                if isinstance(error, self._sdk_errors[0]):
                    told: Any = error
                    await hooks.responded(told.response.status_code, public_headers(told.response.headers, key))
                else:
                    await hooks.failed(type(error).__name__)
            if stalled:
                raise StreamStalled(f"the service did not answer within {patience:g} s") from None
            raise
        if hooks is not None:
            await hooks.responded(response.status_code, public_headers(response.headers, key))
        return response

    def _refused(self, call: HttpCall) -> frozenset[str]:
        return self._refused_images.get(call.request.session_id, frozenset())

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
            return UpstreamFailure("invalid", f"the {self.extra} package is not installed ({error}); install pumice[{self.extra}]")
        if self._lanes.opened:
            import httpx2

            status_error, connection_error = self._sdk_errors
            if isinstance(error, status_error):
                return self._status_failure(error)
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
