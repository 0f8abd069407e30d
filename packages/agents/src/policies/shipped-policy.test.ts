import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { AGENTS } from '../registry.ts';
import { createServePolicy, loadServePolicy, SERVE_POLICIES } from './serve-policies.ts';
import {
  isNetwork,
  readManifest,
  type ShippedName,
  shippedFile,
  shippedOnnx,
  whyNotShipped,
} from './shipped-policy.ts';

const shipped = () => Object.keys(readManifest().policies) as ShippedName[];

describe('data: the policies that come with the package', () => {
  it('were trained on this version of llmserve, for every task', () => {
    const { environment, version, policies } = readManifest();
    assert.equal(environment, llmserve.id);
    assert.equal(
      version,
      llmserve.version,
      'The tasks have changed: train the policies anew with `npx node maintenance/bench-agents.ts --ship`',
    );
    const known = SERVE_POLICIES.map((policy) => policy.name);
    for (const name of shipped()) {
      assert.deepEqual(policies[name], llmserve.tasks.shippedIds, name);
      assert.ok(known.includes(name), `${known} lack ${name}`);
    }
    assert.ok(shipped().includes('ppo'));
  });

  it('are what their names say', () => {
    for (const name of shipped()) {
      for (const taskId of llmserve.tasks.shippedIds) {
        const loaded = loadServePolicy(readFileSync(shippedFile(name, taskId)));
        assert.deepEqual([loaded.policy.name, loaded.taskId], [name, taskId]);
      }
    }
  });

  it('come for ONNX runtimes too where they are networks', () => {
    for (const name of shipped().filter(isNetwork)) {
      for (const taskId of llmserve.tasks.shippedIds) {
        const model = AGENTS.llmserve.network.onnx(readFileSync(shippedFile(name, taskId)));
        assert.ok(readFileSync(shippedOnnx(name, taskId)).equals(model), `${name} on ${taskId}`);
      }
    }
  });
});

describe('whyNotShipped', () => {
  const { id: environment, version } = llmserve;

  it('says of a policy that can be trained what is missing', () => {
    const manifest = {
      environment,
      version,
      policies: { ppo: llmserve.tasks.shippedIds, cem: ['static_workload'] },
    } as const;
    assert.equal(whyNotShipped('ppo', manifest), undefined);
    assert.equal(whyNotShipped('heuristic', manifest), undefined);
    assert.equal(
      whyNotShipped('cem', manifest),
      `Expected cem to have been trained on llmserve ${version}, got none for bursty_workload, adversarial_multitenant: train it first`,
    );
  });

  it('says of one that was trained on another version which it was', () => {
    const manifest = { environment, version: '0.0.1', policies: { ppo: llmserve.tasks.shippedIds } };
    assert.equal(
      whyNotShipped('ppo', manifest),
      `Expected ppo to have been trained on llmserve ${version}, got one of llmserve 0.0.1: train it anew`,
    );
  });
});

describe('ShippedPolicy', () => {
  it('refuses a task that nothing was trained for', () => {
    assert.throws(() => createServePolicy('ppo').reset({ taskId: 'holiday', seed: 1 }), {
      code: 'OTHER_TASK',
      message: /^Expected the task static_workload or .* that the policy was trained for, got holiday$/,
    });
  });
});
