import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { parseAllDocuments } from 'yaml';
import { poolCommands } from '../deployment/serving-command.ts';
import type { FleetPlan, PlanPool } from '../plan/plan-result.ts';
import { vllmDefaults } from '../search/candidate.ts';
import { kubernetesManifest } from './kubernetes-manifest.ts';

function manifestOf(
  pools: readonly (readonly [profile: string, role: PlanPool['role'], engines: number])[],
  router: FleetPlan['router'],
  secondWeight: number,
) {
  const chosen = pools.map(([name, role, engines]): PlanPool => {
    const profile = findProfile(name);
    const split = role === 'all' ? false : '1:1';
    return { role, profile, engines, settings: { ...vllmDefaults(profile), split } };
  });
  const commands = poolCommands(chosen, router, secondWeight);
  const text = kubernetesManifest({ pools: chosen, router, secondWeight, commands } as unknown as FleetPlan);
  return { text, documents: parseAllDocuments(text).map((document) => document.toJS()) };
}

describe('the Kubernetes manifest of a plan', () => {
  it('has a Deployment for each kind of GPU, which the Service reaches', () => {
    const { text, documents } = manifestOf(
      [
        ['h100-80gb-llama-3-8b', 'all', 2],
        ['l40s-48gb-llama-3-8b-tp2', 'all', 3],
      ],
      'least_loaded',
      0.5,
    );
    assert.deepEqual(
      documents.map(({ kind, metadata, spec }) => [kind, metadata.name, spec.replicas]),
      [
        ['Deployment', 'llama-3-8b-h100-80gb', 2],
        ['Deployment', 'llama-3-8b-l40s-48gb', 3],
        ['Service', 'llama-3-8b', undefined],
      ],
    );
    const [first, second, service] = documents;
    assert.deepEqual(service.spec.selector, { app: 'llama-3-8b' });
    assert.notDeepEqual(first.spec.selector, second.spec.selector);
    const [container] = second.spec.template.spec.containers;
    assert.equal(container.resources.limits['nvidia.com/gpu'], 2);
    assert.ok(container.args.includes('--tensor-parallel-size'));
    assert.match(text, /# .*weight 0.5 for the second Deployment/);
  });

  it('keeps prefill and decode apart, and names the router that the Service is not', () => {
    const { text, documents } = manifestOf(
      [
        ['h100-80gb-llama-3-8b', 'prefill', 2],
        ['h100-80gb-llama-3-8b', 'decode', 1],
      ],
      'prefix_aware',
      1,
    );
    assert.deepEqual(
      documents.map(({ metadata, spec }) => [metadata.name, spec.replicas]),
      [
        ['llama-3-8b-prefill', 2],
        ['llama-3-8b-decode', 1],
        ['llama-3-8b', undefined],
      ],
    );
    assert.deepEqual(documents[2].spec.selector, { app: 'llama-3-8b', role: 'prefill' });
    assert.match(text, /# .*a proxy sends prompts to prefill.*\n# .*--routing-logic prefixaware/);
  });
});
