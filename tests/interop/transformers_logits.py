#!/usr/bin/env python3
"""Computes logits with transformers: reads lines with the path of a directory, of a file with tokens, and of a file to write.

A process of its own, since what stands in for CUDA in that of Megatron-Core leaves rotary embeddings of transformers unset. Answers
each line with one that is empty or says what transformers complains about.
"""
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
import torch
import transformers


@torch.no_grad()
def answer(folder, tokens, out):
    model, told = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    torch.save(model.eval()(torch.load(tokens)).logits, out)
    told = {name: sorted(map(str, keys)) for name, keys in told.items() if keys}
    return f"{told}" if told else ""


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for line in sys.stdin:
        try:
            said = answer(*line.rstrip("\n").split("\t"))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(" ".join(said.split()), flush=True)


if __name__ == "__main__":
    main()
