# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a chat completion must be like to count as an answer. Pure functions."""

from __future__ import annotations

import json
import typing as t


class AnswerError(Exception):
    """An answer that does not count; the message says why and what to do."""


def parse_answer(status: int, body: bytes, model: str, expect: str | None = None) -> dict[str, t.Any]:
    """Read the reply to a request of /v1/chat/completions.

    Args:
        status: HTTP status.
        body: the reply as it came.
        model: served name that was asked.
        expect: text that the content must hold, case and white space aside; anything when None.

    Returns:
        {content, usage: {prompt_tokens, completion_tokens, total_tokens}, finish_reason, system_fingerprint}.

    Raises:
        AnswerError: it is refused, is no completion, is empty, counts no tokens, or is another text than expected.
    """
    text = body.decode("utf-8", "replace")
    if status in (401, 403):
        raise AnswerError(f"The engine refuses the key (HTTP {status}): the key file is not the one that the unit started with.")
    if status == 404:
        raise AnswerError(f"The engine serves no model {model} (HTTP 404): ask it for /v1/models. It said: {text[:300]}")
    if status != 200:
        raise AnswerError(f"The engine answered with HTTP {status}: {text[:300]}")
    try:
        reply = json.loads(text)
        choice = reply["choices"][0]
        content = choice["message"].get("content") or choice["message"].get("reasoning_content") or ""
        usage = {key: int(reply["usage"][key]) for key in ("prompt_tokens", "completion_tokens", "total_tokens")}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AnswerError(f"The answer is no chat completion with usage: {text[:300]}") from error
    if not content.strip() or usage["completion_tokens"] < 1:
        raise AnswerError(f"The model answered with nothing (finish_reason {choice.get('finish_reason')}).")
    if "\ufffd" in content:
        raise AnswerError(f"The answer is no text: {content!r}. Weights or tokenizer are damaged; compare the model's files with their source.")
    if expect is not None and _plain(expect) not in _plain(content):
        raise AnswerError(
            f"The model answered {content.strip()!r}, in which {expect!r} was expected."
            " Weights, tokenizer or chat template are not those that the profile means, or the ranks do not agree."
        )
    return {
        "content": content,
        "usage": usage,
        "finish_reason": choice.get("finish_reason"),
        "system_fingerprint": reply.get("system_fingerprint") or "",
    }


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
