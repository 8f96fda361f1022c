"""Two ranks on two hosts say what one process on one host says."""
from __future__ import annotations

import json
import shlex
import urllib.request

from conftest import ROOT, hostvars, on_node

# What the model has learnt by heart, so that its tokens have real margins.
QUESTIONS = ("What are you?", "What is a rail?", "What is the head?", "How fast is one rail?", "Which user runs the engine?")
TOLERANCE = 1e-3
# Two candidates closer than this may change places, since the all-reduce of two ranks rounds differently.
NEAR_TIE = 4e-3
ENOUGH = 80


def prompt(question: str) -> str:
    """The question as the tiny model's chat template writes it."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def of_the_pair(prompts: list[str]) -> dict[str, list[list]]:
    """[token, logprob] of each prompt's greedy tokens, from the API."""
    key = on_node("spark-a", "cat /etc/gb10/credentials/api-key").strip()
    body = {"model": "tiny", "prompt": prompts, "temperature": 0, "max_tokens": 24, "logprobs": 2}
    request = urllib.request.Request(
        f"http://{hostvars()['spark-a']['ansible_host']}:8000/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        choices = json.load(reply)["choices"]
    return {
        text: list(zip(choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"]))
        for text, choice in zip(prompts, sorted(choices, key=lambda choice: choice["index"]))
    }


def of_one_host(prompts: list[str]) -> dict[str, list[list]]:
    """[token, logprob, margin] of the same, from one process on one node with the same release."""
    program = (ROOT / "tests/site/one_host.py").read_text(encoding="utf-8")
    said = on_node(
        "spark-b",
        f"printf %s {shlex.quote(json.dumps(prompts))} > /run/one-host.json && "
        "systemd-run --quiet --wait --pipe --collect -p User=gb10 -p PrivateTmp=yes -p EnvironmentFile=/etc/gb10/toolchain.env "
        "-E HF_HUB_OFFLINE=1 -E VLLM_HOST_IP=127.0.0.1 -E HOME=/tmp "
        f"/opt/gb10/current/bin/python -c {shlex.quote(program)} /var/lib/gb10/models/tiny </run/one-host.json 2>/run/one-host.log "
        "|| { tail -n 30 /run/one-host.log; exit 1; }; rm /run/one-host.json /run/one-host.log",
    )
    return json.loads(next(line for line in said.splitlines() if line.startswith("GREEDY "))[7:])


def test_the_pair_says_what_one_host_says(served):
    prompts = [prompt(question) for question in QUESTIONS]
    pair, alone = of_the_pair(prompts), of_one_host(prompts)
    compared = 0
    for text in prompts:
        for (token, logprob), (expected, expected_logprob, margin) in zip(pair[text], alone[text]):
            if margin < NEAR_TIE:
                break
            assert token == expected, f"{text}: {token!r} instead of {expected!r} with a margin of {margin}"
            assert abs(logprob - expected_logprob) <= TOLERANCE, f"{text}: {token!r} {logprob} instead of {expected_logprob}"
            compared += 1
    assert compared >= ENOUGH, f"only {compared} tokens were clear enough to compare"
