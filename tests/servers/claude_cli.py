"""Claude Code's program, as strict as the real one: the stream-json protocol over its standard streams, no model behind it.

Tests put a small script in its place that runs this with ``--fake FOLDER``. ``FOLDER/script.json`` holds the answers of the model, in
order; every process takes the next ones. What it was given is written to ``FOLDER/log.jsonl``. It needs nothing but Python itself.

A step has ``text``, ``thinking``, ``calls`` (``name``, ``arguments``, ``id``), ``stop``, and what goes wrong in ``fault``:
``exit`` (it dies in the middle), ``stall``, ``api`` (an error of the service: ``status``, ``error``, ``message``), ``pause`` (the model
pauses and is asked again), ``old`` (an old version).
"""

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

VALUES = (
    *("--output-format", "--input-format", "--model", "--system-prompt-file", "--tools", "--mcp-config", "--allowedTools"),
    *("--permission-mode", "--thinking", "--thinking-display", "--effort", "--max-thinking-tokens", "--setting-sources"),
)
SWITCHES = ("--verbose", "--include-partial-messages", "--strict-mcp-config", "--no-session-persistence")


def refuse(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    raise SystemExit(1)


def require(condition: object, message: str) -> None:
    if not condition:
        refuse(message)


class Claude:
    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._options = options
        self._servers: list[str] = []
        self._numbers = count(1)
        self._unread: list[dict[str, Any]] = []
        self._session = f"session-{os.getpid()}"
        prompt = Path(options.system_prompt_file).read_text(encoding="utf-8")
        self.log("start", argv=sys.argv[1:], environment=dict(os.environ), cwd=str(Path.cwd()), system_prompt=prompt)

    def run(self) -> None:
        request = self._read()
        require(request["type"] == "control_request" and request["request"]["subtype"] == "initialize", "not initialized")
        self._reply(request, {"commands": [], "models": []})
        self._servers = list(json.loads(self._options.mcp_config)["mcpServers"])
        tools = [f"mcp__{server}__{tool['name']}" for server in self._servers for tool in self._connect(server)]
        self.log("tools", tools=tools)
        while (message := self._next()) is not None:
            require(message["type"] == "user", f"unexpected {message['type']}")
            self._check_user(message)
            self.log("user", content=message["message"]["content"])
            self._turn(tools)

    def log(self, kind: str, **facts: Any) -> None:
        with (self._folder / "log.jsonl").open("a") as file:
            file.write(json.dumps({"kind": kind, "pid": os.getpid(), **facts}) + "\n")

    def _turn(self, tools: list[str]) -> None:
        first = self._take_step(peek=True)
        version = "2.0.14" if first.get("fault") == "old" else "2.1.332"
        self._write({"type": "system", "subtype": "init", "tools": tools, "model": self._options.model, "claude_code_version": version})
        while True:
            step = self._take_step()
            fault = step.get("fault")
            if fault == "api":
                self._api_error(step)
                return
            calls = self._stream(step)
            if fault == "pause":
                continue
            if not calls:
                self._result(step)
                return
            for call in calls:
                self._call(call)

    def _stream(self, step: dict[str, Any]) -> list[dict[str, Any]]:
        usage = {"input_tokens": step.get("input_tokens", 10), "output_tokens": 1}
        usage |= {"cache_read_input_tokens": step.get("cache_read", 0), "cache_creation_input_tokens": 0}
        message = {"id": f"msg_{next(self._numbers)}", "type": "message", "role": "assistant", "model": self._options.model, "content": []}
        self._event("message_start", message=message | {"usage": usage, "stop_reason": None})
        index = count()
        if step.get("thinking"):
            self._block(next(index), {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", step["thinking"])
        if step.get("text"):
            self._block(next(index), {"type": "text", "text": ""}, "text_delta", "text", step["text"])
        fault = step.get("fault")
        if fault == "exit":
            refuse("the process had an accident")
        if fault == "stall":
            self.log("stalled")
            time.sleep(3600)
        calls = [{"id": f"toolu_{os.getpid()}_{next(self._numbers)}", **call} for call in step.get("calls", ())]
        for call in calls:
            block = {"type": "tool_use", "id": call["id"], "name": f"mcp__pumice__{call['name']}", "input": {}}
            self._block(next(index), block, "input_json_delta", "partial_json", json.dumps(call.get("arguments", {})))
        stop = step.get("stop") or ("tool_use" if calls else "pause_turn" if fault == "pause" else "end_turn")
        self._event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": step.get("output_tokens", 5)})
        self._event("message_stop")
        content = [{"type": "text", "text": step.get("text", "")}]
        self._write({"type": "assistant", "message": message | {"content": content}, "parent_tool_use_id": None})
        return calls if stop == "tool_use" else []

    def _block(self, index: int, start: dict[str, Any], kind: str, field: str, text: str) -> None:
        self._event("content_block_start", index=index, content_block=start)
        for at in range(0, len(text), 16):
            self._event("content_block_delta", index=index, delta={"type": kind, field: text[at : at + 16]})
        self._event("content_block_stop", index=index)

    def _event(self, type: str, **fields: Any) -> None:
        self._write({"type": "stream_event", "event": {"type": type, **fields}, "parent_tool_use_id": None})

    def _call(self, call: dict[str, Any]) -> None:
        parameters = {"name": call["name"], "arguments": call.get("arguments", {}), "_meta": {"claudecode/toolUseId": call["id"]}}
        result = self._mcp(self._servers[0], "tools/call", parameters)
        self.log("result", call=call["name"], **result)
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": result["content"], "is_error": result.get("isError", False)}
        self._write({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None})

    def _api_error(self, step: dict[str, Any]) -> None:
        words = f"API Error: {step['status']} {step['message']}"
        message = {"id": "msg_error", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": words}]}
        self._write({"type": "assistant", "message": message, "parent_tool_use_id": None, "error": step["error"]})
        self._result(step, is_error=True, result=words, api_error_status=step["status"])

    def _result(self, step: dict[str, Any], **fields: Any) -> None:
        counts = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "total_cost_usd": 0.0, "usage": {}}
        ending = {"type": "result", "subtype": "success", "is_error": False, "result": step.get("text", ""), **counts}
        self._write(ending | fields)

    def _connect(self, server: str) -> list[dict[str, Any]]:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2.1.332"}}
        self._mcp(server, "initialize", about)
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self._request({"subtype": "mcp_message", "server_name": server, "message": note})
        return self._mcp(server, "tools/list", {})["tools"]  # type: ignore[no-any-return]

    def _mcp(self, server: str, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": parameters}
        answer = self._request({"subtype": "mcp_message", "server_name": server, "message": message})["mcp_response"]
        require("error" not in answer, f"{method} failed: {answer}")
        return answer["result"]  # type: ignore[no-any-return]

    def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        request_id = f"req_{next(self._numbers)}"
        self._write({"type": "control_request", "request_id": request_id, "request": request})
        while (message := self._read())["type"] != "control_response":
            self._unread.append(message)
        response = message["response"]
        require(response["request_id"] == request_id, f"answer to another request: {response}")
        require(response["subtype"] == "success", f"{request['subtype']} failed: {response}")
        return response["response"]  # type: ignore[no-any-return]

    def _reply(self, request: dict[str, Any], response: dict[str, Any]) -> None:
        body = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self._write({"type": "control_response", "response": body})

    def _check_user(self, message: dict[str, Any]) -> None:
        known = {"type", "message", "parent_tool_use_id", "session_id", "client_composed"}
        require(not set(message) - known, f"unknown field in {sorted(message)}")
        require(message.get("client_composed") is True, "a prompt that is not verbatim would be searched for files and commands")
        content = message["message"]["content"]
        require(content and message["message"]["role"] == "user", "messages: at least one block is required")
        for block in content:
            require(block["type"] in ("text", "image"), f"unexpected block {block['type']}")
            require(block["type"] != "text" or block["text"].strip(), "messages: text content blocks must contain non-whitespace text")

    def _take_step(self, *, peek: bool = False) -> dict[str, Any]:
        path = self._folder / "script.json"
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            steps = json.load(file)
            require(steps, "the script has no further step")
            if not peek:
                file.seek(0)
                file.truncate()
                json.dump(steps[1:], file)
        return steps[0]  # type: ignore[no-any-return]

    def _next(self) -> dict[str, Any] | None:
        if self._unread:
            return self._unread.pop(0)
        return next(self._lines(), None)

    def _read(self) -> dict[str, Any]:
        message = next(self._lines(), None)
        if message is None:
            raise SystemExit(0)
        return message

    def _lines(self) -> Iterator[dict[str, Any]]:
        for line in sys.stdin:
            if line.strip():
                yield json.loads(line)

    def _write(self, message: dict[str, Any]) -> None:
        message = {"session_id": self._session, "uuid": f"uuid-{next(self._numbers)}", **message}
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--fake", type=Path, required=True)
    for flag in VALUES:
        parser.add_argument(flag)
    for flag in SWITCHES:
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    for flag, value in (("output_format", "stream-json"), ("input_format", "stream-json"), ("tools", ""), ("setting_sources", "")):
        require(getattr(options, flag) == value, f"--{flag} is {getattr(options, flag)!r}")
    require(options.verbose, "When using --print, --output-format=stream-json requires --verbose")
    Claude(options.fake, options).run()


if __name__ == "__main__":
    main()
