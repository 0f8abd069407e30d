import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type AsyncPolicy, agentsOf } from '@servegym/agents';
import { connect, type EnvironmentClient } from '@servegym/openenv/client';
import { runServegym, type ServeProcess, startSeason } from '../../maintenance/test-servers/servegym.ts';
import { benchmark } from '../harness.ts';

type Fields = Record<string, unknown>;
type Client = EnvironmentClient<Fields, Fields, Fields>;
type Player = AsyncPolicy<Fields, Fields>;

/** An attempt of the second submission, and what the server made of it. */
interface Exploit {
  readonly attempt: string;
  readonly answer: string;
  readonly gained: boolean;
}

interface SeasonPlan {
  readonly env: string;
  readonly task: string;
  readonly agent: string;
  readonly episodes: number;
}

interface SeasonReport {
  readonly ranking: readonly Fields[];
  readonly exploits: readonly Exploit[];
  readonly isVerified: boolean;
  readonly isForgeryFound: boolean;
}

const STANDARD = { llmserve: 'default', fleet: 'static', inferencegym: 'default' };

/** Seeds of practice that the first window of a ranked episode is compared with. */
const TRIED_SEEDS = 200;

interface Position {
  readonly observation: Fields;
  readonly reward: number | null;
  readonly previousAction: Fields;
  readonly stepIndex: number;
  readonly done: boolean;
  readonly return: number;
}

type Episode = Position & { readonly client: Client };

/** Plays a season; its servers and files are gone afterwards. */
export async function playSeason(plan: SeasonPlan): Promise<SeasonReport> {
  const season = new Season(plan);
  try {
    return await season.play();
  } finally {
    await season.close();
  }
}

class Season {
  readonly #plan: SeasonPlan;
  readonly #folder = mkdtempSync(join(tmpdir(), 'servegym-season-'));
  readonly #servers: ServeProcess[] = [];
  readonly #agents;
  readonly #practice;
  readonly #standard: string;
  readonly #taskId;
  readonly #initialAction: Fields;

  constructor(plan: SeasonPlan) {
    const environment = plan.env as keyof typeof STANDARD;
    this.#plan = plan;
    this.#standard = STANDARD[environment];
    this.#agents = agentsOf(environment);
    this.#practice = this.#agents.playable();
    this.#taskId = this.#agents.environment.tasks.find(plan.task)!.id;
    this.#initialAction = this.#practice.initialAction(this.#taskId) as unknown as Fields;
  }

