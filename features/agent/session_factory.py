"""Opens sessions."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import msgspec

from features.agent.extension_port import ExtensionPort
from features.agent.listeners import Listeners
from features.agent.model_choice import ModelChoice, RestingModels
from features.agent.opening import tell_opened
from features.agent.options import AgentSessionOptions, RetryOptions
from features.agent.prompt_queues import PromptQueues
from features.agent.redaction import Redaction
from features.agent.session import AgentSession
from features.agent.session_models import ModelSource, SessionModels
from features.agent.session_state import SessionServices, SessionState
from features.agent.transcript import Transcript
from features.compaction import CompactionOptions, Compactor
from features.contracts.clock import Clock
from features.contracts.errors import UserMustAct
from features.contracts.events import QueueUpdate
from features.contracts.models import Model
from features.contracts.processes import SecretRedactor
from features.contracts.sessions import SessionStore
from features.extensions import ExtensionRunner
from features.sessions import SessionManager
from features.system_prompt import SystemPromptBuilder

__all__ = ["AgentSessionFactory"]


class AgentSessionFactory:
    """Holds what all sessions of a host share.

    Args:
        max_turns: turns that a run takes at most without a word from a person.
        fallbacks: models to ask while a session's own is not to be had, the first choice first.
    """

    def __init__(
        self,
        *,
        store: SessionStore,
        models: ModelSource,
        prompts: SystemPromptBuilder,
        redactor: SecretRedactor,
        clock: Clock,
        ids: Callable[[], str],
        random: Random,
        retry: RetryOptions | None = None,
        max_turns: int = 100,
        compaction: CompactionOptions | None = None,
        fallbacks: tuple[str, ...] = (),
    ) -> None:
        self._store = store
        self._services = SessionServices(
            models=models,
            prompts=prompts,
            redaction=Redaction(redactor),
            clock=clock,
            ids=ids,
            random=random,
            retry=RetryOptions() if retry is None else retry,
            max_turns=max_turns,
            compactor=Compactor(compaction),
            choice=ModelChoice(models.resolve, fallbacks, RestingModels(clock)),
        )

    async def create(self, options: AgentSessionOptions) -> AgentSession:
        """Open a session or make one, with the model and thinking level that its branch names.

        Raises:
            KeyError: there is no session ``options.session_id``.
            UserMustAct: ``options.model`` is needed and no such model is configured.
        """
        notices: list[str] = []
        manager = await self._manager(options, notices)
        models = SessionModels(self._services.models)
        state = self._state(manager, options, models)
        port = ExtensionPort(state, models, options.processes)
        state.extensions = ExtensionRunner(
            port, clock=self._services.clock, tools=options.tools.tools, host_commands=options.host_commands, ui=options.ui
        )
        try:
            await state.extensions.activate(options.extensions)
            self._take_model(state, manager, options, notices)
        except BaseException:
            await state.extensions.close()
            raise
        session = AgentSession(state, notices=notices, port=port, host=options.host)
        await tell_opened(state, options.began, restored=manager.model is not None)
        return session

    def _state(self, manager: SessionManager, options: AgentSessionOptions, models: SessionModels) -> SessionState:
        listeners = Listeners()
        redaction = self._services.redaction

        def queues_changed(queues: PromptQueues) -> None:
            listeners.emit(
                QueueUpdate(
                    steering=[redaction.text(prompt.text) for prompt in queues.steering],
                    follow_up=[redaction.text(prompt.text) for prompt in queues.follow_ups],
                )
            )

        # As it is called; whether it is to be had is known once the extensions have brought their models.
        provider, _, model_id = options.model.partition("/") if manager.model is None else (manager.model[0], "", manager.model[1])
        model = Model(provider=provider, id=model_id, api="")
        thinking = options.thinking if manager.model is None and manager.thinking == "off" else manager.thinking

        state = SessionState(
            services=replace(self._services, models=models),
            transcript=Transcript(
                manager,
                model=model,
                thinking=thinking,
                journal=options.journal,
                ids=self._services.ids,
                render=lambda message: state.extensions.rendered(message),
            ),
            tools=options.tools,
            tool_context=msgspec.structs.replace(options.tool_context, session_id=manager.id),
            chat=options.chat,
            model=model,
            thinking=thinking,
            queues=PromptQueues(steering_mode=options.steering_mode, follow_up_mode=options.follow_up_mode, changed=queues_changed),
            listeners=listeners,
            spending=options.spending,
            keep_verbatim=options.keep_verbatim,
            skills=options.skills,
            host_instructions=options.host_instructions,
            host_memory=options.host_memory,
        )
        return state

    async def _manager(self, options: AgentSessionOptions, notices: list[str]) -> SessionManager:
        clock, ids = self._services.clock, self._services.ids
        if options.session_id is not None and not options.new:
            return await SessionManager.open(self._store, options.session_id, clock=clock, ids=ids)
        if not options.new and (current := await self._store.current(options.scope)) is not None:
            try:
                return await SessionManager.open(self._store, current, clock=clock, ids=ids)
            except KeyError:
                notices.append("The session of this chat is no longer there; this is a fresh one.")
        return await SessionManager.create(
            self._store, options.scope, clock=clock, ids=ids, cwd=str(options.tool_context.workspace), name=options.name
        )

    def _take_model(self, state: SessionState, manager: SessionManager, options: AgentSessionOptions, notices: list[str]) -> None:
        state.model = model = self._model(state, manager, options, notices)
        state.transcript.choose(model)

    def _model(self, state: SessionState, manager: SessionManager, options: AgentSessionOptions, notices: list[str]) -> Model:
        own = "/".join(manager.model) if manager.model is not None else options.model
        missing: UserMustAct | None = None
        for reference in dict.fromkeys((own, options.model, options.spare_model)):
            if not reference:
                continue
            try:
                model = state.services.models.resolve(reference)
            except UserMustAct as error:
                missing = missing or error
                continue
            if reference != own:
                notices.append(f"The model {own} is not available any more; this session goes on with {model.reference}.")
            return model
        raise missing or UserMustAct("There is no model for this session. Choose one with /model.")
