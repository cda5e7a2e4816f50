#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A model server that follows a script, so that real agents run without a model.

It holds no state of a conversation: a request carries the results of the tool calls made
so far, and their number says which command of the script comes next. After the last one
the answer is the text "done". Each dialect is one class: how to read a request, how to
word an answer.

usage: modelserver.py COMMAND...     prints the port, serves until it is killed
"""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_LIMIT = 16 << 20
DONE = "done"


def text_of(content):
    """The text in whatever a dialect wraps it in."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(c) for c in content)
    if isinstance(content, dict):
        for key in ("text", "content", "output"):
            if key in content:
                return text_of(content[key])
        return json.dumps(content)
    return "" if content is None else str(content)


class Turn:
    """What a request says: which tools are offered, what the calls so far gave."""

    def __init__(self, tools, results, stream, model):
        self.tools, self.results, self.stream, self.model = tools, results, stream, model


class Dialect:
    """One way to talk to a model. shells: names of the shell tool, first found is used."""

    shells = ()

    def serves(self, path):
        raise NotImplementedError

    def read(self, path, body):
        raise NotImplementedError

    def call(self, turn, tool, command):
        """[(event or None, object)] that ask for one call of the tool."""
        raise NotImplementedError

    def say(self, turn, text):
        """The same for plain text."""
        raise NotImplementedError

    def whole(self, turn, tool, command, text):
        """One object instead of a stream."""
        raise NotImplementedError

    end = None  # what closes a stream, if anything does


