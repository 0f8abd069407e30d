import type { Client } from '../api/client.ts';
import { ApiError } from '../api/transport.ts';
import type { Fields, PlayedStep } from '../api/wire.ts';
import type { Choices } from './choices.ts';
import { type ConsoleState, createConsoleState } from './console-state.ts';

export const EPISODE = 10;

/** A server with two tasks and two policies, whose episodes last ten windows; it notes what it is asked. */
export function fakeServer() {
  const asked: string[] = [];
  const actions: Fields[] = [];
  const sessions = new Map<string, Fields[]>();
  /** Number of resets under way, after every change. */
  const resetsAtOnce: number[] = [];
  let failure: ApiError | undefined;
  const play = (session: string, action: Fields): PlayedStep => {
    const played = sessions.get(session);
    if (!played) throw new ApiError('refused', 410, 'The session is not kept here');
    played.push(action);
    const metadata = {};
    return {
      action,
      observation: { index: played.length },
      reward: 0.5,
      done: played.length >= EPISODE,
      metadata,
    };
  };
  const open = (): string => {
    const id = `s${sessions.size + 1}`;
    sessions.set(id, []);
    return id;
  };
  const answer = async <T>(request: string, value: () => T): Promise<T> => {
    asked.push(request);
    await new Promise((resume) => setImmediate(resume));
    if (failure) throw failure;
    return value();
  };
  const start = { observation: { index: 0 }, reward: null, done: false, metadata: {} };
  const task = (id: string) =>
    ({ id, name: id, difficulty: 'easy', description: '', default_action: { batch_cap: 32 } }) as const;
  const policy = (name: string) => ({ name, title: name, description: '' });
  const client: Client = {
    url: '',
    authorize: (token) => asked.push(`authorize ${token}`),
    health: () => answer('health', () => {}),
    metadata: () =>
      answer('metadata', () => ({ name: 'llmserve', description: '', version: '1', readme_content: null })),
    schema: () =>
      answer('schema', () => ({
        action: { properties: { batch_cap: { type: 'integer', minimum: 1, maximum: 512 } } },
        observation: {},
        reset_observation: {},
        state: {},
      })),
    description: () =>
      answer('description', () => ({
        paths: {
          '/episodes': {},
          '/grader': {},
          '/reset': {
            post: {
              requestBody: {
                content: {
                  'application/json': { schema: { properties: { seed: {}, shift: { enum: ['a'] } } } },
                },
              },
            },
          },
        },
      })),
    tasks: () => answer('tasks', () => [task('easy'), task('hard')]),
    policies: () => answer('policies', () => [policy('heuristic'), policy('default')]),
    reset: (options, again) => {
      resetsAtOnce.push((resetsAtOnce.at(-1) ?? 0) + 1);
      return answer(`reset ${JSON.stringify(options)} ${again}`, () => {
        const sessionId = again ?? open();
        sessions.set(sessionId, []);
        return { sessionId, ...start };
      }).finally(() => resetsAtOnce.push(resetsAtOnce.at(-1)! - 1));
    },
    step: (session, action) =>
      answer('step', () => {
        actions.push(action);
        return play(session, action);
      }),
    policySteps: (name, session, steps) =>
      answer(`${name} ${steps}`, () =>
        Array.from({ length: Math.min(steps, EPISODE - (sessions.get(session)?.length ?? 0)) }, () =>
          play(session, { batch_cap: 64 }),
        ),
      ),
    grade: () => answer('grade', () => ({ score: 0.4, breakdown: {}, feedback: 'Well.' })),
    stepCount: (session) => answer('state', () => sessions.get(session)?.length),
    episode: (session) =>
      answer('episode', () => ({ format: '', reset: { seed: 1 }, actions: [...sessions.get(session)!] })),
    openEpisode: (file, from) =>
      answer(`open ${file.actions.length} from ${from}`, () => {
        const sessionId = open();
        const steps = file.actions.map((action) => play(sessionId, action));
        return {
          sessionId,
          verified: true,
          version: '1',
          start: from === 0 ? start : undefined,
          steps: from === 0 ? steps : steps.slice(from - 1),
        };
      }),
    ask: () => Promise.reject(new Error('not used here')),
    stream: () => Promise.reject(new Error('not used here')),
  };
  return {
    client,
    asked,
    actions,
    sessions,
    resetsAtOnce,
    failWith(error: ApiError | undefined) {
      failure = error;
    },
  };
}

/** Lets everything that is under way finish. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resume) => setImmediate(resume));
}

export const choices = (given: Partial<Choices> = {}): Choices => ({ policies: [], options: {}, ...given });

/** Waits for nothing but the person. */
const untilWoken = (_: number, woken: Promise<void>) => woken;

export async function connected(given: Partial<Choices> = {}, autoplay = false) {
  const server = fakeServer();
  const state = createConsoleState(server.client, untilWoken);
  await state.connect(choices(given), autoplay);
  return { ...server, state };
}

export async function playToEnd(state: ConsoleState): Promise<void> {
  for (let now = 0; state.playing.value; now += 1000) {
    state.tick(now);
    await settled();
  }
}

export const unreachable = new ApiError('unreachable', 0, 'The server does not answer.');
