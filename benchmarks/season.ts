/**
 * A ranked season from its creation to the check of its results, with two submissions: one plays a policy honestly, the
 * other tries every exploit first. The server is killed in the middle and goes on. Ends with 1 when an exploit gains
 * anything, or the results are not right.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { type AsyncPolicy, agentsOf } from '@servegym/agents';
import { connect, type EnvironmentClient } from '@servegym/openenv/client';
import { runServegym, type ServeProcess, startSeason } from '../maintenance/test-servers/servegym.ts';

const { values } = parseArgs({
  options: {
    env: { type: 'string', default: 'llmserve' },
    task: { type: 'string', default: 'bursty_workload' },
    agent: { type: 'string', default: 'ppo' },
    episodes: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
});
const { env, task, agent } = values;
const episodes = Number(values.episodes);

type Fields = Record<string, unknown>;
type Client = EnvironmentClient<Fields, Fields, Fields>;
type Player = AsyncPolicy<Fields, Fields>;

/** An attempt of the second submission, and what the server made of it. */
interface Exploit {
  readonly attempt: string;
  readonly answer: string;
  readonly gained: boolean;
}

const STANDARD = { llmserve: 'default', fleet: 'static', inferencegym: 'default' };
const environment = env as keyof typeof STANDARD;
const standard = STANDARD[environment];
const agents = agentsOf(environment);
const taskId = agents.environment.tasks.find(task)!.id;
const playerNamed = (name: string) => agents.createPolicy(name) as unknown as Player;
const practice = agents.playable();
const initialAction = practice.initialAction(taskId) as unknown as Fields;

/** Seeds of practice that the first window of a ranked episode is compared with. */
const TRIED_SEEDS = 200;

const folder = mkdtempSync(join(tmpdir(), 'servegym-season-'));
const servers: ServeProcess[] = [];
try {
  await main();
} finally {
  for (const server of servers) await server.stop('SIGKILL');
  rmSync(folder, { recursive: true });
}

async function main(): Promise<void> {
  const file = join(folder, 'season.db');
  const results = join(folder, 'results.json');
  const created = await servegym(
    'season',
    'create',
    file,
    '--name',
    'end-to-end',
    '--env',
    env,
    '--task',
    task,
    '--episodes',
    String(episodes),
  );
  const [, commitment] = /commitment to the seeds now: (\w+)/.exec(created)!;
  const [honest, cheat] = [await admit(file, 'honest'), await admit(file, 'exploits')];

  const killed = await serve(file);
  const half = Math.floor(episodes / 2);
  const player = playerNamed(agent);
  for (let i = 0; i < half; i++) await play(await begin(killed, honest), player);
  const cut = await begin(killed, honest);
  const before = await play(cut, player, 5);
  await killed.stop('SIGKILL');
  const server = await serve(file);
  const resumed = await connect(server.url, { sessionId: cut.client.sessionId! });
  await play({ client: resumed as unknown as Client, ...before }, player);
  for (let i = half + 1; i < episodes; i++) await play(await begin(server, honest), player);

  const exploits = await tryExploits(server, cheat, honest);
  await server.stop();
  const ranking = JSON.parse(await servegym('season', 'close', file, '--out', results, '--json'));
  const verified = await runServegym('season', 'verify', results, '--commitment', commitment!);
  const forged = await runServegym('season', 'verify', forge(results));
  const report = {
    ...{ environment: env, version: practice.version, task, agent, episodes, ranking, exploits },
    ...{ verified: verified.code === 0, forgery_found: forged.code === 1 },
  };
  console.log(values.json ? JSON.stringify(report, null, 2) : text(report));
  if (!report.verified || !report.forgery_found || exploits.some(({ gained }) => gained))
    process.exitCode = 1;
}

async function serve(file: string): Promise<ServeProcess> {
  const server = await startSeason(file, '--reset-time', '0');
  servers.push(server);
  return server;
}

/** Results in which the second submission has the episodes of the first. */
function forge(path: string): string {
  const results = JSON.parse(readFileSync(path, 'utf8'));
  results.submissions[1].episodes = results.submissions[0].episodes;
  const forged = join(folder, 'forged.json');
  writeFileSync(forged, JSON.stringify(results));
  return forged;
}

interface Position {
  readonly observation: Fields;
  readonly reward: number | null;
  readonly previousAction: Fields;
  readonly stepIndex: number;
  readonly done: boolean;
  readonly return: number;
}

type Episode = Position & { readonly client: Client };

/** Opens a session and has an episode dealt. */
async function begin({ url }: ServeProcess, submission: string): Promise<Episode> {
  const client = (await connect(url)) as unknown as Client;
  return { client, ...(await deal(client, submission)) };
}

async function deal(client: Client, submission: string): Promise<Position> {
  const { observation, reward, done } = await client.reset({ submission, task_id: taskId } as never);
  return { observation, reward, done, previousAction: initialAction, stepIndex: 0, return: 0 };
}

/** Plays an episode to its end, or for some steps. Answers where it stands. */
async function play(episode: Episode, player: Player, steps = Number.POSITIVE_INFINITY): Promise<Position> {
  const { client, ...start } = episode;
  let at: Position = start;
  if (at.stepIndex === 0) player.reset({ taskId, seed: 0 });
  while (!at.done && at.stepIndex < start.stepIndex + steps) {
    const action = await player.act(at);
    const { observation, reward, done } = await client.step(action);
    const total = at.return + (reward ?? 0);
    at = { observation, reward, done, previousAction: action, stepIndex: at.stepIndex + 1, return: total };
  }
  if (at.done) await client.close();
  return at;
}

