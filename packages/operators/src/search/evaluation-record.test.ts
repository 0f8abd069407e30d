import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../../maintenance/test-servers/temporary-folder.ts';
import { EvaluationRecord } from './evaluation-record.ts';

describe('the record of evaluations', () => {
  const path = (name: string) => join(folder, name);
  const folder = temporaryFolder();

  it('holds what was finished after the process died in the middle of a line', () => {
    const file = path('cut.jsonl');
    new EvaluationRecord(file, '1').add([
      ['a', [1.5]],
      ['b', [{ values: [null] }]],
    ]);
    appendFileSync(file, '["c",[2,');
    const again = new EvaluationRecord(file, '1');
    assert.deepEqual(
      [again.size, again.get('a'), again.get('b'), again.get('c')],
      [2, [1.5], [{ values: [null] }], undefined],
    );
    again.add([['c', [3]]]);
    assert.deepEqual(new EvaluationRecord(file, '1').get('c'), [3]);
    assert.equal(readFileSync(file, 'utf8').split('\n').length, 5);
  });

  it('begins anew where the process died in the first line', () => {
    const file = path('head.jsonl');
    writeFileSync(file, '{"evaluations');
    new EvaluationRecord(file, '1').add([['a', [1]]]);
    assert.equal(new EvaluationRecord(file, '1').size, 1);
  });

  for (const [what, content, got] of [
    ['of another version', '{"evaluations_of":"0"}\n', /expected evaluations of version 1, got .*"0"/],
    ['that is something else', 'arrival,input,output\n0,1,1\n', /got arrival,input,output/],
    ['that is one line of something else', 'notes', /got another file/],
    ['with a line that is none', '{"evaluations_of":"1"}\n{oops}\n', /a line 2 that is no evaluation/],
  ] as const) {
    it(`refuses a file ${what}, and leaves it as it is`, () => {
      const file = path('other.jsonl');
      writeFileSync(file, content);
      assert.throws(() => new EvaluationRecord(file, '1'), { code: 'INVALID_EVALUATIONS', message: got });
      assert.equal(readFileSync(file, 'utf8'), content);
    });
  }
});
