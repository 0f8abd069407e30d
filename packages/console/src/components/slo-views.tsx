import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { toneOfClass } from '../charts/palette.ts';
import type { ClassTelemetry } from '../llm-server/telemetry.ts';
import { observed } from '../state/observed.ts';
import { useConsole } from './console-context.ts';
import { Figure } from './figure.tsx';
import { count, latencyText, percent, words } from './format.ts';
import { tip } from './tooltip.tsx';

const UNKNOWN = '–';

/** How many requests of each class are in time; without classes, the slowest start. */
export function SloViews(): JSX.Element {
  const state = useConsole();
  const slowest = useComputed(() => {
    const ttft = state.shown.value && observed(state.shown.value, 'p99_ttft_ms');
    return ttft ? latencyText(ttft) : UNKNOWN;
  });
  const classes = state.shown.value?.telemetry.classes ?? [];
  if (classes.length === 0) return <Figure label="Slowest 1 % start" field="p99_ttft_ms" figure={slowest} />;
  return (
    <ul class="classes">
      {classes.map((entry, i) => (
        <ClassRow key={entry.name} entry={entry} index={i} />
      ))}
    </ul>
  );
}

function ClassRow({ entry, index }: { entry: ClassTelemetry; index: number }): JSX.Element {
  const { name, waiting, running, sloCompliance, ttftP99Ms } = entry;
  const start = ttftP99Ms ? `, slowest start ${latencyText(ttftP99Ms)}` : '';
  const share = sloCompliance ?? 0;
  return (
    <li {...tip(`${words(name)}: ${count(waiting)} waiting, ${count(running)} running${start}`)}>
      <span class="class-name">{words(name)}</span>
      <span class="meter">
        <span
          style={{ transform: `scaleX(${share})`, background: `var(--tone-${toneOfClass(name, index)})` }}
        />
      </span>
      <span class="class-value">{sloCompliance === undefined ? UNKNOWN : percent(sloCompliance)}</span>
    </li>
  );
}
