import assert from 'node:assert/strict';

/** Folder of the packed packages, which `npm run test:release` packs once for all of its tests. */
export const PACKED =
  process.env.SERVEGYM_PACKED ??
  assert.fail('SERVEGYM_PACKED is not set. Run these tests with `npm run test:release`.');
