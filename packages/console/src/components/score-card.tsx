import type { JSX } from 'preact';
import type { Fields } from '../api/wire.ts';
import { useConsole } from './console-context.ts';
import { amount, signed, words } from './format.ts';
import { tip } from './tooltip.tsx';

/** The grade of the finished episode. */
export function ScoreCard(): JSX.Element | null {
  const state = useConsole();
  const grade = state.grade.value;
  if (!grade) return null;
  const rows = numbersIn(grade.breakdown);
  return (
    <section class="panel score" aria-label="Score" aria-live="polite">
      <div class="score-figure" {...tip('From 0 to 1; the server replays the episode to grade it')}>
        <h2>Score</h2>
        <p>
          <strong>{grade.score.toFixed(3)}</strong>
          <span class="unit">of 1</span>
        </p>
        <div class="score-bar">
          <span style={{ width: `${grade.score * 100}%` }} />
        </div>
      </div>
      <div class="score-words">
        <p>{grade.feedback}</p>
        {rows.length > 0 && (
          <dl class="breakdown">
            {rows.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value < 0 ? signed(value) : amount(value)}</dd>
              </div>
            ))}
          </dl>
        )}
      </div>
      <div class="score-next">
        <button
          type="button"
          class="button primary"
          onClick={() => state.chooseSeed(state.seed.value + 1, true)}
        >
          Next seed
        </button>
        <button type="button" class="button" onClick={state.togglePlay}>
          Same again
        </button>
      </div>
    </section>
  );
}

/** The numbers of a breakdown, however deep, each under its path in words. */
function numbersIn(fields: Fields, path: readonly string[] = []): [string, number][] {
  return Object.entries(fields).flatMap(([name, value]): [string, number][] => {
    const here = [...path, name];
    if (typeof value === 'number') return [[words(here.join(' ')), value]];
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return numbersIn(value as Fields, here);
    return [];
  });
}
