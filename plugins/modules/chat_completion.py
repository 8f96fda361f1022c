#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: chat_completion
short_description: Ask a served model something and judge its answer
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Sends one request to an OpenAI-compatible C(/chat/completions) and fails when no proper answer comes.
  - Waits while nothing listens yet or the engine says that it is not ready.
attributes:
  check_mode:
    description: Asks in check mode too, since nothing is changed.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
options:
  url:
    description: Where the API begins, C(/v1) included.
    type: str
    required: true
  api_key_file:
    description: File on the node with the key. Without it the request shows none.
    type: path
  guarded:
    description: Fail when the engine lists its models to somebody who shows no key. Only with O(api_key_file).
    type: bool
    default: false
  model:
    description: Served name of the model.
    type: str
    required: true
  messages:
    description: The conversation, each with a C(role) and a C(content).
    type: list
    elements: dict
    required: true
  expect:
    description: Text that the answer must hold. Case and white space do not count.
    type: str
  max_tokens:
    description: How many tokens the answer has at most.
    type: int
    default: 64
  timeout:
    description: How long one request may take, in seconds.
    type: int
    default: 120
  wait:
    description: How long to go on asking while the engine is not ready, in seconds.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Ask something whose answer is known
  gb10.fleet.chat_completion:
    url: http://127.0.0.1:8000/v1
    api_key_file: /etc/gb10/credentials/api-key
    model: tiny
    messages:
      - role: user
        content: What are you?
    expect: tiny model
    guarded: true
    wait: 600
  become: true
"""

RETURN = r"""
content:
  description: What the model said.
  returned: success
  type: str
  sample: I am a tiny model served by two hosts with tensor parallel size 2.
usage:
  description: Tokens counted by the engine.
  returned: success
  type: dict
  sample: {prompt_tokens: 12, completion_tokens: 17, total_tokens: 29}
finish_reason:
  description: Why the model ended.
  returned: success
  type: str
  sample: stop
system_fingerprint:
  description: The engine's own account of its version and shape, empty when it gives none.
  returned: success
  type: str
  sample: vllm-0.32.0-tp2-145742dd
seconds:
  description: Time from the request to the whole answer.
  returned: success
  type: float
  sample: 1.27
waited:
  description: Seconds until the engine took the request.
  returned: success
  type: float
  sample: 48.2
"""

import http.client
import json
import socket
import time
import urllib.error
import urllib.request

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils._chat import AnswerError, parse_answer

PAUSE = 0.5
# 500 is what vLLM says while its engine dies under it, before systemd starts both again.
NOT_READY = (500, 502, 503)
UNAUTHORIZED = 401


def ask(request: urllib.request.Request, timeout: float) -> tuple[int, bytes]:
    """Status and body of a request.

    Raises:
        OSError, http.client.HTTPException: nothing answered, or the connection broke.
    """
    # The nodes' own address: a proxy that the environment names has no business here.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def main() -> None:
    """Ask until there is an answer or the time is over."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "api_key_file": {"type": "path", "no_log": False},
            "guarded": {"type": "bool", "default": False},
            "model": {"type": "str", "required": True},
            "messages": {"type": "list", "elements": "dict", "required": True},
            "expect": {"type": "str"},
            "max_tokens": {"type": "int", "default": 64, "no_log": False},
            "timeout": {"type": "int", "default": 120},
            "wait": {"type": "int", "default": 0},
        },
        required_if=[("guarded", True, ["api_key_file"])],
        supports_check_mode=True,
    )
    given = module.params
    headers = {"Content-Type": "application/json"}
    if given["api_key_file"]:
        try:
            with open(given["api_key_file"], encoding="utf-8") as stream:
                headers["Authorization"] = f"Bearer {stream.read().strip()}"
        except OSError as error:
            module.fail_json(msg=f"api_key_file {given['api_key_file']} cannot be read: {error.strerror}. Run as root, after the role serve.")
    body = {"model": given["model"], "messages": given["messages"], "max_tokens": given["max_tokens"], "temperature": 0}
    request = urllib.request.Request(f"{given['url'].rstrip('/')}/chat/completions", json.dumps(body).encode(), headers)

    begin = time.monotonic()
    while True:
        asked = time.monotonic()
        try:
            status, reply = ask(request, given["timeout"])
            trouble = f"it says that it is not ready (HTTP {status}: {reply[:200].decode('utf-8', 'replace')})" if status in NOT_READY else None
        except socket.timeout:
            module.fail_json(
                msg=f"{given['url']} took the request and gave no answer within {given['timeout']} s: a rank or a link hangs."
                " Look at gb10-ray on every node, then restart gb10-serve."
            )
        except (OSError, http.client.HTTPException) as error:
            trouble = str(getattr(error, "reason", error))
        if trouble is None:
            break
        if time.monotonic() - begin > given["wait"]:
            module.fail_json(msg=f"{given['url']} did not answer within {given['wait']} s: {trouble}.")
        time.sleep(PAUSE)
    try:
        answer = parse_answer(status, reply, given["model"], given["expect"])
    except AnswerError as error:
        module.fail_json(msg=f"{given['url']}: {error}")
    seconds = round(time.monotonic() - asked, 3)
    if given["guarded"]:
        try:
            status, _reply = ask(urllib.request.Request(f"{given['url'].rstrip('/')}/models"), given["timeout"])
        except (OSError, http.client.HTTPException) as error:
            module.fail_json(msg=f"{given['url']} answered with the key and broke off without one: {error}.")
        if status != UNAUTHORIZED:
            module.fail_json(
                msg=f"{given['url']} answers without a key (HTTP {status} instead of {UNAUTHORIZED}): see that its unit gets VLLM_API_KEY."
            )
    module.exit_json(changed=False, seconds=seconds, waited=round(asked - begin, 3), **answer)


if __name__ == "__main__":
    main()
