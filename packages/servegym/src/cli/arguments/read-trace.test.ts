import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { readTrace } from './read-trace.ts';

describe('a folder as a trace', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-folder-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const session = (input: number) =>
    JSON.stringify({ block_size: 64, requests: [{ t: 0, in: input, out: 5, hash_ids: [1] }] });

  it('holds sessions of agents, compressed or not, in the order of their names', async () => {
    writeFileSync(join(folder, '2.json'), session(80));
    writeFileSync(join(folder, '1.json.gz'), gzipSync(session(70)));
    writeFileSync(join(folder, 'README.md'), 'no session');
    const { trace, reading } = await readTrace(folder);
    assert.deepEqual([...trace.inputTokens], [70, 80]);
    assert.equal(reading.conversations, 2);
  });

  it('holds the files of RAGPulse', async () => {
    const hash_ids = { sys_prompt: [1], passages_ids: [], history: [], web_search: [], user_input: [] };
    const request = { timestamp: '3', input_length: 40, output_length: 2, hash_ids, session_id: 's' };
    writeFileSync(join(folder, '0_trace.jsonl'), JSON.stringify(request));
    writeFileSync(join(folder, '1_sys_prompt.jsonl'), '{"sys_prompt_id": 1, "token_length": 33}\n');
    const { trace } = await readTrace(folder);
    assert.deepEqual([...trace.prefixBlocks!.ids], [0, 1]);
  });

  it('is refused without either, and with a session that is broken', async () => {
    await assert.rejects(
      readTrace(folder),
      /expected a folder with 0_trace.jsonl \(RAGPulse\) or with sessions/,
    );
    writeFileSync(join(folder, '1.json'), '{');
    await assert.rejects(readTrace(folder), { code: 'TRACE_MALFORMED_LINE', source: join(folder, '1.json') });
  });
});
