#!/bin/sh
# The circle on a real vLLM without a GPU, in 15 minutes at most: calibrate a running server, tune its settings on the
# profile, restart it with them, and confirm five loads and a trace that the profile has not seen. Run it on a machine
# that does nothing else, with vLLM for the CPU (docs/real-servers.md):
#
#   sh benchmarks/real-servers/calibrate-and-confirm.sh PATH/TO/vllm PATH/TO/model OUT.md
#
# OUT.md gets the transcript in Markdown; the folder OUT, beside it, the profile, the loads, the results and vLLM's logs.
set -eu
[ $# = 3 ] || { echo "expected PATH/TO/vllm PATH/TO/model OUT.md, got $# arguments" >&2; exit 2; }
vllm=$1 model=$2 report=$3
out=${report%.md}
port=${PORT:-8000}
minutes=${MINUTES:-3} # a whole number
default_seqs=${SEQS:-64} default_budget=${BUDGET:-512}
ends=$(($(date +%s) + 60 * ${MOST_MINUTES:-15}))
api=http://127.0.0.1:$port/v1
mkdir -p "$out"
. "$(dirname "$0")/vllm-server.sh"
SERVE_FLAGS=--skip-tokenizer-init

# Shows a command, and what it prints.
step() { # most seconds, arguments of servegym
  most=$1
  shift
  printf '\n```console\n$ servegym %s\n' "$(echo "$*" | sed "s#$out/##g; s#127.0.0.1:$port#gpu:8000#g")"
  servegym "$most" "$@" 2> "$out/stderr.txt" || { cat "$out/stderr.txt" >&2; exit 1; }
  echo '```'
}

circle() {
  echo "# The circle on a real vLLM"
  echo
  echo "$("$vllm" --version 2> /dev/null | tail -1) on $(uname -sm), $(nproc) cores, load average $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)."
  echo "The server has \`--max-num-seqs $default_seqs --max-num-batched-tokens $default_budget\`."
  start_server "$default_seqs" "$default_budget"
  step $((60 * minutes + 240)) profile make "$api" --minutes "$minutes" \
    --deployment "--max-num-seqs $default_seqs --max-num-batched-tokens $default_budget" --yes --output "$out/mine.json"
  # Bursts of short prompts with a few long ones, as the open loads have them.
  awk 'BEGIN { srand(7); print "arrival_ms,input_tokens,output_tokens"; t = 0; for (i = 0; i < 600; i++) { t += -log(1 - rand()) * 400;
    print int(t) "," int(60 + 400 * rand() ^ 3) "," int(10 + 90 * rand()) } }' > "$out/trace.csv"
  step 90 profile confirm "$api" "$out/trace.csv" --profile "$out/mine.json" \
    --deployment "--max-num-seqs $default_seqs --max-num-batched-tokens $default_budget" --requests 60 --yes
  tune="$out/trace.csv --profile $out/mine.json --slo ttft_p99=2s,tpot_p99=200ms --search max_num_seqs,max_num_batched_tokens --configurations 64 --requests 600"
  # shellcheck disable=SC2086
  servegym 120 tune $tune --json > "$out/tune.json" 2> "$out/stderr.txt" || { cat "$out/stderr.txt" >&2; exit 1; }
  setting() { node -e "const [best] = JSON.parse(require('fs').readFileSync(process.argv[1])).candidates ?? []; console.log(best?.settings[process.argv[2]] ?? '')" "$out/tune.json" "$1"; }
  seqs=$(setting max_num_seqs) budget=$(setting max_num_batched_tokens)
  [ -n "$seqs" ] || fail "nothing meets the SLO: see $out/tune.json"
  printf '\n```console\n$ servegym tune %s\n%s\n```\n' "$(echo "$tune" | sed "s#$out/##g")" "max_num_seqs $seqs, max_num_batched_tokens $budget"
  stop_server
  echo
  echo "The server is restarted with \`--max-num-seqs $seqs --max-num-batched-tokens $budget\`."
  start_server "$seqs" "$budget"
  step 240 profile confirm "$api" --profile "$out/mine.json" --deployment "--max-num-seqs $seqs --max-num-batched-tokens $budget" --minutes 1.25 --yes
  step 90 profile confirm "$api" "$out/trace.csv" --profile "$out/mine.json" \
    --deployment "--max-num-seqs $seqs --max-num-batched-tokens $budget" --requests 60 --yes
  stop_server
  echo
  echo "Load average at the end: $(cut -d' ' -f1 /proc/loadavg)."
}

circle > "$report"
cat "$report"
