import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { connect } from '@servegym/openenv/client';
import { validateServer } from '@servegym/openenv/validate';
import { type ServeProcess, startServe } from '../test-servers/servegym.ts';

const run = promisify(execFile);
const SEED = 0;
/** Budget of a server's validation. */
const VALIDATION = { steps: 3, mostSessions: 4 };

interface Task {
  readonly id: string | number;
  readonly default_action?: Record<string, unknown>;
}

/** The answer of a server to a GET or, with a body, a POST; it must be 2xx. */
async function ask(url: string, path: string, body?: object) {
  const answer = await fetch(
    `${url}/${path}`,
    body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    },
  );
  const text = await answer.text();
  assert.ok(answer.ok, `${body ? 'POST' : 'GET'} /${path} was answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

/** The grade of an episode of a task's default action. */
async function gradeDefault(url: string, task: Task) {
  const env = await connect(url);
  try {
    let { done } = await env.reset({ task_id: task.id, seed: SEED });
    while (!done) ({ done } = await env.step(task.default_action ?? {}));
    return await ask(url, 'grader', { session_id: env.sessionId });
  } finally {
    await env.close();
  }
}

for (const { id, isGraded } of [
  { id: 'llmserve', isGraded: true },
  { id: 'fleet', isGraded: true },
  { id: 'inferencegym', isGraded: true },
  { id: 'benchmark', isGraded: false },
])
  describe(`servegym serve --env ${id}`, () => {
    let server: ServeProcess;
    before(async () => {
      server = await startServe('--env', id);
    });
    after(() => server?.stop());

    it('is healthy and meets every criterion of `servegym validate`', async () => {
      assert.equal((await ask(server.url, 'health')).status, 'healthy');
      const { summary } = await validateServer(server.url, VALIDATION);
      // `benchmark` tells times, which are never the same twice.
      const failed = summary.failed_criteria.filter((criterion) => isGraded || !/^seed_/.test(criterion));
      assert.deepEqual(failed, []);
    });

    if (isGraded) {
      it('grades an episode of each task strictly between 0 and 1, and the same way twice', async () => {
        const { tasks } = (await ask(server.url, 'tasks')) as { tasks: readonly Task[] };
        assert.ok(tasks.length >= 3, `${tasks.length} tasks`);
        for (const task of tasks) {
          const grade = await gradeDefault(server.url, task);
          assert.ok(grade.score > 0 && grade.score < 1, `the score of ${task.id} is ${grade.score}`);
          assert.deepEqual(await gradeDefault(server.url, task), grade);
        }
      });

      it('answers GET /baseline with the same scores twice', async () => {
        assert.deepEqual(await ask(server.url, 'baseline'), await ask(server.url, 'baseline'));
      });
    }

    it('ends with exit code 0 on SIGTERM', async () => {
      assert.equal((await server.stop('SIGTERM')).code, 0);
    });
  });

const { SERVEGYM_SPACE_URL: space, SERVEGYM_TEST_IMAGE: image } = process.env;

if (space)
  describe(`the Space ${space}`, () => {
    it('meets the required criteria of `servegym validate`', async () => {
      const { summary, passed } = await validateServer(space, VALIDATION);
      assert.ok(passed, summary.failed_criteria.join(', '));
    });

    it('shows the console, and lets Hugging Face frame it', async () => {
      const answer = await fetch(new URL('web/', space));
      assert.ok(answer.ok, `it was answered ${answer.status}`);
      assert.equal(answer.headers.get('x-frame-options'), null);
    });
  });

if (image)
  it('the image builds, starts as an unprivileged user, is healthy, and stops on SIGTERM', async () => {
    const deploy = join(import.meta.dirname, '../../deploy');
    const hasDocker = await run('docker', ['info']).then(
      () => true,
      () => false,
    );
    if (hasDocker) await run('docker', ['build', '-f', join(deploy, 'Dockerfile'), join(deploy, '..')]);
    else await run(process.execPath, [join(deploy, 'test', 'rehearse-container.ts')]);
  });
