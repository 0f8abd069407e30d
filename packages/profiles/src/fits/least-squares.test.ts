import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Matrix } from 'ml-matrix';
import { leastSquares } from './least-squares.ts';

it('takes slopes that are known instead of measuring them', () => {
  const slopes = [
    [1, 2],
    [3, -1],
    [0, 1],
  ];
  // Finite differences move one parameter alone.
  const movedAlone: string[] = [];
  const residualsAt = ([x, y]: readonly number[]) => {
    if ((x === 0) !== (y === 0)) movedAlone.push(`${x}, ${y}`);
    return slopes.map(([a, b], row) => a * x + b * y - [8, 3, 3][row]);
  };
  const { parameters } = leastSquares(residualsAt, [0, 0], { slopes: new Matrix(slopes) });
  assert.deepEqual(
    parameters.map((value) => Number(value.toFixed(6))),
    [2, 3],
  );
  assert.deepEqual(movedAlone, []);
});
