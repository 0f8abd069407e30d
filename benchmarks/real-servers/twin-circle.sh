#!/bin/sh
# The circle on a real vLLM without a GPU, in under 12 minutes: calibrate a running server, tune its settings on the
# profile, restart it with them, and confirm five loads that the profile has not seen. Run it on a machine that does
# nothing else, with vLLM for the CPU installed (docs/real-servers.md):
#
#   sh benchmarks/real-servers/twin-circle.sh PATH/TO/vllm PATH/TO/model OUT
#
# OUT gets the profile, the loads, the tuned settings and a transcript.
set -eu
vllm=$1 model=$2 out=$3
port=${PORT:-8000}
minutes=${MINUTES:-4}
budget=${BUDGET:-512}
mkdir -p "$out"
servegym="npx node packages/servegym/src/main.ts"
say() { printf '\n$ %s\n' "$*"; }

start_server() { # sequences, token budget
  say vllm serve "$model" --max-num-seqs "$1" --max-num-batched-tokens "$2"
  HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=2 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 "$vllm" serve "$model" --load-format dummy \
    --skip-tokenizer-init --host 127.0.0.1 --port "$port" --max-model-len 4096 --max-num-seqs "$1" \
    --max-num-batched-tokens "$2" --dtype bfloat16 --served-model-name tiny --enforce-eager > "$out/vllm-$1-$2.log" 2>&1 &
  server=$!
  trap 'kill $server 2>/dev/null || true' EXIT
  for _ in $(seq 240); do
    curl -sf "http://127.0.0.1:$port/health" > /dev/null && return
    kill -0 $server || { echo "vLLM ended: see $out/vllm-$1-$2.log"; exit 1; }
    sleep 1
  done
  echo "vLLM did not start within 240 s: see $out/vllm-$1-$2.log"
  exit 1
}
stop_server() { kill $server; wait $server 2>/dev/null || true; }

{
  uname -srm; nproc; uptime
  start_server 64 "$budget"
  say servegym calibrate --server http://localhost:$port/v1 --minutes "$minutes"
  $servegym calibrate --server "http://127.0.0.1:$port/v1" --minutes "$minutes" --max-num-seqs 64 \
    --max-num-batched-tokens "$budget" --yes --output "$out/mine.json"
  # The trace to tune for: bursts of short prompts with a few long ones, as the open loads have them.
  awk 'BEGIN { srand(7); print "arrival_ms,input_tokens,output_tokens"; t = 0; for (i = 0; i < 600; i++) { t += -log(1 - rand()) * 400;
    print int(t) "," int(60 + 400 * rand() ^ 3) "," int(10 + 90 * rand()) } }' > "$out/trace.csv"
  say servegym tune --profile mine.json --trace trace.csv --knobs max_num_seqs,max_num_batched_tokens
  $servegym tune --profile "$out/mine.json" --trace "$out/trace.csv" --slo ttft_p99=2s,tpot_p99=200ms \
    --knobs max_num_seqs,max_num_batched_tokens --requests 20000 --json > "$out/tune.json"
  grep -o 'vllm serve[^"]*' "$out/tune.json" | head -1 | tee "$out/tuned.txt"
  flag() { grep -o -- "--$1 [0-9]*" "$out/tuned.txt" | head -1 | cut -d' ' -f2; }
  seqs=$(flag max-num-seqs) tuned=$(flag max-num-batched-tokens)
  stop_server
  start_server "$seqs" "$tuned"
  say servegym confirm --server http://localhost:$port/v1 --profile mine.json --max-num-seqs "$seqs" --max-num-batched-tokens "$tuned"
  $servegym confirm --server "http://127.0.0.1:$port/v1" --profile "$out/mine.json" --max-num-seqs "$seqs" \
    --max-num-batched-tokens "$tuned" --seconds 20
  say servegym confirm trace.csv
  $servegym confirm "$out/trace.csv" --server "http://127.0.0.1:$port/v1" --profile "$out/mine.json" --max-num-seqs "$seqs" \
    --max-num-batched-tokens "$tuned" --requests 100
  stop_server
  uptime
} 2>&1 | tee "$out/transcript.txt"
