"""Replays traces in Mooncake's form with NVIDIA's Dynamo, one JSON line for each: its wall seconds, CPU seconds, cached share.

    pip install --no-deps ai-dynamo==1.6.1 ai-dynamo-runtime==1.6.1 && pip install typing_extensions pydantic

Called by beside-replay.ts. `wall_time_ms` of its report counts construction and execution, not reading the trace.
"""

import json
import sys
import time

from dynamo.replay import run_trace_replay

for line in sys.stdin:
    task = json.loads(line)
    started = time.process_time()
    report = run_trace_replay(
        task["file"],
        extra_engine_args=json.dumps({"engine": {"backend": "vllm", **task["engine"]}}),
        trace_block_size=task["block"],
        arrival_speedup_ratio=task["rate"],
    ).summary
    run = {
        "name": task["name"],
        "completed": report["completed_requests"],
        "wall_s": report["wall_time_ms"] / 1000,
        "cpu_s": time.process_time() - started,
        "cached": report["prefix_cache_reused_ratio"],
    }
    print(json.dumps(run), flush=True)
