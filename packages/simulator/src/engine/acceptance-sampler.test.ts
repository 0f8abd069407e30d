import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcceptanceSampler } from './acceptance-sampler.ts';

test('at least k drafts are accepted as often as measured', () => {
  const survival = [0.6937, 0.4602, 0.3177, 0.2304];
  const sampler = new AcceptanceSampler(5, survival);
  const requests = 400;
  const steps = 250;
  const atLeast = [0, 0, 0, 0];
  for (let id = 0; id < requests; id++) {
    for (let step = 0; step < steps; step++) {
      const accepted = sampler.accepted(sampler.requestKey(id), step, 4);
      for (let k = 0; k < accepted; k++) atLeast[k]++;
    }
  }
  // 100,000 draws: a standard error below 0.0016.
  survival.forEach((share, k) => {
    assert.ok(
      Math.abs(atLeast[k] / (requests * steps) - share) < 0.006,
      `P(at least ${k + 1}) is ${atLeast[k]}`,
    );
  });
});

test('fewer drafts accept a prefix of what more would', () => {
  const sampler = new AcceptanceSampler(5, [0.9, 0.8, 0.7, 0.6]);
  for (let step = 0; step < 200; step++) {
    assert.equal(
      sampler.accepted(sampler.requestKey(1), step, 2),
      Math.min(2, sampler.accepted(sampler.requestKey(1), step, 4)),
    );
  }
});

test('certain and impossible acceptance are just that', () => {
  const sampler = new AcceptanceSampler(1, [1, 0]);
  for (let step = 0; step < 200; step++) assert.equal(sampler.accepted(sampler.requestKey(3), step, 2), 1);
});
