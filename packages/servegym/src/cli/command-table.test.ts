import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { wholeNumber } from './arguments/options.ts';
import { defineCommand } from './command-table.ts';

describe('a command from a table', () => {
  const seen: unknown[] = [];
  const command = defineCommand({
    words: { file: { value: '<file>', help: 'requests' }, rest: { value: '[rest...]', help: 'more' } },
    options: {
      maxNumSeqs: { value: '<n>', parse: wholeNumber(1, 10), default: 4, help: 'sequences at once' },
      policy: { value: '<name>', choices: ['fcfs', 'priority'], help: 'order' },
      change: { value: '<n>', parse: wholeNumber(0, 99), repeated: true, help: 'may be repeated' },
      split: { value: '[n]', parse: wholeNumber(1, 9), preset: '1', help: 'engines', conflicts: ['policy'] },
      cache: { default: true, help: 'no cache', group: 'More:' },
      json: { help: 'as JSON' },
    },
    after: 'Examples: none',
    action(values) {
      // The types of the values come from the table.
      const number: number = values.maxNumSeqs;
      const policy: 'fcfs' | 'priority' | undefined = values.policy;
      const [file, more]: [string, readonly string[]] = [values.file, values.rest];
      seen.push({ ...values, maxNumSeqs: number, policy, file, rest: more });
    },
  }).exitOverride();
  const run = (...words: string[]) => {
    command.parse(words, { from: 'user' });
    return seen.pop();
  };

  it('hands its action numbers, lists and switches', () => {
    assert.deepEqual(run('a.csv', '--change', '1', '--change', '2', '--json'), {
      ...{
        file: 'a.csv',
        rest: [],
        maxNumSeqs: 4,
        policy: undefined,
        change: [1, 2],
        cache: true,
        json: true,
      },
    });
  });

  it('takes an option without its value, and a switch off', () => {
    const values = run('a.csv', 'b', '--split', '--no-cache') as {
      split: number;
      cache: boolean;
      rest: unknown;
    };
    assert.deepEqual([values.split, values.cache, values.rest], [1, false, ['b']]);
  });

  it('refuses options that do not go together, and values out of range', () => {
    command.configureOutput({ writeErr() {} });
    assert.throws(() => run('a', '--split', '2', '--policy', 'fcfs'), {
      code: 'commander.conflictingOption',
    });
    assert.throws(() => run('a', '--max-num-seqs', '11'), { code: 'commander.invalidArgument' });
  });

  it('shows its options under headings', () => {
    assert.match(command.helpInformation(), /--max-num-seqs <n> .*default: 4[\s\S]*More:\n +--no-cache/);
  });
});
