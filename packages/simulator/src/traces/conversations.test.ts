import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agentSessionsTrace, conversationsTrace, ragPulseTrace } from './conversations.ts';
import { parseTrace } from './parse-trace.ts';
import type { Trace } from './trace.ts';

const turn = (t: number, tokens: [number, number], ids: number[], api: number, think = 0) => ({
  ...{ t, type: 'n', in: tokens[0], out: tokens[1], hash_ids: ids },
  ...{ api_time: api, think_time: think },
});

const session = {
  ...{ id: 'a', block_size: 64, hash_id_scope: 'local' },
  requests: [
    turn(0, [130, 70], [1, 2], 4),
    {
      ...{ t: 10, type: 'subagent', agent_id: 'b' },
      requests: [turn(0, [64, 10], [9], 1), turn(3, [128, 10], [9, 10], 1, 2)],
    },
    turn(20, [256, 1], [1, 2, 3, 4], 5, 16),
    turn(30, [64, 5], [1], 5, 5),
  ],
};

function idsOf({ prefixBlocks }: Trace, request: number): number[] {
  const { ids, offsets } = prefixBlocks!;
  return [...ids.subarray(offsets[request], offsets[request + 1])];
}

describe('sessions of agents', () => {
  it('have follow-ups after their think times, and subagents that follow the request before them', () => {
    const { trace, reading } = agentSessionsTrace([{ source: 'a.json', value: session }], 'a');
    assert.deepEqual([...trace.arrivalMs], [0, 10_000, 13_000, 20_000, 30_000]);
    assert.deepEqual([...trace.inputTokens], [130, 64, 128, 256, 64]);
    // The subagent starts 6 s after the answer that took 4 s.
    assert.deepEqual([...trace.followUps!.previous], [-1, 0, 1, 0, 3]);
    assert.deepEqual([...trace.followUps!.thinkMs], [0, 6000, 2000, 16_000, 5000]);
    assert.equal(reading.conversations, 1);
  });

  it('name the blocks of an answer that the next prompt repeats', () => {
    const { trace } = agentSessionsTrace([{ source: 'a.json', value: session }], 'a');
    assert.equal(trace.prefixBlocks!.namesAnswers, true);
    // 130 + 70 tokens fill three blocks, of which the prompt has two.
    assert.deepEqual(idsOf(trace, 0), [1, 2, 3]);
    assert.deepEqual(idsOf(trace, 1), [9]);
    // The prompt after it has another start.
    assert.deepEqual(idsOf(trace, 3), [1, 2, 3, 4]);
  });

  it('share no blocks with each other, and leave out requests without an answer', () => {
    const failed = { ...session, requests: [turn(0, [64, 0], [1], 1), turn(1, [64, 5], [1], 1)] };
    const { trace, reading } = agentSessionsTrace(
      [
        { source: 'a.json', value: session },
        { source: 'b.json', value: failed },
      ],
      'folder',
    );
    assert.deepEqual([trace.arrivalMs.length, reading.unanswered, reading.conversations], [6, 1, 2]);
    const other = trace.arrivalMs.indexOf(1000);
    assert.equal(trace.followUps!.previous[other], -1);
    assert.ok(idsOf(trace, other)[0] > 10, 'an id of its own');
  });

  it('are told from other JSON by what they hold', () => {
    assert.equal(parseTrace(JSON.stringify(session), '0001.json').arrivalMs.length, 5);
  });

  const refused: readonly [string, unknown, object][] = [
    ['no blocks', { requests: [] }, { code: 'TRACE_CONVERSATION' }],
    ['no requests', { ...session, requests: [] }, { code: 'TRACE_NO_REQUESTS' }],
    ['a request that is none', { ...session, requests: [7] }, { code: 'TRACE_CONVERSATION' }],
    ['a time that is none', { ...session, requests: [turn(-1, [1, 1], [], 0)] }, { code: 'TRACE_TIMESTAMP' }],
    [
      'a length that is none',
      { ...session, requests: [turn(0, [0, 1], [], 0)] },
      { code: 'TRACE_LENGTH_RANGE' },
    ],
    ['an id that is none', { ...session, requests: [turn(0, [64, 1], [-1], 0)] }, { code: 'TRACE_HASH_IDS' }],
  ];
  for (const [name, value, expected] of refused) {
    it(`are refused with ${name}`, () => {
      assert.throws(() => agentSessionsTrace([{ source: 'a.json', value }], 'a'), expected);
    });
  }
});

