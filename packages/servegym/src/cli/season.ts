import { agentsOf, gainFigures } from '@servegym/agents';
import { type EnvironmentId, findEnvironment } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import {
  closeSeason,
  createServer,
  type EnvironmentDefinition,
  graderScoring,
  LEAST_EPISODES,
  mountSeasonRoutes,
  SeasonLedger,
  type SeasonResults,
  seasonEnvironment,
  seasonResults,
  verifySeason,
} from '@servegym/openenv';
import { counted } from '@servegym/simulator';
import { interquartileMean } from '@servegym/simulator/statistics';
import { listen, stopOnSignals, tellOthers } from '../server/listening.ts';
import { openEnvironment } from '../server/open-environment.ts';
import { above, allowedHosts, listenOptions, whole, withBoundName } from './arguments/options.ts';
import { defineCommand } from './command-table.ts';
import { GAIN_LEGEND, gainColumns, gainsJson } from './evaluate/evaluation-report.ts';
import { InputError, invalidFile, storeFailure } from './failure.ts';
import { readInputJson, writeJsonFile } from './files.ts';
import { jobOptions, withJobs } from './jobs.ts';
import { printResult, table } from './output/print-result.ts';
import { showShare } from './output/progress.ts';

const file = {
  value: '<file>',
  help: 'file of the season; it holds the secret, so keep it private until the end',
} as const;
const env = {
  value: '<name>',
  help: 'path of the environment, if it is a module of your own (default: the one in the season file)',
} as const;
const json = { help: 'print the ranking as JSON' };

export const createCommand = () =>
  defineCommand({
    words: { file: { ...file, writes: true } },
    options: {
      name: { value: '<name>', help: 'the name of the season', required: true },
      env: {
        value: '<name>',
        help: 'llmserve, fleet, inferencegym, or a module that exports an environment',
        default: 'llmserve',
      },
      task: { value: '<id>', help: 'a task; may be repeated (default: all)', repeated: true },
      episodes: whole('<n>', LEAST_EPISODES, 1e4, 'episodes of each task for a submission', LEAST_EPISODES),
      minutes: above('<n>', 0, 100_000, 'time for an episode, from its reset', 60),
    },
    async action({ file, env, name, task, episodes, minutes }) {
      const { id, version, tasks = [] } = await seasonDefinition(env);
      const known = tasks.map((each) => each.id);
      const taskIds = (task.length > 0 ? task : known.map(String)).map((asked) => {
        const found = known.find((taskId) => String(taskId) === asked);
        if (found !== undefined) return found;
        throw new InputError(`expected --task to be one of ${known.join(', ')}, got ${asked}`);
      });
      if (taskIds.length === 0) throw new InputError(`expected an environment with tasks, got ${id}`);
      const task_ids = [...new Set(taskIds)];
      const each = `${counted(episodes, 'episode')} of each of ${taskIds.join(', ')}`;
      const tell = ({ rules }: SeasonLedger) =>
        console.log(
          [
            `Season ${name} on ${id} ${version}: ${each}`,
            `Publish this commitment to the seeds now: ${rules.commitment}`,
            `Admit a submission: servegym season admit ${file} NAME`,
          ].join('\n'),
        );
      await withSeason(file, tell, { name, environment: { id, version }, task_ids, episodes, minutes });
    },
  });

export const admitCommand = () =>
  defineCommand({
    words: { file, submission: { value: '<name>', help: 'the name of the submission' } },
    options: {},
    action: ({ file, submission }) =>
      withSeason(file, (ledger) => {
        const { number, token, receipt } = ledger.admit(submission);
        console.error(`Submission ${number}, ${submission}. Hand on its receipt, ${receipt}`);
        console.error('and its token, which is shown once:');
        console.log(token);
      }),
  });

