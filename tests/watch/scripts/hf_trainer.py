"""Fine-tunes a (tiny, untrained) GPT-2 with the Hugging Face Trainer.

python hf_trainer.py --max_steps 14 --save_steps 4
python hf_trainer.py --max_steps 14 --save_steps 4 --resume
"""
import argparse

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class Sentences(Dataset):
    """Sequences that count upwards from a random start, with some noise."""

    def __init__(self, count, length, vocab):
        generator = torch.Generator().manual_seed(11)
        start = torch.randint(vocab, (count, 1), generator=generator)
        noise = torch.randint(3, (count, length), generator=generator)
        self.tokens = (start + torch.arange(length) + noise) % vocab

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"rank {args.process_index} step {state.global_step} loss {logs['loss']}", flush=True)


def build_model(args):
    config = GPT2Config(
        vocab_size=args.vocab,
        n_positions=32,
        n_embd=32,
        n_layer=2,
        n_head=2,
        resid_pdrop=args.dropout,
        embd_pdrop=args.dropout,
        attn_pdrop=args.dropout,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_steps", type=int, default=14)
    parser.add_argument("--save_steps", type=int, default=4)
    parser.add_argument("--samples", type=int, default=44)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--vocab", type=int, default=48)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--out", default="hf-out")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    set_seed(7)
    training = TrainingArguments(
        output_dir=args.out,
        max_steps=args.max_steps,
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=args.accumulate,
        learning_rate=args.lr,
        lr_scheduler_type="cosine",
        warmup_steps=2,
        weight_decay=0.01,
        save_steps=args.save_steps,
        save_total_limit=3,
        logging_steps=1,
        dataloader_num_workers=args.workers,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        seed=7,
    )
    trainer = Trainer(
        model=build_model(args),
        args=training,
        train_dataset=Sentences(args.samples, 16, args.vocab),
        callbacks=[PrintLoss()],
    )
    trainer.train(resume_from_checkpoint=args.resume)
    trainer.save_model(args.out + "/final")


if __name__ == "__main__":
    main()
