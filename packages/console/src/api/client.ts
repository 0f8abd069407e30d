import { ApiError, errorText } from './api-error.ts';
import type {
  EnvironmentInfo,
  Fields,
  Grade,
  Outcome,
  PlayedStep,
  PolicyInfo,
  SchemaBody,
  StartedSession,
  Task,
} from './wire.ts';

const ANSWER_WITHIN_MS = 20_000;

/** What the console asks of a server. Every method throws `ApiError`. */
export interface Client {
  metadata(): Promise<EnvironmentInfo>;
  schema(): Promise<SchemaBody>;
  /** Empty when the environment has no tasks. */
  tasks(): Promise<Task[]>;
  /** Empty when the server plays no policies. */
  policies(): Promise<PolicyInfo[]>;
  /** Starts an episode, in the session `again` where the server still has it, else in a new one. */
  reset(task: Task['id'] | undefined, seed: number, again?: string): Promise<StartedSession>;
  step(sessionId: string, action: Fields): Promise<PlayedStep>;
  /** Plays up to `steps` windows with a policy; fewer come back when the episode ends. */
  policySteps(policy: string, sessionId: string, steps: number): Promise<PlayedStep[]>;
  grade(sessionId: string): Promise<Grade>;
}

/** A client for the server whose API stands under `root`, which ends in a slash. */
export function createClient(root: URL): Client {
  async function ask(path: string, body?: Fields): Promise<unknown> {
    const request: RequestInit = { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) };
    if (body) {
      request.method = 'POST';
      request.headers = { 'content-type': 'application/json' };
      request.body = JSON.stringify(body);
    }
    let response: Response;
    let text: string;
    try {
      response = await fetch(new URL(path, root), request);
      text = await response.text();
    } catch (cause) {
      const late = cause instanceof DOMException && cause.name === 'TimeoutError';
      throw new ApiError(
        'unreachable',
        0,
        late ? 'The server took too long to answer.' : 'The server does not answer.',
      );
    }
    const answer = parse(text);
    if (!response.ok) {
      const reason =
        errorText(answer) ?? `The server answered ${response.status} ${response.statusText}`.trimEnd();
      throw new ApiError('refused', response.status, reason);
    }
    if (answer === undefined) throw unreadable(path);
    return answer;
  }

  async function listOf<T>(path: string, key: string): Promise<T[]> {
    try {
      const answer = await ask(path);
      const list = Array.isArray(answer) ? answer : (answer as Fields)[key];
      if (!Array.isArray(list)) throw unreadable(path);
      return list as T[];
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return [];
      throw error;
    }
  }

  async function resetAgain(body: Fields, sessionId: string): Promise<unknown> {
    try {
      return await ask('reset', { ...body, session_id: sessionId });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return ask('reset', body);
      throw error;
    }
  }

  return {
    metadata: async () => (await ask('metadata')) as EnvironmentInfo,
    schema: async () => (await ask('schema')) as SchemaBody,
    tasks: () => listOf<Task>('tasks', 'tasks'),
    policies: () => listOf<PolicyInfo>('policies', 'policies'),
    async reset(task, seed, again) {
      const body = task === undefined ? { seed } : { task_id: task, seed };
      const answer = again === undefined ? await ask('reset', body) : await resetAgain(body, again);
      const sessionId = (answer as Fields).session_id;
      if (typeof sessionId !== 'string') throw unreadable('reset');
      return { sessionId, ...outcome(answer, 'reset') };
    },
    async step(sessionId, action) {
      return { action, ...outcome(await ask('step', { session_id: sessionId, action }), 'step') };
    },
    async policySteps(policy, sessionId, steps) {
      const path = `policies/${encodeURIComponent(policy)}/step`;
      const answer = (await ask(path, { session_id: sessionId, steps })) as Fields;
      if (!Array.isArray(answer.steps)) throw unreadable(path);
      return answer.steps.map((step: Fields) => ({
        action: (step.action ?? {}) as Fields,
        ...outcome(step, path),
      }));
    },
    async grade(sessionId) {
      const answer = (await ask('grader', { session_id: sessionId })) as Fields;
      if (typeof answer.score !== 'number') throw unreadable('grader');
      return {
        score: answer.score,
        breakdown: (answer.breakdown ?? {}) as Fields,
        feedback: typeof answer.feedback === 'string' ? answer.feedback : '',
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

function outcome(answer: unknown, path: string): Outcome {
  const { observation, reward, done, metadata } = answer as Fields;
  if (typeof observation !== 'object' || observation === null) throw unreadable(path);
  return {
    observation: observation as Fields,
    reward: typeof reward === 'number' ? reward : null,
    done: done === true,
    metadata: (metadata ?? (observation as Fields).metadata ?? {}) as Fields,
  };
}

function unreadable(path: string): ApiError {
  return new ApiError(
    'unreadable',
    200,
    `The answer to /${path} is not what this page expects. Is it a ServeGym server of this version?`,
  );
}