/** Tries what points of an unranked server can be had by, then plays on, choosing the luckiest of its episodes. */
async function tryExploits(server: ServeProcess, token: string, foreign: string): Promise<Exploit[]> {
  const exploits: Exploit[] = [];
  const note = (attempt: string, answer: string, gained: boolean) =>
    exploits.push({ attempt, answer, gained });
  const ask = async (path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' };
    const init = body && { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await fetch(server.url + path, init);
    return { status: answer.status, text: await answer.text() };
  };
  const refused = async (attempt: string, path: string, body?: object) => {
    const { status } = await ask(path, body);
    note(attempt, String(status), status < 400);
  };
  await refused('a seed of its own', '/reset', { submission: token, task_id: taskId, seed: 7 });
  await refused('an unknown token', '/reset', { submission: 'x'.repeat(32), task_id: taskId });
  await refused('the progress of a name', '/season/progress', { submission: 'honest' });

  const reset = await ask('/reset', { submission: token, task_id: taskId });
  const { session_id } = JSON.parse(reset.text);
  const state = await ask(`/state?session_id=${session_id}`);
  const told = `${reset.text}${state.text}`;
  note('seed or phase in reset and state', 'neither', /"(seed|phase|workload_phase)"/.test(told));
  const log = [initialAction, initialAction];
  await refused('the grade of a live episode', '/grader', { session_id });
  await refused('the grade of a log for a live seed', '/grader', { session_id, episode_log: log });
  await refused('the oracle on a ranked session', '/policies/oracle/step', { session_id, steps: 10 });
  await refused('the mpc on a ranked session', '/policies/mpc/step', { session_id, steps: 10 });
  await refused('the file of a live episode', `/episodes/${session_id}`);
  await refused('an episode file played into a session', '/episodes', { session_id, actions: log });
  await refused('actions from a leaderboard', '/leaderboard/1');
  await refused('tasks of a split', `/${env}/task`, { split: 'test', index: 0 });

  await ask('/reset', { session_id, submission: token, task_id: taskId });
  const { episode } = JSON.parse((await ask(`/state?session_id=${session_id}`)).text);
  note('the same seed once more', `episode ${episode} after episode 0`, episode === 0);
  const stepped = await ask('/step', { session_id, action: initialAction });
  const found = await knownSeeds(JSON.parse(stepped.text).observation);
  note('the seed, by its first window', `${found} of ${TRIED_SEEDS} practice seeds match`, found > 0);

  const opened: Episode[] = [];
  for (let i = 2; i < episodes; i++) opened.push(await begin(server, token));
  const dealt = await Promise.all(opened.map(async ({ client }) => (await client.state()).episode));
  note(
    'parallel sessions on one seed',
    `${new Set(dealt).size} of ${dealt.length} differ`,
    new Set(dealt).size < dealt.length,
  );
  await refused('an episode beyond the last', '/reset', { submission: token, task_id: taskId });

  // It goes on with the half of its episodes that begin best, and leaves the others.
  const idle = playerNamed(standard);
  const begun: { episode: Episode; at: Position }[] = [];
  for (const each of opened) begun.push({ episode: each, at: await play(each, idle, 10) });
  begun.sort((a, b) => b.at.return - a.at.return);
  const kept = begun.slice(0, Math.ceil(begun.length / 2));
  for (const { episode, at } of kept) if (!at.done) await play({ client: episode.client, ...at }, idle);
  for (const { episode } of begun.slice(kept.length)) await episode.client.close();
  note('leaving the worse half of its episodes', 'they count', false);
  const { tasks } = JSON.parse((await ask('/season/progress', { submission: foreign })).text);
  note('episodes of the other submission', `${tasks[0].finished} finished`, tasks[0].finished !== episodes);
  return exploits;
}

/** Practice seeds whose first window looks the same. */
async function knownSeeds(first: Fields): Promise<number> {
  const instance = practice.create();
  let found = 0;
  for (let seed = 0; seed < TRIED_SEEDS; seed++) {
    await instance.reset({ task_id: taskId, seed });
    const { observation } = await instance.step(initialAction as never);
    if (isDeepStrictEqual(JSON.parse(JSON.stringify(observation)), first)) found++;
  }
  return found;
}

async function admit(file: string, name: string): Promise<string> {
  return (await servegym('season', 'admit', file, name)).trim();
}

async function servegym(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runServegym(...args);
  if (code !== 0) throw new Error(`servegym ${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

function text(
  report: { ranking: Fields[]; exploits: readonly Exploit[]; verified: boolean } & Fields,
): string {
  const { environment, version, exploits, ranking } = report;
  const digits = (figure: unknown) => (typeof figure === 'number' ? figure.toFixed(3) : '-');
  return [
    `${environment} ${version}, ${task}, ${episodes} episodes of each submission; the honest one plays ${agent}`,
    '',
    '| rank | submission | gain | worst 10 % | below the default | score | finished |',
    '|---|---|---|---|---|---|---|',
    ...ranking.map(
      ({ rank, name, gain, worst10, below_default, score, finished }) =>
        `| ${rank} | ${name} | ${digits((gain as Fields | null)?.mean)} | ${digits(worst10)} | ${digits(below_default)} | ${digits(score)} | ${finished} of ${episodes} |`,
    ),
    '',
    '| exploit | answer | gained |',
    '|---|---|---|',
    ...exploits.map(
      ({ attempt, answer, gained }) => `| ${attempt} | ${answer} | ${gained ? 'yes' : 'nothing'} |`,
    ),
    '',
    `Results verified: ${report.verified ? 'yes' : 'no'}. Forged results found: ${report.forgery_found ? 'yes' : 'no'}.`,
  ].join('\n');
}
