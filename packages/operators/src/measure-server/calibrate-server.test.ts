import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BenchParameter, findProfile, type MeasuredLoad } from '@servegym/profiles';
import { batchProbe, type Probe, seenIn, singleProbe } from './probe.ts';
import { withKvBlocks } from './start-profile.ts';
import { calibrateVirtually, serveProbe } from './virtual-server.fixture.ts';

const FACTS = {
  model: 'unknown',
  engine: { name: 'vLLM', version: '0.32' },
  maxModelLen: 8192,
  maxNumSeqs: 64,
  maxNumBatchedTokens: 2048,
  kvBlocks: 8000,
  blockTokens: 16,
};
/** A server that the calibration does not know. */
const server = withKvBlocks({ ...findProfile('a100-40gb-llama-3-8b'), requestOverheadMs: 12 }, FACTS);

/** Relative spread of a coefficient that is called determined. */
const KNOWN = 0.075;

function calibrate(minutes: number, measured: readonly MeasuredLoad[] = [], sent: string[] = []) {
  return calibrateVirtually(server, FACTS, {
    ...{ minutes, measured, drawnServers: 0 },
    onProbe: ({ name }) => sent.push(name),
  });
}

describe('the calibration of a running server', () => {
  it('recovers each coefficient that it calls determined within 10 %, and predicts the load held out', async () => {
    const { profile, calibration, heldOut, trust } = await calibrateVirtually(server, FACTS, {
      minutes: 1.5,
      drawnServers: 1,
    });
    const { spread } = calibration;
    const truth = server.weights.FP16!.law;
    const { law } = profile.weights.FP16!;
    const real: Partial<Record<BenchParameter, number>> = { ...truth, requestOverheadMs: 12 } as never;
    const fitted: Partial<Record<BenchParameter, number>> = {
      ...law,
      requestOverheadMs: profile.requestOverheadMs,
    } as never;
    const determined = (Object.keys(spread) as BenchParameter[]).filter((name) => spread[name]! < KNOWN);
    assert.ok(determined.length >= 1, JSON.stringify(spread));
    for (const name of determined) {
      assert.ok(
        Math.abs(fitted[name]! / real[name]! - 1) < 0.1,
        `${name}: ${fitted[name]} for ${real[name]}, told ${spread[name]}`,
      );
    }
    const idle = ({ baseUs, weightReadUs }: typeof law) => baseUs + weightReadUs;
    assert.ok(Math.abs(idle(law) / idle(truth) - 1) < 0.05);
    assert.ok(Math.abs(heldOut!.errors.e2e.mean) < 5, `${heldOut!.errors.e2e.mean}`);
    assert.match(trust, /off by [\d.]+ %.*do not trust the profile there/s);
  });

  it('finds the scheduling and the token budget, which the server does not tell, and tries none below its sequences', async () => {
    const facts = { ...FACTS, maxNumSeqs: 600 };
    const { profile, findings } = await calibrateVirtually(server, facts, {
      ...{ minutes: 0.8, drawnServers: 0, isBudgetAssumed: true },
      served: { ...facts, maxNumBatchedTokens: 1024 },
    });
    assert.equal(profile.engine.asyncScheduling, false, findings.join('\n'));
    assert.match(findings.join('\n'), /^Scheduling: after each step \(synchronous\)\. Requests are off by/m);
    assert.match(findings.join('\n'), /^Token budget of an iteration: 1024 /m);
  });

  it('finds how much work the front end has, when it knows how many processes there are', async () => {
    const frontEnd = { processes: 1, perRequestMs: 10, perPromptTokenUs: 13.2, perOutputTokenUs: 304 };
    const { profile, findings } = await calibrateVirtually({ ...server, frontEnd }, FACTS, {
      ...{ minutes: 0.8, drawnServers: 0, apiServerCount: 1 },
    });
    assert.deepEqual(profile.frontEnd, frontEnd);
    assert.match(findings.join('\n'), /^Work of the front end: 4 times that\. Requests are off by/m);
  });

  it('does not send again what an earlier run measured', async () => {
    const first: string[] = [];
    await assert.rejects(calibrate(0.05, [], first), { code: 'TOO_FEW_REQUESTS' });
    const measured = [serveProbe(singleProbe(FACTS, 0), server, FACTS).load];
    assert.equal(first[0], measured[0].source);
    const again: string[] = [];
    await assert.rejects(calibrate(0.05, measured, again), { code: 'TOO_FEW_REQUESTS' });
    assert.deepEqual(again, first.slice(1));
  });

  it('sends more and shorter requests to a server on which the usual ones take too long', async () => {
    const law = server.weights.FP16!.law;
    const slow = { ...law, baseUs: 20 * law.baseUs, weightReadUs: 20 * law.weightReadUs };
    const slowServer = { ...server, weights: { FP16: { ...server.weights.FP16!, law: slow } } };
    const sent: Probe[] = [];
    const enough = new Error('two loads are enough to see');
    const onProbe = (probe: Probe) => {
      if (sent.push(probe) === 2) throw enough;
    };
    await assert.rejects(
      calibrateVirtually(slowServer, FACTS, { minutes: 2, drawnServers: 0, onProbe }),
      enough,
    );
    assert.deepEqual(
      sent.map(({ name }) => name),
      ['single requests', '12 at once'],
    );
    // So many make a profile.
    assert.ok(sent.flatMap(({ requests }) => requests).length >= 20);
  });

  it('takes no batch for a rate, also where a client needs some time to send it', () => {
    const { load } = serveProbe(batchProbe(FACTS, 'batch', 32), server, FACTS);
    const requests = load.requests.map((request, i) => ({ ...request, arrivalMs: i / 4 }));
    assert.deepEqual([seenIn([{ ...load, requests }]).rate, seenIn([load]).batch], [0, 32]);
  });

  it('says that nothing was held out when there was no time for it', async () => {
    const { heldOut, trust } = await calibrate(0.6);
    assert.equal(heldOut, null);
    assert.match(trust, /^No load was held out/);
  });
});