  async close(): Promise<void> {
    for (const server of this.#servers) await server.stop('SIGKILL');
    rmSync(this.#folder, { recursive: true });
  }

  #playerNamed(name: string): Player {
    return this.#agents.createPolicy(name) as unknown as Player;
  }

  /** Plays the whole season. */
  async play(): Promise<SeasonReport> {
    const file = join(this.#folder, 'season.db');
    const results = join(this.#folder, 'results.json');
    const { env, task, episodes } = this.#plan;
    const created = await servegym(
      ...['season', 'create', file, '--name', 'end-to-end', '--env', env, '--task', task],
      ...['--episodes', String(episodes)],
    );
    const [, commitment] = /commitment to the seeds now: (\w+)/.exec(created)!;
    const [honest, cheat] = [await this.#admit(file, 'honest'), await this.#admit(file, 'exploits')];

    const killed = await this.#serve(file);
    const half = Math.floor(this.#plan.episodes / 2);
    const player = this.#playerNamed(this.#plan.agent);
    for (let i = 0; i < half; i++) await this.#playEpisode(await this.#begin(killed, honest), player);
    const cut = await this.#begin(killed, honest);
    const before = await this.#playEpisode(cut, player, 5);
    await killed.stop('SIGKILL');
    const server = await this.#serve(file);
    const resumed = await connect(server.url, { sessionId: cut.client.sessionId! });
    await this.#playEpisode({ client: resumed as unknown as Client, ...before }, player);
    for (let i = half + 1; i < this.#plan.episodes; i++)
      await this.#playEpisode(await this.#begin(server, honest), player);

    const exploits = await this.#tryExploits(server, cheat, honest);
    await server.stop();
    const ranking = JSON.parse(await servegym('season', 'close', file, '--out', results, '--json'));
    const verified = await runServegym('season', 'verify', results, '--commitment', commitment!);
    const forged = await runServegym('season', 'verify', this.#forge(results));
    return {
      ranking: ranking as readonly Fields[],
      exploits,
      isVerified: verified.code === 0,
      isForgeryFound: forged.code === 1,
    };
  }

  async #serve(file: string): Promise<ServeProcess> {
    const server = await startSeason(file, '--reset-time', '0');
    this.#servers.push(server);
    return server;
  }

  /** Results in which the second submission has the episodes of the first. */
  #forge(path: string): string {
    const results = JSON.parse(readFileSync(path, 'utf8'));
    results.submissions[1].episodes = results.submissions[0].episodes;
    const forged = join(this.#folder, 'forged.json');
    writeFileSync(forged, JSON.stringify(results));
    return forged;
  }

  /** Opens a session and has an episode dealt. */
  async #begin({ url }: ServeProcess, submission: string): Promise<Episode> {
    const client = (await connect(url)) as unknown as Client;
    return { client, ...(await this.#deal(client, submission)) };
  }

  async #deal(client: Client, submission: string): Promise<Position> {
    const { observation, reward, done } = await client.reset({ submission, task_id: this.#taskId } as never);
    return { observation, reward, done, previousAction: this.#initialAction, stepIndex: 0, return: 0 };
  }

  /** Plays an episode to its end, or for some steps. Answers where it stands. */
  async #playEpisode(episode: Episode, player: Player, steps = Number.POSITIVE_INFINITY): Promise<Position> {
    const { client, ...start } = episode;
    let at: Position = start;
    if (at.stepIndex === 0) player.reset({ taskId: this.#taskId, seed: 0 });
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
  async #tryExploits(server: ServeProcess, token: string, foreign: string): Promise<Exploit[]> {
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
    await refused('a seed of its own', '/reset', { submission: token, task_id: this.#taskId, seed: 7 });
    await refused('an unknown token', '/reset', { submission: 'x'.repeat(32), task_id: this.#taskId });
    await refused('the progress of a name', '/season/progress', { submission: 'honest' });

    const reset = await ask('/reset', { submission: token, task_id: this.#taskId });
    const { session_id } = JSON.parse(reset.text);
    const state = await ask(`/state?session_id=${session_id}`);
    const told = `${reset.text}${state.text}`;
    note('seed or phase in reset and state', 'neither', /"(seed|phase|workload_phase)"/.test(told));
    const log = [this.#initialAction, this.#initialAction];
    await refused('the grade of a live episode', '/grader', { session_id });
    await refused('the grade of a log for a live seed', '/grader', { session_id, episode_log: log });
    await refused('the oracle on a ranked session', '/policies/oracle/step', { session_id, steps: 10 });
    await refused('the mpc on a ranked session', '/policies/mpc/step', { session_id, steps: 10 });
    await refused('the file of a live episode', `/episodes/${session_id}`);
    await refused('an episode file played into a session', '/episodes', { session_id, actions: log });
    await refused('tasks of a split', `/${this.#plan.env}/task`, { split: 'test', index: 0 });

    await ask('/reset', { session_id, submission: token, task_id: this.#taskId });
    const { episode } = JSON.parse((await ask(`/state?session_id=${session_id}`)).text);
    note('the same seed once more', `episode ${episode} after episode 0`, episode === 0);
    const stepped = await ask('/step', { session_id, action: this.#initialAction });
    const found = await this.#knownSeeds(JSON.parse(stepped.text).observation);
    note('the seed, by its first window', `${found} of ${TRIED_SEEDS} practice seeds match`, found > 0);

    const opened: Episode[] = [];
    for (let i = 2; i < this.#plan.episodes; i++) opened.push(await this.#begin(server, token));
    const dealt = await Promise.all(opened.map(async ({ client }) => (await client.state()).episode));
    note(
      'parallel sessions on one seed',
      `${new Set(dealt).size} of ${dealt.length} differ`,
      new Set(dealt).size < dealt.length,
    );
    await refused('an episode beyond the last', '/reset', { submission: token, task_id: this.#taskId });

    // It goes on with the half of its episodes that begin best, and leaves the others.
    const idle = this.#playerNamed(this.#standard);
    const begun: { episode: Episode; at: Position }[] = [];
    for (const each of opened) begun.push({ episode: each, at: await this.#playEpisode(each, idle, 10) });
    begun.sort((a, b) => b.at.return - a.at.return);
    const kept = begun.slice(0, Math.ceil(begun.length / 2));
    for (const { episode, at } of kept)
      if (!at.done) await this.#playEpisode({ client: episode.client, ...at }, idle);
    for (const { episode } of begun.slice(kept.length)) await episode.client.close();
    note('leaving the worse half of its episodes', 'they count', false);
    const { tasks } = JSON.parse((await ask('/season/progress', { submission: foreign })).text);
    note(
      'episodes of the other submission',
      `${tasks[0].finished} finished`,
      tasks[0].finished !== this.#plan.episodes,
    );
    return exploits;
  }

  /** Practice seeds whose first window looks the same. */
  async #knownSeeds(first: Fields): Promise<number> {
    const instance = this.#practice.create();
    let found = 0;
    for (let seed = 0; seed < TRIED_SEEDS; seed++) {
      await instance.reset({ task_id: this.#taskId, seed });
      const { observation } = await instance.step(this.#initialAction as never);
      if (isDeepStrictEqual(JSON.parse(JSON.stringify(observation)), first)) found++;
    }
    return found;
  }

  async #admit(file: string, name: string): Promise<string> {
    return (await servegym('season', 'admit', file, name)).trim();
  }
}

async function servegym(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runServegym(...args);
  if (code !== 0) throw new Error(`servegym ${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

export default benchmark({
  what: 'A ranked season from its creation to the check of its results, with two submissions: one plays a policy honestly, the other tries every exploit first. The server is killed in the middle and goes on. Fails when an exploit gains anything, or the results are not right.',
  options: { env: 'llmserve', task: 'bursty_workload', agent: 'ppo', episodes: 20 },
  async *run(plan) {
    const { ranking, exploits, isVerified, isForgeryFound } = await playSeason(plan);
    for (const { rank, name, gain, worst10, below_default, score, finished } of ranking)
      yield {
        ...{ rank: Number(rank), submission: String(name), gain: (gain as { mean: number } | null)?.mean },
        'worst 10 %': worst10 as number,
        'below the default': below_default as number,
        score: score as number,
        finished: `${finished} of ${plan.episodes}`,
      };
    for (const { attempt, answer, gained } of exploits)
      yield { exploit: attempt, answer, gained: gained ? 'yes' : 'nothing' };
    yield `Results verified: ${isVerified ? 'yes' : 'no'}. Forged results found: ${isForgeryFound ? 'yes' : 'no'}.`;
    if (!isVerified || !isForgeryFound || exploits.some(({ gained }) => gained))
      throw new Error('an exploit gained something, or the results are not right');
  },
});
