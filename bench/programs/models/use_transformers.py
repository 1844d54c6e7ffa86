"""Trains a tokenizer and tokenises."""

import steady
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

TEXTS = ["the quick brown fox jumps over the lazy dog"] * 50


def work():
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=60, special_tokens=["[UNK]"], show_progress=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    return fast("the lazy fox")["input_ids"], fast.decode(fast("the quick dog")["input_ids"])


steady.run(work)
