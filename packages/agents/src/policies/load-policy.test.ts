import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fleet, llmserve } from '@servegym/environments';
import { encodeJsonPolicy } from '../learning/learners.ts';
import { AGENTS } from '../registry.ts';
import anyFleet from './any-fleet.json' with { type: 'json' };
import { loadFleetPolicy } from './fleet-policies.ts';
import { createServePolicy, loadServePolicy, SHIPPED_NAMES, shippedFile } from './serve-policies.ts';

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

describe('data: the policies that come with the package', () => {
  // A file for another version is refused: train anew as docs/agents.md says.
  it('were trained on this version, and are what their names say', () => {
    for (const { createPolicy } of [AGENTS.llmserve, AGENTS.fleet]) {
      assert.equal(createPolicy('any-server').name, 'any-server');
    }
    assert.equal(AGENTS.fleet.createPolicy('any-server:0.95').name, 'any-server:0.95');
    assert.throws(() => AGENTS.fleet.createPolicy('any-server:95'), {
      code: 'UNKNOWN_POLICY',
      message: /0\.95/,
    });
    const { version, parameters } = anyFleet;
    const file = Buffer.from(JSON.stringify(anyFleet));
    assert.equal(loadFleetPolicy(file).taskId, 'any');
    assert.equal(version, fleet.version);
    assert.equal(Object.keys(parameters).length, 21);
    for (const name of SHIPPED_NAMES) {
      for (const taskId of llmserve.tasks.shippedIds) {
        const loaded = loadServePolicy(readFileSync(shippedFile(name, taskId)));
        assert.deepEqual([loaded.policy.name, loaded.taskId], [name, taskId]);
      }
    }
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
