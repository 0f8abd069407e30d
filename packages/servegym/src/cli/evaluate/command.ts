import {
  agentsOf,
  compareEvaluations,
  EVALUATION_SPLITS,
  type Evaluation,
  evaluate,
  evaluatePolicy,
  evaluateShifted,
  joinEvaluations,
  LlmClient,
  LlmPolicy,
  llmSettings,
  SHIFTED,
  tasksToPlay,
} from '@servegym/agents';
import { ENVIRONMENT_IDS, firstSeeds, type SeedSplit } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import {
  namedValues,
  numberFrom,
  parseShares,
  serverAddress,
  whole,
  wholeNumber,
  within,
} from '../arguments/options.ts';
import {
  type NamedPolicy,
  readInputs,
  readPolicies,
  scenarioOptions,
} from '../arguments/scenario-options.ts';
import { defineCommand, flagOf, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { jobOptions, withJobs } from '../jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import { checkTasks } from './check-tasks.ts';
import { comparisonForm, evaluationForm, shiftedForm } from './evaluation-report.ts';
import { playSeed } from './play-seed.ts';
import { recordPolicy } from './record-policy.ts';

/** How a language model is asked. */
const askLlm = namedValues({
  history: { parse: wholeNumber(0, 100) },
  'decide-every': { parse: wholeNumber(1, 1000) },
  'max-calls': { parse: wholeNumber(1, 100_000) },
  'answer-timeout': { parse: numberFrom(0.1, 3600) },
  'time-budget': { parse: numberFrom(0, 1e6) },
  'input-price': { parse: numberFrom(0, 1e6) },
  'output-price': { parse: numberFrom(0, 1e6) },
});

const options = {
  env: { value: '<id>', help: 'the environment', choices: ENVIRONMENT_IDS, default: 'llmserve' },
  task: { value: '<id|file>', help: 'a task, a file that holds one, or all', default: 'all' },
  table: { value: '<file.parquet>', help: 'inferencegym: a table of your own' },
  ...scenarioOptions,
  classShares: {
    value: '<shares>',
    help: 'fleet, requests of your own: shares of the classes, such as 0.7,0.2,0.1',
    parse: parseShares,
  },
  episodes: whole('<n>', 1, 100_000, 'episodes for each task, each with a seed of its own', 20),
  split: {
    value: '<name>',
    help: 'where the seeds come from (default: test; train with --record)',
    choices: EVALUATION_SPLITS,
  },
  seed: {
    ...whole(
      '<n>',
      0,
      Number.MAX_SAFE_INTEGER,
      'instead: one episode of each task, with this seed, step by step',
    ),
    conflicts: ['episodes', 'split'],
  },
  maxSteps: whole('<n>', 1, 100_000, 'with --seed: most steps of an episode (fleet: its length in windows)'),
  url: { value: '<address>', help: 'with --seed: play at this server', parse: serverAddress },
  llm: { value: '<settings>', help: 'how llm is asked, such as history=6,decide-every=4', parse: askLlm },
  lines: {
    ...within('[score]', 0, 1, 'with --seed: OpenEnv’s lines; success is above this score'),
    preset: '0.2',
    conflicts: ['json'],
  },
  record: { value: '<file>', help: 'write the episodes of one policy as Parquet; with --seed as JSON' },
  check: {
    value: '[effort]',
    help: 'instead: is a task sound and worth learning; recorded: its reference returns',
    choices: ['thorough', 'quick', 'recorded'],
    preset: 'thorough',
    conflicts: ['episodes', 'split', 'seed', 'record', 'traffic', 'rateScale', 'profile', 'shift', 'queue'],
  },
  ...jobOptions,
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

export type EvaluateOptions = OptionValues<typeof options> & { readonly policies: readonly string[] };

/** `servegym evaluate`: plays and grades policies, and checks tasks. */
export const evaluateCommand = () =>
  defineCommand({
    description: 'Play and grade policies, with 95 % intervals. Several are compared on the same seeds.',
    words: {
      policies: {
        value: '[policies...]',
        help: 'names, files of `servegym train`, or llm[:MODEL] (default: the rules of the environment)',
      },
    },
    options,
    after: `Examples:
  servegym evaluate default heuristic runs/bursty_workload-ppo-seed0/policy.safetensors --episodes 50
  servegym evaluate static:8 hpa:30 rule --env fleet --task flash_crowds --seed 0
  OPENAI_API_KEY=... servegym evaluate llm:gpt-4.1-mini --seed 0 --llm decide-every=4`,
    action(options) {
      const { check, record, seed } = options;
      if (check !== undefined) return checkTasks(check, options);
      if (seed !== undefined) return playSeed(seed, options);
      return record === undefined ? evaluatePolicies(options) : recordPolicy(record, options);
    },
  });

const MOST_EPISODES = 10_000;

/** Evaluations by shift, or the one of a split. */
type Evaluated = Evaluation | ReadonlyMap<string, Evaluation>;

/** Plays policies on the seeds of a split, and grades them; several are compared. */
export async function evaluatePolicies(options: EvaluateOptions): Promise<void> {
  const { env, split = 'test', episodes, json, threads, queue } = options;
  for (const name of ['url', 'lines', 'maxSteps'] as const)
    if (options[name] !== undefined)
      throw new InputError(`${flagOf(name)} is for a single episode: add --seed <n>`);
  if (split === SHIFTED && options.shift !== undefined)
    throw new InputError(
      `--split ${SHIFTED} plays every shift: leave out --shift ${options.shift}, or choose another --split`,
    );
  const { environment } = agentsOf(env);
  if (split === SHIFTED && environment.shifts.length === 0)
    throw new InputError(`expected a split of ${env}, which has no shifts, got ${split}`);
  // Policies may be for a task of this file.
  const { task, inputs } = await readInputs(options);
  const policies = await readPolicies(options);
  const least = policies.length > 1 ? 2 : 1;
  if (episodes < least || episodes > MOST_EPISODES)
    throw new InputError(`expected --episodes to be from ${least} to ${MOST_EPISODES}, got ${episodes}`);
  const found = policies.flatMap((policy) => ('found' in policy ? [policy.found] : []));
  const taskIds = tasksToPlay(env, task, found);
  const seeds = firstSeeds(split === SHIFTED ? 'test' : (split as SeedSplit), episodes);
  const { version } = agentsOf(env).playable(inputs);
  const { scenario } = inputs;
  const context = { environment: { id: env, version }, split, episodes, scenario };

  const evaluateOne = async (policy: NamedPolicy, jobs: JobEngine): Promise<Evaluated> => {
    if ('model' in policy) return evaluateModel(policy.model, options, { taskIds, seeds, inputs });
    const plan = { environment: env, policy: policy.found, taskIds, seeds, inputs, onProgress: showShare };
    return split === SHIFTED ? evaluateShifted(plan, jobs) : evaluate(plan, jobs);
  };
  showShare(0);
  const evaluated = await withJobs({ threads, queue }, async (jobs) => {
    const all: Evaluated[] = [];
    for (const policy of policies) all.push(await evaluateOne(policy, jobs));
    return all;
  }).finally(() => showShare(1));

  const [first] = evaluated as [Evaluated];
  if (evaluated.length > 1) {
    const names = policies.map(({ name }) => name);
    const evaluations = evaluated.map((one) => ('policy' in one ? one : joinEvaluations(one)));
    const results = { names, evaluations, standings: compareEvaluations(evaluations) };
    printResult(json, results, comparisonForm(context));
  } else if ('policy' in first) {
    printResult(json, first, evaluationForm(context));
  } else {
    printResult(json, first, shiftedForm(context));
  }
}

/** A language model is asked in this process, one question after another. */
async function evaluateModel(
  model: string,
  { env, split, llm = {} }: EvaluateOptions,
  plan: Pick<Parameters<typeof evaluate>[0], 'taskIds' | 'seeds' | 'inputs'>,
): Promise<Evaluation> {
  if (split === SHIFTED) throw new InputError('a language model plays no --split shifted: name a --shift');
  const playable = agentsOf(env).playable(plan.inputs);
  const settings = { ...llmSettings(process.env, { model }), timeoutSeconds: llm['answer-timeout'] };
  const asking = { history: llm.history, decideEvery: llm['decide-every'] };
  const policy = new LlmPolicy(playable, new LlmClient(settings), asking);
  const episodes = plan.taskIds.length * plan.seeds.length;
  const onEpisode = (_: unknown, finished: number) => showShare(finished / episodes);
  return evaluatePolicy(playable, policy, { ...plan, onEpisode });
}
