import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, type ServeAction, ServeEpisode } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { ServerEstimate } from './server-estimate.ts';

const task = llmserve.tasks.shipped.bursty_workload;
const prior = findProfile(task.profile);
const WINDOWS = 26;

/** The estimate after windows of a server that is not the prior, at different shares of memory and depths. */
function estimated(truth: EngineProfile): EngineProfile {
  const seed = 2;
  const requests = llmserve.drawRequests(task, seed);
  const estimate = new ServerEstimate(task, seed, requests, prior);
  const episode = new ServeEpisode(task, seed, { requests, profile: truth });
  for (let window = 0; window < WINDOWS; window++) {
    const action: ServeAction = {
      ...task.defaultAction,
      kv_budget_fraction: [0.3, 0.6, 0.9][window % 3]!,
      speculation_depth: [0, 4][window % 2]!,
      // The precision whose times are compared.
      quantization_tier: 'FP16',
    };
    episode.step(action);
    estimate.see(action, episode.observation());
  }
  assert.equal(estimate.twin().window, WINDOWS);
  return estimate.profile;
}

/** Distance of a profile from another, by logarithm: of a short iteration, and of the memory of the GPU. */
function distances(from: EngineProfile, to: EngineProfile) {
  const [a, b] = [llmserve.describeServer(task, from), llmserve.describeServer(task, to)];
  return {
    decode: Math.abs(Math.log(a.decode_1_ms / b.decode_1_ms)),
    memory: Math.abs(Math.log(a.gpu_memory_gb / b.gpu_memory_gb)),
  };
}

describe('the estimate of a server', () => {
  for (const name of ['l40s-48gb-mistral-7b', 'h100-80gb-mistral-nemo-12b']) {
    it(`comes near to ${name} from what it shows`, () => {
      const truth = findProfile(name);
      const before = distances(prior, truth);
      const after = distances(estimated(truth), truth);
      assert.ok(after.decode < before.decode / 3, `decode ${before.decode} to ${after.decode}`);
      assert.ok(after.memory < before.memory / 10, `memory ${before.memory} to ${after.memory}`);
    });
  }

  it('stays at the prior where the server is as it was', () => {
    const { decode, memory } = distances(estimated(prior), prior);
    assert.ok(decode < 0.02 && memory < 1e-3, `${decode}, ${memory}`);
  });
});
