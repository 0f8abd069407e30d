import {
  BASELINE_ENVIRONMENT_IDS,
  type BaselineEnvironment,
  type BaselineEnvironmentId,
  type BaselineModel,
  type BaselineResult,
  type BaselineRuntime,
  type BaselineWatcher,
  baselineEnvironment,
  llmSettings,
  runBaseline,
  validAnswers,
} from '@servegym/agents';
import { EnvironmentError, type Grade } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import { Command, Option } from 'commander';
import { numberFrom, wholeNumber } from '../arguments/options.ts';
import { serverAddress } from '../arguments/server-options.ts';
import { InputError } from '../input-error.ts';
import { showProgress } from '../output/progress.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import { baselineTable, episodeLines } from './baseline-report.ts';

interface BaselineOptions {
  readonly env: BaselineEnvironmentId;
  readonly mode: 'deterministic' | 'openai';
  readonly runtime: 'in-process' | 'http';
  readonly baseUrl?: URL;
  readonly task: string;
  readonly seed: number;
  readonly agent?: string;
  readonly apiBaseUrl?: string;
  readonly model?: string;
  readonly history: number;
  readonly decideEvery?: number;
  readonly maxCalls?: number;
  readonly maxSteps?: number;
  readonly timeBudget?: number;
  readonly answerTimeout: number;
  readonly lines: boolean;
  readonly successScore: number;
  readonly inputPrice?: number;
  readonly outputPrice?: number;
  readonly output?: string;
  readonly json: boolean;
}

const SERVER = 'http://localhost:7860';
/** Time between two notices that the model is still asked, where standard error is no terminal, s. */
const NOTICE_SECONDS = 10;

/** `servegym baseline`: one graded episode of each task, played by rules or by a language model. */
export function baselineCommand(): Command {
  return new Command('baseline')
    .description('play and grade one episode of each task, by rules or by a language model')
    .addOption(
      new Option('--mode <mode>', 'deterministic: a fixed agent; openai: a model over the OpenAI API')
        .choices(['deterministic', 'openai'])
        .default('deterministic'),
    )
    .addOption(
      new Option('--env <id>', 'the environment').choices(BASELINE_ENVIRONMENT_IDS).default('llmserve'),
    )
    .option('--task <id>', 'one of its tasks, or all', 'all')
    .option('--seed <n>', 'seed of the traffic', wholeNumber(0, Number.MAX_SAFE_INTEGER), 0)
    .option(
      '--agent <name>',
      'another deterministic agent than heuristic (llmserve), hpa (fleet) or baseline (inferencegym)',
    )
    .addOption(
      new Option(
        '--max-steps <n>',
        'most steps of a task (default: all, or 10 where it has no end)',
      ).argParser(wholeNumber(1, 100_000)),
    )
    .option('--output <file.json>', 'write the result with all actions and rewards')
    .option('--json', 'print one JSON object', false)
    .option('--lines', 'print [START], [STEP] and [END] lines, as inference scripts of OpenEnv do', false)
    .addOption(
      new Option(
        '--success-score <score>',
        'with --lines: an episode that a model played is a success above this score',
      )
        .default(0.2)
        .argParser(numberFrom(0, 1)),
    )
    .optionsGroup('Where the episodes are played:')
    .addOption(
      new Option('--runtime <where>', 'in this process, or at a server of the environment')
        .choices(['in-process', 'http'])
        .default('in-process'),
    )
    .option('--base-url <address>', `the server, with --runtime http (default: ${SERVER})`, serverAddress)
    .optionsGroup('The model, with --mode openai; its key is in OPENAI_API_KEY:')
    .option('--model <name>', 'its name (default: MODEL_NAME, or gpt-4.1-mini)')
    .option(
      '--api-base-url <address>',
      "any server of the Chat Completions API (default: OPENAI_BASE_URL, or OpenAI's)",
    )
    .option('--history <n>', 'windows that it is shown beside the current one', wholeNumber(0, 100), 6)
    .addOption(
      new Option(
        '--decide-every <n>',
        'ask it before every n-th window and keep the action between (default: 1)',
      ).argParser(wholeNumber(1, 1000)),
    )
    .addOption(
      new Option('--max-calls <n>', 'ask it for at most n windows of a task, spread evenly').argParser(
        wholeNumber(1, 100_000),
      ),
    )
    .option('--answer-timeout <s>', 'longest wait for an answer', numberFrom(0.1, 3600), 60)
    .option('--time-budget <s>', 'ask it no more after so many seconds', numberFrom(0, 1e6))
    .option('--input-price <usd>', 'of a million prompt tokens, for the cost', numberFrom(0, 1e6))
    .option('--output-price <usd>', 'of a million completion tokens', numberFrom(0, 1e6))
    .addHelpText(
      'after',
      `
Examples:
  servegym baseline
  OPENAI_API_KEY=... servegym baseline --mode openai --model gpt-4.1-mini --decide-every 4 --output baseline.json
  servegym baseline --mode openai --api-base-url http://localhost:8001/v1 --model Qwen/Qwen2.5-7B-Instruct

An invalid answer of the model is counted and goes back to it once; when no valid action comes of that, the last valid
action stays in force, which is counted too. The command fails when no answer at all was a valid action, and when the
model gives no answer to its first question or to three in a row.`,
    )
    .action(baseline);
}

