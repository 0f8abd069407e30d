import assert from 'node:assert/strict';
import { it } from 'node:test';
import { loadOptional } from './load-optional.ts';

const load = (packages: readonly string[], specifier: string) =>
  loadOptional(
    () => import(specifier),
    'Queues need',
    packages,
    (message) => new TypeError(message),
  );

it('a package that is missing is named, with the command that installs it', async () => {
  await assert.rejects(load(['one'], 'no-such-package'), {
    name: 'TypeError',
    message:
      'Queues need the package one, which is not installed. Install it beside servegym: npm install one',
  });
  await assert.rejects(load(['one', 'two'], 'no-such-package'), {
    message:
      'Queues need the packages one and two, which are not installed. Install them beside servegym: npm install one two',
  });
});

it('a package that is there but broken says itself what is wrong', async () => {
  const broken = 'data:text/javascript,throw new RangeError("broken")';
  await assert.rejects(load(['one'], broken), { name: 'RangeError', message: 'broken' });
});
