import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstFrame, nextFrame } from '../state/frame.ts';
import { fleetReport, narrateFleet } from './fleet-report.ts';

const READY = {
  id: 0,
  state: 'ready',
  role: 'mixed',
  running: 8,
  waiting: 0,
  kv_blocks_used: 500,
  kv_blocks_total: 1000,
};
const IN_TIME = { name: 'interactive', completed: 100, attained: 100, refused: 0 };

interface Window {
  readonly observation?: Record<string, unknown>;
  readonly metadata?: Record<string, unknown>;
  readonly done?: boolean;
}

function headline({ observation = {}, metadata = {}, done = false }: Window): string | undefined {
  const first = firstFrame({ observation: {}, metadata: {}, reward: null, done: false });
  const frame = nextFrame(first, {
    action: {},
    observation: { num_requests_waiting: 0, queue_seconds: 0, ...observation },
    metadata: { replicas: [READY], classes: [IN_TIME], ...metadata },
    reward: 0,
    done,
  });
  return narrateFleet(frame, fleetReport(frame.metadata)!)?.headline;
}

describe('narrateFleet', () => {
  const queue = { num_requests_waiting: 90, queue_seconds: 12 };
  const starting = { ...READY, id: 1, state: 'starting', ready_in_s: 41.2 };
  const late = { ...IN_TIME, attained: 60 };
  const cases: readonly [string, Window][] = [
    ['Keeping up.', {}],
    ['A replica failed.', { metadata: { events: [{ kind: 'failed', at_s: 3, replica: 0 }] } }],
    ['No replica serves.', { metadata: { replicas: [starting] } }],
    ['Too few replicas.', { observation: queue }],
    ['Waiting for replicas.', { observation: queue, metadata: { replicas: [READY, starting] } }],
    ['Refusing work.', { metadata: { classes: [IN_TIME, { ...IN_TIME, name: 'best_effort', refused: 4 }] } }],
    ['Late answers.', { metadata: { classes: [late] } }],
    ['Capacity to spare.', { metadata: { replicas: [0, 1].map((id) => ({ ...READY, id, running: 2 })) } }],
  ];
  for (const [expected, window] of cases) {
    it(`says: ${expected}`, () => assert.equal(headline(window), expected));
  }

  it('says nothing at the end, which the page tells of', () => {
    assert.equal(headline({ done: true }), undefined);
  });
});

describe('fleetReport', () => {
  it('marks the replicas that failed in the window', () => {
    const { replicas } = fleetReport({
      replicas: [READY, { ...READY, id: 1 }],
      events: [{ kind: 'failed', at_s: 3, replica: 1 }],
    })!;
    assert.deepEqual(
      replicas.map(({ hasFailed }) => hasFailed),
      [false, true],
    );
  });

  it('is nothing without replicas', () => {
    assert.equal(fleetReport({ classes: [], gpus: [] }), undefined);
  });

  it('reads replicas of any shape', () => {
    const report = fleetReport({
      replicas: [{ state: 5, running: 'x' }, null, { ...READY, kv_blocks_used: 250 }],
    })!;
    assert.deepEqual(
      report.replicas.map(({ state, running, kvUse }) => [state, running, kvUse]),
      [
        ['ready', 0, 0],
        ['ready', 0, 0],
        ['ready', 8, 0.25],
      ],
    );
  });
});
