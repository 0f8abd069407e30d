/**
 * The tuned rule of `fleet` with changes to its actions, on test seeds: ways to earn by not serving, and each knob held at
 * the task's default. Answers whether an attack pays and which knobs the rule's gain over `hpa` hangs on.
 *
 *     npx node benchmarks/fleet-changes.ts [--tasks diurnal,agents] [--seeds 2]
 */
import { parseArgs } from 'node:util';
import { createFleetPolicy } from '@servegym/agents';
import {
  drawFleetRequests,
  FLEET_ACTION_BINS,
  FLEET_TASK_IDS,
  FLEET_TASKS,
  type FleetAction,
  type FleetTask,
  type FleetTaskId,
  firstSeeds,
} from '@servegym/environments';
import { type FleetRun, playFleet } from '../packages/servegym/src/cli/fleet/play-fleet.ts';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: FLEET_TASK_IDS.join(',') },
    seeds: { type: 'string', default: '2' },
  },
});

/** An action of the rule, changed before window `window`. */
type Change = (action: FleetAction, window: number, waiting: number) => Partial<FleetAction>;

const drained = (windows: number, last: number): Change => {
  return (_, window) => (window >= windows - last ? { replicas: 0 } : {});
};

/** Requests waiting from which on a backlog is given up. */
const BACKLOG = 200;

const attacks = ({ windows }: FleetTask): Readonly<Record<string, Change>> => ({
  'nobody is served': () => ({ replicas: 0 }),
  'one replica': () => ({ replicas: 1 }),
  'half of the replicas': ({ replicas }) => ({ replicas: Math.ceil(replicas / 2) }),
  'one replica less': ({ replicas }) => ({ replicas: Math.max(1, replicas - 1) }),
  'drained before the last window': drained(windows, 1),
  'drained before the last eight': drained(windows, 8),
  'a backlog is given up': (_, __, waiting) => (waiting > BACKLOG ? { replicas: 0 } : {}),
  'no batch or best effort': () => ({ admission_seconds: 0 }),
});

const held = ({ defaultAction }: FleetTask): Readonly<Record<string, Change>> =>
  Object.fromEntries(
    (Object.keys(FLEET_ACTION_BINS) as (keyof FleetAction)[]).map((knob) => [
      `${knob} held`,
      () => ({ [knob]: defaultAction[knob] }),
    ]),
  );

for (const id of values.tasks.split(',') as FleetTaskId[]) {
  const task = FLEET_TASKS[id];
  const drawn = firstSeeds('test', Number(values.seeds)).map((seed) => ({
    ...{ seed, requests: drawFleetRequests(task, seed) },
  }));
  const mean = (policy: string, change: Change = () => ({})) => {
    const runs = drawn.map(({ seed, requests }) =>
      playFleet(task, seed, requests, changed(policy, task, change)),
    );
    const over = (of: (run: FleetRun) => number) => runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
    return {
      earned: over(({ revenueUsd, gpuUsd }) => (revenueUsd - gpuUsd) / task.referenceUsd),
      inSlo: over(({ inSlo, requests }) => inSlo / requests),
    };
  };
  const [hpa, rule] = [mean('hpa'), mean('rule')];
  console.log(`\n${id}, ${drawn.length} test seeds: hpa ${hpa.earned.toFixed(1)}`);
  console.log('the rule with                      return  of its gain  in SLO');
  for (const [name, change] of Object.entries({ 'no change': () => ({}), ...attacks(task), ...held(task) })) {
    const { earned, inSlo } = name === 'no change' ? rule : mean('rule', change);
    const share = (earned - hpa.earned) / (rule.earned - hpa.earned);
    console.log(
      [
        name.padEnd(32),
        earned.toFixed(1).padStart(8),
        `${(100 * share).toFixed(0)} %`.padStart(12),
        inSlo.toFixed(3).padStart(7),
      ].join(' '),
    );
  }
}

/** A policy whose actions are changed after it chose them; it takes what it chose for what is in force. */
function changed(name: string, { defaultAction }: FleetTask, change: Change) {
  const policy = createFleetPolicy(name);
  let chosen = defaultAction;
  return {
    name,
    reset(episode: Parameters<typeof policy.reset>[0]) {
      policy.reset(episode);
      chosen = defaultAction;
    },
    act(step: Parameters<typeof policy.act>[0]) {
      chosen = policy.act({ ...step, previousAction: chosen });
      return { ...chosen, ...change(chosen, step.stepIndex, step.observation.num_requests_waiting) };
    },
  };
}
