import type { EngineProfile } from '../src/profiles/engine-profile.ts';

const law = {
  baseUs: 3500,
  weightReadUs: 10300,
  perTokenUs: 63,
  perDecodeSequenceUs: 60,
  perContextTokenNs: 124,
  perPrefillAttentionNs: 0.05,
};

/** A made-up profile with round numbers, for tests that are about mechanisms and not about any GPU. */
export const fixtureProfile: EngineProfile = {
  name: 'fixture-40gb-model-8b',
  gpu: { name: 'Fixture', memoryGiB: 40, count: 1, usdPerHour: 1 },
  model: { name: 'Model-8B', kvBytesPerToken: 131_072 },
  engine: { name: 'vLLM', version: 'V1' },
  status: 'estimated',
  source: 'made up for tests',
  fit: null,
  validity: { batch: [1, 64], contextTokens: [256, 4096] },
  memory: { utilization: 0.9, overheadGiB: 2, blockTokens: 16 },
  requestOverheadMs: 2,
  reloadSeconds: 5,
  weights: {
    FP16: { weightGiB: 15, law, status: 'estimated', source: 'made up', quality: 1 },
    INT8: {
      weightGiB: 8,
      law: { ...law, weightReadUs: 5200, perTokenUs: 45 },
      status: 'estimated',
      source: 'made up',
      quality: 0.98,
    },
  },
  speculation: {
    method: 'EAGLE',
    draftGiB: 0.5,
    draftBaseUs: 1500,
    draftPerTokenUs: 1,
    draftPerContextTokenNs: 5,
    survival: { sharegpt: [0.69, 0.46, 0.32, 0.23, 0.18, 0.14, 0.11, 0.08] },
    source: 'made up',
  },
  transfer: { gigabytesPerSecond: 40, setupMs: 1 },
};
