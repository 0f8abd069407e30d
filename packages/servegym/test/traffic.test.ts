import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  type FittedWorkload,
  PUBLIC_WORKLOAD_IDS,
  type PublicWorkloadId,
  publicWorkload,
} from '@servegym/environments';
import { parseTrace } from '@servegym/simulator';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const page = join(import.meta.dirname, '../../../docs/traffic.md');
const tiny = join(import.meta.dirname, 'fixtures/trace.csv');

/** The name of each model's trace where it is published. */
const PUBLISHED_AS: Readonly<Record<PublicWorkloadId, string>> = {
  'azure-conversation-2023': 'AzureLLMInferenceTrace_conv.csv',
  'azure-code-2023': 'AzureLLMInferenceTrace_code.csv',
  'mooncake-conversation': 'conversation_trace.jsonl',
  ragpulse: 'ragpulse/0_trace.jsonl',
};
const MOONCAKE_BLOCK = 512;
/** Its arrivals come in steps of the clock. */
const MOONCAKE_TICK_MS = 3000;

describe('servegym traffic', () => {
  const folder = temporaryFolder();

  /** Draws a trace as long as the model's own, and reads it. */
  async function draw(id: PublicWorkloadId, seed: number, faster = 1) {
    const file = join(folder, `${id}.csv`);
    const { seconds, arrivals } = publicWorkload(id);
    const rate = faster === 1 ? '' : `@${faster * arrivals.perSecond}/s`;
    const traffic = `${id}${rate},${Math.min(86_400, seconds)}s`;
    const drawn = await runCommand('traffic', 'draw', traffic, file, '--seed', `${seed}`);
    assert.equal(drawn.code, 0, drawn.stderr);
    const text = readFileSync(file, 'utf8');
    return { text, trace: parseTrace(text, file) };
  }

  it('draws traces, and fits to them the models that they were drawn from', async () => {
    const drawn: number[] = [];
    mkdirSync(join(folder, 'ragpulse'));
    writeFileSync(join(folder, 'ragpulse/1_sys_prompt.jsonl'), '{"sys_prompt_id": 0, "token_length": 512}\n');
    for (const id of PUBLIC_WORKLOAD_IDS) {
      const { text, trace } = await draw(id, 7, id === 'ragpulse' ? 7 : 1);
      drawn.push(trace.arrivalMs.length);
      const published = { 'mooncake-conversation': withSharedBlocks, ragpulse: withParts }[id as string];
      writeFileSync(join(folder, PUBLISHED_AS[id]), published?.(trace) ?? text);
    }
    const { code, stdout, stderr } = await runCommand('traffic', 'fit', '--data', folder, '--json');
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const fitted: FittedWorkload[] = JSON.parse(stdout);
    assert.deepEqual(
      fitted.map(({ id, source, requests }) => [id, source, requests]),
      PUBLIC_WORKLOAD_IDS.map((id, i) => [id, publicWorkload(id).source, drawn[i]]),
    );
    for (const model of fitted) {
      const { arrivals, lengths, fit } = publicWorkload(model.id as PublicWorkloadId);
      const { perSecond } = model.arrivals;
      assert.ok(
        Math.abs(perSecond / (model.requests / model.seconds) - 1) < 0.01,
        `${model.id}: ${perSecond}`,
      );
      // Levels last for some ten requests at least, and it came seven times as fast.
      const levelSeconds = model.id === 'ragpulse' ? arrivals.levelSeconds / 7 : arrivals.levelSeconds;
      assert.ok(Math.abs(model.arrivals.levelSeconds - levelSeconds) <= 20, model.id);
      assert.ok(Math.abs(model.lengths.correlation - lengths.correlation) < 0.05, model.id);
      for (const side of ['input', 'output'] as const) {
        for (const probability of [0.1, 0.5, 0.9]) {
          const at = (of: FittedWorkload['lengths']) => of[side][nearest(of.probabilities, probability)];
          const ratio = at(model.lengths) / at(lengths);
          assert.ok(Math.abs(ratio - 1) < 0.1, `${model.id}, ${side} ${probability}: ${ratio}`);
        }
        assert.ok(model.fit.ks[side] < 0.02, `${model.id}, ${side}: KS ${model.fit.ks[side]}`);
        // As near as to the public traces.
        assert.ok(fit.ks[side] < 0.02, `${model.id}, ${side}: KS ${fit.ks[side]}`);
      }
    }
    const { prefixes } = fitted.find(({ id }) => id === 'mooncake-conversation')!;
    assert.equal(prefixes!.blockTokens, MOONCAKE_BLOCK);
    assert.equal(prefixes!.commonTokens, MOONCAKE_BLOCK);
    assert.equal(fitted.find(({ id }) => id === 'ragpulse')!.prefixes!.commonTokens, 512);
  });

  it('draws the same trace for the same seed, faster when asked', async () => {
    const { text } = await draw('azure-code-2023', 1);
    assert.equal((await draw('azure-code-2023', 1)).text, text);
    const { trace } = await draw('azure-code-2023', 1, 2);
    const ratio = trace.arrivalMs.length / (text.trim().split('\n').length - 1);
    assert.ok(Math.abs(ratio - 2) < 0.2, `${ratio}`);
    const refused = await runCommand('traffic', 'draw', 'azure', join(folder, 'none.csv'));
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /chat@12\/s \(also code, rag, agents/);
  });

  it('lists them with their distances, as the documents show', async () => {
    const { stdout } = await runServegym('traffic', 'describe');
    assert.ok(
      readFileSync(page, 'utf8').includes(`\n\`\`\`text\n${stdout}\`\`\`\n`),
      'docs/traffic.md shows another list',
    );
    for (const id of PUBLIC_WORKLOAD_IDS) assert.match(stdout, new RegExp(`^${id} .*\\d`, 'm'));
    assert.match(stdout, /KS distance/);
  });

  it('describes a file, and drawn traffic', async () => {
    const file = await runCommand('traffic', 'describe', tiny, '--json');
    const { format, requests, requests_per_s_over_time: bars } = JSON.parse(file.stdout);
    assert.deepEqual([format, requests, Array.isArray(bars)], ['CSV, as Azure publishes it', 4, true]);
    const drawn = await runCommand('traffic', 'describe', '100:10@5/s,60s');
    assert.match(drawn.stdout, /^5 requests\/s of 100 tokens in, 10 out: drawn; \d+ requests\n\nduration/);
  });

  it('converts files once, so that other commands read them as they are', async () => {
    const log = join(folder, 'log.csv');
    writeFileSync(log, 't0,n_in,n_out\n2000,20,2\n1000,10,1\n3000,30,0\n');
    const clean = join(folder, 'clean.jsonl');
    const asked = await runCommand('traffic', 'describe', log);
    assert.equal(asked.code, 2);
    assert.match(asked.stderr, /Type `servegym traffic convert .*log\.csv clean\.jsonl --map arrival=NAME/);
    const options = ['--map', 'arrival=t0,input=n_in,output=n_out', '--time-unit', 'ms', '--sort'];
    const { code, stderr } = await runCommand(
      'traffic',
      'convert',
      log,
      clean,
      ...options,
      '--skip-unanswered',
    );
    assert.equal(code, 0, stderr);
    assert.match(stderr, /1 that failed left out, 1 put in order/);
    const trace = parseTrace(readFileSync(clean, 'utf8'), clean);
    assert.deepEqual([...trace.arrivalMs], [0, 1000]);
    assert.deepEqual([...trace.inputTokens], [10, 20]);
  });

  it('keeps the prefixes that prompts share, with the size of their blocks', async () => {
    const [drawn, copy, again] = ['drawn', 'copy', 'again'].map((name) => join(folder, `${name}.jsonl`));
    await runCommand('traffic', 'draw', 'rag@4/s,60s', drawn);
    for (const [from, to] of [
      [drawn, copy],
      [copy, again],
    ]) {
      const { code, stderr } = await runCommand('traffic', 'convert', from, to);
      assert.equal(code, 0, stderr);
    }
    assert.equal(readFileSync(again, 'utf8'), readFileSync(copy, 'utf8'));
    const [before, after] = [drawn, again].map((file) => parseTrace(readFileSync(file, 'utf8'), file));
    assert.deepEqual(after.prefixBlocks, before.prefixBlocks);
    assert.ok(before.prefixBlocks!.blockTokens !== 512 && before.prefixBlocks!.ids.length > 100);
  });

  it('says what it lacks', async () => {
    for (const [args, message] of [
      [['fit'], /expected traces/],
      [
        ['fit', '--data', import.meta.dirname],
        /REFERENCE_DATA_MISSING: .*AzureLLMInferenceTrace_conv\.csv.*Azure\/AzurePublicDataset/s,
      ],
      [['fit', tiny], /at least 200 requests/],
    ] as const) {
      const { code, stderr } = await runCommand('traffic', ...args);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
  });
});

function nearest(values: readonly number[], wanted: number): number {
  const distances = values.map((value) => Math.abs(value - wanted));
  return distances.indexOf(Math.min(...distances));
}

/** The trace as RAGPulse publishes its own: all prompts begin with one system prompt. */
function withParts({ arrivalMs, inputTokens, outputTokens }: ReturnType<typeof parseTrace>): string {
  return Array.from(arrivalMs, (at, i) =>
    JSON.stringify({
      ...{ timestamp: `${at / 1000}`, input_length: inputTokens[i], output_length: outputTokens[i] },
      hash_ids: { sys_prompt: [0], passages_ids: [], history: [], web_search: [], user_input: [i] },
      session_id: `${i}`,
    }),
  ).join('\n');
}

/** The trace as Mooncake publishes its own: all prompts share their first block, every third one all of the one before. */
function withSharedBlocks({ arrivalMs, inputTokens, outputTokens }: ReturnType<typeof parseTrace>): string {
  let next = 1;
  let before: number[] = [];
  return Array.from(arrivalMs, (at, i) => {
    const blocks = Math.ceil(inputTokens[i] / MOONCAKE_BLOCK);
    const ids = Array.from({ length: blocks }, (_, block) => {
      if (block === 0) return 0;
      return (i % 3 === 2 ? before[block] : undefined) ?? next++;
    });
    before = ids;
    return JSON.stringify({
      timestamp: MOONCAKE_TICK_MS * Math.floor(at / MOONCAKE_TICK_MS),
      input_length: inputTokens[i],
      output_length: outputTokens[i],
      hash_ids: ids,
    });
  }).join('\n');
}
