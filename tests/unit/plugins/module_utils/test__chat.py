from __future__ import annotations

import json

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils._chat import AnswerError, parse_answer

# vLLM 0.32.0, tensor parallel 2 over Ray, shortened to the fields that count.
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "tiny",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "I am a  tiny model."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "total_tokens": 52, "completion_tokens": 32},
    "system_fingerprint": "vllm-0.32.0-tp2-145742dd",
}


def reply(**changes):
    return json.dumps({**REPLY, **changes}).encode()


def message(content):
    return {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "length"}]}


def test_a_completion():
    assert parse_answer(200, reply(), "tiny", "A TINY model") == {
        "content": "I am a  tiny model.",
        "usage": {"prompt_tokens": 20, "completion_tokens": 32, "total_tokens": 52},
        "finish_reason": "stop",
        "system_fingerprint": "vllm-0.32.0-tp2-145742dd",
    }


def test_reasoning_alone_is_an_answer():
    thinking = {"choices": [{"message": {"content": None, "reasoning_content": "Hm."}, "finish_reason": "length"}]}
    assert parse_answer(200, reply(**thinking), "tiny")["content"] == "Hm."


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b'{"error": "Unauthorized"}', "refuses the key"),
        (404, b'{"error": {"message": "The model `x` does not exist."}}', "serves no model tiny"),
        (500, b"EngineDeadError", "HTTP 500: EngineDeadError"),
        (200, b"<html>", "no chat completion"),
        (200, b"[]", "no chat completion"),
        (200, reply(choices=[]), "no chat completion"),
        (200, reply(usage=None), "no chat completion with usage"),
        (200, reply(**message(" ")), "answered with nothing (finish_reason length)"),
        (200, reply(usage={"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}), "answered with nothing"),
        (200, reply(**message("\ufffd\ufffd")), "is no text"),
        (200, reply(**message("!!!!!!!!")), "'a tiny model' was expected"),
    ],
)
def test_what_does_not_count(status, body, words):
    with pytest.raises(AnswerError) as raised:
        parse_answer(status, body, "tiny", "a tiny model")
    assert words in str(raised.value)
