import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { encodeJsonPolicy } from '../learning/learners.ts';
import { AGENTS } from '../registry.ts';
import {
  createServePolicy,
  loadServePolicy,
  readManifest,
  SERVE_POLICIES,
  SHIPPED_NAMES,
  shippedFile,
  shippedOnnx,
  whyNotShipped,
} from './serve-policies.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const action = { ...llmserve.defaultAction, batch_cap: 48 };
const constant = encodeJsonPolicy(llmserve, 'static_workload', { action }, { algorithm: 'static' });

describe('a policy in JSON', () => {
  it('is loaded from what training writes', () => {
    const { policy, taskId } = loadServePolicy(bytes(constant));
    assert.deepEqual([policy.name, taskId], ['static-tuned', 'static_workload']);
  });

  it('plays the configuration that its file holds', () => {
    const { policy } = loadServePolicy(bytes(constant));
    policy.reset({ taskId: 'static_workload', seed: 0 });
    assert.deepEqual(policy.act({} as never), action);
  });

  it('is refused where it does not belong, or when it is none', () => {
    for (const [file, message] of [
      ['{', /Expected a policy in JSON/],
      [constant.replace('llmserve', 'other'), /Expected a policy for the environment llmserve, got other/],
      [constant.replace('48', '4800'), /Expected an action, got .*4800/],
      [
        constant.replace(/"version": "[^"]*"/, '"version": "0.0.0"'),
        /for the version of llmserve .*, got 0\.0\.0/,
      ],
      [
        constant.replace('static_workload', 'holiday'),
        /Expected a policy for one of static_workload, .*, got one for holiday/,
      ],
    ] as [string, RegExp][]) {
      assert.throws(() => loadServePolicy(bytes(file)), { code: /^POLICY_/, message });
    }
  });
});

const shipped = () => SHIPPED_NAMES.filter((name) => readManifest().policies[name] !== undefined);

describe('data: the policies that come with the package', () => {
  it('were trained on this version of llmserve, for every task', () => {
    const { environment, version, policies } = readManifest();
    assert.equal(environment, llmserve.id);
    assert.equal(
      version,
      llmserve.version,
      'The tasks have changed: train the policies anew with `npx node benchmarks/run.ts agents --ship`',
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
    for (const name of shipped()) {
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
      policies: { ppo: llmserve.tasks.shippedIds, distilled: ['static_workload'] },
    } as const;
    assert.equal(whyNotShipped('ppo', manifest), undefined);
    assert.equal(whyNotShipped('heuristic', manifest), undefined);
    assert.equal(
      whyNotShipped('distilled', manifest),
      `Expected distilled to have been trained on llmserve ${version}, got none for bursty_workload, adversarial_multitenant: train it first`,
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

describe('shippedPolicy', () => {
  it('refuses a task that nothing was trained for', () => {
    assert.throws(() => createServePolicy('ppo').reset({ taskId: 'holiday', seed: 1 }), {
      code: 'OTHER_TASK',
      message: /^Expected the task static_workload or .* that the policy was trained for, got holiday$/,
    });
  });
});
