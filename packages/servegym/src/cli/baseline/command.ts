import { llmSettings } from '@servegym/agents';
import { Command, Option } from 'commander';
import { numberFrom, wholeNumber } from '../arguments/options.ts';
import { serverAddress } from '../arguments/server-address.ts';
import { InputError } from '../input-error.ts';
import { showProgress } from '../output/progress-line.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import {
  BASELINE_ENVIRONMENT_IDS,
  type BaselineEnvironmentId,
  baselineEnvironment,
} from './baseline-environments.ts';
import { baselineTable } from './baseline-report.ts';
import { runBaseline } from './run-baseline.ts';

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
  readonly decideEvery: number;
  readonly inputPrice?: number;
  readonly outputPrice?: number;
  readonly output?: string;
  readonly json: boolean;
}

const SERVER = 'http://localhost:7860';

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
    .addOption(
      new Option('--seed <n>', 'seed of the traffic')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .option(
      '--agent <name>',
      'another deterministic agent than heuristic (llmserve) or baseline (inferencegym)',
    )
    .option('--output <file.json>', 'write the result with all actions and rewards')
    .option('--json', 'print one JSON object', false)
    .optionsGroup('Where the episodes are played:')
    .addOption(
      new Option('--runtime <where>', 'in this process, or at a server of the environment')
        .choices(['in-process', 'http'])
        .default('in-process'),
    )
    .addOption(
      new Option('--base-url <address>', `the server, with --runtime http (default: ${SERVER})`).argParser(
        serverAddress,
      ),
    )
    .optionsGroup('The model, with --mode openai; its key is in OPENAI_API_KEY:')
    .option('--model <name>', 'its name (default: MODEL_NAME, or gpt-4.1-mini)')
    .option(
      '--api-base-url <address>',
      "any server of the Chat Completions API (default: OPENAI_BASE_URL, or OpenAI's)",
    )
    .addOption(
      new Option('--history <n>', 'windows that it is shown beside the current one')
        .default(6)
        .argParser(wholeNumber(0, 100)),
    )
    .addOption(
      new Option('--decide-every <n>', 'ask it before every n-th window and keep the action between')
        .default(1)
        .argParser(wholeNumber(1, 1000)),
    )
    .addOption(
      new Option('--input-price <usd>', 'of a million prompt tokens, for the cost').argParser(
        numberFrom(0, 1e6),
      ),
    )
    .addOption(
      new Option('--output-price <usd>', 'of a million completion tokens').argParser(numberFrom(0, 1e6)),
    )
    .addHelpText(
      'after',
      `
Examples:
  servegym baseline
  OPENAI_API_KEY=... servegym baseline --mode openai --model gpt-4.1-mini --decide-every 4 --output baseline.json
  servegym baseline --mode openai --api-base-url http://localhost:8001/v1 --model Qwen/Qwen2.5-7B-Instruct

An invalid answer of the model is counted and goes back to it once; when no valid action comes of that, the last valid
action stays in force, which is counted too.`,
    )
    .action(baseline);
}

async function baseline(options: BaselineOptions): Promise<void> {
  const { env, mode, seed, json } = options;
  requireTogether(options);
  const result = await runBaseline({
    environment: env,
    taskIds: tasksOf(env, options.task),
    seed,
    agent: agentOf(env, options.agent),
    ...(options.runtime === 'http' && { url: options.baseUrl ?? serverAddress(SERVER) }),
    ...(mode === 'openai' && {
      llm: {
        ...llmSettings(process.env, { baseUrl: options.apiBaseUrl, model: options.model }),
        inputUsdPerMillion: options.inputPrice,
        outputUsdPerMillion: options.outputPrice,
        history: options.history,
        decideEvery: options.decideEvery,
      },
    }),
    onStep: (taskId, step) => showProgress(`${taskId}: window ${step}`),
  });
  showProgress('');
  const text = JSON.stringify(result, null, 2);
  if (options.output !== undefined) await writeOutputFile(options.output, [`${text}\n`]);
  console.log(json ? text : baselineTable(result));
  if (options.output !== undefined && !json) console.log(`\nwrote ${options.output}`);
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
  if (mode === 'deterministic' && (options.model ?? options.apiBaseUrl) !== undefined) {
    throw new InputError('--model and --api-base-url need --mode openai');
  }
}

function tasksOf(env: BaselineEnvironmentId, asked: string): readonly (string | number)[] {
  const tasks = (baselineEnvironment(env).definition.tasks ?? []).map(({ id }) => id);
  if (asked === 'all') return tasks;
  const found = tasks.filter((id) => String(id) === asked);
  if (found.length > 0) return found;
  throw new InputError(`expected --task to be all or one of ${tasks.join(', ')}, got ${asked}`);
}

function agentOf(env: BaselineEnvironmentId, asked: string | undefined): string | undefined {
  const names = baselineEnvironment(env)
    .listPolicies()
    .map(({ name }) => name);
  if (asked === undefined || names.includes(asked)) return asked;
  throw new InputError(`expected --agent to be one of ${names.join(', ')}, got ${asked}`);
}
