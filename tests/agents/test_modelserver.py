# SPDX-License-Identifier: Apache-2.0
"""The model server speaks each dialect, follows its script and reads any body."""
import http.client
import json

import pytest
from modelserver import ModelServer

WITHOUT_STET = True
SCRIPT = ["first command", "second command"]


def post(server, path, body, chunked=False):
    """(content type, body) of the answer."""
    c = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if chunked:
        pieces = iter([data[:7], data[7:]])
        c.request("POST", path, pieces, headers, encode_chunked=True)
    else:
        c.request("POST", path, data, headers)
    r = c.getresponse()
    assert r.status == 200
    text = r.read().decode()
    c.close()
    return r.getheader("Content-Type"), text


def chat(n, tools=("run_shell_command",), stream=True):
    return "/v1/chat/completions", {
        "model": "m", "stream": stream,
        "tools": [{"type": "function", "function": {"name": t}} for t in tools],
        "messages": [{"role": "user", "content": "go"}]
        + [{"role": "tool", "content": [{"type": "text", "text": f"r{i}"}]}
           for i in range(n)]}


def messages(n, tools=("Bash",), stream=True):
    return "/v1/messages?beta=true", {
        "model": "m", "stream": stream, "tools": [{"name": t} for t in tools],
        "messages": [{"role": "user", "content": "go"}]
        + [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                                         "content": f"r{i}"}]} for i in range(n)]}


def responses(n, tools=("exec_command",), stream=True):
    return "/v1/responses", {
        "model": "m", "stream": stream, "tools": [{"name": t} for t in tools],
        "input": [{"type": "function_call_output", "output": f"r{i}"} for i in range(n)]}


def gemini(n, tools=("run_shell_command",), stream=True):
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/m:{verb}", {
        "tools": [{"functionDeclarations": [{"name": t} for t in tools]}],
        "contents": [{"parts": [{"functionResponse": {"response": {"output": f"r{i}"}}}]}
                     for i in range(n)]}


DIALECTS = [chat, messages, responses, gemini]


@pytest.fixture(name="server")
def fixture_server():
    with ModelServer(SCRIPT) as server:
        yield server


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_script_is_followed(server, dialect, chunked):
    for n, expected in enumerate(SCRIPT + ["done"]):
        kind, text = post(server, *dialect(n), chunked)
        assert kind == "text/event-stream"
        assert expected in text
        assert all(other not in text for other in SCRIPT if other != expected)
        assert server.begun.is_set() == (n > 0)
        assert server.finished.is_set() == (n == len(SCRIPT))
    assert [r["command"] for r in server.requests] == SCRIPT + [None]
    assert len(server.results()) == 2 and "r0" in server.results()[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_call_without_the_tool(server, dialect):
    _, text = post(server, *dialect(0, tools=("read_file",)))
    assert "done" in text and SCRIPT[0] not in text


@pytest.mark.parametrize("dialect", [chat, messages, gemini])
def test_one_object_if_no_stream_is_wanted(server, dialect):
    kind, text = post(server, *dialect(0, stream=False))
    assert kind == "application/json"
    assert SCRIPT[0] in json.dumps(json.loads(text))
    _, text = post(server, *dialect(2, stream=False))
    assert "done" in json.dumps(json.loads(text))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_streams_are_well_formed(server, dialect):
    _, text = post(server, *dialect(0))
    assert text.endswith("\n\n")
    for event in text.strip().split("\n\n"):
        data = event.splitlines()[-1]
        assert data.startswith("data: ")
        if data != "data: [DONE]":
            value = json.loads(data[6:])
            if event.startswith("event: "):
                assert event.splitlines()[0] == f"event: {value['type']}"


def test_anything_else_is_answered(server):
    assert json.loads(post(server, "/v1/messages/count_tokens", {})[1])["input_tokens"] == 10
    c = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    for method in ("GET", "HEAD"):
        c.request(method, "/v1/models")
        r = c.getresponse()
        assert r.status == 200
        r.read()
    c.close()
