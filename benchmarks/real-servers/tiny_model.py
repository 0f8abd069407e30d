"""Makes a small Llama with random weights and a byte-level BPE tokenizer, without downloading anything.

    python benchmarks/real-servers/tiny_model.py FOLDER

The tokenizer is trained on the Markdown files of the documentation. vLLM and `transformers serve` both load the folder.
Needs transformers and torch.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 4096

folder = sys.argv[1]
docs = sorted(str(path) for path in (Path(__file__).parents[2] / "docs").glob("*.md"))
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
tokenizer.train(
    docs,
    trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet),
)
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer,
    bos_token="<s>",
    eos_token="</s>",
    chat_template="{% for m in messages %}{{ m.content }}\n{% endfor %}",
).save_pretrained(folder)

torch.manual_seed(0)
LlamaForCausalLM(
    LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        bos_token_id=0,
        eos_token_id=1,
    )
).save_pretrained(folder)
