"""Takes secrets out of everything that is shown or stored."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from features.contracts.messages import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from features.contracts.processes import SecretRedactor, StreamRedactor

__all__ = ["Redaction"]

M = TypeVar("M", UserMessage, AssistantMessage, ToolResultMessage, CustomMessage)


class Redaction:
    """The redactor, applied to messages. What holds no secret comes back as the same object."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor

    def stream(self) -> StreamRedactor:
        return self._redactor.stream()

    def text(self, text: str) -> str:
        return self._redactor.redact(_storable(text))

    def data(self, value: Any) -> Any:
        """A JSON value; what JSON does not know becomes text, what nests too deeply becomes None."""
        try:
            return self._walk(msgspec.to_builtins(value, str_keys=True, enc_hook=str))
        except RecursionError:
            return None

    def blocks(self, blocks: Sequence[UserBlock]) -> list[UserBlock]:
        return [self._text_block(block) if isinstance(block, TextBlock) else block for block in blocks]

    def content(self, content: str | list[UserBlock]) -> str | list[UserBlock]:
        return self.text(content) if isinstance(content, str) else self.blocks(content)

    def message(self, message: M) -> M:
        """A message as it may be stored and shown."""
        if isinstance(message, AssistantMessage):
            return self.assistant(message)
        if isinstance(message, UserMessage):
            return msgspec.structs.replace(message, content=self.content(message.content))
        details = None if message.details is None else self.data(message.details)
        return msgspec.structs.replace(message, content=self.content(message.content), details=details)

    def call(self, call: ToolCall) -> ToolCall:
        """The call as it may be seen; the tool itself gets what the model wrote."""
        arguments = self.data(call.arguments)
        invalid = None if call.invalid_arguments is None else self.text(call.invalid_arguments)
        name = self.text(call.name)
        if (name, arguments, invalid) == (call.name, call.arguments, call.invalid_arguments):
            return call
        # The signature vouches for what was there before.
        return ToolCall(id=call.id, name=name, arguments=arguments or {}, invalid_arguments=invalid)

    def assistant(self, message: AssistantMessage) -> AssistantMessage:
        content = [shown for block in message.content if (shown := self._assistant_block(block)) is not None]
        error = None if message.error_message is None else self.text(message.error_message)
        return msgspec.structs.replace(message, content=content, error_message=error)

    def _assistant_block(self, block: AssistantBlock) -> AssistantBlock | None:
        if isinstance(block, TextBlock):
            return self._text_block(block)
        if isinstance(block, ToolCall):
            return self.call(block)
        return self._thinking_block(block)

    def _text_block(self, block: TextBlock) -> TextBlock:
        text = self.text(block.text)
        return block if text == block.text else TextBlock(text=text)

    def _thinking_block(self, block: ThinkingBlock) -> ThinkingBlock | None:
        text = self.text(block.thinking)
        if text == block.thinking:
            return block
        # A signed block goes back to the provider byte for byte or not at all.
        return None if block.thinking_signature is not None else ThinkingBlock(thinking=text)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        return value


def _storable(text: str) -> str:
    """Without lone surrogates, which no store and no service takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
