from __future__ import annotations

import http.server
import json
import socket
import threading
import time

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.modules import chat_completion

REPLY = json.dumps(
    {
        "choices": [{"message": {"content": "I am a tiny model."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 6, "total_tokens": 7},
    }
).encode()
MESSAGES = [{"role": "user", "content": "What are you?"}]


class Engine(http.server.BaseHTTPRequestHandler):
    """Answers with the statuses it was given, the last one for ever."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, self.headers.get("Authorization"), json.loads(body)))
        time.sleep(self.server.delay)
        status = self.server.statuses.pop(0) if len(self.server.statuses) > 1 else self.server.statuses[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(REPLY)))
        self.end_headers()
        self.wfile.write(REPLY)

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Authorization"), None))
        self.send_response(self.server.keyless)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments):
        """Quiet."""


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(chat_completion, "PAUSE", 0.01)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        server.seen, server.statuses, server.delay, server.keyless = [], [200], 0, 401
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield server
        server.shutdown()


@pytest.fixture
def call(capsys):
    def run(url, **arguments):
        with patch_module_args({"url": url, "model": "tiny", "messages": MESSAGES, **arguments}), pytest.raises(SystemExit) as ended:
            chat_completion.main()
        return ended.value.code, json.loads(capsys.readouterr().out)

    return run


def test_an_answer_with_the_key_from_its_file(engine, call, tmp_path):
    key = tmp_path / "api-key"
    key.write_text("k3y-of-the-test\n", encoding="utf-8")
    status, result = call(engine.url, api_key_file=str(key), expect="tiny model", max_tokens=9)
    assert (status, result["changed"], result["content"]) == (0, False, "I am a tiny model.")
    path, authorization, body = engine.seen[0]
    assert (path, authorization) == ("/v1/chat/completions", "Bearer k3y-of-the-test")
    assert body == {"model": "tiny", "messages": MESSAGES, "max_tokens": 9, "temperature": 0}
    assert "k3y" not in json.dumps(result)


@pytest.mark.parametrize(("keyless", "status"), [(401, 0), (200, 1)])
def test_an_engine_that_answers_without_a_key_fails(engine, call, tmp_path, keyless, status):
    key = tmp_path / "api-key"
    key.write_text("k3y-of-the-test\n", encoding="utf-8")
    engine.keyless = keyless
    ended, result = call(engine.url, api_key_file=str(key), guarded=True)
    assert ended == status
    assert engine.seen[-1] == ("/v1/models", None, None)
    if status:
        assert "answers without a key (HTTP 200 instead of 401)" in result["msg"]


def test_guarded_needs_a_key(engine, call):
    assert call(engine.url, guarded=True)[0] == 1


def test_it_waits_while_the_engine_is_not_ready(engine, call):
    engine.statuses = [503, 502, 200]
    status, result = call(engine.url, wait=10)
    assert status == 0 and len(engine.seen) == 3 and result["waited"] > 0


def test_a_proxy_of_the_environment_is_not_used(engine, call, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert call(engine.url)[0] == 0


def test_nothing_listens(call):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        status, result = call(f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    assert status == 1 and "did not answer within 0 s" in result["msg"] and "refused" in result["msg"]


def test_a_hanging_engine_is_told_from_a_missing_one(engine, call):
    engine.delay = 3
    status, result = call(engine.url, timeout=1, wait=30)
    assert status == 1 and "a rank or a link hangs" in result["msg"]


def test_a_wrong_answer_fails(engine, call):
    status, result = call(engine.url, expect="a large model")
    assert status == 1 and "was expected" in result["msg"]


def test_a_key_file_that_is_missing(engine, call, tmp_path):
    status, result = call(engine.url, api_key_file=str(tmp_path / "none"))
    assert status == 1 and "No such file" in result["msg"] and not engine.seen
