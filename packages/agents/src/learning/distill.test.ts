import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode } from '@servegym/environments';
import { heuristicPolicy } from '../policies/rule-policies.ts';
import {
  decodeDemonstrations,
  demonstrate,
  encodeDemonstrations,
  joinDemonstrations,
  studentPolicy,
} from './demonstrate.ts';
import { type DistillationRound, distill } from './distill.ts';
import { SERVE_LEARNER } from './learners.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';

describe('a file of demonstrations', () => {
  const episodes = [7, 8].map((trace) => demonstrate('static_workload', trace, heuristicPolicy()));
  const file = encodeDemonstrations(episodes, { teacher: 'heuristic' });

  it('gives back what was shown, bit for bit', () => {
    assert.deepEqual(decodeDemonstrations(file), { episodes, metadata: { teacher: 'heuristic' } });
  });

  it('is told from other files, and what it lacks is said', () => {
    const { tensors, metadata } = decodeSafetensors(file);
    assert.equal(decodeDemonstrations(encodeSafetensors({ tensors, metadata: {} })), null);
    const { actions: _, ...incomplete } = tensors;
    for (const [changed, message] of [
      [{ tensors: incomplete, metadata }, /Expected a tensor `actions` of 2 rows, got none/],
      [
        { tensors: { ...tensors, actions: { shape: [1, 2], values: new Float32Array(2) } }, metadata },
        /Expected a tensor `actions` of 2 rows, got one of shape 1 x 2/,
      ],
      [{ tensors, metadata: { ...metadata, demonstrations: '9' } }, /of version 1, got version 9/],
    ] as const) {
      assert.throws(() => decodeDemonstrations(encodeSafetensors(changed)), {
        code: 'TENSOR_FILE',
        message,
      });
    }
  });
});

const taskId = 'static_workload';
const { windows } = llmserve.tasks.shipped[taskId];

describe('demonstrate', () => {
  it('puts down what the teacher does, and on what', () => {
    const shown = demonstrate(taskId, 7, heuristicPolicy());
    const heads = shown.actions.length / windows;
    assert.equal(shown.observations.length % windows, 0);
    // Each window finds in force what was played in the last one.
    assert.deepEqual(shown.binsInForce.slice(heads), shown.actions.slice(0, -heads));
    assert.ok(Number.isFinite(shown.return));
  });

  it('asks the teacher where the student has gone', () => {
    const { defaultAction } = llmserve.tasks.shipped[taskId];
    const student = { name: 'student', reset() {}, act: () => defaultAction };
    const shown = demonstrate(taskId, 7, heuristicPolicy(), student);
    const episode = new ServeEpisode(llmserve.tasks.shipped[taskId], 7);
    while (!episode.done) episode.step(defaultAction);
    assert.equal(shown.return, episode.totals.reward);
    const inForce = SERVE_LEARNER.codec(llmserve.tasks.shipped[taskId]).encode(defaultAction);
    assert.deepEqual([...shown.binsInForce.slice(-inForce.length)], inForce);
    assert.notDeepEqual([...shown.actions.slice(0, inForce.length)], inForce);
  });
});

describe('distill', () => {
  it('makes a network that earns what its teacher earns', async () => {
    const rounds: DistillationRound[] = [];
    const weights = await distill({
      ...{ taskId, seed: 1, episodes: 9, minibatches: 400 },
      demonstrate: async ({ traces, student }) => {
        const player = student && studentPolicy(taskId, student);
        return traces.map((trace) => demonstrate(taskId, trace, heuristicPolicy(), player));
      },
      onRound: (round) => rounds.push(round),
    });
    assert.deepEqual(
      rounds.map(({ round }) => round),
      [1, 2, 3],
    );
    const player = studentPolicy(taskId, weights);
    const earned = demonstrate(taskId, 8, player).return;
    const expected = demonstrate(taskId, 8, heuristicPolicy()).return;
    assert.ok(Math.abs(earned - expected) < 0.15 * Math.abs(expected), `${earned} against ${expected}`);
  });
});

describe('joinDemonstrations', () => {
  it('puts episodes one after the other', () => {
    const [a, b] = [7, 8].map((trace) => demonstrate(taskId, trace, heuristicPolicy()));
    const joined = joinDemonstrations([a!, b!]);
    assert.deepEqual(joined.actions.subarray(a!.actions.length), b!.actions);
    assert.equal(joined.observations.length, a!.observations.length + b!.observations.length);
  });
});
