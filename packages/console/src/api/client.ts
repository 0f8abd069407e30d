import { ApiError, createTransport, unreadable } from './transport.ts';
import {
  type EnvironmentInfo,
  type EpisodeFile,
  type Fields,
  fields,
  type Grade,
  type Outcome,
  type PlayedStep,
  type PolicyInfo,
  type SchemaBody,
  type Task,
  text,
} from './wire.ts';

/** For what the server computes: windows of a planner, grades and replays. */
const COMPUTE_WITHIN_MS = 120_000;

/** Requests of the console to a server. Every method throws `ApiError`. */
export type Client = ReturnType<typeof createClient>;

export function createClient(root: URL) {
  const transport = createTransport(root);
  const { ask } = transport;

  /** Answers `undefined` where the server has no such thing. */
  async function askIfThere(path: string, body?: Fields): Promise<Fields | undefined> {
    try {
      return await ask(path, body);
    } catch (error) {
      if (error instanceof ApiError && error.isMissing) return undefined;
      throw error;
    }
  }

  async function listOf<T>(path: string): Promise<T[]> {
    const answer = (await askIfThere(path)) ?? [];
    const list = Array.isArray(answer) ? answer : answer[path];
    if (!Array.isArray(list)) throw unreadable(path);
    return list;
  }

  return {
    ...transport,
    async health(): Promise<void> {
      await ask('health');
    },
    metadata: async () => (await ask('metadata')) as unknown as EnvironmentInfo,
    schema: async () => (await ask('schema')) as unknown as SchemaBody,
    description: () => ask('openapi.json'),
    /** Empty when the environment has no tasks. */
    tasks: () => listOf<Task>('tasks'),
    /** Empty when the server plays no policies. */
    policies: () => listOf<PolicyInfo>('policies'),
    /** Starts an episode, in the session `again` where the server still has it, else in a new one. */
    async reset(options: Fields, again?: string) {
      const answer =
        (again && (await askIfThere('reset', { ...options, session_id: again }))) ||
        (await ask('reset', options));
      const sessionId = answer.session_id;
      if (typeof sessionId !== 'string') throw unreadable('reset');
      return { sessionId, ...outcome(answer, 'reset') };
    },
    async step(sessionId: string, action: Fields): Promise<PlayedStep> {
      return { action, ...outcome(await ask('step', { session_id: sessionId, action }), 'step') };
    },
    /** Plays up to `steps` windows with a policy; fewer come back when the episode ends. */
    async policySteps(policy: string, sessionId: string, steps: number): Promise<PlayedStep[]> {
      const path = `policies/${encodeURIComponent(policy)}/step`;
      const answer = await ask(path, { session_id: sessionId, steps }, COMPUTE_WITHIN_MS);
      if (!Array.isArray(answer.steps)) throw unreadable(path);
      return answer.steps.map((step: Fields) => playedStep(step, path));
    },
    async grade(sessionId: string): Promise<Grade> {
      const { score, breakdown, feedback } = await ask(
        'grader',
        { session_id: sessionId },
        COMPUTE_WITHIN_MS,
      );
      if (typeof score !== 'number') throw unreadable('grader');
      return { score, breakdown: fields(breakdown), feedback: text(feedback) ?? '' };
    },
    /** Steps that the server has played in a session; `undefined` when it does not know the session. */
    async stepCount(sessionId: string): Promise<number | undefined> {
      const state = await askIfThere(`state?session_id=${encodeURIComponent(sessionId)}`);
      return state && Number(state.step_count);
    },
    async episode(sessionId: string): Promise<EpisodeFile> {
      const path = `episodes/${encodeURIComponent(sessionId)}`;
      return (await ask(path, undefined, COMPUTE_WITHIN_MS)) as unknown as EpisodeFile;
    },
    /** Plays an episode into a new session and answers its results from `from` on; 0 is the reset. */
    async openEpisode(file: EpisodeFile, from: number) {
      const answer = await ask('episodes', { ...file, windows_from: from }, COMPUTE_WITHIN_MS);
      const { session_id: sessionId, verified, windows, environment } = answer;
      if (typeof sessionId !== 'string' || !Array.isArray(windows)) throw unreadable('episodes');
      return {
        sessionId,
        /** It came out as its file says; `null` where the file says nothing. */
        verified: typeof verified === 'boolean' ? verified : null,
        /** The version of the environment that played it now. */
        version: String(fields(environment).version ?? ''),
        /** The answer to the reset, where it was asked for. */
        start: from === 0 ? outcome(windows[0], 'episodes') : undefined,
        steps: windows.slice(from === 0 ? 1 : 0).map((step: Fields) => playedStep(step, 'episodes')),
      };
    },
  };
}

/** An episode that was played into a new session. */
export type OpenedEpisode = Awaited<ReturnType<Client['openEpisode']>>;

/** Reads the answer to a reset or a step. @throws ApiError `unreadable` */
function outcome(answer: Fields, path: string): Outcome {
  const { observation, reward, done, metadata } = answer ?? {};
  if (typeof observation !== 'object' || observation === null) throw unreadable(path);
  return {
    observation: observation as Fields,
    reward: typeof reward === 'number' ? reward : null,
    done: done === true,
    metadata: (metadata ?? (observation as Fields).metadata ?? {}) as Fields,
  };
}

/** Reads a step that comes with its action. @throws ApiError `unreadable` */
function playedStep(answer: Fields, path: string): PlayedStep {
  const { action, explanation } = answer;
  const told = typeof explanation === 'object' && explanation !== null;
  return {
    action: (action ?? {}) as Fields,
    ...outcome(answer, path),
    ...(told && { explanation: explanation as Fields }),
  };
}
