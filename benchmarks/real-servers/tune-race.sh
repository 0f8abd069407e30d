#!/bin/sh
# Two ways to find vLLM's sequence cap and token budget for one traffic and one SLO, on a real vLLM without a GPU, and who
# ends with the higher load. Run it on a machine that does nothing else, with vLLM for the CPU (docs/real-servers.md); the
# model needs a tokenizer:
#
#   sh benchmarks/real-servers/tune-race.sh PATH/TO/vllm PATH/TO/model OUT.md
#
# sweep: as vLLM's benchmarks/auto_tune/auto_tune.sh. Each pair of GRID is served; `vllm bench serve` sends all prompts at
#        once, then at one request/s above the throughput of that and one less, until the SLO holds.
# twin:  `profile make` on the default settings, `tune`, and at most three confirmations: a restart with the tuned
#        settings, then loads at the predicted rate and at 90 and 80 % of it, until the SLO holds.
# judge: both winners, in turns, twice: three times as many requests a load, from the higher claim up or down by half a
#        request/s to the highest rate at which the SLO holds.
#
# OUT.md gets the tables; the folder OUT, beside it, all results and vLLM's logs. A part whose result is there (twin.txt,
# sweep.txt) is not done again.
set -eu
[ $# = 3 ] || { echo "expected PATH/TO/vllm PATH/TO/model OUT.md, got $# arguments" >&2; exit 2; }
vllm=$1 model=$2 report=$3
out=${report%.md}
port=${PORT:-8000}
minutes=${MINUTES:-3}                   # of calibration, a whole number
grid=${GRID:-"16:256 16:512 16:2048 64:256 64:512 64:2048 256:256 256:512 256:2048"}
default_seqs=${SEQS:-256} default_budget=${BUDGET:-2048}
input=${INPUT:-400} output=${OUTPUT:-60} # tokens, mean; uniform within RANGE of it
range=${RANGE:-0.8}
ttft=${TTFT_MS:-1500} tpot=${TPOT_MS:-80} # ms, 95th percentiles
prompts=${PROMPTS:-100}
ends=$(($(date +%s) + 60 * ${MOST_MINUTES:-50}))
mkdir -p "$out"
. "$(dirname "$0")/vllm-server.sh"
SERVE_FLAGS=--no-enable-prefix-caching # loads of one seed have the same prompts

# A load of `vllm bench serve`. Sets throughput in requests/s, ttft_is and tpot_is in ms, and holds.
load() { # name, requests/s or inf, requests, seed
  HF_HUB_OFFLINE=1 bounded 240 "$vllm" bench serve --backend openai --base-url "http://127.0.0.1:$port" --endpoint /v1/completions \
    --model tiny --tokenizer "$model" --dataset-name random --random-input-len "$input" --random-output-len "$output" \
    --random-range-ratio "$range" --num-prompts "$3" --request-rate "$2" --ignore-eos --percentile-metrics ttft,tpot \
    --metric-percentiles 95 --seed "$4" --save-result --result-dir "$out" --result-filename "$1.json" > "$out/bench.log" 2>&1
  eval "$(node -e '
    const [file, ttft, tpot, asked] = process.argv.slice(1);
    const r = JSON.parse(require("fs").readFileSync(file));
    if (r.completed !== Number(asked)) throw new Error(`${r.completed} of ${asked} requests completed`);
    const holds = r.p95_ttft_ms <= ttft && r.p95_tpot_ms <= tpot ? "yes" : "no";
    console.log(`throughput=${r.request_throughput.toFixed(2)} ttft_is=${r.p95_ttft_ms.toFixed(0)} tpot_is=${r.p95_tpot_ms.toFixed(0)} holds=${holds}`);
  ' "$out/$1.json" "$ttft" "$tpot" "$3")"
  echo "$(date +%T) $1: $2/s, throughput $throughput, TTFT p95 $ttft_is ms, TPOT p95 $tpot_is ms, SLO holds: $holds" >&2
}
true_that() { [ "$(awk "BEGIN { print ($*) }")" = 1 ]; }
# Sets sustained to the first of falling rates at which the SLO holds, or 0.
fall() { # name, first rate, step, requests, seed
  rate=$2
  sustained=0
  while true_that "$rate > 0"; do
    load "$1-$rate" "$rate" "$4" "$5"
    [ "$holds" = no ] || { sustained=$rate; return; }
    rate=$(awk "BEGIN { print $rate - $3 }")
  done
}
since() { echo "$(($(date +%s) - $1))" | awk '{ printf "%.1f", $1 / 60 }'; }

sweep() {
  began=$(date +%s)
  sweep_best=0 sweep_seqs=$default_seqs sweep_budget=$default_budget
  for pair in $grid; do
    seqs=${pair%:*} budget=${pair#*:}
    start_server "$seqs" "$budget"
    load "sweep-$seqs-$budget-inf" inf "$prompts" 1
    if [ "$holds" = yes ]; then sustained=$throughput; else fall "sweep-$seqs-$budget" "$(awk "BEGIN { print int($throughput) + 1 }")" 1 "$prompts" 1; fi
    stop_server
    ! true_that "$sustained > $sweep_best" || sweep_best=$sustained sweep_seqs=$seqs sweep_budget=$budget
  done
  echo "sweep_best=$sweep_best sweep_seqs=$sweep_seqs sweep_budget=$sweep_budget sweep_minutes=$(since "$began")" > "$out/sweep.txt"
}

twin() {
  began=$(date +%s)
  start_server "$default_seqs" "$default_budget"
  servegym $((60 * minutes + 240)) profile make "http://127.0.0.1:$port/v1" --minutes "$minutes" \
    --deployment "--max-num-seqs $default_seqs --max-num-batched-tokens $default_budget" --yes --output "$out/mine.json" > "$out/calibrate.txt" 2> "$out/stderr.txt"
  stop_server
  awk -v i="$input" -v o="$output" -v r="$range" 'BEGIN { srand(7); print "arrival_ms,input_tokens,output_tokens"; t = 0
    for (k = 0; k < 2000; k++) { t += -log(1 - rand()) * 200; print int(t) "," int(i * (1 - r + 2 * r * rand())) "," int(o * (1 - r + 2 * r * rand())) } }' > "$out/trace.csv"
  servegym 240 tune "$out/trace.csv" --profile "$out/mine.json" --slo "ttft_p95=${ttft}ms,tpot_p95=${tpot}ms" \
    --search max_num_seqs,max_num_batched_tokens --json > "$out/tune.json" 2> "$out/stderr.txt"
  eval "$(node -e '
    const [best] = JSON.parse(require("fs").readFileSync(process.argv[1])).candidates ?? [];
    if (best === undefined) throw new Error("nothing meets the SLO");
    console.log(`twin_seqs=${best.settings.max_num_seqs} twin_budget=${best.settings.max_num_batched_tokens} predicted=${best.sustained_rps.value.toFixed(1)}`);
  ' "$out/tune.json")"
  start_server "$twin_seqs" "$twin_budget"
  twin_best=0
  for share in 1 0.9 0.8; do
    rate=$(awk "BEGIN { printf \"%.1f\", $predicted * $share }")
    load "twin-$rate" "$rate" "$prompts" 1
    [ "$holds" = no ] || { twin_best=$rate; break; }
  done
  stop_server
  echo "twin_best=$twin_best twin_seqs=$twin_seqs twin_budget=$twin_budget twin_minutes=$(since "$began") predicted=$predicted" > "$out/twin.txt"
}

# Sets sustained to the highest rate at which the SLO holds.
judge() { # round, name, seqs, budget
  start_server "$3" "$4"
  fall "judge-$1-$2" "$judge_from" 0.5 $((3 * prompts)) $((10 + $1))
  if [ "$sustained" = "$judge_from" ]; then
    while [ "$holds" = yes ]; do
      sustained=$rate
      rate=$(awk "BEGIN { print $rate + 0.5 }")
      load "judge-$1-$2-$rate" "$rate" $((3 * prompts)) $((10 + $1))
    done
  fi
  stop_server
}

race() {
  load_before=$(cut -d' ' -f1 /proc/loadavg)
  [ -s "$out/twin.txt" ] || twin
  [ -s "$out/sweep.txt" ] || sweep
  . "$out/twin.txt"
  . "$out/sweep.txt"
  judge_from=$(awk "BEGIN { most = $sweep_best > $twin_best ? $sweep_best : $twin_best; print int(2 * most + 0.5) / 2 }")
  judge 1 sweep "$sweep_seqs" "$sweep_budget"
  sweep_1=$sustained
  judge 1 twin "$twin_seqs" "$twin_budget"
  twin_1=$sustained
  judge 2 twin "$twin_seqs" "$twin_budget"
  twin_2=$sustained
  judge 2 sweep "$sweep_seqs" "$sweep_budget"
  sweep_2=$sustained
  judge 1 default "$default_seqs" "$default_budget"
  default_1=$sustained
  echo "$("$vllm" --version 2> /dev/null | tail -1) on $(uname -sm), $(nproc) cores, load average before $load_before and after $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)."
  echo "Prompts of $input and outputs of $output tokens on average (range $range), TTFT p95 <= $ttft ms, TPOT p95 <= $tpot ms."
  echo
  echo "| | minutes | --max-num-seqs | --max-num-batched-tokens | claimed requests/s | judged |"
  echo "|---|---:|---:|---:|---:|---:|"
  echo "| vLLM's defaults | | $default_seqs | $default_budget | | $default_1 |"
  echo "| sweep | $sweep_minutes | $sweep_seqs | $sweep_budget | $sweep_best | $sweep_1, $sweep_2 |"
  echo "| twin | $twin_minutes | $twin_seqs | $twin_budget | $twin_best, predicted $predicted | $twin_1, $twin_2 |"
}

race > "$report"
cat "$report"
