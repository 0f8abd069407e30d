import { useComputed } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { toneOfClass } from '../charts/palette.ts';
import { useConsole } from '../state/console-state.ts';
import { type ClassTelemetry, observed } from '../state/frame.ts';
import { Figure, tip } from './figure.tsx';
import { amount, count, dollars, finePercent, latencyText, percent, words } from './format.ts';
import { LazyMemoryUse } from './lazy.tsx';
import { ArrivalsView, GpuViews, QueueView } from './stage-views.tsx';

const UNKNOWN = '–';

/** The way of a request through the server: it arrives, waits, runs, is answered, in time or not. */
export function Stage(): JSX.Element {
  const state = useConsole();
  const { value: hasGpus } = useComputed(() => (state.shown.value?.telemetry.gpus.length ?? 1) > 0);
  return (
    <section class="stage" aria-label="The server now">
      <Station title="Arrive" size="wide">
        <div class="side-figures">
          <Observed large label="Requests" field="request_arrival_rate" format={amount} unit="/s" />
          <Observed label="Mean prompt" field="mean_prompt_length" format={count} unit="tokens" />
        </div>
        <ArrivalsView />
      </Station>
      <Station title="Wait" size="wide">
        <Observed large label="In the queue" field="queue_depth" format={count} />
        <QueueView />
      </Station>
      <Station title="Run" size="widest">
        <Observed large optional label="Running" field="active_requests" format={count} />
        <div class="side-figures">
          <Observed label="KV in use" field="kv_cache_occupancy" format={percent} />
          <Observed optional label="Preempted" field="eviction_events" format={count} />
        </div>
        <GpuViews />
        {!hasGpus && <LazyMemoryUse />}
      </Station>
      <Station title="Answer">
        <Observed large optional label="Tokens" field="throughput_tps" format={count} unit="/s" />
        <div class="side-figures level">
          <Observed optional label="For 1,000" field="estimated_cost_per_1k" format={dollars} />
          <Observed
            optional
            label="Cost so far"
            field="cost_so_far"
            format={(cents) => dollars(cents / 100)}
          />
          <Quality />
        </div>
      </Station>
      <Station title="In time" size="wide">
        <Observed large label="Inside their SLO" field="slo_compliance_rate" format={percent} />
        <SloViews />
      </Station>
    </section>
  );
}

interface StationProps {
  readonly title: string;
  readonly size?: 'wide' | 'widest';
  readonly children: ComponentChildren;
}

/** A part of the way of a request. */
export function Station({ title, size, children }: StationProps): JSX.Element {
  return (
    <div class={`station ${size ?? ''}`}>
      <h2>{title}</h2>
      <div class="station-body">{children}</div>
    </div>
  );
}

interface ObservedProps {
  readonly label: string;
  readonly field: string;
  readonly format: (value: number) => string;
  readonly unit?: string;
  readonly large?: boolean;
  /** Left out where the server does not tell. */
  readonly optional?: boolean;
}

/** A number of the observation. */
export function Observed({ field, format, optional, ...rest }: ObservedProps): JSX.Element | null {
  const state = useConsole();
  const figure = useComputed(() => {
    const value = state.shown.value && observed(state.shown.value, field);
    return value === undefined ? UNKNOWN : format(value);
  });
  const { value: isUnknown } = useComputed(
    () => state.latest.value !== undefined && observed(state.latest.value, field) === undefined,
  );
  if (optional && isUnknown) return null;
  return <Figure {...rest} field={field} figure={figure} />;
}

function Quality(): JSX.Element | null {
  const state = useConsole();
  const figure = useComputed(() => {
    const quality = state.shown.value?.telemetry.quality;
    return quality === undefined ? '' : finePercent(quality);
  });
  const { value: isUnknown } = useComputed(() => figure.value === '');
  if (isUnknown) return null;
  return (
    <Figure
      label="Quality"
      definition="Benchmark accuracy that the weights keep at this precision, relative to FP16"
      figure={figure}
    />
  );
}

/** Share of each class that is in time; without classes, the slowest start. */
function SloViews(): JSX.Element {
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
  return (
    <ClassMeter
      name={name}
      index={index}
      share={sloCompliance ?? 0}
      text={sloCompliance === undefined ? UNKNOWN : percent(sloCompliance)}
      hint={`${words(name)}: ${count(waiting)} waiting, ${count(running)} running${start}`}
    />
  );
}

interface ClassMeterProps {
  readonly name: string;
  readonly index: number;
  /** 0..1 */
  readonly share: number;
  readonly text: string;
  readonly hint?: string;
}

/** A share of a request class. */
export function ClassMeter({ name, index, share, text, hint }: ClassMeterProps): JSX.Element {
  return (
    <li {...tip(hint)}>
      <span class="class-name">{words(name)}</span>
      <span class="meter">
        <span
          style={{ transform: `scaleX(${share})`, background: `var(--tone-${toneOfClass(name, index)})` }}
        />
      </span>
      <span class="class-value">{text}</span>
    </li>
  );
}
