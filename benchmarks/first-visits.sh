#!/bin/sh
# Three first visits with nothing but the built packages, each in an empty folder: train with Stable-Baselines3, plan for a
# trace, serve an environment of one's own and play it from Python. Prints the seconds of each step. The files and the
# commands are those of the tutorials. Needs Python 3.10, Node 22.18, the package registries and 3 GB:
#
#   npm run build:wheel && sh benchmarks/first-visits.sh
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
packages=$root/dist/tarballs
folder=$(mktemp -d)
trap 'kill $server 2> /dev/null || true; rm -rf "$folder"' EXIT
server=

# Writes the files of a page, as in ```python [train.py], or below a heading with the file's name.
files() { # page
  node -e '
    const { readFileSync, writeFileSync } = require("fs");
    const page = readFileSync(process.argv[1], "utf8");
    for (const [, name, text] of page.matchAll(/^```\w+ \[(\S+)\]\n(.*?)^```$/gms)) writeFileSync(name, text);
    for (const [, name, text] of page.matchAll(/^## (\w+\.ts)\n\n```ts\n(.*?)^```$/gms)) writeFileSync(name, text);
  ' "$root/docs/$1"
}
visit() { mkdir "$folder/$1"; cd "$folder/$1"; files "$2"; echo "$1"; }
step() { # title, command
  began=$(date +%s%N)
  shown=$1
  shift
  "$@" > log 2>&1 || { cat log; exit 1; }
  echo "$began $(date +%s%N)" | awk -v title="$shown" '{ printf "  %-58s %6.1f s\n", title, ($2 - $1) / 1e9 }'
}

visit training train-an-agent.md
step 'python -m venv, pip install servegym (wheel)' sh -c "python3 -m venv venv && venv/bin/pip install -q $root/dist/wheel/*.whl numpy gymnasium"
step 'python train.py: a rule, 128 episodes' venv/bin/python train.py
step 'python play.py: three graded episodes' venv/bin/python play.py
tail -1 log
step 'pip install stable-baselines3' venv/bin/pip install -q stable-baselines3
step 'python sb3.py: PPO, 122,880 steps' venv/bin/python sb3.py
grep ep_rew_mean log | sed -n '1p;$p'
tail -1 log

visit serving gpus-for-my-trace.md
step 'npm install servegym' sh -c "npm init -y && npm install $packages/*.tgz"
step 'make-log.mjs, servegym traffic describe' sh -c 'node make-log.mjs && npx servegym traffic describe log.csv'
step 'servegym plan, two GPUs' npx servegym plan log.csv --model llama-3-8b --gpus a100-80gb,h100 --requests 1000 --slo ttft_p99=1s,tpot_p99=50ms --report plan.html
grep Cheapest log
step 'servegym tune' npx servegym tune log.csv --profile a100-80gb-llama-3-8b --slo ttft_p99=1s,tpot_p99=50ms --configurations 32 --requests 1000 --report tune.html
grep 'One engine' log

visit typescript your-own-environment.md
step 'npm install @servegym/openenv zod' sh -c "npm init -y && npm pkg set type=module && npm install $packages/servegym-openenv-*.tgz zod"
PORT=8765 node serve.ts > server.log 2>&1 &
server=$!
step 'node play.ts' sh -c 'until grep -q listens server.log; do sleep 0.1; done; node play.ts http://localhost:8765'
tail -1 log
step 'pip install openenv' sh -c 'python3 -m venv venv && venv/bin/pip install -q openenv'
step 'openenv validate, and an episode from Python' sh -c 'venv/bin/openenv validate --url http://localhost:8765 && venv/bin/python -c "
from openenv.core import GenericEnvClient
with GenericEnvClient(base_url=\"http://localhost:8765\").sync() as env:
    result = env.reset(seed=41)
    while not result.done:
        result = env.step({\"number\": 42})
    print(result.reward)"'
grep Verdict log
