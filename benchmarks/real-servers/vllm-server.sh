# Sourced by the scripts beside it, which set vllm, model, port, out and ends (the second since 1970 at which all is over):
# starts and stops a vLLM for the CPU, and bounds the time of commands. Flags beside the two tuned ones: SERVE_FLAGS.
server=

fail() { echo "error: $*" >&2; exit 1; }
# Runs a command for so many seconds at most, and never longer than all may take.
bounded() {
  left=$((ends - $(date +%s)))
  [ "$left" -gt 0 ] || fail "the time is over before: $*"
  most=$1
  shift
  [ "$left" -gt "$most" ] || most=$left
  timeout -k 10 "$most" "$@" || fail "exit code $? (124: longer than $most s): $*"
}
servegym() {
  seconds=$1
  shift
  bounded "$seconds" npx node packages/servegym/src/main.ts "$@"
}
# vLLM is a group of processes.
stop_server() {
  [ -n "$server" ] || return 0
  kill -s TERM -- "-$server" 2> /dev/null || true
  for _ in $(seq 20); do
    kill -s 0 -- "-$server" 2> /dev/null || break
    sleep 1
  done
  kill -s KILL -- "-$server" 2> /dev/null || true
  server=
}
trap stop_server EXIT
trap 'exit 130' INT TERM

start_server() { # sequences, token budget
  log=$out/vllm-$1-$2.log
  ! curl -sf "http://127.0.0.1:$port/health" > /dev/null || fail "another server answers on port $port: stop it, or set PORT"
  HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=2 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 setsid "$vllm" serve "$model" --load-format dummy \
    ${SERVE_FLAGS:-} --host 127.0.0.1 --port "$port" --max-model-len 4096 --max-num-seqs "$1" \
    --max-num-batched-tokens "$2" --dtype bfloat16 --served-model-name tiny --enforce-eager > "$log" 2>&1 &
  server=$!
  for _ in $(seq "${START_SECONDS:-240}"); do
    kill -0 "$server" 2> /dev/null || fail "vLLM ended: see $log"
    curl -sf "http://127.0.0.1:$port/health" > /dev/null && return
    sleep 1
  done
  fail "vLLM did not start within ${START_SECONDS:-240} s: see $log"
}
