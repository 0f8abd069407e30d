import type { JSX } from 'preact';
import type { Fields, Grade } from '../api/wire.ts';
import { RUN_LOOKS } from '../charts/palette.ts';
import { useConsole } from '../components/console-context.ts';
import { amount, signed, words } from '../components/format.ts';
import { addStyles } from '../components/later.tsx';
import { tip } from '../components/tooltip.tsx';
import { playerName, type Run } from '../state/run.ts';
import styles from '../styles/score.css?inline';

addStyles(styles);

/** The grades of the finished episodes, against the anchors of their traffic. */
export function ScoreCard(): JSX.Element | null {
  const state = useConsole();
  const run = state.run.value;
  const latest = state.latest.value;
  if (!latest?.done) return null;
  const grade = state.grade.value;
  const isGrading = !grade && state.abilities.value.grader;
  const graded = state.runs.value.filter((one) => one.grade.value);
  const anchors = grade ? anchorsOf(grade) : {};
  const rows = grade ? numbersIn(grade.breakdown) : [];
  return (
    <section class="panel score" aria-label="Score" aria-live="polite" aria-busy={isGrading}>
      <div class="score-figure" {...tip('From 0 to 1; the server replays the episode to grade it')}>
        <h2>{grade || isGrading ? 'Score' : 'Return'}</h2>
        <p>
          <strong>{grade ? grade.score.toFixed(3) : isGrading ? '…' : signed(latest.totalReward)}</strong>
          {grade && <span class="unit">of 1</span>}
        </p>
      </div>
      <div class="score-words">
        <p>{grade ? grade.feedback : isGrading && 'The server replays the episode and grades it.'}</p>
        {Object.keys(anchors).length > 1 && <AnchorScale anchors={anchors} runs={graded} />}
        {rows.length > 0 && (
          <dl class="breakdown">
            {rows.map(([name, value]) => (
              <div key={name} {...tip(BREAKDOWN_DEFINITIONS[name])}>
                <dt>{words(name)}</dt>
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
        <button type="button" class="button" onClick={() => void state.restart().then(state.togglePlay)}>
          Same again
        </button>
      </div>
      {state.runs.value.length > 1 && <span class="sr-only">Shown: {playerName(state, run)}</span>}
    </section>
  );
}

const BREAKDOWN_DEFINITIONS: Readonly<Record<string, string | undefined>> = {
  return: 'The sum of the rewards',
  regret: 'How much more the planner collects that knows the traffic',
  'certificate bound': 'No plan at all can collect more on this traffic',
  'certificate gap': 'How far the planner that knows the traffic may be from the best there is',
  requests_served: 'Requests that were answered',
  requests_rejected: 'Requests that can never fit the KV pool',
  slo_violations: 'Requests that were late for their SLO',
  preemptions: 'Requests thrown out of the batch for want of KV blocks, to be computed again',
  cost_usd: 'What the GPUs cost for the time of the episode, USD',
};

/** Returns that the grader measured on the same traffic, by their names. A bound that nobody reaches is left out. */
function anchorsOf({ breakdown }: Grade): Record<string, number> {
  const anchors = breakdown.anchors;
  if (typeof anchors !== 'object' || anchors === null) return {};
  return Object.fromEntries(
    Object.entries(anchors).filter(([name, value]) => name !== 'bound' && typeof value === 'number'),
  ) as Record<string, number>;
}

/** Labels nearer than this would run into one another, share of the scale. */
const LABEL_WIDTH = 0.1;

/** The returns of the runs on a line with the anchors. */
function AnchorScale({
  anchors,
  runs,
}: {
  anchors: Record<string, number>;
  runs: readonly Run[];
}): JSX.Element {
  const state = useConsole();
  const returns = runs.map((run) => run.latest.value!.totalReward);
  const values = [...Object.values(anchors), ...returns];
  const low = Math.min(...values);
  const high = Math.max(...values);
  const at = (value: number) => (high === low ? 0.5 : (value - low) / (high - low));
  const ends: number[] = [];
  const labels = Object.entries(anchors)
    .sort(([, a], [, b]) => a - b)
    .map(([name, value]) => {
      const place = at(value);
      const free = ends.findIndex((end) => place - end > LABEL_WIDTH);
      const row = free < 0 ? ends.length : free;
      ends[row] = place;
      return { name, value, place, row };
    });
  return (
    <div class="anchor-scale" role="img" aria-label={scaleText(anchors)} style={{ '--rows': ends.length }}>
      {labels.map(({ name, value, place, row }) => (
        <span
          key={name}
          class="anchor"
          style={{ left: `${place * 100}%`, '--row': row }}
          {...tip(`${words(name)}: ${signed(value)}`)}
        >
          <i />
          {words(name)}
        </span>
      ))}
      {runs.map((run, i) => (
        <span
          key={run.place}
          class="mark"
          style={{ left: `${at(returns[i]) * 100}%`, color: `var(--tone-${RUN_LOOKS[run.place].tone})` }}
          {...tip(`${playerName(state, run)}: ${signed(returns[i])}`)}
        />
      ))}
    </div>
  );
}

function scaleText(anchors: Record<string, number>): string {
  const texts = Object.entries(anchors).map(([name, value]) => `${words(name)} ${signed(value)}`);
  return `Returns on the same traffic: ${texts.join(', ')}`;
}

/** The numbers of a breakdown beside the anchors, however deep, each under its path. */
function numbersIn(fields: Fields, path: readonly string[] = []): [string, number][] {
  return Object.entries(fields).flatMap(([name, value]): [string, number][] => {
    if (name === 'anchors') return [];
    const here = [...path, name];
    if (typeof value === 'number') return [[here.join(' '), value]];
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return numbersIn(value as Fields, here);
    return [];
  });
}
