# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the tiny model of the lab: a two-layer Qwen2 that has learnt a few answers by heart.

Usage: make_tiny_model.py FOLDER      (with a Python that has torch and transformers)

A model with random weights has ties everywhere, so that the rounding of an all-reduce decides its text. This one is
trained until every token of every answer leads by a wide margin, in the precision that it is served in. Two hosts with
tensor parallel size 2 and one process alone then say the same. Seeds and the number of threads are fixed.
"""
from __future__ import annotations

import argparse
import pathlib
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

ANSWERS = {
    "What are you?": "I am a tiny model served by two hosts with tensor parallel size 2.",
    "Who serves you?": "vLLM serves me, over a Ray head and a Ray worker.",
    "What is gb10.fleet?": "gb10.fleet is an Ansible collection that owns DGX Spark pairs from bare DGX OS to a served model.",
    "What is a node?": "A node is one DGX Spark.",
    "What is a cluster?": "A cluster is the nodes that serve one model together.",
    "What is a rail?": "A rail is one function of the network card: a network device and its RDMA device.",
    "What is a cage?": "A cage is one QSFP port of a Spark. It has two rails.",
    "What is the head?": "The head is the first node of a cluster. It runs the API server.",
    "What is a worker?": "A worker is a node of a cluster that is not the head.",
    "What is a release?": "A release is what a node runs, as one unit. Going back is moving one link.",
    "What is a profile?": "A profile says how one model is served.",
    "What is a gate?": "A gate is a measurement that must pass before the next step.",
    "What is a finding?": "A finding names what was seen, the likely cause and the cure.",
    "Which GPU has a DGX Spark?": "A DGX Spark has one GB10 GPU of compute capability 12.1.",
    "How much memory has a DGX Spark?": "128 GB of LPDDR5x, shared by CPU and GPU.",
    "Which MTU do the rails use?": "The rails use MTU 9000.",
    "How fast is one rail?": "One rail carries about 100 Gb/s, both rails of a cage about 200 Gb/s.",
    "Does a DGX Spark have MIG?": "No, a GB10 has no MIG.",
    "Which user runs the engine?": "The system user gb10 runs the engine, without any capability.",
    "Where is the API key?": "The key lies in a file on the head that only root can read.",
    "How do I try a fault?": "Cut a rail of the lab and watch the pair come back.",
    "Say hello.": "Hello from two hosts.",
}
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LENGTH = 512
STEPS = 900
MARGIN = 4.0


def make_tokenizer() -> PreTrainedTokenizerFast:
    byte_pairs = Tokenizer(models.BPE())
    byte_pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_pairs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=448, special_tokens=SPECIAL_TOKENS, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())
    )
    byte_pairs.train_from_iterator([*ANSWERS, *ANSWERS.values(), "user\n", "assistant\n", "system\n"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_pairs, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        model_max_length=LENGTH, chat_template=CHAT_TEMPLATE,
    )


def make_examples(tokenizer: PreTrainedTokenizerFast) -> list[tuple[list[int], int]]:
    """Token lists of whole conversations, each with the length of its question; questions also without great care."""
    examples = []
    for question, answer in ANSWERS.items():
        for wording in sorted({question, question.lower(), question.rstrip("?.")}):
            asked = tokenizer.apply_chat_template(
                [{"role": "user", "content": wording}], tokenize=False, add_generation_prompt=True
            )
            prompt = tokenizer.encode(asked)
            examples.append((prompt + tokenizer.encode(answer + "<|im_end|>"), len(prompt)))
    return examples


def as_batch(examples: list[tuple[list[int], int]], padding: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    longest = max(len(tokens) for tokens, _asked in examples)
    tokens = torch.full((len(examples), longest), padding)
    labels = torch.full((len(examples), longest), -100)
    mask = torch.zeros((len(examples), longest), dtype=torch.long)
    for row, (example, asked) in enumerate(examples):
        tokens[row, : len(example)] = torch.tensor(example)
        labels[row, asked: len(example)] = torch.tensor(example[asked:])
        mask[row, : len(example)] = 1
    return tokens, labels, mask


def smallest_margin(model: Qwen2ForCausalLM, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> float:
    """By how much the right token leads at the weakest place of all answers; negative when one is wrong."""
    tokens, labels, mask = batch
    with torch.no_grad():
        scores = model(input_ids=tokens, attention_mask=mask).logits[:, :-1].float()
    wanted = labels[:, 1:]
    places = wanted != -100
    scores, wanted = scores[places], wanted[places]
    right = scores.gather(1, wanted[:, None])[:, 0]
    others = scores.scatter(1, wanted[:, None], float("-inf")).max(dim=1).values
    return float((right - others).min())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the model is written")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    torch.manual_seed(20260101)
    tokenizer = make_tokenizer()
    configuration = Qwen2Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=LENGTH, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None, pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(configuration)
    batch = as_batch(make_examples(tokenizer), tokenizer.pad_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=STEPS)
    for step in range(1, STEPS + 1):
        loss = model(input_ids=batch[0], labels=batch[1], attention_mask=batch[2]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step} of {STEPS}: loss {loss.item():.5f}", flush=True)
    model = model.to(torch.bfloat16).eval()
    margin = smallest_margin(model, batch)
    print(f"{sum(weights.numel() for weights in model.parameters())} parameters, smallest margin {margin:.2f}", flush=True)
    if margin < MARGIN:
        print(f"the smallest margin is below {MARGIN}: train for more steps", file=sys.stderr)
        return 1
    model.generation_config.do_sample = False
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for written in folder.iterdir():
        written.chmod(0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
