import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { readTrace } from './read-trace.ts';

const folder = mkdtempSync(join(tmpdir(), 'servegym-trace-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function fileWith(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const CSV = `arrival,input,output\n${Array.from({ length: 5000 }, (_, i) => `${i / 10},${1 + (i % 700)},${1 + (i % 90)}`).join('\n')}\n`;

describe('a trace file', () => {
  it('is read the same from CSV, gzip, Zstandard and Parquet', async () => {
    const rows = Array.from({ length: 5000 }, (_, i) => i);
    const parquet = parquetWriteBuffer({
      columnData: [
        { name: 'note', data: rows.map(String) },
        { name: 'arrival', data: rows.map((i) => i / 10), type: 'DOUBLE' },
        { name: 'input', data: rows.map((i) => 1 + (i % 700)), type: 'INT32' },
        { name: 'output', data: rows.map((i) => BigInt(1 + (i % 90))), type: 'INT64' },
      ],
      rowGroupSize: 1500,
    });
    const files = [
      fileWith('t.csv', CSV),
      fileWith('t.csv.gz', gzipSync(CSV)),
      fileWith('t.csv.zst', zstdCompressSync(CSV)),
      fileWith('t.parquet', new Uint8Array(parquet)),
    ];
    const [plain, ...others] = await Promise.all(files.map((file) => readTrace(file)));
    assert.equal(plain!.trace.arrivalMs.length, 5000);
    for (const [i, other] of others.entries()) {
      assert.deepEqual({ ...other.trace, source: '' }, { ...plain!.trace, source: '' }, files[i + 1]);
    }
  });

  it('takes dates from Parquet, and row numbers into its messages', async () => {
    const parquet = (output: number[]) =>
      new Uint8Array(
        parquetWriteBuffer({
          columnData: [
            { name: 'TIMESTAMP', data: [new Date(1e12), new Date(1e12 + 1500)], type: 'TIMESTAMP' },
            { name: 'ContextTokens', data: [5, 6], type: 'INT32' },
            { name: 'GeneratedTokens', data: output, type: 'INT32' },
          ],
        }),
      );
    const { trace, reading } = await readTrace(fileWith('d.parquet', parquet([7, 8])));
    assert.deepEqual([...trace.arrivalMs], [0, 1500]);
    assert.match(reading.format, /Parquet, as Azure/);
    await assert.rejects(readTrace(fileWith('e.parquet', parquet([7, -8]))), {
      code: 'TRACE_LENGTH_RANGE',
      line: 2,
    });
  });

  it('takes what Baseten exports, with its prefixes, and leaves out what was cancelled', async () => {
    const parquet = parquetWriteBuffer({
      columnData: [
        {
          name: 'timestamp_start_unix_ms',
          data: [1_700_000_002_000n, 1_700_000_000_000n, 1_700_000_001_000n],
        },
        { name: 'prompt', data: ['a', 'b', 'c'] },
        { name: 'input_tokens', data: [40, 33, 9], type: 'INT32' },
        { name: 'output_tokens', data: [3, 2, 0], type: 'INT32' },
        { name: 'total_hashes', data: [[1, 2], [1], [4]], type: 'JSON' },
        { name: 'block_size', data: [16, 16, 16], type: 'INT32' },
      ],
    });
    const { trace, reading } = await readTrace(fileWith('b.parquet', new Uint8Array(parquet)));
    assert.match(reading.format, /Parquet, as Baseten exports it/);
    assert.deepEqual([...trace.inputTokens], [33, 40]);
    assert.deepEqual([...trace.arrivalMs], [0, 2000]);
    assert.equal(reading.unanswered, 1);
    assert.deepEqual([trace.prefixBlocks!.blockTokens, ...trace.prefixBlocks!.ids], [16, 1, 1, 2]);
  });

  const broken: readonly [what: string, name: string, content: string | Uint8Array, message: RegExp][] = [
    ['half a gzip', 'half.csv.gz', gzipSync(CSV).subarray(0, 200), /end too early/],
    [
      'a broken gzip',
      'broken.csv.gz',
      Buffer.concat([gzipSync(CSV).subarray(0, 200), Buffer.alloc(300, 7)]),
      /compression is broken|end too early/,
    ],
    [
      'a Zstandard whose frame is broken',
      'broken.csv.zst',
      Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), Buffer.from('garbage....')]),
      /compression is broken/,
    ],
    ['Parquet that ends early', 'cut.parquet', Buffer.from('PAR1 and no more'), /a Parquet file/],
    ['text that is not UTF-8', 'latin.csv', Buffer.from([0x61, 0xff, 0xfe, 0x0a]), /not UTF-8/],
    ['nothing', 'empty.csv', '', /an empty file/],
  ];
  for (const [what, name, content, message] of broken) {
    it(`is refused when it is ${what}`, async () => {
      await assert.rejects(readTrace(fileWith(name, content)), (error: Error) => {
        assert.ok(['TuningError', 'SimulatorError'].includes(error.name), `${error.name}: ${error.message}`);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});

describe('a bomb', () => {
  const padded = Buffer.from(`arrival,input,output,note\n${`0,1,1,${'x'.repeat(1000)}\n`.repeat(70_000)}`);
  const ones = new Array(2 ** 23 + 1).fill(1);
  const columns = ['arrival', 'input', 'output'].map((name) => ({
    name,
    data: ones,
    type: 'INT32' as const,
  }));
  const hashes = { name: 'total_hashes', data: [`[${'1,'.repeat(35_000_000)}1]`], type: 'STRING' as const };
  const one = (name: string) => ({ name, data: [1], type: 'INT32' as const });
  const oneRow = [...['arrival', 'input_tokens', 'output_tokens', 'block_size'].map(one), hashes];
  const inParquet = (codec: 'GZIP' | 'ZSTD', compress: (bytes: Uint8Array) => Uint8Array) =>
    parquetWriteBuffer({ columnData: oneRow, statistics: false, codec, compressors: { [codec]: compress } });
  const bombs: readonly [name: string, content: () => Uint8Array | ArrayBuffer][] = [
    ['gzip', () => gzipSync(padded)],
    ['Zstandard', () => zstdCompressSync(padded)],
    ['pages of Parquet in gzip', () => inParquet('GZIP', gzipSync)],
    ['pages of Parquet in Zstandard', () => inParquet('ZSTD', zstdCompressSync)],
    [
      'runs of Parquet',
      () => parquetWriteBuffer({ columnData: columns, statistics: false, rowGroupSize: ones.length }),
    ],
  ];
  for (const [name, content] of bombs) {
    it(`of ${name} is refused while it expands`, async () => {
      const file = new Uint8Array(content());
      assert.ok(file.length < 200_000);
      await assert.rejects(readTrace(fileWith('bomb', file)), { code: 'TRACE_TOO_LARGE' });
    });
  }

  it('in a folder is refused, too', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-folder-'));
    writeFileSync(join(folder, '0.json.gz'), gzipSync(padded));
    await assert.rejects(readTrace(folder), { code: 'TRACE_TOO_LARGE' });
    rmSync(folder, { recursive: true });
  });

  it('may be no archive', async () => {
    for (const [start, name] of [
      ['PK\x03\x04', 'a zip archive'],
      ['BZh9', 'bzip2'],
    ] as const) {
      await assert.rejects(readTrace(fileWith('archive', Buffer.from(`${start}rest`))), {
        code: 'TRACE_UNREADABLE',
        message: new RegExp(`it is ${name}, .*Unpack it first`),
      });
    }
  });
});

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
    await assert.rejects(readTrace(folder), { code: 'TRACE_MALFORMED_LINE', message: /\/1\.json: / });
  });
});