export const serveCommand = () =>
  defineCommand({
    words: { file },
    options: {
      env,
      ...listenOptions(7860),
      maxSessions: whole('<number>', 1, 1_000_000, 'most sessions at once', 1024),
      resetTime: whole('<ms>', 0, 60_000, 'resets are answered at multiples of this time', 250),
      allowedHosts,
    },
    action: ({ file, env, port, host, maxSessions, allowedHosts, resetTime: resetMs }) =>
      withSeason(file, async (ledger) => {
        ledger.hold(file);
        const { name, environment, commitment } = ledger.rules;
        const definition = await seasonDefinition(env ?? environment.id);
        const server = createServer(seasonEnvironment(definition, ledger, { resetMs }), {
          ...{ store: ledger.store(), maxSessions },
          guard: { allowedHosts: withBoundName(allowedHosts.flat(), host) },
        });
        mountSeasonRoutes(server, ledger);
        const listening = await listen([server], { port, host });
        console.log(`Season ${name} is ready: ${listening.url} (Ctrl-C stops it)`);
        console.log(`Commitment: ${commitment}`);
        tellOthers(listening);
        await stopOnSignals(listening, { graceMs: 5000, say: console.log });
      }),
  });

export const closeCommand = () =>
  defineCommand({
    words: { file },
    options: {
      out: { value: '<results.json>', writes: true, help: 'where the results are written', required: true },
      env,
      json,
      ...jobOptions,
    },
    async action({ file, out, env, json, ...options }) {
      await withSeason(file, async (ledger) => {
        ledger.hold(file);
        const definition = await seasonDefinition(env ?? ledger.rules.environment.id);
        const results = await withJobs(options, (jobs) =>
          closeSeason(ledger, definition, seasonScoring(definition, jobs, showShare)),
        );
        await writeJsonFile(out, results);
        printResult(json, seasonRanking(results), rankingForm);
      });
    },
  });

export const verifyCommand = () =>
  defineCommand({
    words: { file: { value: '<results.json>', help: 'the results' } },
    options: {
      commitment: { value: '<sha256>', help: 'the commitment as it was published when the season began' },
      receipt: {
        value: '<receipt>',
        help: 'a receipt that an entrant kept; may be repeated',
        repeated: true,
      },
      anchors: { help: 'compute the anchors anew, too, which takes as long as closing did' },
      env,
      json,
      ...jobOptions,
    },
    after: 'Ends with 0 when all is right, with 1 when it is not.',
    async action({ file, commitment, receipt: receipts, anchors: anchorsAnew, env, json, ...options }) {
      const published = { commitment, receipts, anchorsAnew };
      const results = await readResults(file);
      const definition = await seasonDefinition(env ?? results.season.environment.id);
      const problems = await withJobs(options, (jobs) =>
        verifySeason(results, definition, seasonScoring(definition, jobs, showShare), published),
      );
      if (problems.length > 0) {
        // Results may come from strangers, and nothing in them shall steer a terminal.
        for (const problem of problems) console.error(problem.replace(/[\p{Cc}\p{Cf}]/gu, '?'));
        return 'no';
      }
      const given = [commitment && 'the commitment', receipts.length > 0 && `${receipts.length} receipts`];
      const against =
        given.filter(Boolean).join(' and ') || 'nothing that was published: give --commitment and --receipt';
      if (!json)
        console.log(`All is right: rules, seeds, episodes, anchors and scores. Compared with ${against}.\n`);
      printResult(json, seasonRanking(results), rankingForm);
    },
  });

/** Opens the book of a season, or creates it, and closes it. @throws InputError when it cannot be used */
async function withSeason(
  file: string,
  use: (ledger: SeasonLedger) => void | Promise<void>,
  created?: Parameters<typeof SeasonLedger.create>[1],
): Promise<void> {
  let ledger: SeasonLedger | undefined;
  try {
    ledger = created === undefined ? SeasonLedger.open(file) : SeasonLedger.create(file, created);
    await use(ledger);
  } catch (error) {
    throw storeFailure(error);
  } finally {
    ledger?.close();
  }
}

async function readResults(path: string): Promise<SeasonResults> {
  const reading = seasonResults.safeParse(await readInputJson(path));
  if (reading.success) return reading.data;
  const [issue] = reading.error.issues;
  const where = `${issue?.path.join('.')}: ${issue?.message}`;
  throw invalidFile(`expected the results of a season in ${path}: ${where}`);
}

type Definition = EnvironmentDefinition<unknown, object, object>;

