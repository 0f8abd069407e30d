import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { guess } from '../../examples/guess/environment.ts';
import { connect } from '../client/connect.ts';
import { validateServer } from '../conformance/validate-server.ts';
import { startServer } from '../fixtures/start-server.ts';

const docs = readFileSync(new URL('../../../../docs/your-own-environment.md', import.meta.url), 'utf8');

test('data: the files of the tutorial are those that it shows', () => {
  for (const file of ['environment.ts', 'serve.ts', 'play.ts']) {
    const text = readFileSync(new URL(`../../examples/guess/${file}`, import.meta.url), 'utf8');
    assert.ok(docs.includes(`## ${file}\n\n\`\`\`ts\n${text}\`\`\``), file);
  }
});

test('the environment of the tutorial can be played, and passes what is required', async (t) => {
  const { url } = await startServer(t, guess);
  const client = await connect<typeof guess>(url);
  t.after(() => client.close());
  assert.equal((await client.reset({ seed: 41 })).observation.hint, 'start');
  assert.equal((await client.step({ number: 50 })).observation.hint, 'lower');
  assert.deepEqual(await client.step({ number: 42 }), {
    observation: { hint: 'found' },
    reward: 1,
    done: true,
  });
  const report = await validateServer(url);
  assert.equal(report.passed, true, JSON.stringify(report.criteria, null, 2));
});