async function baseline(options: BaselineOptions): Promise<void> {
  const { env, json, lines } = options;
  requireTogether(options);
  const llm = modelOf(options);
  const printed = lines
    ? episodeLines(env, llm?.model ?? 'none', options.successScore, (line) => console.log(line))
    : undefined;
  const label = options.task === 'all' ? env : options.task;
  const baseline = baselineEnvironment(env);
  const taskIds = tasksOf(baseline, options.task);
  const agent = agentOf(baseline, options.agent);
  let result: BaselineResult;
  try {
    result = await runBaseline({
      ...{ baseline, taskIds, agent, seed: options.seed, maxSteps: options.maxSteps },
      ...(options.runtime === 'http' && {
        runtime: await httpRuntime(options.baseUrl ?? serverAddress(SERVER), baseline),
      }),
      ...(llm && { llm }),
      watcher: { ...progressWatcher(), ...printed?.watcher },
    });
  } catch (error) {
    printed?.abandon(label);
    throw error;
  }
  showProgress('');
  await report(result, options);
  if (llm !== undefined && result.tasks.every((task) => validAnswers(task) === 0)) {
    throw new EnvironmentError(
      'LLM_NO_ACTION',
      `no answer of \`${llm.model}\` was a valid action, so that the ${json || lines ? 'scores are' : 'scores above are'} those of the default action`,
    );
  }
}

function modelOf(options: BaselineOptions): BaselineModel | undefined {
  if (options.mode !== 'openai') return undefined;
  return {
    ...llmSettings(process.env, { baseUrl: options.apiBaseUrl, model: options.model }),
    inputUsdPerMillion: options.inputPrice,
    outputUsdPerMillion: options.outputPrice,
    timeoutSeconds: options.answerTimeout,
    history: options.history,
    decideEvery: options.decideEvery,
    maxCalls: options.maxCalls,
    timeBudgetSeconds: options.timeBudget,
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

async function report(result: BaselineResult, { output, json, lines }: BaselineOptions): Promise<void> {
  const text = JSON.stringify(result, null, 2);
  if (output !== undefined) await writeOutputFile(output, [`${text}\n`]);
  if (lines) return;
  console.log(json ? text : baselineTable(result));
  if (output !== undefined && !json) console.log(`\nwrote ${output}`);
}

function requireTogether({ mode, runtime, ...options }: BaselineOptions): void {
  if (runtime === 'in-process' && options.baseUrl !== undefined) {
    throw new InputError(
      "--base-url is the environment's server and needs --runtime http; the model's API is --api-base-url",
    );
  }
  if (mode === 'openai' && options.agent !== undefined) {
    throw new InputError('--agent is for --mode deterministic; --model says which model plays');
  }
  if (options.json && options.lines) throw new InputError('--json and --lines contradict each other');
  if (options.decideEvery !== undefined && options.maxCalls !== undefined) {
    throw new InputError('--decide-every and --max-calls contradict each other: give one of them');
  }
  if (mode === 'deterministic' && (options.model ?? options.apiBaseUrl) !== undefined) {
    throw new InputError('--model and --api-base-url need --mode openai');
  }
}

function tasksOf({ environment }: BaselineEnvironment, asked: string): readonly (string | number | null)[] {
  const tasks = environment.tasks?.map(({ id }) => id);
  if (asked === 'all') return tasks ?? [null];
  if (tasks === undefined) throw new InputError(`${environment.id} has no tasks: leave --task out`);
  const found = tasks.filter((id) => String(id) === asked);
  if (found.length > 0) return found;
  throw new InputError(`expected --task to be all or one of ${tasks.join(', ')}, got ${asked}`);
}

function agentOf(baseline: BaselineEnvironment, asked: string | undefined): string | undefined {
  const names = baseline.listPolicies().map(({ name }) => name);
  if (asked === undefined || names.includes(asked)) return asked;
  throw new InputError(`expected --agent to be one of ${names.join(', ')}, got ${asked}`);
}

/** Plays at a server. @throws InputError when there is no server, or one of another environment */
async function httpRuntime(url: URL, { environment }: BaselineEnvironment): Promise<BaselineRuntime> {
  const client = await connect(url).catch((error: Error) => {
    throw new InputError(
      `${url.href} is no OpenEnv server that answers: ${error.message}. Start one: servegym serve --env ${environment.id}`,
      { code: 'SERVER_UNREACHABLE' },
    );
  });
  const { name } = await client.metadata();
  if (name !== environment.name) {
    await client.close();
    throw new InputError(`expected a server of ${environment.name} at ${url.href}, got one of ${name}`);
  }
  return {
    kind: 'http',
    instance: { reset: (options) => client.reset(options), step: (action) => client.step(action) },
    grade: async () => (environment.grade === undefined ? null : ((await client.grade()) as Grade)),
    close: () => client.close(),
  };
}