/** The environment of a season. @throws InputError when there is none, or it cannot be replayed */
export async function seasonDefinition(name: string): Promise<Definition> {
  const { definition } = await openEnvironment(name);
  if (definition.replayable !== false && definition.grade) return definition;
  throw new InputError(
    `Expected an environment whose episodes can be replayed and graded, got ${definition.id}`,
  );
}

/** Judges the episodes of an environment: beside anchors for each seed where it has them, else by its grader. */
export function seasonScoring(
  definition: Definition,
  jobs: JobEngine,
  onProgress: (share: number) => void = () => {},
): ReturnType<typeof graderScoring> {
  const graded = graderScoring(definition);
  const season = findEnvironment(definition.id) && agentsOf(definition.id as EnvironmentId).season;
  if (season === undefined) return graded;
  return {
    async anchors(resets) {
      const episodes = resets.map(({ task_id, seed }) => ({ taskId: String(task_id), seed: seed! }));
      return (await season.anchors(jobs, episodes, onProgress)) as never;
    },
    async judge(record, anchors) {
      const { return: total } = await graded.judge(record, null);
      return { return: total, score: season.score(total, String(record.reset.task_id), anchors) };
    },
  };
}

type Submission = SeasonResults['submissions'][number];
type Episodes = Submission['episodes'];

type Standing = ReturnType<typeof standingOf>;

/** The ranking of a season: by the gain of the mean return over all tasks, or by the mean score without anchors. */
export function seasonRanking({ season, submissions }: SeasonResults) {
  const standings = submissions.map(({ number, name, episodes }) => ({
    ...{ number, name, episodes: episodes.length },
    ...standingOf(season.task_ids.map((taskId) => ofTask(episodes, taskId))),
    tasks: season.task_ids.map((taskId) => ({ taskId, ...standingOf([ofTask(episodes, taskId)]) })),
  }));
  const figure = ({ gains, score }: Standing) => gains?.gain.mean ?? score;
  return standings
    .sort((a, b) => figure(b) - figure(a))
    .map((standing) => ({
      rank: 1 + standings.filter((other) => figure(other) > figure(standing)).length,
      ...standing,
    }));
}

type Ranking = ReturnType<typeof seasonRanking>;

export const rankingForm = {
  json: (ranking: Ranking) =>
    ranking.map(({ rank, name, number, episodes, finished, tasks, ...overall }) => ({
      ...{ rank, name, submission: number, episodes, finished },
      ...figuresJson(overall),
      tasks: Object.fromEntries(tasks.map((task) => [task.taskId, figuresJson(task)])),
    })),
  text: (ranking: Ranking) =>
    [
      ...table(ranking, [
        ['rank', ({ rank }) => String(rank)],
        ['submission', ({ name }) => name],
        ...gainColumns<Standing>(({ gains }) => gains),
        ['score', ({ score }) => score.toFixed(3)],
        ['finished', ({ finished, episodes }) => `${finished} of ${episodes}`],
      ]),
      '',
      GAIN_LEGEND,
      'score: interquartile mean. Episodes that were left, or never opened, count as they ended.',
    ].join('\n'),
};

const ofTask = (episodes: Episodes, taskId: string | number): Episodes =>
  episodes.filter((episode) => episode.task_id === taskId);

function standingOf(tasks: readonly Episodes[]) {
  const all = tasks.flat();
  const returns = tasks.map((episodes) =>
    episodes.flatMap(({ anchors, return: total }) => {
      if (anchors === null) return [];
      const { default: standard, clairvoyant } = anchors;
      const by = { default: standard.return, clairvoyant: clairvoyant.return, estimated: false };
      return [{ return: total, anchors: by }];
    }),
  );
  const isAnchored = returns.flat().length === all.length;
  return {
    gains: isAnchored ? gainFigures(returns) : null,
    score: interquartileMean(all.map(({ score }) => score)),
    /** Episodes that were played to their end. */
    finished: all.filter(({ done }) => done).length,
  };
}

const figuresJson = ({ gains, score }: Pick<Standing, 'gains' | 'score'>) => ({ ...gainsJson(gains), score });
