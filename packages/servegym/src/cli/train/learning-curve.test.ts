import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { learningCurvePage, learningCurveSvg } from './learning-curve.ts';

const lines = [
  { steps: 10, mean_return: null, entropy: 3 },
  { steps: 20, mean_return: 5, entropy: 2 },
  { steps: 30, mean_return: 7, entropy: 1 },
];

describe('the learning curve', () => {
  it('leaves out updates in which no episode ended', () => {
    const corners = /<path d="(M[^"H]*)" fill="none"/.exec(learningCurveSvg('run', lines))![1];
    assert.equal(corners.split('L').length, 2);
  });

  it('is the first chart of a page that loads nothing', () => {
    const page = learningCurvePage('PPO on a < b', lines);
    const titles = [...page.matchAll(/font-size="15" fill="#111">([^<]*)</g)].map((match) => match[1]);
    assert.deepEqual(titles, ['mean return', 'entropy']);
    assert.match(page, /<title>PPO on a &lt; b<\/title>/);
    assert.doesNotMatch(page.replaceAll('http://www.w3.org/2000/svg', ''), /https?:|<script|<link|src=/);
    assert.match(learningCurvePage('empty', []), /<\/html>/);
  });
});
