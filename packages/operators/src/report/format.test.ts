import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { terminalScatter } from './format.ts';

const label = (value: number) => `${Math.round(value)}`;

describe('a scatter plot of characters', () => {
  it('has x on a logarithmic axis to the right, and y upwards from 0', () => {
    const points = [
      { x: 1, y: 10, mark: 'a' },
      { x: 10, y: 5, mark: 'b' },
      { x: 100, y: 0, mark: 'c' },
    ];
    assert.deepEqual(terminalScatter(points, { columns: 9, rows: 3, label }), [
      '10 ┤a',
      '   │    b',
      ' 0 ┤        c',
      '   └┬───────┬',
      '    1     100',
    ]);
  });

  it('names the middle of the vertical axis, and as many values of the other as there is room for', () => {
    const points = [
      { x: 1, y: 10, mark: 'a' },
      { x: 10_000, y: 1, mark: 'b' },
    ];
    const lines = terminalScatter(points, { columns: 45, rows: 5, label });
    assert.deepEqual(
      lines.slice(0, 5).map((line) => line.slice(0, 4)),
      ['10 ┤', '   │', ' 5 ┤', '   │', ' 0 ┤'],
    );
    assert.equal(lines[5], `   └┬${'─'.repeat(14)}┬${'─'.repeat(13)}┬${'─'.repeat(14)}┬`);
    assert.deepEqual(lines[6].trim().split(/ +/), ['1', '23', '433', '10000']);
  });

  it('draws later points over earlier ones, and none that has no place', () => {
    const points = [
      { x: 1, y: 1, mark: 'a' },
      { x: 1, y: 1, mark: 'b' },
      { x: 0, y: 1, mark: 'c' },
      { x: 1, y: Number.NaN, mark: 'd' },
    ];
    assert.equal(terminalScatter(points, { columns: 3, rows: 2, label })[0], '1 ┤b');
    assert.deepEqual(terminalScatter(points.slice(2), { columns: 3, rows: 2, label }), []);
  });
});
