import {
  closeSeason,
  createServer,
  isLoopback,
  LEAST_EPISODES,
  mountSeasonRoutes,
  SeasonLedger,
  type SeasonResults,
  seasonEnvironment,
  seasonResults,
  type TaskId,
  verifySeason,
} from '@servegym/openenv';
import { Command, Option } from 'commander';
import { listenError } from '../../server/listen-error.ts';
import { stopOnSignals } from '../../server/stop-on-signals.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { readInputJson } from '../arguments/read-input-file.ts';
import { allowedHostsOption, withBoundName } from '../arguments/server-options.ts';
import { InputError } from '../input-error.ts';
import { addJobOptions, type JobOptions, withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import { requireWritable, writeJsonFile } from '../output/write-output-file.ts';
import { seasonDefinition, seasonScoring } from './season-environments.ts';
import { rankingJson, rankingTable, seasonRanking } from './season-report.ts';

/** Opens the book of a season for a command, and closes it. @throws InputError when it cannot be used */
async function withLedger<Result>(
  open: () => SeasonLedger,
  use: (ledger: SeasonLedger) => Result | Promise<Result>,
): Promise<Result> {
  let ledger: SeasonLedger | undefined;
  try {
    ledger = open();
    return await use(ledger);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    throw code === 'STORE_ERROR' ? new InputError(message, { code: 'STORE_ERROR', cause: error }) : error;
  } finally {
    ledger?.close();
  }
}

/** `servegym season`: ranked competitions. */
export function seasonCommand(): Command {
  return new Command('season')
    .description('Run a ranked season: secret seeds, one play of each, results that anybody can check.')
    .addCommand(createCommand())
    .addCommand(admitCommand())
    .addCommand(serveSeasonCommand())
    .addCommand(closeCommand())
    .addCommand(verifyCommand());
}

interface EnvironmentOption {
  readonly env?: string;
}

function environmentOption(): Option {
  return new Option(
    '--env <name>',
    'path of the environment, if it is a module of your own (default: the one in the season file)',
  );
}

interface CreateOptions {
  readonly env: string;
  readonly name: string;
  readonly task?: readonly string[];
  readonly episodes: number;
  readonly minutes: number;
}

function createCommand(): Command {
  return new Command('create')
    .description('draw the secret of a season, and print the commitment to publish')
    .argument('<file>', 'file of the season; it holds the secret, so keep it private until the end')
    .requiredOption('--name <name>', 'the name of the season')
    .option(
      '--env <name>',
      'llmserve, fleet, inferencegym, or a module that exports an environment',
      'llmserve',
    )
    .option('--task <id>', 'a task; may be repeated (default: all)', (id, before: readonly string[] = []) => [
      ...before,
      id,
    ])
    .option(
      '--episodes <n>',
      'episodes of each task for a submission',
      wholeNumber(LEAST_EPISODES, 10_000),
      LEAST_EPISODES,
    )
    .option('--minutes <n>', 'time for an episode, from its reset', numberAbove(0, 100_000), 60)
    .action(create);
}

async function create(file: string, { env, name, task, episodes, minutes }: CreateOptions): Promise<void> {
  const { id, version, tasks = [] } = await seasonDefinition(env);
  await requireWritable(file);
  const known: TaskId[] = tasks.map((each) => each.id);
  const taskIds = (task ?? known.map(String)).map((asked) => {
    const found = known.find((taskId) => String(taskId) === asked);
    if (found === undefined)
      throw new InputError(`expected --task to be one of ${known.join(', ')}, got ${asked}`);
    return found;
  });
  if (taskIds.length === 0) throw new InputError(`expected an environment with tasks, got ${id}`);
  const season = {
    ...{ name, environment: { id, version }, task_ids: [...new Set(taskIds)], episodes, minutes },
  };
  await withLedger(
    () => SeasonLedger.create(file, season),
    ({ rules }) => {
      console.log(
        `Season ${name} on ${id} ${version}: ${episodes} episodes of each of ${taskIds.join(', ')}`,
      );
      console.log(`Publish this commitment to the seeds now: ${rules.commitment}`);
      console.log(`Admit a submission: servegym season admit ${file} NAME`);
    },
  );
}

function admitCommand(): Command {
  return new Command('admit')
    .description('admit a submission, and print its token')
    .argument('<file>', 'the season')
    .argument('<name>', 'the name of the submission')
    .action((file: string, name: string) =>
      withLedger(
        () => SeasonLedger.open(file),
        (ledger) => {
          const { number, token } = ledger.admit(name);
          console.error(`Submission ${number}, ${name}. Its token, which is shown once:`);
          console.log(token);
        },
      ),
    );
}

interface ServeSeasonOptions extends EnvironmentOption {
  readonly port: number;
  readonly host: string;
  readonly maxSessions: number;
  readonly allowedHosts: readonly string[];
  readonly resetTime: number;
}

function serveSeasonCommand(): Command {
  return new Command('serve')
    .description(
      'serve the season over OpenEnv until a signal ends it; after a restart it continues where it was',
    )
    .argument('<file>', 'the season')
    .addOption(environmentOption())
    .option('--port <number>', 'port to listen on; 0 takes any free one', wholeNumber(0, 65_535), 7860)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--max-sessions <number>', 'most sessions at once', wholeNumber(1, 1_000_000), 1024)
    .option('--reset-time <ms>', 'resets are answered at multiples of this time', wholeNumber(0, 60_000), 250)
    .addOption(allowedHostsOption())
    .action(serveSeason);
}

async function serveSeason(file: string, options: ServeSeasonOptions): Promise<void> {
  const { env, port, host, maxSessions, allowedHosts, resetTime: resetMs } = options;
  await withLedger(
    () => SeasonLedger.open(file),
    async (ledger) => {
      ledger.hold(file);
      const { name, environment, commitment } = ledger.rules;
      const definition = await seasonDefinition(env ?? environment.id);
      const server = createServer(seasonEnvironment(definition, ledger, { resetMs }), {
        store: ledger.store(),
        maxSessions,
        guard: { allowedHosts: withBoundName(allowedHosts, host) },
      });
      mountSeasonRoutes(server, ledger);
      const listening = await server.listen({ port, host }).catch(async (error: NodeJS.ErrnoException) => {
        await server.close();
        throw listenError(error, port, host);
      });
      console.log(`Season ${name} is ready: ${listening.url} (Ctrl-C stops it)`);
      console.log(`Commitment: ${commitment}`);
      if (!isLoopback(listening.address)) {
        console.log(`It listens on ${listening.address}: other machines can reach it`);
      }
      const { sessions } = server;
      const stoppable = {
        get heldSessions() {
          return [...sessions].filter(({ id }) => sessions.isAttached(id)).length;
        },
        drain: listening.drain,
        close: listening.close,
      };
      await stopOnSignals(stoppable, { graceMs: 5000, say: console.log });
    },
  );
}

interface CloseOptions extends EnvironmentOption, JobOptions {
  readonly out: string;
  readonly json: boolean;
}

function closeCommand(): Command {
  const command = new Command('close')
    .description('end the season, compute the anchors of its seeds, and publish secret, actions and scores')
    .argument('<file>', 'the season')
    .requiredOption('--out <results.json>', 'where the results are written')
    .addOption(environmentOption())
    .option('--json', 'print the ranking as JSON', false);
  return addJobOptions(command).action(close);
}

async function close(file: string, { out, env, json, ...jobOptions }: CloseOptions): Promise<void> {
  await requireWritable(out);
  await withLedger(
    () => SeasonLedger.open(file),
    async (ledger) => {
      ledger.hold(file);
      const definition = await seasonDefinition(env ?? ledger.rules.environment.id);
      const results = await withJobs(jobOptions, (jobs) =>
        closeSeason(ledger, definition, seasonScoring(definition, jobs, showShare)),
      );
      await writeJsonFile(out, results);
      printRanking(json, results);
    },
  );
}

interface VerifyArguments extends EnvironmentOption, JobOptions {
  readonly commitment?: string;
  readonly anchors: boolean;
  readonly json: boolean;
}

function verifyCommand(): Command {
  const command = new Command('verify')
    .description(
      'check the results of a season: seeds against the commitment, every episode and anchor by replay',
    )
    .argument('<results.json>', 'the results')
    .option('--commitment <sha256>', 'the commitment as it was published when the season began')
    .option('--anchors', 'compute the anchors anew, too, which takes as long as closing did', false)
    .addOption(environmentOption())
    .option('--json', 'print the ranking as JSON', false)
    .addHelpText('after', '\nEnds with 0 when all is right, with 1 when it is not.');
  return addJobOptions(command).action(verify);
}

async function verify(
  path: string,
  { commitment, anchors: anchorsAnew, env, json, ...jobOptions }: VerifyArguments,
): Promise<void> {
  const results = await readResults(path);
  const definition = await seasonDefinition(env ?? results.season.environment.id);
  const problems = await withJobs(jobOptions, (jobs) =>
    verifySeason(results, definition, seasonScoring(definition, jobs, showShare), {
      commitment,
      anchorsAnew,
    }),
  );
  if (problems.length > 0) {
    for (const problem of problems) console.error(problem);
    process.exitCode = 1;
    return;
  }
  if (!json) console.log('All is right: seeds, episodes, anchors and scores.\n');
  printRanking(json, results);
}

async function readResults(path: string): Promise<SeasonResults> {
  const reading = seasonResults.safeParse(await readInputJson(path));
  if (reading.success) return reading.data;
  const [issue] = reading.error.issues;
  throw new InputError(
    `expected the results of a season in ${path}: ${issue?.path.join('.')}: ${issue?.message}`,
    { code: 'INVALID_FILE' },
  );
}

function printRanking(json: boolean, results: SeasonResults): void {
  const ranking = seasonRanking(results);
  printResult(
    json,
    () => rankingJson(ranking),
    () => rankingTable(ranking),
  );
}
