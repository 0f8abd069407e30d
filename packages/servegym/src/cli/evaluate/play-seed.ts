import {
  agentsOf,
  type BaselineModel,
  type BaselineResult,
  type BaselineRuntime,
  type BaselineTask,
  type BaselineWatcher,
  llmSettings,
  runBaseline,
  validAnswers,
} from '@servegym/agents';
import { fleet } from '@servegym/environments';
import { EnvironmentError, type Grade } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import {
  isModel,
  type NamedPolicy,
  type PlayedInputs,
  readInputs,
  readPolicies,
} from '../arguments/scenario-options.ts';
import { InputError } from '../failure.ts';
import { requireWritable, writeJsonFile } from '../files.ts';
import { type Column, printResult, table } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import type { EvaluateOptions } from './command.ts';
import { fleetForm, fleetRequests, playFleet } from './play-fleet.ts';

/** Time between two notices that the model is still asked, where standard error is no terminal, s. */
const NOTICE_SECONDS = 10;

/** Plays one episode of each task with a seed, step by step, and prints what each policy did. */
export async function playSeed(seed: number, options: EvaluateOptions): Promise<void> {
  const { env, json, lines, url, record } = options;
  await requireWritable(record);
  // Policies may be for a task of this file.
  const isPlain = lines === undefined && url === undefined && record === undefined;
  const isOnFleet = env === fleet.id && isPlain && !options.policies.some(isModel);
  const played = await readInputs(isOnFleet ? { ...options, traffic: undefined } : options);
  const policies = await readPolicies(options);
  if (isOnFleet) return playOnFleet(seed, policies, { ...options, task: played.task });
  const results: BaselineResult[] = [];
  for (const policy of policies) results.push(await playTasks(policy, seed, played, options));
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
}

async function playTasks(
  policy: NamedPolicy,
  seed: number,
  { task, inputs }: PlayedInputs,
  options: EvaluateOptions,
): Promise<BaselineResult> {
  const { env, url, lines, maxSteps } = options;
  const taskIds = tasksOf(env, task);
  const llm = 'model' in policy ? modelOf(policy.model, options) : undefined;
  const printed = lines === undefined ? undefined : episodeLines(env, llm?.model ?? 'none', lines);
  try {
    return await runBaseline({
      environment: agentsOf(env).playable(inputs),
      player: 'found' in policy ? { agent: policy.name, policy: policy.found.policy } : llm!,
      taskIds,
      seed,
      maxSteps,
      runtime: url && (await httpRuntime(url, env)),
      watcher: { ...progressWatcher(), ...printed?.watcher },
    });
  } catch (error) {
    printed?.abandon(task === 'all' ? env : task);
    throw error;
  } finally {
    showProgress('');
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

function modelOf(model: string, { llm = {} }: EvaluateOptions): BaselineModel {
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

function progressWatcher(): BaselineWatcher {
  return {
    stepped: (label, step) => showProgress(`${label}: window ${step}`),
    waiting(label, step, seconds) {
      const notice = `${label}: window ${step}, waiting for the model since ${seconds} s`;
      showProgress(notice);
      if (!process.stderr.isTTY && seconds % NOTICE_SECONDS === 0) console.error(notice);
    },
  };
}

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

/** Plays autoscalers on the same requests, and tells what they earn and cost. */
async function playOnFleet(
  seed: number,
  policies: readonly NamedPolicy[],
  options: EvaluateOptions,
): Promise<void> {
  const { task, requests, source } = await fleetRequests(seed, options);
  const runs = policies.flatMap((policy) =>
    'found' in policy
      ? [{ ...playFleet(task, seed, requests, policy.found.policy as never), policy: policy.name }]
      : [],
  );
  printResult(options.json, { task, source, requests: requests.inputTokens.length, runs }, fleetForm);
}

/** Least printed score: three digits stay strictly inside (0, 1). */
const LEAST_SCORE = 0.001;
const LONGEST_ERROR = 300;

/** A baseline for people. */
function baselineText(result: BaselineResult): string {
  const { environment, seed, agent, model, api_base_url, mean_score, tasks, usage } = result;
  return [
    `${environment}, seed ${seed}: ${usage === null ? agent : `${model} at ${api_base_url}`}`,
    '',
    ...table(tasks, [
      ['task', ({ task_id }) => String(task_id ?? environment)],
      ['score', ({ score }) => score.toFixed(3)],
      ['return', (task) => task.return.toFixed(2)],
      ['steps', ({ steps }) => String(steps)],
      ['wall, s', ({ wall_s }) => wall_s.toFixed(1)],
      ...(usage === null ? [] : ANSWERS),
    ]),
    '',
    `mean score ${mean_score.toFixed(3)}`,
    ...(usage === null ? [] : usageLines(usage)),
  ].join('\n');
}

/** Answers of a language model. */
const ANSWERS: readonly Column<BaselineTask>[] = [
  ['invalid', ({ answers }) => String(answers?.invalid ?? '')],
  ['kept last', ({ answers }) => String(answers?.keptLast ?? '')],
];

function usageLines(usage: NonNullable<BaselineResult['usage']>): string[] {
  const { calls, failedCalls, promptTokens, completionTokens, cost_usd, format } = usage;
  return [
    `${calls} calls (${failedCalls} failed), ${promptTokens} prompt and ${completionTokens} completion tokens, answers as ${format}`,
    cost_usd === null
      ? 'cost unknown: give --input-price and --output-price'
      : `cost ${cost_usd.toFixed(4)} USD`,
  ];
}

/**
 * The lines that OpenEnv's inference scripts print: one at each start, step and end of an episode. An episode is a
 * success when the model chose at least one of its actions and it scored more than `successScore`.
 */
function episodeLines(environment: string, model: string, successScore: number) {
  let rewards: number[] | null = null;
  let hasStarted = false;

  function start(label: string | number): void {
    rewards = [];
    hasStarted = true;
    console.log(`[START] task=${label} env=${environment} model=${model}`);
  }

  function end(success: boolean, score: number): void {
    const list = (rewards ?? []).map((reward) => reward.toFixed(2)).join(',');
    console.log(
      `[END] success=${success} steps=${rewards?.length ?? 0} score=${score.toFixed(3)} rewards=${list}`,
    );
    rewards = null;
  }

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
      if (!hasStarted) start(label);
      if (rewards !== null) end(false, 0);
    },
  };
}
