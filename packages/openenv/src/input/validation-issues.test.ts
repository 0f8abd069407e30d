import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { validationIssues } from './validation-issues.ts';

test('at most 50 issues are told of one input', () => {
  const issues = validationIssues(z.array(z.int()), Array(80).fill('x'));
  assert.equal(issues.length, 50);
  assert.deepEqual(issues[49], {
    ...{ type: 'int_type', loc: [49], msg: 'Input should be a valid integer', input: 'x' },
  });
  const keys = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`k${i}`, i]));
  assert.equal(validationIssues(z.strictObject({}), keys).length, 50);
});
