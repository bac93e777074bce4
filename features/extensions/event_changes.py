"""What a handler may change of an event, and what of that is taken back.

A transform handler works on a copy of its own. Once it has returned, each field that it may change is looked at; all of them are taken
over, or none.
"""

import copy
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from features.contracts.extension_events import (
    BeforeAgentStart,
    BeforeCompaction,
    BeforeProviderHeaders,
    BeforeProviderPayload,
    BeforeProviderRequest,
    BeforeTree,
    ContextBuilding,
    ExtensionEvent,
    GateEvent,
    InputReceived,
    MessageEnding,
    ProcessSpawning,
    ResourcesDiscovered,
    ToolCalled,
    ToolResulted,
    TurnEnded,
)
from features.contracts.messages import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
)
from features.contracts.models import Model, ModelRequest

__all__ = ["CUSTOM_TYPE", "WrongChange", "check_gate", "take_over", "working_copy"]

E = TypeVar("E", bound=ExtensionEvent)

CUSTOM_TYPE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_MESSAGES = get_args(Message)


class WrongChange(Exception):
    """A handler left something in its event that is not allowed there; the text says what."""


def working_copy(event: E) -> E:
    """The event for one handler of the transform class. A list of messages is a list of its own, the messages are not."""
    made = copy.copy(event)
    if isinstance(made, ContextBuilding):
        made.messages = list(made.messages)
    elif isinstance(made, BeforeProviderRequest):
        request = made.request
        made.request = msgspec.structs.replace(request, messages=list(request.messages), tools=copy.deepcopy(list(request.tools)))
    elif not isinstance(made, TurnEnded):
        for name, value in vars(event).items():
            setattr(made, name, copy.deepcopy(value))
    return made


def take_over(event: ExtensionEvent, left: ExtensionEvent) -> None:
    """Take into ``event`` what a handler left in its working copy.

    Raises:
        WrongChange: something of it is not allowed; ``event`` is as it was.
    """
    fields = _TRANSFORMS[type(event)](event, left)
    for name, value in fields.items():
        setattr(event, name, value)


def check_gate(event: GateEvent) -> None:
    """Look at what a handler of a gate left in the event itself.

    Raises:
        WrongChange: something of it is not what it has to be; the gate says no then.
    """
    _is(_maybe(event.refusal, str), "refusal is no text")
    match event:
        case ToolCalled():
            _is(_named(event.arguments), "arguments are no dict with names as keys")
        case ProcessSpawning(spawn=spawn):
            _is(bool(spawn.argv) and _texts(spawn.argv), "argv is no list of texts")
            _is(isinstance(spawn.cwd, Path), "cwd is no Path")
            _is(_named(spawn.environment) and _texts(list(spawn.environment.values())), "environment is no dict of texts")
        case BeforeTree():
            _is(_text(event.instructions) and _maybe(event.label, str) and _maybe(event.summary, str), "a field is no text")
        case BeforeCompaction():
            _is(_maybe(event.summary, str) and _text(event.first_kept_entry_id), "a field is no text")
        case _:
            pass


# --- per event: the fields that are taken over -----------------------------------------------------------------------------------------


def _input(event: InputReceived, left: Any) -> dict[str, Any]:
    _is(isinstance(left.text, str), "text is no text")
    _is(_all(left.images, ImageBlock), "images are no ImageBlocks")
    _is(isinstance(left.handled, bool) and _maybe(left.reply, str), "mark_handled takes a text or nothing")
    return {"text": left.text, "images": tuple(left.images), "handled": left.handled, "reply": left.reply}


def _start(event: BeforeAgentStart, left: Any) -> dict[str, Any]:
    _is(isinstance(left.system_prompt, str), "system_prompt is no text")
    _is(isinstance(left.added, list) and left.added[: len(event.added)] == event.added, "messages of others are not to be taken away")
    for item in left.added:
        _is(isinstance(item, tuple) and len(item) == 3, "add_message takes a type, a text and whether it is displayed")
        custom_type, text, display = item
        _is(isinstance(custom_type, str) and CUSTOM_TYPE.fullmatch(custom_type) is not None, f"{custom_type!r} is no custom type")
        _is(isinstance(text, str) and isinstance(display, bool), "a message is a text")
    return {"system_prompt": left.system_prompt, "added": left.added}


def _turn(event: TurnEnded, left: Any) -> dict[str, Any]:
    _is(isinstance(left.stop_after, bool), "stop_after is True or False")
    return {"stop_after": left.stop_after}


def _context(event: ContextBuilding, left: Any) -> dict[str, Any]:
    _is(isinstance(left.messages, list), "messages are no list")
    _legal(left.messages, event.messages)
    return {"messages": left.messages}