describe('RAGPulse', () => {
  const row = (timestamp: number, session_id: string, sys: number[], passages: number[], input: number[]) =>
    JSON.stringify({
      ...{ timestamp: `${timestamp}`, input_length: 110, output_length: 9, session_id },
      hash_ids: { sys_prompt: sys, passages_ids: passages, history: [], web_search: [], user_input: input },
    });
  const partLengths = [
    '{"sys_prompt_id": 1, "token_length": 20}\n',
    '{"passage_id": 2, "token_length": 40}\n{"passage_id": 3, "token_length": 40}\n',
    '{"user_input_id": 4, "token_length": 4}\n{"user_input_id": 5, "token_length": 4}\n\n',
  ];
  const requests = [
    row(9, 'x', [1], [2, 3], [4]),
    row(5, 'y', [1], [2, 3], [5]),
    row(30, 'x', [1], [3, 2], [4]),
    '',
  ].join('\n');

  it('shares blocks as far as prompts begin with the same parts', () => {
    const { trace } = ragPulseTrace({ requests, partLengths }, 'rag');
    const [first, second, third] = [0, 1, 2].map((i) => idsOf(trace, i));
    // 20 + 40 + 40 + 4 tokens fill six blocks, all of which end in the passages.
    assert.deepEqual([first.length, second.length, third.length], [6, 6, 6]);
    assert.deepEqual(second, first);
    // The first block ends in the system prompt.
    assert.equal(third[0], first[0]);
    assert.equal(new Set([...first, ...third]).size, 11);
  });

  it('has follow-ups in its sessions, by time', () => {
    const { trace, reading } = ragPulseTrace({ requests, partLengths }, 'rag');
    assert.deepEqual([...trace.arrivalMs], [0, 4000, 25_000]);
    assert.deepEqual([...trace.followUps!.previous], [-1, -1, 1]);
    assert.deepEqual([...trace.followUps!.thinkMs], [0, 0, 21_000]);
    assert.equal(reading.conversations, 2);
  });

  it('is refused with the line of a broken request', () => {
    for (const [broken, code] of [
      ['{"timestamp": "x"}', 'TRACE_TIMESTAMP'],
      ['no JSON', 'TRACE_MALFORMED_LINE'],
      ['{"timestamp": "1", "input_length": 5, "output_length": 2}', 'TRACE_HASH_IDS'],
    ]) {
      assert.throws(
        () => ragPulseTrace({ requests: `${row(1, 'x', [1], [], [4])}\n${broken}`, partLengths }, 'rag'),
        {
          code,
          line: 2,
        },
      );
    }
  });
});

describe('conversations with texts', () => {
  const text = (tokens: number) => 'word'.repeat(tokens);
  const shareGpt = [
    {
      conversations: [
        { from: 'human', value: text(20) },
        { from: 'gpt', value: text(30) },
        { from: 'human', value: text(10) },
        { from: 'gpt', value: text(5) },
      ],
    },
    {
      messages: [
        { role: 'user', content: text(40) },
        { role: 'assistant', content: text(8) },
      ],
    },
    { conversations: [{ from: 'gpt', value: text(5) }] },
  ];

  it('are requests whose prompts repeat what was said before', () => {
    const { trace, reading } = conversationsTrace(shareGpt, 'chat.json');
    assert.deepEqual([...trace.inputTokens], [20, 60, 40]);
    assert.deepEqual([...trace.outputTokens], [30, 5, 8]);
    assert.deepEqual([...trace.followUps!.previous], [-1, 0, -1]);
    assert.deepEqual(idsOf(trace, 0), [0, 1, 2]);
    assert.deepEqual(idsOf(trace, 1), [0, 1, 2, 3]);
    assert.equal(new Set([...idsOf(trace, 1), ...idsOf(trace, 2)]).size, 7);
    assert.equal(reading.conversations, 2);
    assert.deepEqual(parseTrace(JSON.stringify(shareGpt), 'chat.json').inputTokens, trace.inputTokens);
  });

  it('are refused with an entry that has no messages', () => {
    for (const broken of [{ text: 'x' }, { messages: ['x'] }]) {
      assert.throws(() => conversationsTrace([...shareGpt, broken], 'chat.json'), {
        code: 'TRACE_CONVERSATION',
      });
    }
  });
});

describe('JSON lines with a delay', () => {
  const lines = [
    '{"session_id": "a", "timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}',
    '{"session_id": "a", "delay": 700, "input_length": 800, "output_length": 5, "hash_ids": [1, 2]}',
    '{"session_id": "b", "timestamp": 500, "input_length": 10, "output_length": 5}',
    '{"session_id": "a", "delay": 100, "input_length": 900, "output_length": 5}',
  ];

  it('are conversations', () => {
    const trace = parseTrace(lines.join('\n'), 'turns.jsonl');
    assert.deepEqual([...trace.arrivalMs], [0, 500, 700, 800]);
    assert.deepEqual([...trace.inputTokens], [600, 10, 800, 900]);
    assert.deepEqual([...trace.followUps!.previous], [-1, -1, 0, 2]);
    assert.deepEqual([...trace.followUps!.thinkMs], [0, 0, 700, 100]);
  });

  it('are refused with a delay that is none, and with a first request without an arrival', () => {
    for (const broken of [
      '{"session_id": "a", "delay": -1, "input_length": 9, "output_length": 5}',
      '{"session_id": "c", "delay": 5, "input_length": 9, "output_length": 5}',
    ]) {
      assert.throws(() => parseTrace([...lines, broken].join('\n'), 'turns.jsonl'), {
        code: 'TRACE_TIMESTAMP',
        line: 5,
      });
    }
  });
});
