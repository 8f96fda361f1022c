"""Greedy tokens with log probabilities of a model in one process on one host, as JSON. Run on a node by the release's Python."""
from __future__ import annotations

import json
import sys

from vllm import LLM, SamplingParams


def main() -> None:
    """Generate for the prompts on standard input and print {prompt: [[token, logprob, margin to the second], ...]}."""
    prompts = json.load(sys.stdin)
    engine = LLM(model=sys.argv[1], enforce_eager=True, max_model_len=512, dtype="bfloat16", tensor_parallel_size=1)
    outputs = engine.generate(prompts, SamplingParams(temperature=0, max_tokens=24, logprobs=2))
    result = {}
    for output in outputs:
        completion = output.outputs[0]
        rows = []
        for token, candidates in zip(completion.token_ids, completion.logprobs):
            best = sorted((candidate.logprob for candidate in candidates.values()), reverse=True)
            rows.append([candidates[token].decoded_token, candidates[token].logprob, best[0] - best[1]])
        result[output.prompt] = rows
    print("GREEDY " + json.dumps(result))


if __name__ == "__main__":
    main()
