import { readFileSync } from 'node:fs';
import { findPolicy, isPolicyFile } from '@servegym/agents';
import {
  firstSeeds,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeScenario,
  type ServeTask,
  serverOf,
} from '@servegym/environments';
import type { EngineProfile } from '@servegym/simulator';
import { mean, percentileOfSorted, stratifiedBootstrap } from '@servegym/simulator/statistics';
import { ANY_SERVER } from '../../packages/agents/src/learning/learners.ts';
import { decodeActor } from '../../packages/agents/src/learning/trained-actor.ts';
import { anyServerRule, playRule } from '../../packages/agents/src/policies/rule-policies.ts';
import { anyServerPlayer, type ServePolicy } from '../../packages/agents/src/policies/serve-policies.ts';
import { playSteadyState } from '../../packages/agents/src/policies/steady-state.ts';
import { scaledProfile } from '../../packages/environments/src/llmserve/scaled-profile.ts';
import { benchmark } from '../harness.ts';

const ANY_SERVER_FILE = readFileSync(
  new URL('../../packages/agents/weights/any-server.safetensors', import.meta.url),
);

/** The task itself and its shifts, and what policies of any server are never trained on. */
const SCENARIOS: Readonly<Record<string, ServeScenario>> = {
  'its own task': {},
  'rate x1.5': { shift: 'rate_1.5' },
  'long prompts': { shift: 'long_prompts' },
  ...llmserve.heldOut,
};

/** Episodes of the training distribution: to choose on, with `--split validation`. */
const DISTRIBUTION = 'training distribution';

/** What is played: a task on a server, and the reset options that policies of the catalogue are told. */
interface Played {
  readonly task: ServeTask;
  readonly profile: EngineProfile;
  /** The profile that policies are told. */
  readonly told: EngineProfile;
  readonly options?: ServeScenario;
}

type Player = (played: Played, seed: number) => ServePolicy['act'];

/** Plays by a policy of the catalogue or by a file. `rule` on the training distribution is that of any server. */
function playerOf(name: string): Player {
  if (name === 'steady-state') return ({ task, told }) => playSteadyState(task, told);
  const file = name === 'any-server' ? ANY_SERVER_FILE : isPolicyFile(name) ? readFileSync(name) : undefined;
  if (file !== undefined && decodeActor(file).metadata.task === ANY_SERVER) {
    const play = anyServerPlayer(file);
    return ({ task, told }, seed) => play(task, told, { taskId: task.id, seed });
  }
  const { policy } = findPolicy('llmserve', file ?? name);
  return ({ task, options }, seed) => {
    if (options === undefined) {
      if (name !== 'rule')
        throw new Error(`expected policies of any server on the ${DISTRIBUTION}, got ${name}`);
      return playRule(task, anyServerRule(task));
    }
    policy.reset({ taskId: task.id, seed, resetOptions: options });
    // A policy of an environment meets only this environment's observations.
    return (step) => policy.act(step) as ServeAction;
  };
}

function playedOn(scenario: string, taskId: string, times: number, seed: number): Played {
  if (scenario === DISTRIBUTION) {
    const drawn = llmserve.drawTrainingEpisode(seed);
    return { ...drawn, told: drawn.profile };
  }
  const options = SCENARIOS[scenario];
  const known = [...Object.keys(SCENARIOS), DISTRIBUTION].join(', ');
  if (options === undefined) throw new Error(`expected one of ${known}, got ${scenario}`);
  const task = llmserve.choose({ ...options, task_id: taskId });
  const told = serverOf(task);
  return { task, told, options, profile: times === 1 ? told : scaledProfile(told, [times, times, times]) };
}

export default benchmark({
  what: 'Mean return over the default, and its paired difference to that of the first policy, with 95 % intervals, share of the requests inside their objectives, in all and in calm windows (those of other phases than the busiest), and processor time of a decision, of policies on servers and traffic that policies of any server were never trained on, or on their training distribution: names of the catalogue, or files of `servegym train`, divided by commas. Every policy plays the same requests.',
  options: {
    policies: 'rule,steady-state,ppo,any-server',
    task: 'bursty_workload',
    scenarios: Object.keys(SCENARIOS).join(','),
    split: 'test',
    episodes: 20,
    /** Times of the server over those of its profile, which is what policies are told. */
    times: 1,
    /** Windows that each action comes late. */
    late: 0,
  },
  async *run({ policies, task: taskId, scenarios, split, episodes, times, late }) {
    const seeds = firstSeeds(split as 'test', episodes);
    const first = new Map<string, readonly number[]>();
    const standards = new Map<string, number>();
    for (const policy of policies.split(',')) {
      const player = playerOf(policy);
      for (const scenario of scenarios.split(',')) {
        const noted = newNotes();
        const gains = seeds.map((seed) => {
          const played = playedOn(scenario, taskId, times, seed);
          const key = `${scenario} ${seed}`;
          const standard =
            standards.get(key) ?? returnOf(() => () => played.task.defaultAction, played, seed, newNotes());
          standards.set(key, standard);
          return returnOf(player, played, seed, noted, late) - standard;
        });
        const { decisionMs, all, calm } = noted;
        const [low, high] = stratifiedBootstrap([gains], mean);
        const over = gains.map((gain, i) => gain - (first.get(scenario) ?? gains)[i]!);
        const [least, most] = stratifiedBootstrap([over], mean);
        if (!first.has(scenario)) first.set(scenario, gains);
        decisionMs.sort((a, b) => a - b);
        yield {
          ...{ policy, task: scenario === DISTRIBUTION ? 'drawn' : taskId, scenario },
          ...{ gain: mean(gains), low, high, 'over the first': mean(over), least, most },
          ...{ 'below default': gains.filter((gain) => gain < 0).length },
          ...{ 'in SLO': all.attained / all.judged, 'in SLO, calm': calm.attained / calm.judged },
          'decision p50, ms': percentileOfSorted(decisionMs, 50),
          'p99, ms': percentileOfSorted(decisionMs, 99),
        };
      }
    }
  },
});

/** Processor times of decisions, and judged requests with those inside their objectives. */
function newNotes() {
  const [all, calm] = [0, 1].map(() => ({ judged: 0, attained: 0 }));
  return { decisionMs: [] as number[], all: all!, calm: calm! };
}

function returnOf(
  player: Player,
  played: Played,
  seed: number,
  { decisionMs, all, calm }: ReturnType<typeof newNotes>,
  late = 0,
): number {
  const { task, profile } = played;
  const act = player(played, seed);
  const rates = task.phases.map(({ arrivalsPerSecond }) => arrivalsPerSecond[1]);
  const busiest = task.phases[rates.indexOf(Math.max(...rates))]!.name;
  const episode = new ServeEpisode(task, seed, { requests: llmserve.drawRequests(task, seed), profile });
  let reward: number | null = null;
  const actions: ServeAction[] = [];
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    const step = { observation: episode.observation(), reward, previousAction, stepIndex };
    const before = process.cpuUsage();
    actions.push(act(step));
    const { user, system } = process.cpuUsage(before);
    decisionMs.push((user + system) / 1000);
    reward = episode.step(actions[Math.max(0, stepIndex - late)]!);
    for (const counts of episode.phase === busiest ? [all] : [all, calm])
      for (const { judged, attained } of episode.metrics.classes) {
        counts.judged += judged;
        counts.attained += attained;
      }
  }
  return episode.totals.reward;
}
