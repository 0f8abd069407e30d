// Steps a second of environments in one process, without a wire: the other side of python-vector-env.py.
//
//   node benchmarks/vector-in-process.ts inferencegym 1 64 5
import { fleet, inferencegym, llmserve } from '@servegym/environments';
import type { Environment, ResetOptions } from '@servegym/openenv';

const [name = 'llmserve', task = 'static_workload', count = '64', seconds = '5'] = process.argv.slice(2);
const SEED = 0;
const WARM_UP_ROUNDS = 50;

const inference = { kv_budget: 1, spec_length: 0, batch_size: 64, prefill_disagg: false, quant_tier: 0 };
const serve = {
  batch_cap: 96,
  kv_budget_fraction: 0.5,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
};
const PLAYED = {
  inferencegym: { definition: inferencegym.definition(), action: inference, taskId: Number(task) },
  llmserve: { definition: llmserve.definition(), action: serve, taskId: task },
  fleet: {
    definition: fleet.definition(),
    action: { ...fleet.tasks.shipped.flash_crowds.defaultAction, replicas: 8 },
    taskId: task,
  },
};
const { definition, action, taskId } = PLAYED[name as keyof typeof PLAYED];

type Played = Environment<object, object, object>;
const environments = Array.from({ length: Number(count) }, () => definition.create() as unknown as Played);
const episodes = environments.map(() => 0);
const done = environments.map(() => false);

async function reset(index: number): Promise<void> {
  const seed = SEED + episodes[index] * environments.length + index;
  await environments[index].reset({ seed, task_id: taskId } as ResetOptions);
  episodes[index]++;
}

async function round(): Promise<void> {
  for (const [index, environment] of environments.entries()) {
    if (done[index]) {
      await reset(index);
      done[index] = false;
      continue;
    }
    const result = environment.step(action);
    done[index] = (result instanceof Promise ? await result : result).done;
  }
}

for (const index of environments.keys()) await reset(index);
for (let warmUp = 0; warmUp < WARM_UP_ROUNDS; warmUp++) await round();
const startedAt = performance.now();
let steps = 0;
while (performance.now() - startedAt < 1000 * Number(seconds)) {
  await round();
  steps += environments.length;
}
console.log((steps / ((performance.now() - startedAt) / 1000)).toFixed(0));
