import {
  agentsOf,
  type BaselineModel,
  type BaselineResult,
  type BaselineRuntime,
  type BaselineTask,
  type BaselineWatcher,
  compareEvaluations,
  EVALUATION_SPLITS,
  type Evaluation,
  evaluate,
  evaluatePolicy,
  evaluateScenarios,
  joinEvaluations,
  LlmClient,
  LlmPolicy,
  llmSettings,
  runBaseline,
  scenariosOf,
  tasksToPlay,
  validAnswers,
} from '@servegym/agents';
import { ENVIRONMENT_IDS, firstSeeds, fleet, type SeedSplit } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import { EnvironmentError, type Grade } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
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
  isModel,
  type NamedPolicy,
  readInputs,
  readPolicies,
  scenarioOptions,
} from '../arguments/scenario-options.ts';
import { defineCommand, flagOf, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { writeJsonFile } from '../files.ts';
import { jobOptions, withJobs } from '../jobs.ts';
import { type Column, printResult, table } from '../output/print-result.ts';
import { showProgress, showShare } from '../output/progress.ts';
import { checkTasks } from './check-tasks.ts';
import { comparisonForm, evaluationForm, scenariosForm } from './evaluation-report.ts';
import { fleetForm, fleetRequests, playFleet } from './play-fleet.ts';

/** Time between two notices that the model is still asked, where standard error is no terminal, s. */
const NOTICE_SECONDS = 10;

async function playSeed(seed: number, options: EvaluateOptions): Promise<void> {
  const { env, json, lines, url, record, maxSteps } = options;
  // Policies may be for a task of this file.
  const isPlain = lines === undefined && url === undefined && record === undefined;
  const isOnFleet = env === fleet.id && isPlain && !options.policies.some(isModel);
  const played = await readInputs(isOnFleet ? { ...options, traffic: undefined } : options);
  const policies = await readPolicies(options);
  if (isOnFleet) {
    // Autoscalers play the same requests.
    const on = await fleetRequests(seed, { ...options, task: played.task });
    const runs = policies.flatMap((policy) =>
      'found' in policy
        ? [{ ...playFleet(on.task, seed, on.requests, policy.found.policy as never), policy: policy.name }]
        : [],
    );
    return printResult(json, { ...on, runs }, fleetForm);
  }
  const results: BaselineResult[] = [];
  for (const policy of policies) results.push(await play(policy));
  const [first] = results as [BaselineResult];
  const whole = results.length === 1 ? first : results;
  if (record !== undefined) await writeJsonFile(record, whole);
  if (lines === undefined) {
    printResult(json, whole, { text: () => results.map(baselineText).join('\n\n') });
    if (record !== undefined && !json) console.log(`\nwrote ${record}`);
  }
  for (const { model, tasks } of results) {
    if (model === null || tasks.some((task) => validAnswers(task) > 0)) continue;
    throw new EnvironmentError(
      'LLM_NO_ACTION',
      `no answer of \`${model}\` was a valid action, so that the scores are those of the default action`,
    );
  }

  async function play(policy: NamedPolicy): Promise<BaselineResult> {
    const { task, inputs } = played;
    const taskIds = tasksOf(env, task);
    const llm = 'model' in policy ? askedModel(policy.model, options) : undefined;
    const printed = lines === undefined ? undefined : episodeLines(env, llm?.model ?? 'none', lines);
    try {
      return await runBaseline({
        environment: agentsOf(env).playable(inputs),
        player: 'found' in policy ? { agent: policy.name, policy: policy.found.policy } : llm!,
        ...{ taskIds, seed, maxSteps },
        runtime: url && (await httpRuntime(url, env)),
        watcher: { ...PROGRESS, ...printed?.watcher },
      });
    } catch (error) {
      printed?.abandon(task === 'all' ? env : task);
      throw error;
    } finally {
      showProgress('');
    }
  }
}

/** Tasks to play; `null` for an environment without tasks. */
function tasksOf(env: EvaluateOptions['env'], asked: string): readonly (string | number | null)[] {
  const ids = agentsOf(env).environment.tasks.ids();
  if (asked === 'all') return ids.length > 0 ? ids : [null];
  if (ids.length === 0) throw new InputError(`${env} has no tasks: leave --task out`);
  const found = ids.filter((id) => String(id) === asked);
  if (found.length > 0) return found;
  throw new InputError(`expected --task to be all or one of ${ids.join(', ')}, got ${asked}`);
}

function askedModel(model: string, { llm = {} }: EvaluateOptions): BaselineModel {
  return {
    ...llmSettings(process.env, { model }),
    inputUsdPerMillion: llm['input-price'],
    outputUsdPerMillion: llm['output-price'],
    timeoutSeconds: llm['answer-timeout'] ?? 60,
    history: llm.history ?? 6,
    decideEvery: llm['decide-every'],
    maxCalls: llm['max-calls'],
    timeBudgetSeconds: llm['time-budget'],
  };
}

const PROGRESS: BaselineWatcher = {
  stepped: (label, step) => showProgress(`${label}: window ${step}`),
  waiting(label, step, seconds) {
    const notice = `${label}: window ${step}, waiting for the model since ${seconds} s`;
    showProgress(notice);
    if (!process.stderr.isTTY && seconds % NOTICE_SECONDS === 0) console.error(notice);
  },
};

/** Plays at a server. @throws InputError when there is no server, or one of another environment */
async function httpRuntime(url: URL, env: EvaluateOptions['env']): Promise<BaselineRuntime> {
  const client = await connect(url).catch((error: Error) => {
    throw new InputError(
      `${url.href} is no OpenEnv server that answers: ${error.message}. Start one: servegym serve --env ${env}`,
      { code: 'SERVER_UNREACHABLE' },
    );
  });
  const expected = agentsOf(env).environment.definition();
  const { name } = await client.metadata();
  if (name !== expected.name) {
    await client.close();
    throw new InputError(`expected a server of ${expected.name} at ${url.href}, got one of ${name}`);
  }
  return {
    kind: 'http',
    instance: {
      reset: (options) => client.reset(options),
      step: (action) => client.step(action as Record<string, unknown>),
      close: () => client.close(),
    },
    grade: async () => (expected.grade === undefined ? null : ((await client.grade()) as Grade)),
  };
}

/** Least printed score: three digits stay strictly inside (0, 1). */
const LEAST_SCORE = 0.001;
const LONGEST_ERROR = 300;

const BASELINE_COLUMNS: readonly Column<BaselineTask & { readonly environment: string }>[] = [
  ['task', ({ task_id, environment }) => String(task_id ?? environment)],
  ['score', ({ score }) => score.toFixed(3)],
  ['return', (task) => task.return.toFixed(2)],
  ['steps', ({ steps }) => String(steps)],
  ['wall, s', ({ wall_s }) => wall_s.toFixed(1)],
  // Of a language model.
  ['invalid', ({ answers }) => String(answers?.invalid ?? '')],
  ['kept last', ({ answers }) => String(answers?.keptLast ?? '')],
];

function baselineText(result: BaselineResult): string {
  const { environment, seed, agent, model, api_base_url, usage } = result;
  const rows = result.tasks.map((task) => ({ ...task, environment }));
  const columns = usage === null ? BASELINE_COLUMNS.slice(0, -2) : BASELINE_COLUMNS;
  const lines = [...table(rows, columns), '', `mean score ${result.mean_score.toFixed(3)}`];
  const title = `${environment}, seed ${seed}:`;
  if (usage === null) return [`${title} ${agent}`, '', ...lines].join('\n');
  const { calls, failedCalls, promptTokens, completionTokens, cost_usd, format } = usage;
  const answers = `${calls} calls (${failedCalls} failed), ${promptTokens} prompt and ${completionTokens} completion tokens, answers as ${format}`;
  const cost =
    cost_usd === null ? 'unknown: give --input-price and --output-price' : `${cost_usd.toFixed(4)} USD`;
  return [`${title} ${model} at ${api_base_url}`, '', ...lines, answers, `cost ${cost}`].join('\n');
}

/**
 * The lines that OpenEnv's inference scripts print: one at each start, step and end of an episode. An episode is a
 * success when the model chose at least one of its actions and it scored more than `successScore`.
 */
function episodeLines(environment: string, model: string, successScore: number) {
  /** Of the episode that is played; `undefined` before the first. */
  let rewards: number[] | null | undefined;
  const start = (label: string | number) => {
    rewards = [];
    console.log(`[START] task=${label} env=${environment} model=${model}`);
  };
  const end = (success: boolean, score: number) => {
    const all = rewards ?? [];
    const list = all.map((reward) => reward.toFixed(2)).join(',');
    console.log(`[END] success=${success} steps=${all.length} score=${score.toFixed(3)} rewards=${list}`);
    rewards = null;
  };
  const watcher: BaselineWatcher = {
    started: start,
    stepped(_, step, { action, reward, done, error }) {
      rewards?.push(reward);
      const problem = error === null ? 'null' : error.replaceAll(/\s+/g, ' ').slice(0, LONGEST_ERROR);
      console.log(
        `[STEP] step=${step} action=${JSON.stringify(action)} reward=${reward.toFixed(2)} done=${done} error=${problem}`,
      );
    },
    graded(task) {
      const score = Math.min(1 - LEAST_SCORE, Math.max(LEAST_SCORE, task.score));
      end(task.complete && validAnswers(task) > 0 && task.score > successScore, score);
    },
  };
  return {
    watcher,
    /** Ends an episode that an error cut short, or one that never began. */
    abandon(label: string): void {
      if (rewards === undefined) start(label);
      if (rewards !== null) end(false, 0);
    },
  };
}

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
  split: { value: '<name>', help: 'where the seeds come from (default: test)', choices: EVALUATION_SPLITS },
  seed: {
    value: '<n>',
    parse: wholeNumber(0),
    help: 'instead: one episode of each task, with this seed, step by step',
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
  record: { value: '<file>', writes: true, help: 'with --seed: write what was played as JSON' },
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

export const evaluateCommand = () =>
  defineCommand({
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
      if (options.check !== undefined) return checkTasks(options.check, options);
      return options.seed === undefined ? evaluatePolicies(options) : playSeed(options.seed, options);
    },
  });

const MOST_EPISODES = 10_000;

/** Evaluations by shift, or the one of a split. */
type Evaluated = Evaluation | ReadonlyMap<string, Evaluation>;

/** Plays policies on the seeds of a split, and grades them; several are compared. */
export async function evaluatePolicies(options: EvaluateOptions): Promise<void> {
  const { env, split = 'test', episodes, json, threads, queue } = options;
  for (const name of ['url', 'lines', 'maxSteps', 'record'] as const)
    if (options[name] !== undefined)
      throw new InputError(`${flagOf(name)} is for a single episode: add --seed <n>`);
  const scenarios = scenariosOf(env, split);
  const chosen = Object.values(scenarios ?? {}).flatMap((scenario) => Object.keys(scenario));
  for (const name of ['shift', 'profile', 'traffic'] as const)
    if (chosen.includes(name) && options[name] !== undefined)
      throw new InputError(
        `--split ${split} chooses the ${name} itself: leave out --${name} ${options[name]}, or choose another --split`,
      );
  if (scenarios && Object.keys(scenarios).length === 0)
    throw new InputError(`expected a split of ${env}, which has nothing ${split}, got ${split}`);
  // Policies may be for a task of this file.
  const { task, inputs } = await readInputs(options);
  const policies = await readPolicies(options);
  const least = policies.length > 1 ? 2 : 1;
  if (episodes < least || episodes > MOST_EPISODES)
    throw new InputError(`expected --episodes to be from ${least} to ${MOST_EPISODES}, got ${episodes}`);
  const found = policies.flatMap((policy) => ('found' in policy ? [policy.found] : []));
  const taskIds = tasksToPlay(env, task, found);
  const seeds = firstSeeds(scenarios ? 'test' : (split as SeedSplit), episodes);
  const { version } = agentsOf(env).playable(inputs);
  const { scenario } = inputs;
  const context = { environment: { id: env, version }, split, episodes, scenario };
  const evaluateOne = async (policy: NamedPolicy, jobs: JobEngine): Promise<Evaluated> => {
    if ('model' in policy) return evaluateModel(policy.model, options, { taskIds, seeds, inputs });
    const plan = { environment: env, policy: policy.found, taskIds, seeds, inputs, onProgress: showShare };
    return scenarios ? evaluateScenarios(plan, scenarios, jobs) : evaluate(plan, jobs);
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
    return printResult(json, results, comparisonForm(context));
  }
  if ('policy' in first) return printResult(json, first, evaluationForm(context));
  printResult(json, first, scenariosForm(context, scenarios!));
}

/** A language model is asked in this process, one question after another. */
async function evaluateModel(
  model: string,
  { env, split, llm = {} }: EvaluateOptions,
  plan: Pick<Parameters<typeof evaluate>[0], 'taskIds' | 'seeds' | 'inputs'>,
): Promise<Evaluation> {
  if (scenariosOf(env, split ?? 'test')) {
    throw new InputError(
      `a language model plays no --split ${split}: name a --shift, --profile or --traffic`,
    );
  }
  const playable = agentsOf(env).playable(plan.inputs);
  const settings = { ...llmSettings(process.env, { model }), timeoutSeconds: llm['answer-timeout'] };
  const asking = { history: llm.history, decideEvery: llm['decide-every'] };
  const policy = new LlmPolicy(playable, new LlmClient(settings), asking);
  const episodes = plan.taskIds.length * plan.seeds.length;
  const onEpisode = (_: unknown, finished: number) => showShare(finished / episodes);
  return evaluatePolicy(playable, policy, { ...plan, onEpisode });
}
