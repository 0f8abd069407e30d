import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile, listProfiles } from '@servegym/profiles';
import { z } from 'zod';
import { PLAN_SPACE } from '../plan/plan-fleet.ts';
import { profileSpaceOf, TUNE_SPACE } from './candidate.ts';
import {
  parseSearchSpace,
  profileSpace,
  profilesIn,
  searchedSpace,
  searchSpaceSchema,
} from './search-space.ts';

const ofModel = listProfiles().filter(({ model }) => model.name === 'Llama-3-8B');
const KNOWN = { ...profileSpace(ofModel), ...TUNE_SPACE };

describe('a search space in JSON', () => {
  it('is what is printed, and less or more of it', () => {
    const plan = { ...profileSpace(ofModel), ...PLAN_SPACE };
    assert.deepEqual(parseSearchSpace(JSON.stringify(plan), 'space.json', KNOWN), plan);
    const own = { max_num_seqs: [7], split: [false, '2:3'], router: [{ overlap_score_credit: 0.5 }] };
    assert.deepEqual(parseSearchSpace(JSON.stringify(own), 'space.json', KNOWN), own);
  });

  it('has a schema that takes the space that is printed, and refuses what the reader refuses', () => {
    const { properties, ...rest } = searchSpaceSchema(TUNE_SPACE) as { readonly properties: object };
    assert.deepEqual(Object.keys(properties).sort(), Object.keys(TUNE_SPACE).sort());
    const schema = z.fromJSONSchema(JSON.parse(JSON.stringify({ ...rest, properties })));
    assert.ok(schema.safeParse(TUNE_SPACE).success);
    for (const wrong of [{ max_num_seqs: [] }, { split: ['0:1'] }, { gpu: ['H100'] }, { kv_fraction: [1.5] }])
      assert.ok(!schema.safeParse(wrong).success, JSON.stringify(wrong));
  });

  for (const [what, text, message] of [
    ['no JSON', 'max_num_seqs', /expected JSON such as/],
    ['no object', '[1]', /expected an object with some of gpu/],
    ['an empty space', '{}', /got an empty space/],
    [
      'a dimension without values',
      '{"max_num_seqs": []}',
      /values of max_num_seqs .*: at least one, got none/,
    ],
    ['an unknown dimension', '{"temperature": [1]}', /some of gpu, .*temperature/],
    ['a dimension of another question', '{"replicas": [2]}', /some of max_num_seqs, got replicas/],
    ['a value of another kind', '{"max_num_seqs": [64, "many"]}', /values of max_num_seqs\.1/],
    ['a value out of range', '{"kv_fraction": [1.5]}', /values of kv_fraction\.0/],
    ['a split that is none', '{"split": ["0:1"]}', /values of split\.0/],
    ['precisions that there are none of', '{"quantization": ["FP3"]}', /values of quantization\.0/],
  ] as const) {
    it(`refuses ${what}`, () => {
      const known = what.includes('another question') ? { max_num_seqs: [64] } : KNOWN;
      assert.throws(() => parseSearchSpace(text, 'space.json', known), {
        code: 'INVALID_SEARCH_SPACE',
        message,
      });
    });
  }

  it('chooses profiles by GPU and parallelism, and says what there is where none is left', () => {
    const names = profilesIn({ gpu: ['H100-80GB'], tensor_parallel_size: [1, 2] }, ofModel).map(
      ({ name }) => name,
    );
    assert.deepEqual(names, ['h100-80gb-llama-3-8b', 'h100-80gb-llama-3-8b-tp2']);
    assert.throws(() => profilesIn({ tensor_parallel_size: [3] }, ofModel), {
      code: 'EMPTY_SEARCH_SPACE',
      message: /the profiles have gpu .*H100-80GB.*tensor_parallel_size 1, 2, 4/,
    });
  });

  it('names what is not searched, with the reason', () => {
    const profile = { ...findProfile('h100-80gb-llama-3-8b'), speculation: null };
    const limits = { minQuality: 0.5, hasPrefixes: false, hasClasses: false, mostReplicas: 4 };
    const { left } = profileSpaceOf(profile, { space: TUNE_SPACE, ...limits });
    const { autoscaler: _, ...named } = TUNE_SPACE;
    const { space, notSearched } = searchedSpace(named, [left]);
    assert.equal(notSearched.speculation, 'the profile has no draft');
    assert.equal(notSearched.kv_offloading_size, 'no prefix of the traffic is known');
    assert.equal(notSearched.gpu, 'comes with the profile');
    assert.match(notSearched.autoscaler, /`--search default,autoscaler`/);
    assert.ok(space.max_num_seqs !== undefined && !('speculation' in space));
    assert.throws(() => profileSpaceOf(profile, { space: { quantization: ['NVFP4'] }, ...limits }), {
      code: 'EMPTY_SEARCH_SPACE',
      message: /expected some of FP16, FP8.*got NVFP4/,
    });
  });
});