class ChatCompletions(Dialect):
    shells = ("run_shell_command", "bash")
    end = "[DONE]"

    def serves(self, path):
        return path.endswith("/chat/completions")

    def read(self, path, body):
        return Turn([t["function"]["name"] for t in body.get("tools") or []],
                    [text_of(m.get("content")) for m in body.get("messages", [])
                     if m.get("role") == "tool"],
                    body.get("stream", False), body.get("model", ""))

    @staticmethod
    def tool_call(turn, tool, command):
        n = len(turn.results)
        return {"index": 0, "id": f"call_{n}", "type": "function", "function": {
            "name": tool, "arguments": json.dumps(
                {"command": command, "description": f"step {n}", "is_background": False})}}

    @staticmethod
    def chunk(turn, delta, finish):
        c = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": turn.model,
             "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        if finish:
            c["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return None, c

    def call(self, turn, tool, command):
        return [self.chunk(turn, {"role": "assistant",
                                  "tool_calls": [self.tool_call(turn, tool, command)]}, None),
                self.chunk(turn, {}, "tool_calls")]

    def say(self, turn, text):
        return [self.chunk(turn, {"role": "assistant", "content": text}, None),
                self.chunk(turn, {}, "stop")]

    def whole(self, turn, tool, command, text):
        message = {"role": "assistant", "content": text}
        if tool:
            message["tool_calls"] = [self.tool_call(turn, tool, command)]
        return {"id": "c1", "object": "chat.completion", "created": 1, "model": turn.model,
                "choices": [{"index": 0, "message": message,
                             "finish_reason": "tool_calls" if tool else "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


class Messages(Dialect):
    shells = ("Bash",)

    def serves(self, path):
        return path.endswith("/v1/messages")

    def read(self, path, body):
        results = []
        for m in body.get("messages", []):
            if isinstance(m.get("content"), list):
                results += [text_of(c.get("content")) for c in m["content"]
                            if c.get("type") == "tool_result"]
        return Turn([t.get("name") for t in body.get("tools") or []], results,
                    body.get("stream", False), body.get("model", ""))

    @staticmethod
    def message(turn, content, reason):
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": turn.model,
                "content": content, "stop_reason": reason, "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 5}}

    def events(self, turn, block, delta, reason):
        return [(o["type"], o) for o in (
            {"type": "message_start", "message": self.message(turn, [], None)},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": 5}},
            {"type": "message_stop"})]

    def call(self, turn, tool, command):
        n = len(turn.results)
        arguments = json.dumps({"command": command, "description": f"step {n}"})
        return self.events(turn, {"type": "tool_use", "id": f"toolu_{n:02}", "name": tool,
                                  "input": {}},
                           {"type": "input_json_delta", "partial_json": arguments}, "tool_use")

    def say(self, turn, text):
        return self.events(turn, {"type": "text", "text": ""},
                           {"type": "text_delta", "text": text}, "end_turn")

    def whole(self, turn, tool, command, text):
        if not tool:
            return self.message(turn, [{"type": "text", "text": text}], "end_turn")
        n = len(turn.results)
        return self.message(turn, [{"type": "tool_use", "id": f"toolu_{n:02}", "name": tool,
                                    "input": {"command": command, "description": "step"}}],
                            "tool_use")


class Responses(Dialect):
    shells = ("exec_command", "shell_command", "shell")

    def serves(self, path):
        return path.endswith("/v1/responses")

    def read(self, path, body):
        return Turn([t.get("name", t.get("type")) for t in body.get("tools") or []],
                    [text_of(i.get("output")) for i in body.get("input", [])
                     if isinstance(i, dict) and i.get("type", "").endswith("_output")],
                    True, body.get("model", ""))

    @staticmethod
    def events(item):
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1,
                 "output_tokens_details": None, "total_tokens": 2}
        return [(o["type"], o) for o in (
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "r1", "usage": usage}})]

    def call(self, turn, tool, command):
        arguments = {"exec_command": {"cmd": command}, "shell_command": {"command": command},
                     "shell": {"command": ["bash", "-lc", command]}}[tool]
        return self.events({"type": "function_call", "call_id": f"call_{len(turn.results)}",
                            "name": tool, "arguments": json.dumps(arguments)})

    def say(self, turn, text):
        return self.events({"type": "message", "role": "assistant",
                            "content": [{"type": "output_text", "text": text}]})


class Gemini(Dialect):
    shells = ("run_shell_command",)

    def serves(self, path):
        return path.endswith(("generateContent", "streamGenerateContent"))

    def read(self, path, body):
        tools = [f.get("name") for t in body.get("tools") or []
                 for f in t.get("functionDeclarations", [])]
        results = [json.dumps(p["functionResponse"].get("response"))
                   for c in body.get("contents", []) for p in c.get("parts", [])
                   if "functionResponse" in p]
        return Turn(tools, results, "stream" in path.rpartition("/")[2], "m")

    @staticmethod
    def answer(part):
        return {"candidates": [{"content": {"role": "model", "parts": [part]},
                                "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1,
                                  "totalTokenCount": 2}, "modelVersion": "m"}

    def part(self, turn, tool, command):
        return {"functionCall": {"name": tool, "args": {
            "command": command, "description": f"step {len(turn.results)}"}}}

    def call(self, turn, tool, command):
        return [(None, self.answer(self.part(turn, tool, command)))]

    def say(self, turn, text):
        return [(None, self.answer({"text": text}))]

    def whole(self, turn, tool, command, text):
        return self.answer(self.part(turn, tool, command) if tool else {"text": text})


DIALECTS = (ChatCompletions(), Messages(), Responses(), Gemini())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        self.send_json({"data": []})

    def do_HEAD(self):
        self.send_json(None)

    def do_POST(self):
        path = self.path.partition("?")[0]
        try:
            body = json.loads(self.body() or b"{}")
        except ValueError:
            self.send_error(400)
            return
        for d in DIALECTS:
            if d.serves(path):
                self.answer(d, path, body)
                return
        self.server.note(path, None, None)
        self.send_json({"input_tokens": 10})

    def body(self):
        """By length or in chunks; agents use both."""
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            length = int(self.headers.get("Content-Length") or 0)
            if length > BODY_LIMIT:
                raise ValueError("too long")
            return self.rfile.read(length)
        data = b""
        while True:
            size = int(self.rfile.readline().partition(b";")[0].strip(), 16)
            if size == 0:
                break
            if len(data) + size > BODY_LIMIT:
                raise ValueError("too long")
            data += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b"\n", b""):
            pass
        return data

    def answer(self, dialect, path, body):
        turn = dialect.read(path, body)
        script, n = self.server.script, len(turn.results)
        tool = next((s for s in dialect.shells if s in turn.tools), None)
        # Requests without the tool ask for a title or the like: they get text.
        if n >= len(script):
            tool = None
        command = script[n] if tool else None
        self.server.note(path, turn, command)
        if not turn.stream:
            self.send_json(dialect.whole(turn, tool, command, None if tool else DONE))
        elif tool:
            self.send_events(dialect.call(turn, tool, command), dialect.end)
        else:
            self.send_events(dialect.say(turn, DONE), dialect.end)

    def send_json(self, value):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_events(self, events, end):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, value in events:
            if name:
                self.wfile.write(f"event: {name}\n".encode())
            self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        if end:
            self.wfile.write(f"data: {end}\n\n".encode())
        self.close_connection = True


class ModelServer(ThreadingHTTPServer):
    """with ModelServer(["ls", "rm -rf src"]) as server: … server.url …"""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.lock = threading.Lock()
        self.requests = []
        self.begun = threading.Event()  # the first command has been run
        self.finished = threading.Event()  # the last one, and the agent was told "done"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def note(self, path, turn, command):
        with self.lock:
            self.requests.append({"path": path, "tools": turn.tools if turn else [],
                                  "results": turn.results if turn else [],
                                  "command": command})
        if turn and turn.results:
            self.begun.set()
            if len(turn.results) >= len(self.script):
                self.finished.set()

    def results(self):
        """What the script's commands gave, as the model was told: the longest list seen."""
        with self.lock:
            return max((r["results"] for r in self.requests), key=len, default=[])

    def handle_error(self, request, client_address):
        # An agent that is killed in mid-sentence is nothing to report.
        if not isinstance(sys.exc_info()[1], (ConnectionError, BrokenPipeError)):
            super().handle_error(request, client_address)

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.shutdown()
        self.thread.join()
        self.server_close()


def main(script):
    if not script:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    with ModelServer(script) as server:
        print(server.server_address[1], flush=True)
        try:
            server.thread.join()
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
