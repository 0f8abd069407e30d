import { type ReadonlySignal, signal } from '@preact/signals';
import { ApiError, errorCode, errorText } from './api-error.ts';
import type {
  EnvironmentInfo,
  EpisodeFile,
  Exchange,
  Fields,
  Grade,
  OpenedEpisode,
  Outcome,
  PlayedStep,
  PolicyInfo,
  SchemaBody,
  StartedSession,
  Task,
} from './wire.ts';

const ANSWER_WITHIN_MS = 20_000;
/** For what the server computes: windows of a planner, grades and replays. */
const COMPUTE_WITHIN_MS = 120_000;
/** Exchanges that are kept to look at. */
const MOST_EXCHANGES = 30;

/** Requests of the console to a server. Every method throws `ApiError`. */
export interface Client {
  /** Address of the server, without a slash at its end. */
  readonly url: string;
  /** The latest requests and their answers, the newest first. */
  readonly exchanges: ReadonlySignal<readonly Exchange[]>;
  /** The token that requests carry from now on. */
  authorize(token: string): void;
  /** Resolves when the server answers. */
  health(): Promise<void>;
  metadata(): Promise<EnvironmentInfo>;
  schema(): Promise<SchemaBody>;
  /** The server's OpenAPI document. */
  description(): Promise<Fields>;
  /** Empty when the environment has no tasks. */
  tasks(): Promise<Task[]>;
  /** Empty when the server plays no policies. */
  policies(): Promise<PolicyInfo[]>;
  /** Starts an episode, in the session `again` where the server still has it, else in a new one. */
  reset(options: Fields, again?: string): Promise<StartedSession>;
  step(sessionId: string, action: Fields): Promise<PlayedStep>;
  /** Plays up to `steps` windows with a policy; fewer come back when the episode ends. */
  policySteps(policy: string, sessionId: string, steps: number): Promise<PlayedStep[]>;
  grade(sessionId: string): Promise<Grade>;
  /** Steps that the server has played in a session; `undefined` when it does not know the session. */
  stepCount(sessionId: string): Promise<number | undefined>;
  episode(sessionId: string): Promise<EpisodeFile>;
  /** Plays an episode into a new session and answers its results from `from` on; 0 is the reset. */
  openEpisode(file: EpisodeFile, from: number): Promise<OpenedEpisode>;
  /** Asks for JSON and answers with it; a body is posted. */
  ask(path: string, body?: Fields): Promise<Fields>;
  /** Sends any request and answers with what came back, whatever it is. */
  send(method: string, path: string, body?: Fields): Promise<Exchange>;
}

/** A client for the server whose API stands under `root`, which ends in a slash. */
export function createClient(root: URL): Client {
  const exchanges = signal<readonly Exchange[]>([]);
  let token: string | undefined;

  const send: Send = async (method, path, body, withinMs = ANSWER_WITHIN_MS) => {
    const request = body && JSON.stringify(body);
    const headers: Record<string, string> = {};
    if (request !== undefined) headers['content-type'] = 'application/json';
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const startedAt = performance.now();
    const noted = (status: number, answer: string, retryAfterMs?: number): Exchange => {
      const milliseconds = performance.now() - startedAt;
      const exchange = { method, path: `/${path}`, request, status, answer, retryAfterMs, milliseconds };
      exchanges.value = [exchange, ...exchanges.peek().slice(0, MOST_EXCHANGES - 1)];
      return exchange;
    };
    try {
      const response = await fetch(new URL(path, root), {
        method,
        headers,
        body: request,
        signal: AbortSignal.timeout(withinMs),
      });
      const retryAfterMs = Number(response.headers.get('retry-after') ?? 0) * 1000 || undefined;
      return noted(response.status, await response.text(), retryAfterMs);
    } catch (cause) {
      const late = cause instanceof DOMException && cause.name === 'TimeoutError';
      const message = late ? 'The server took too long to answer.' : 'The server does not answer.';
      noted(0, message);
      throw new ApiError('unreachable', 0, message);
    }
  };
  return {
    url: root.href.replace(/\/$/, ''),
    exchanges,
    authorize(text) {
      token = text;
    },
    send,
    ...requestsOver(send),
  };
}

type Send = (method: string, path: string, body?: Fields, withinMs?: number) => Promise<Exchange>;

