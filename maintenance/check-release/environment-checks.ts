import { isDeepStrictEqual } from 'node:util';
import { connect } from '@servegym/openenv/client';
import { validateServer } from '@servegym/openenv/validate';
import { type ServeProcess, startServe } from '../test-servers/servegym.ts';
import { passed, type ReleaseCheck } from './release-check.ts';

const SEED = 0;

interface Task {
  readonly id: string | number;
  readonly default_action?: Record<string, unknown>;
}

interface Graded {
  readonly score: number;
}

/** Requirements of an environment. */
export interface EnvironmentDemands {
  /** Its episodes are graded. */
  readonly graded: boolean;
  /** It must be healthy so soon after its start, s. */
  readonly healthyWithinS: number;
}

/** Checks over the wire: an environment starts, conforms, and grades its tasks fairly. */
export function environmentChecks(
  id: string,
  { graded, healthyWithinS }: EnvironmentDemands,
): ReleaseCheck[] {
  let server: ServeProcess | undefined;
  const served = () => server ?? Promise.reject(new Error('the server did not start'));
  const checks: ReleaseCheck[] = [
    {
      id: `${id}.starts`,
      description: `${id} is healthy within ${healthyWithinS} s of its start`,
      async run() {
        const startedAt = performance.now();
        server = await startServe('--env', id);
        const { status } = (await ask(server.url, 'health')) as { status: string };
        if (status !== 'healthy') throw new Error(`expected /health to say healthy, got ${status}`);
        const milliseconds = Math.round(performance.now() - startedAt);
        if (milliseconds > healthyWithinS * 1000) throw new Error(`it took ${milliseconds} ms`);
        return passed(`${milliseconds} ms`);
      },
    },
    {
      id: `${id}.conforms`,
      description: `${id} meets every criterion of \`servegym validate\``,
      async run() {
        const { url } = await served();
        // `benchmark` tells times, which are never the same twice.
        const { summary } = await validateServer(url, { steps: 3, mostSessions: 4 });
        const failed = summary.failed_criteria.filter((criterion) => graded || !/^seed_/.test(criterion));
        if (failed.length > 0) throw new Error(`not met: ${failed.join(', ')}`);
        return passed(`${summary.passed_count} criteria`);
      },
    },
  ];
  if (graded) {
    checks.push(
      {
        id: `${id}.grades`,
        description: `${id} grades an episode of each task strictly between 0 and 1, and the same way twice`,
        run: async () => passed(await gradeTasks((await served()).url)),
      },
      {
        id: `${id}.baseline`,
        description: `${id} answers GET /baseline with the same scores twice`,
        async run() {
          const { url } = await served();
          const [first, second] = [await ask(url, 'baseline'), await ask(url, 'baseline')];
          if (!isDeepStrictEqual(first, second)) throw new Error('two answers differ');
          return passed('reproducible');
        },
      },
    );
  }
  checks.push({
    id: `${id}.stops`,
    description: `${id} ends with exit code 0 on SIGTERM`,
    async run() {
      const { code } = await (await served()).stop('SIGTERM');
      if (code !== 0) throw new Error(`it ended with ${code}`);
      return passed('drained');
    },
  });
  return checks;
}

async function gradeTasks(url: string): Promise<string> {
  const { tasks } = (await ask(url, 'tasks')) as { tasks: readonly Task[] };
  if (tasks.length < 3) throw new Error(`expected three tasks or more, got ${tasks.length}`);
  const scores: string[] = [];
  for (const task of tasks) {
    const [first, second] = [await gradeDefault(url, task), await gradeDefault(url, task)];
    if (!(first.score > 0 && first.score < 1)) throw new Error(`the score of ${task.id} is ${first.score}`);
    if (!isDeepStrictEqual(first, second)) throw new Error(`two grades of ${task.id} differ`);
    scores.push(`${task.id} ${first.score.toFixed(3)}`);
  }
  return scores.join(', ');
}

/** The grade of an episode of a task's default action. */
async function gradeDefault(url: string, task: Task): Promise<Graded> {
  const env = await connect(url);
  try {
    let { done } = await env.reset({ task_id: task.id, seed: SEED });
    const action = task.default_action ?? {};
    while (!done) ({ done } = await env.step(action));
    return (await ask(url, 'grader', { session_id: env.sessionId })) as Graded;
  } finally {
    await env.close();
  }
}

/** The answer of a server to a GET or, with a body, a POST. @throws Error when it is not 2xx */
async function ask(url: string, path: string, body?: object): Promise<unknown> {
  const answer = await fetch(
    `${url}/${path}`,
    body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    },
  );
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${body ? 'POST' : 'GET'} /${path} was answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}
