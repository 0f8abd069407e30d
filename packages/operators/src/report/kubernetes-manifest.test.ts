import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { parseAllDocuments } from 'yaml';
import { servingCommands } from '../deployment/serving-command.ts';
import type { FleetPlan, PlanPool } from '../plan/plan-result.ts';
import { vllmDefaults } from '../search/candidate.ts';
import { kubernetesManifest } from './kubernetes-manifest.ts';

function manifestOf(
  pools: readonly (readonly [profile: string, role: PlanPool['role'], engines: number])[],
  router: FleetPlan['router'],
) {
  const chosen = pools.map(([name, role, engines]): PlanPool => {
    const profile = findProfile(name);
    const split = role === 'all' ? false : '1:1';
    return { role, profile, engines, settings: { ...vllmDefaults(profile), split } };
  });
  const [{ profile, settings }] = chosen;
  const commands = servingCommands(profile, settings, 1, { router });
  const text = kubernetesManifest({ pools: chosen, router, commands } as unknown as FleetPlan);
  return { text, documents: parseAllDocuments(text).map((document) => document.toJS()) };
}

describe('the Kubernetes manifest of a plan', () => {
  it('has a Deployment, which the Service reaches', () => {
    const { documents } = manifestOf([['l40s-48gb-llama-3-8b-tp2', 'all', 3]], 'least_loaded');
    assert.deepEqual(
      documents.map(({ kind, metadata, spec }) => [kind, metadata.name, spec.replicas]),
      [
        ['Deployment', 'llama-3-8b', 3],
        ['Service', 'llama-3-8b', undefined],
      ],
    );
    const [deployment, service] = documents;
    assert.deepEqual(service.spec.selector, { app: 'llama-3-8b' });
    assert.deepEqual(deployment.spec.selector.matchLabels, { app: 'llama-3-8b' });
    const [container] = deployment.spec.template.spec.containers;
    assert.equal(container.resources.limits['nvidia.com/gpu'], 2);
    assert.ok(container.args.includes('--tensor-parallel-size'));
  });

  it('keeps prefill and decode apart, and names the router that the Service is not', () => {
    const { text, documents } = manifestOf(
      [
        ['h100-80gb-llama-3-8b', 'prefill', 2],
        ['h100-80gb-llama-3-8b', 'decode', 1],
      ],
      'prefix_aware',
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