/** The requests of a client, in terms of one that sends anything. */
function requestsOver(send: Send): Omit<Client, 'url' | 'exchanges' | 'authorize' | 'send'> {
  async function ask(path: string, body?: Fields, withinMs?: number): Promise<Fields> {
    const { status, answer: text, retryAfterMs } = await send(body ? 'POST' : 'GET', path, body, withinMs);
    const answer = parse(text);
    if (status < 200 || status > 299) {
      const code = errorCode(answer);
      throw new ApiError('refused', status, errorText(answer) ?? `The server answered ${status}.`, {
        ...(code !== undefined && { code }),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      });
    }
    if (typeof answer !== 'object' || answer === null) throw unreadable(path);
    return answer as Fields;
  }

  /** Answers `otherwise` where the server has no such thing. */
  async function orMissing<T, U>(answer: Promise<T>, otherwise: U): Promise<T | U> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return otherwise;
      throw error;
    }
  }

  async function listOf<T>(path: string, key: string): Promise<T[]> {
    const answer = await orMissing(ask(path), []);
    const list = Array.isArray(answer) ? answer : (answer as Fields)[key];
    if (!Array.isArray(list)) throw unreadable(path);
    return list as T[];
  }

  return {
    ask,
    async health() {
      await ask('health');
    },
    metadata: async () => (await ask('metadata')) as unknown as EnvironmentInfo,
    schema: async () => (await ask('schema')) as unknown as SchemaBody,
    description: () => ask('openapi.json'),
    tasks: () => listOf<Task>('tasks', 'tasks'),
    policies: () => listOf<PolicyInfo>('policies', 'policies'),
    async reset(options, again) {
      const answer =
        (again && (await orMissing(ask('reset', { ...options, session_id: again }), undefined))) ||
        (await ask('reset', options));
      const sessionId = answer.session_id;
      if (typeof sessionId !== 'string') throw unreadable('reset');
      return { sessionId, ...outcome(answer, 'reset') };
    },
    async step(sessionId, action) {
      return { action, ...outcome(await ask('step', { session_id: sessionId, action }), 'step') };
    },
    async policySteps(policy, sessionId, steps) {
      const path = `policies/${encodeURIComponent(policy)}/step`;
      const answer = await ask(path, { session_id: sessionId, steps }, COMPUTE_WITHIN_MS);
      if (!Array.isArray(answer.steps)) throw unreadable(path);
      return answer.steps.map((step: Fields) => playedStep(step, path));
    },
    async grade(sessionId) {
      const answer = await ask('grader', { session_id: sessionId }, COMPUTE_WITHIN_MS);
      if (typeof answer.score !== 'number') throw unreadable('grader');
      return {
        score: answer.score,
        breakdown: (answer.breakdown ?? {}) as Fields,
        feedback: typeof answer.feedback === 'string' ? answer.feedback : '',
      };
    },
    async stepCount(sessionId) {
      const state = await orMissing(ask(`state?session_id=${encodeURIComponent(sessionId)}`), undefined);
      return state && Number(state.step_count);
    },
    episode: async (sessionId) =>
      (await ask(
        `episodes/${encodeURIComponent(sessionId)}`,
        undefined,
        COMPUTE_WITHIN_MS,
      )) as unknown as EpisodeFile,
    async openEpisode(file, from) {
      const answer = await ask('episodes', { ...file, windows_from: from }, COMPUTE_WITHIN_MS);
      const { session_id: sessionId, verified, windows, environment } = answer;
      if (typeof sessionId !== 'string' || !Array.isArray(windows)) throw unreadable('episodes');
      return {
        sessionId,
        verified: typeof verified === 'boolean' ? verified : null,
        version: String((environment as Fields | undefined)?.version ?? ''),
        ...(from === 0 && { start: outcome(windows[0], 'episodes') }),
        steps: windows.slice(from === 0 ? 1 : 0).map((step: Fields) => playedStep(step, 'episodes')),
      };
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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
  return {
    action: (action ?? {}) as Fields,
    ...outcome(answer, path),
    ...(typeof explanation === 'object' && explanation !== null && { explanation: explanation as Fields }),
  };
}

function unreadable(path: string): ApiError {
  return new ApiError(
    'unreadable',
    200,
    `The answer to /${path} is not what this page expects. Is it a ServeGym server of this version?`,
  );
}
