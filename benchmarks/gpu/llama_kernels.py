"""Kernel times of Llama-3-8B on a GPU, with torch and random weights, in the form of `servegym profile make`.

    pip install torch==2.13.0
    python benchmarks/gpu/llama_kernels.py kernel-times/
    npx servegym profile make kernel-times/ --gpu h100-80gb --model llama-3-8b --output mine.json

Each kernel is captured in a CUDA graph, as vLLM runs decodes, and replayed. Weights lie in several copies that together
exceed the cache of the GPU and are used in turns, so that they come from memory. Attention is torch's own: its times of
decoding are upper bounds for the kernels of an engine.

--device cpu runs the same code without graphs, --tiny with small sizes: both only test it. --plan writes the rows that would
be measured with a time of 1 us, without torch.
"""
import argparse
import csv
import statistics
import time
from pathlib import Path

LAYERS, HIDDEN, INTER, VOCABULARY = 32, 4096, 14336, 128256
QUERY_HEADS, KV_HEADS, HEAD = 32, 8, 128
TINY = {"HIDDEN": 256, "INTER": 512, "VOCABULARY": 1024, "QUERY_HEADS": 8, "KV_HEADS": 2, "HEAD": 32}

TOKENS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192]
SEQUENCES = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256]
PROMPTS = [16, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
CONTEXTS = [256, 512, 1024, 2048, 4096, 8192]
# Keys and values of a decode beyond these tokens are left out: they would not fit beside the weights.
MOST_KV_TOKENS = 262_144
# Larger than the cache of any GPU, bytes.
COLD_BYTES = 256e6
REPEATS, ROUNDS = 20, 5


def rows(tiny):
    """What is measured: (file, its columns before the time)."""
    few = slice(0, 3) if tiny else slice(None)
    for name in ("embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj", "final_layernorm"):
        for tokens in TOKENS[few]:
            yield "dense.csv", (name, tokens)
    for name in ("lm_head", "sampler"):
        for sequences in SEQUENCES[few]:
            yield "per_sequence.csv", (name, sequences)
    for chunk in PROMPTS[few]:
        for cached in (0, 2048, 8192)[few]:
            yield "attention.csv", (chunk, cached, 0, 0)
    for context in CONTEXTS[few]:
        for sequences in SEQUENCES[few]:
            if sequences * context <= MOST_KV_TOKENS:
                yield "attention.csv", (0, 0, sequences, context)
                for chunk in (256, 1024, 2048)[few]:
                    yield "attention.csv", (chunk, 0, sequences, context)


COLUMNS = {
    "dense.csv": ("layer", "tokens", "time_us"),
    "per_sequence.csv": ("layer", "sequences", "time_us"),
    "attention.csv": ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"),
}


class Kernels:
    """Calls of each kernel, as functions of no arguments that use the next copy of their weights."""

    def __init__(self, device):
        import torch

        self.torch = torch
        self.device = device
        self.type = torch.bfloat16
        self.weights = {}

    def random(self, *shape):
        return self.torch.randn(*shape, device=self.device, dtype=self.type) * 0.02

    def matrix(self, name, out, into):
        """Copies of a weight that exceed the cache together."""
        if name not in self.weights:
            size = 2 * out * into
            copies = max(1, int(COLD_BYTES // size) + 1) if self.device == "cuda" else 1
            self.weights = {name: [self.random(out, into) for _ in range(copies)]}
        return self.weights[name]

    def dense(self, name, tokens):
        torch, functional = self.torch, self.torch.nn.functional
        heads, kv = QUERY_HEADS * HEAD, KV_HEADS * HEAD
        if name in ("layernorm", "final_layernorm"):
            x, residual, scale = self.random(tokens, HIDDEN), self.random(tokens, HIDDEN), self.random(HIDDEN)
            norm = self.compiled(lambda: functional.rms_norm(x + residual, (HIDDEN,), scale))
            return lambda i: norm()
        if name == "embedding":
            table, ids = self.random(VOCABULARY, HIDDEN), torch.randint(0, VOCABULARY, (tokens,), device=self.device)
            return lambda i: functional.embedding(ids, table)
        if name == "rotary_emb":
            x, angle = self.random(tokens, heads + kv), self.random(tokens, heads + kv)
            rotate = self.compiled(lambda: x * angle + x.roll(HEAD // 2, -1) * angle)
            return lambda i: rotate()
        if name == "act_fn":
            x = self.random(tokens, 2 * INTER)
            act = self.compiled(lambda: functional.silu(x[:, :INTER]) * x[:, INTER:])
            return lambda i: act()
        out, into = {
            "qkv_proj": (heads + 2 * kv, HIDDEN),
            "o_proj": (HIDDEN, heads),
            "gate_up_proj": (2 * INTER, HIDDEN),
            "down_proj": (HIDDEN, INTER),
        }[name]
        x, weights = self.random(tokens, into), self.matrix(name, out, into)
        return lambda i: functional.linear(x, weights[i % len(weights)])

    def per_sequence(self, name, sequences):
        torch, functional = self.torch, self.torch.nn.functional
        if name == "lm_head":
            x, weights = self.random(sequences, HIDDEN), self.matrix(name, VOCABULARY, HIDDEN)
            return lambda i: functional.linear(x, weights[i % len(weights)])
        logits = self.random(sequences, VOCABULARY)
        # Gumbel's trick, as engines sample without a synchronisation.
        return lambda i: (logits.float().softmax(-1) / torch.empty_like(logits, dtype=torch.float32).exponential_()).argmax(-1)

    def attention(self, chunk, cached, sequences, context):
        calls = []
        if chunk:
            calls.append(self.attend(1, chunk, cached + chunk))
        if sequences:
            calls.append(self.attend(sequences, 1, context))
        return lambda i: [call() for call in calls]

    def attend(self, batch, queries, keys):
        torch = self.torch
        q = self.random(batch, QUERY_HEADS, queries, HEAD)
        k, v = (self.random(batch, KV_HEADS, keys, HEAD) for _ in range(2))
        attend = torch.nn.functional.scaled_dot_product_attention
        if queries == 1:
            return lambda: attend(q, k, v, enable_gqa=True)
        if queries == keys:
            return lambda: attend(q, k, v, is_causal=True, enable_gqa=True)
        from torch.nn.attention.bias import causal_lower_right

        mask = causal_lower_right(queries, keys)
        group = QUERY_HEADS // KV_HEADS
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
        return lambda: attend(q, k, v, attn_mask=mask)

    def compiled(self, call):
        """One kernel instead of one for each operation, as engines have."""
        return self.torch.compile(call, dynamic=False) if self.device == "cuda" else call

    def time_us(self, call):
        return self.graph_us(call) if self.device == "cuda" else self.eager_us(call)

    def eager_us(self, call):
        call(0)
        times = []
        for i in range(3):
            start = time.perf_counter()
            call(i)
            times.append((time.perf_counter() - start) * 1e6)
        return statistics.median(times)

    def graph_us(self, call):
        cuda = self.torch.cuda
        stream = cuda.Stream()
        with cuda.stream(stream):
            for i in range(3):
                call(i)
        cuda.current_stream().wait_stream(stream)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            for i in range(REPEATS):
                call(i)
        graph.replay()
        times = []
        for _ in range(ROUNDS):
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / REPEATS)
        del graph
        return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        globals().update(TINY)
    kernels = None if options.plan else Kernels(options.device)
    if kernels and options.device == "cuda" and not kernels.torch.cuda.is_available():
        parser.error("expected a GPU that torch can use, got none; --device cpu tests the script")
    options.out.mkdir(parents=True, exist_ok=True)
    files = {name: (options.out / name).open("w", newline="") for name in COLUMNS}
    writers = {name: csv.writer(file) for name, file in files.items()}
    for name, columns in COLUMNS.items():
        writers[name].writerow(columns)
    for name, row in rows(options.tiny):
        measure = kernels and getattr(kernels, name.removesuffix(".csv"))
        writers[name].writerow((*row, f"{kernels.time_us(measure(*row)):.3f}" if kernels else 1))
        files[name].flush()
    for file in files.values():
        file.close()


if __name__ == "__main__":
    main()
