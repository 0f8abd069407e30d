import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startPolicy } from '@servegym/simulator';
import { policySource } from './evaluate-policy.ts';
import { exported } from './export.ts';
import { scorerWeights } from './export-epp.ts';
import pythonTemplates from './python-templates.json' with { type: 'json' };
import { STANDARD, startReference } from './references.ts';
import templates from './templates.json' with { type: 'json' };

const folder = await mkdtemp(join(tmpdir(), 'export-'));
let files = 0;
async function write(text: string): Promise<string> {
  const file = join(folder, `policy-${files++}.ts`);
  await writeFile(file, text);
  return file;
}
/** A template in Python. */
async function writePython(kind: keyof typeof pythonTemplates): Promise<string> {
  const file = join(folder, `${kind}.py`);
  await writeFile(file, pythonTemplates[kind].join('\n'));
  return file;
}
const score = (body: string) =>
  write(`const parameters = { run: 8 };\nexport default { score(q, r) { ${body} } };`);

describe('a policy for the endpoint picker', () => {
  it('is weights where the scores are a sum of its scorers', async () => {
    assert.deepEqual(scorerWeights((STANDARD as { score: never }).score), {
      ...{ 'prefix-cache-scorer': 3, 'queue-scorer': 2, 'kv-cache-utilization-scorer': 2 },
    });
    const yaml = await exported('epp', await write(templates.router.join('\n')));
    assert.match(yaml, /pluginRef: prefix-cache-scorer\n {4}weight: 3\n/);
    assert.doesNotMatch(yaml, /running-requests/);
    assert.equal(await exported('epp', await writePython('router')), yaml);
    const { score: other } = startPolicy(await startReference('least-loaded'));
    assert.equal(scorerWeights(other!), null);
  });

  it('is a scorer in Go where they are arithmetic', async () => {
    const file = await score(
      'const fresh = q.prompt_tokens - r.prefix_match_tokens; return -(fresh / 2 + Math.max(1, parameters.run * r.num_requests_waiting));',
    );
    const go = await exported('epp', file);
    assert.match(go, /\tfresh := request\.promptTokens - replica\.prefixMatchTokens\n/);
    assert.match(go, /\treturn -\(fresh \/ 2\.0 \+ max\(1\.0, 8\.0 \* replica\.waiting\)\)\n/);
  });

  it('is refused with what does not translate', async () => {
    for (const [body, reason] of [
      ['return -r.requests_sent;', /`score` has `r\.requests_sent`, which the endpoint picker/],
      ['return r.index > 2 ? 1 : 0;', /`score` has `r\.index`/],
      ['if (r.index > 2) return 1; return 0;', /neither `const` nor `return`: if \(r\.index > 2\) return 1/],
    ] as const)
      await assert.rejects(
        score(body).then((file) => exported('epp', file)),
        { message: reason },
      );
    await assert.rejects(exported('epp', await write('export default {};')), /expected `score`/);
  });
});

describe('a policy for vLLM', () => {
  it('is a scheduler with the policy in it', async () => {
    const file = await write(templates.scheduler.join('\n'));
    const python = await exported('vllm', file);
    assert.match(python, /^class PolicyScheduler\(OrderedByPolicy, Scheduler\):$/m);
    assert.ok(
      python.includes(
        `POLICY = ${JSON.stringify(policySource(await readFile(file, 'utf8'), file))}\nIN_PYTHON = False\n`,
      ),
    );
    const own = await exported('vllm', await writePython('scheduler'));
    assert.ok(
      own.includes(`POLICY = ${JSON.stringify(pythonTemplates.scheduler.join('\n'))}\nIN_PYTHON = True\n`),
    );
  });

  it('is refused where it needs what vLLM does not know', async () => {
    await assert.rejects(exported('vllm', await score('return 1;')), /expected `order`/);
    const file = join(import.meta.dirname, 'examples/scheduler.ts');
    await assert.rejects(exported('vllm', file), /without `predicted_output`: vLLM predicts no lengths/);
  });
});
