import type { JSX } from 'preact';
import type { Fields, Grade } from '../api/wire.ts';
import { RUN_LOOKS } from '../charts/palette.ts';
import { Button } from '../components/controls.tsx';
import { tip } from '../components/figure.tsx';
import { amount, count, signed, words } from '../components/format.ts';
import { addStyles } from '../components/lazy.tsx';
import { useConsole } from '../state/console-state.ts';
import { playerName, type Run } from '../state/run.ts';
import styles from '../styles/score.css?inline';
import scoreWords from './score-words.json' with { type: 'json' };

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
  const anchors = grade ? anchorsOf(grade) : [];
  const rows = grade ? numbersIn(grade.breakdown) : [];
  return (
    <section class="panel score row wrap" aria-label="Score" aria-live="polite" aria-busy={isGrading}>
      <div class="score-figure" {...tip('From 0 to 1; the server replays the episode to grade it')}>
        <h2>{grade || isGrading ? 'Score' : 'Return'}</h2>
        <p class="row baseline gap">
          <strong>{grade ? grade.score.toFixed(3) : isGrading ? '…' : signed(latest.totalReward)}</strong>
          {grade && <span class="unit">of 1</span>}
        </p>
      </div>
      <div class="score-words">
        <p>{grade ? grade.feedback : isGrading && 'The server replays the episode and grades it.'}</p>
        {grade && anchors.length > 1 && (
          <>
            <AnchorScale anchors={anchors} runs={graded} />
            <p class="fine">{standing(grade, anchors)}</p>
          </>
        )}
        {rows.length > 0 && (
          <dl class="breakdown small row wrap">
            {rows.map(([name, value]) => (
              <div key={name} class="gap" {...tip(BREAKDOWN[name])}>
                <dt>{words(name)}</dt>
                <dd>{value < 0 ? signed(value) : Number.isInteger(value) ? count(value) : amount(value)}</dd>
              </div>
            ))}
          </dl>
        )}
      </div>
      <div class="score-next gap">
        <Button
          look="primary"
          text="Next seed"
          onClick={() => state.chooseSeed(state.seed.value + 1, true)}
        />
        <Button text="Same again" onClick={() => void state.restart().then(state.togglePlay)} />
      </div>
      {state.runs.value.length > 1 && <span class="sr-only">Shown: {playerName(state, run)}</span>}
    </section>
  );
}

/** An agent that the grader played on the same traffic. */
interface Anchor {
  readonly name: string;
  readonly score: number;
  /** Its return, where the grader tells. */
  readonly total: number | undefined;
}

/** The words for an anchor (on the scale, in a sentence, and what it is), and for the numbers of a breakdown. */
const { anchors: ANCHORS, breakdown: BREAKDOWN } = scoreWords as {
  readonly anchors: Readonly<Record<string, { label: string; phrase: string; meaning: string } | undefined>>;
  readonly breakdown: Readonly<Record<string, string | undefined>>;
};

/** The anchors that the grader scores, the lowest first. */
function anchorsOf({ breakdown: { anchor_scores: scores, anchors } }: Grade): Anchor[] {
  if (typeof scores !== 'object' || scores === null) return [];
  return Object.entries(scores)
    .map(([name, score]) => {
      const total = (anchors as Fields | undefined)?.[name];
      return { name, score: Number(score), total: typeof total === 'number' ? total : undefined };
    })
    .sort((a, b) => a.score - b.score);
}

/** The score in words: the anchors that it is between. */
function standing({ score, breakdown }: Grade, anchors: readonly Anchor[]): string {
  const text = ({ name, score: at }: Anchor) => `${ANCHORS[name]?.phrase ?? words(name)} (${at.toFixed(2)})`;
  const below = anchors.findLast((anchor) => anchor.score <= score);
  const above = anchors.find((anchor) => anchor.score > score);
  const estimated = (breakdown.anchors as Fields | undefined)?.estimated === true;
  const note = estimated
    ? ' What sees the future was not played on this traffic: its return is an estimate.'
    : '';
  const own = score.toFixed(3);
  if (below === undefined)
    return `${own} is below ${text(above!)}: the further below, the slower it falls.${note}`;
  if (below.score > score - 0.0005) return `${own} is the score of ${text(below)}.${note}`;
  if (above !== undefined) return `${own} is between ${text(below)} and ${text(above)}.${note}`;
  return `${own} is above ${text(below)}. That plan is good and not the best there is, so a run can pass it; from there each further gain counts less, and no score reaches 1.${note}`;
}

/** Labels nearer than this would run into one another, share of the scale. */
const LABEL_WIDTH = 0.19;

/** The scores of the runs on a line from 0 to 1 with the anchors. */
function AnchorScale({ anchors, runs }: { anchors: readonly Anchor[]; runs: readonly Run[] }): JSX.Element {
  const state = useConsole();
  const ends: number[] = [];
  const labels = anchors.map((anchor) => {
    const free = ends.findIndex((end) => anchor.score - end > LABEL_WIDTH);
    const row = free < 0 ? ends.length : free;
    ends[row] = anchor.score;
    return { ...anchor, row };
  });
  const texts = anchors.map(
    ({ name, score }) => `${ANCHORS[name]?.label ?? words(name)} ${score.toFixed(2)}`,
  );
  return (
    <div
      class="anchor-scale"
      role="img"
      aria-label={`Scores on the same traffic: ${texts.join(', ')}`}
      style={{ '--rows': ends.length }}
    >
      {labels.map(({ name, total, score, row }, i) => (
        <span
          key={name}
          class="anchor muted nowrap"
          style={{ left: `${score * 100}%`, '--row': row }}
          {...tip(
            `${ANCHORS[name]?.meaning ?? words(name)}${total === undefined ? '' : `: return ${signed(total)}`}`,
          )}
        >
          <i />
          {texts[i]}
        </span>
      ))}
      {runs.map((run) => (
        <span
          key={run.place}
          class="mark"
          style={{
            left: `${run.grade.value!.score * 100}%`,
            color: `var(--${RUN_LOOKS[run.place].tone})`,
          }}
          {...tip(`${playerName(state, run)}: ${run.grade.value!.score.toFixed(3)}`)}
        />
      ))}
    </div>
  );
}

/** The numbers of a breakdown beside those of the anchors, however deep, each under its path. */
function numbersIn(fields: Fields, path: readonly string[] = []): [string, number][] {
  return Object.entries(fields).flatMap(([name, value]): [string, number][] => {
    if (name === 'anchors' || name === 'anchor_scores') return [];
    const here = [...path, name];
    if (typeof value === 'number') return [[here.join(' '), value]];
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return numbersIn(value as Fields, here);
    return [];
  });
}
