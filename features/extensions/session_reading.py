"""The session as extensions may read it."""

from collections.abc import Sequence
from pathlib import Path

from features.contracts.extensions import SessionView
from features.contracts.messages import Message
from features.contracts.models import Model, ThinkingLevel
from features.contracts.sessions import SessionEntry

__all__ = ["SessionReading"]


class SessionReading:
    """Implements ``SessionView`` over another one, so that an extension gets no more than that."""

    def __init__(self, session: SessionView) -> None:
        self.__session = session

    @property
    def id(self) -> str:
        return self.__session.id

    @property
    def name(self) -> str:
        return self.__session.name

    @property
    def address(self) -> str:
        return self.__session.address

    @property
    def workspace(self) -> Path:
        return self.__session.workspace

    @property
    def time_zone(self) -> str:
        return self.__session.time_zone

    @property
    def model(self) -> Model:
        return self.__session.model

    @property
    def thinking(self) -> ThinkingLevel:
        return self.__session.thinking

    @property
    def leaf_id(self) -> str | None:
        return self.__session.leaf_id

    @property
    def running(self) -> bool:
        return self.__session.running

    @property
    def queued(self) -> int:
        return self.__session.queued

    @property
    def messages(self) -> Sequence[Message]:
        return tuple(self.__session.messages)

    def branch(self) -> Sequence[SessionEntry]:
        return self.__session.branch()

    def context_tokens(self) -> int:
        return self.__session.context_tokens()
