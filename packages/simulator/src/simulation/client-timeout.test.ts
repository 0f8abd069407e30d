import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { poissonTrace } from '../traces/operations.ts';
import { simulateTrace } from './simulate-trace.ts';
import type { SimulationOptions } from './simulation-options.ts';

const lengths = { inputTokens: 900, outputTokens: 250, range: 0.3 };
/** More than one engine serves. */
const overload = poissonTrace(lengths, 14, 120, 1);
const requests = overload.arrivalMs.length;
const timeoutMs = 20_000;
const servers: Readonly<Record<string, Partial<SimulationOptions>>> = {
  'one engine': {},
  'a schedule ahead': { profile: { ...profile, engine: { ...profile.engine, asyncScheduling: true } } },
  'two replicas': { replicas: 2, router: 'least_loaded', kvBlocks: 300 },
  'prefill and decode apart': { split: { prefill: 1, decode: 1 }, kvBlocks: 400 },
  'a closed loop': { concurrency: 200 },
};

describe('clients that give up', () => {
  for (const [name, options] of Object.entries(servers)) {
    it(`free what their requests held, and are counted apart (${name})`, () => {
      const run = simulateTrace(overload, { profile, ...options, clientTimeoutMs: timeoutMs });
      assert.ok(run.aborted! > 50, `${run.aborted}`);
      assert.equal(run.completed + run.aborted! + run.rejected, requests);
      assert.equal(run.ids.length, run.completed);
      // The iteration under way is finished.
      assert.ok(Math.max(...run.e2eMs) < timeoutMs + 500, `${Math.max(...run.e2eMs)}`);
      // Work for clients that are gone ends: what is served is served sooner than with patient clients.
      const patient = simulateTrace(overload, { profile, ...options });
      assert.equal(patient.completed, requests);
      assert.ok(run.simulatedMs < patient.simulatedMs);
    });

    it(`change nothing when they are patient (${name})`, () => {
      const patient = simulateTrace(overload, { profile, ...options });
      const { aborted, ...run } = simulateTrace(overload, { profile, ...options, clientTimeoutMs: 3.6e6 });
      assert.equal(aborted, 0);
      assert.deepEqual(run, patient);
    });
  }

  it('have a patience above 0', () => {
    for (const clientTimeoutMs of [0, -1, Number.NaN]) {
      const refused = { code: 'SIMULATION_OPTION', field: 'clientTimeoutMs' };
      assert.throws(() => simulateTrace(overload, { profile, clientTimeoutMs }), refused);
    }
  });
});
