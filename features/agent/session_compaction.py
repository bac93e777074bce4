"""Compacts one session, within a run or between two."""

import logging
from collections.abc import Sequence
from typing import Any

from features.agent.interruption import Interruption, RunStopped
from features.agent.session_state import SessionState
from features.agent.summary_call import SummaryCall
from features.contracts.errors import PumiceError, RetryLater, UserMustAct
from features.contracts.events import CompactionEnd, CompactionReason, CompactionResult, CompactionStart
from features.contracts.extension_events import BeforeCompaction, CompactionDone, CompactionFailed
from features.contracts.models import Model
from features.contracts.sessions import CompactionEntry, SessionEntry

__all__ = ["SessionCompaction"]

log = logging.getLogger("pumice.agent")


class SessionCompaction:
    """What was there is stored on; a summary joins it or nothing changes.

    ``requested`` are the instructions of a compaction that somebody asked for while a run was going on; None when nobody did.
    """

    def __init__(self, state: SessionState) -> None:
        self.requested: str | None = None
        self._state = state
        self._compactor = state.services.compactor

    def tokens(self) -> int:
        """The size of the next request, as far as it is known."""
        manager = self._state.transcript.manager
        return self._compactor.context_tokens(manager.newest_first(), manager.messages, overhead=self._state.overhead)

    def is_due(self, model: Model) -> bool:
        return self._compactor.options.enabled and self._compactor.is_due(self.tokens(), model)

    @property
    def enabled(self) -> bool:
        """Whether it happens unasked."""
        return self._compactor.options.enabled

    async def run(
        self,
        reason: CompactionReason,
        model: Model,
        stop: Interruption,
        *,
        instructions: str = "",
        limit: int | None = None,
    ) -> CompactionResult:
        """Sum up and store; events tell when it begins and how it ended.

        Args:
            limit: tokens that turned out to be too many for the model; the call that did is then made again.

        Raises:
            RunStopped: when told to stop; nothing is stored then.
            PumiceError: there is nothing to sum up, somebody forbade it, or there is no summary. The text is for the person.
        """
        self.requested = None
        emit = self._state.listeners.emit
        branch = self._state.transcript.manager.branch()
        try:
            prepared = self._compactor.prepare(branch, model, limit=limit)
        except UserMustAct as error:
            if reason == "manual":  # whoever asked hears of it; what comes unasked is silent where there is nothing to do
                emit(CompactionStart(reason=reason))
                emit(CompactionEnd(reason=reason, error_message=str(error)))
            raise
        emit(CompactionStart(reason=reason))
        try:
            result, entry = await self._compact(reason, model, stop, prepared, branch, instructions, limit)
        except RunStopped:
            emit(CompactionEnd(reason=reason, aborted=True))
            raise
        except Exception as error:
            failure = self._understood(error)
            emit(CompactionEnd(reason=reason, error_message=str(failure)))
            await stop.whole(self._state.extensions.dispatch(CompactionFailed(reason, str(failure))))
            raise failure from None
        emit(CompactionEnd(reason=reason, result=result, will_retry=reason == "overflow"))
        await stop.whole(self._state.extensions.dispatch(CompactionDone(entry, from_extension=result.from_extension)))
        return result

    async def _compact(
        self,
        reason: CompactionReason,
        model: Model,
        stop: Interruption,
        prepared: Any,
        branch: Sequence[SessionEntry],
        instructions: str,
        limit: int | None,
    ) -> tuple[CompactionResult, CompactionEntry]:
        """Ask the gate, then write the summary, then store it; what is told of it comes after the commit."""
        state = self._state
        gate = BeforeCompaction(
            reason,
            branch,
            first_kept_entry_id=prepared.first_kept_entry_id,
            history=prepared.history,
            turn_prefix=prepared.turn_prefix,
            previous_summary=prepared.previous_summary,
            tokens_before=prepared.tokens_before,
            instructions=instructions,
        )
        redact = state.services.redaction.text
        keep = () if state.keep_verbatim is None else tuple(redact(text) for text in state.keep_verbatim())
        with stop.cut_here():
            await state.extensions.dispatch(gate)
        if gate.refusal is not None:
            raise UserMustAct(f"Nothing was summed up: {gate.refusal}")
        if gate.summary is not None:
            summary = self._compactor.finish(prepared, redact(gate.summary), keep=keep)
        else:
            call = SummaryCall(state, model, stop)
            summary = await self._compactor.summarise(prepared, model, call, instructions=redact(gate.instructions), keep=keep, limit=limit)
        first_kept = gate.first_kept_entry_id if gate.summary is not None else summary.first_kept_entry_id
        details = gate.details if gate.summary is not None else summary.details
        try:
            entry = await stop.whole(
                state.transcript.compact(
                    summary.text,
                    first_kept_entry_id=first_kept,
                    tokens_before=summary.tokens_before,
                    since=prepared.leaf_id,
                    details=details,
                    from_hook=gate.summary is not None,
                )
            )
        except ValueError as error:
            raise RetryLater("The conversation went another way meanwhile, so I did not keep the summary.") from error
        return CompactionResult(
            summary=entry.summary,
            first_kept_entry_id=first_kept,
            tokens_before=summary.tokens_before,
            tokens_after=summary.tokens_after,
            details=details,
            from_extension=gate.summary is not None,
        ), entry

    async def summarise_branch(
        self, entries: Sequence[SessionEntry], model: Model, stop: Interruption, *, instructions: str = ""
    ) -> tuple[str, Any] | None:
        """Notes on entries that the conversation is about to leave, oldest first: the text and details of a branch summary.

        Raises:
            RunStopped: when told to stop.
            PumiceError: there is no summary. The text is for the person.
        """
        try:
            call = SummaryCall(self._state, model, stop)
            return await self._compactor.summarise_branch(entries, model, call, instructions=instructions)
        except PumiceError as error:
            raise self._understood(error) from None

    def _understood(self, error: Exception) -> PumiceError:
        """The error as a person reads it; where it is not theirs, with the id under which the log has what the service said."""
        redact = self._state.services.redaction.text
        if isinstance(error, UserMustAct):
            return UserMustAct(redact(str(error)))
        expected = isinstance(error, PumiceError)
        error_id = self._state.services.ids()
        facts = {"session": self._state.transcript.manager.id, "error_id": error_id, "error": redact(str(error.__cause__ or error))}
        log.error("compaction failed", exc_info=None if expected else error, extra={"facts": facts})
        text = str(error) if expected else "Something went wrong inside the host while it summed up. Nothing is lost."
        return RetryLater(f"{redact(text)} (error {error_id})")