def _request(event: BeforeProviderRequest, left: Any) -> dict[str, Any]:
    base, new = event.request, left.request
    _is(isinstance(new, ModelRequest), "request is no ModelRequest")
    _is(left.model == event.model, "the model of a request stays")
    _is(isinstance(new.system_prompt, str), "system_prompt is no text")
    offered = {tool.name for tool in base.tools}
    names = [tool.name for tool in new.tools]
    _is(len(set(names)) == len(names) and offered.issuperset(names), "tools must be a subset of those that are offered, each once")
    _is(all(_named(tool.parameters) and isinstance(tool.description, str) for tool in new.tools), "a tool has a text and a JSON schema")
    _is(new.max_output is None or _whole(new.max_output, left.model), f"max_output must be from 1 to {left.model.max_output}")
    _is((new.session_id, new.time_zone, new.hooks) == (base.session_id, base.time_zone, base.hooks), "session, zone and hooks stay")
    _legal(list(new.messages), base.messages)
    return {"request": msgspec.structs.replace(new, messages=list(new.messages), tools=list(new.tools))}


def _provider_headers(event: BeforeProviderHeaders, left: Any) -> dict[str, Any]:
    _is(_headers(left.headers), "headers are no dict of texts on one line")
    return {"headers": left.headers}


def _payload(event: BeforeProviderPayload, left: Any) -> dict[str, Any]:
    _is(_named(left.payload), "payload is no dict")
    try:
        msgspec.json.encode(left.payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongChange(f"payload is no JSON: {error}") from None
    return {"payload": left.payload}


def _ending(event: MessageEnding, left: Any) -> dict[str, Any]:
    old, new = event.message, left.message
    _is(type(new) is type(old), "the role of a message stays")
    if isinstance(new, AssistantMessage) and isinstance(old, AssistantMessage):
        calls = [block.id for block in new.content if isinstance(block, ToolCall)]
        _is(len(set(calls)) == len(calls), "two calls have the same id")
        new = msgspec.structs.replace(old, content=new.content)  # who said it, what it cost and how it ended are facts
    elif isinstance(new, ToolResultMessage) and isinstance(old, ToolResultMessage):
        _is(new.tool_call_id == old.tool_call_id, "a result stays with its call")
        _is(_all(new.content, TextBlock, ImageBlock), "content is no list of blocks")
    elif isinstance(new, CustomMessage) and isinstance(old, CustomMessage):
        _is(new.custom_type == old.custom_type, "the type of a custom message stays")
    _is(_is_storable(new), "the message is not made of what messages are made of")
    return {"message": new}


def _result(event: ToolResulted, left: Any) -> dict[str, Any]:
    _is(isinstance(left.content, list) and _all(left.content, TextBlock, ImageBlock), "content is no list of blocks")
    _is(isinstance(left.is_error, bool), "is_error is True or False")
    return {"content": left.content, "details": left.details, "is_error": left.is_error}


def _resources(event: ResourcesDiscovered, left: Any) -> dict[str, Any]:
    _is(_all(left.skill_paths, Path) and _all(left.template_paths, Path), "a path is no Path")
    return {"skill_paths": list(left.skill_paths), "template_paths": list(left.template_paths)}


_TRANSFORMS: dict[type[ExtensionEvent], Callable[[Any, Any], dict[str, Any]]] = {
    InputReceived: _input,
    BeforeAgentStart: _start,
    TurnEnded: _turn,
    ContextBuilding: _context,
    BeforeProviderRequest: _request,
    BeforeProviderHeaders: _provider_headers,
    BeforeProviderPayload: _payload,
    MessageEnding: _ending,
    ToolResulted: _result,
    ResourcesDiscovered: _resources,
}


# --- what is what ----------------------------------------------------------------------------------------------------------------------


def _is(holds: bool, problem: str) -> None:
    if not holds:
        raise WrongChange(problem)


def _legal(messages: Sequence[Any], before: Sequence[Message]) -> None:
    """A model is always asked by somebody: not with nothing, and not with its own words last, unless it was so before."""
    _is(bool(messages) and all(isinstance(message, _MESSAGES) for message in messages), "messages are no list of messages, or an empty one")
    ends_alone = isinstance(messages[-1], AssistantMessage) and not (before and isinstance(before[-1], AssistantMessage))
    _is(not ends_alone, "messages end with the model's own")
    lost = _without_call(messages) - _without_call(before)
    _is(not lost, f"results stand before their call, or without one: {sorted(lost)}")


def _without_call(messages: Sequence[Message]) -> set[str]:
    asked: set[str] = set()
    lost: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked.update(block.id for block in message.content if isinstance(block, ToolCall))
        elif isinstance(message, ToolResultMessage) and message.tool_call_id not in asked:
            lost.add(message.tool_call_id)
    return lost


def _is_storable(message: Message) -> bool:
    try:
        msgspec.convert(msgspec.to_builtins(message, enc_hook=str), type(message))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return False
    return True


def _whole(number: Any, model: Model) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= model.max_output


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _named(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _headers(value: Any) -> bool:
    return _named(value) and all(isinstance(text, str) and not set(text) & set("\r\n\0") for text in value.values())


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _all(values: Any, *kinds: type) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kinds) for value in values)


def _maybe(value: Any, kind: type) -> bool:
    return value is None or isinstance(value, kind)
