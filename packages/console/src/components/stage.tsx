import { type ReadonlySignal, useComputed } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import type { SeriesSpec } from '../charts/chart-spec.ts';
import { toneOfClass } from '../charts/palette.ts';
import { useConsole } from '../state/console-state.ts';
import { type ClassTelemetry, type Frame, observed } from '../state/frame.ts';
import { Figure, tip } from './figure.tsx';
import { amount, count, dollars, finePercent, latencyText, percent, words } from './format.ts';
import { LazyMemoryUse } from './lazy.tsx';
import { ArrivalsView, GpuViews, QueueView } from './stage-views.tsx';

const UNKNOWN = '–';

/** The way of a request through the server: it arrives, waits, runs, is answered, in time or not. */
export function Stage(): JSX.Element {
  const state = useConsole();
  const { value: hasClasses } = useComputed(() => (state.shown.value?.telemetry.classes.length ?? 0) > 0);
  const { value: hasGpus } = useComputed(() => (state.shown.value?.telemetry.gpus.length ?? 1) > 0);
  return (
    <section class="panel stage" aria-label="The server now">
      <Station title="Arrive" size="wide">
        <div class="side-figures stack">
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
        <div class="side-figures stack">
          <Observed label="KV in use" field="kv_cache_occupancy" format={percent} />
          <Observed optional label="Preempted" field="eviction_events" format={count} />
        </div>
        <GpuViews />
        {!hasGpus && <LazyMemoryUse />}
      </Station>
      <Station title="Answer">
        <Observed large optional label="Tokens" field="throughput_tps" format={count} unit="/s" />
        <div class="side-figures level stack">
          <Observed optional label="For 1,000" field="estimated_cost_per_1k" format={dollars} />
          <Observed
            optional
            label="Cost so far"
            field="cost_so_far"
            format={(cents) => dollars(cents / 100)}
          />
          <Observed
            optional
            label="Quality"
            definition="Benchmark accuracy that the weights keep at this precision, relative to FP16"
            value={({ telemetry }) => telemetry.quality}
            format={finePercent}
          />
        </div>
      </Station>
      <Station title="In time" size="wide">
        <Observed large label="Inside their SLO" field="slo_compliance_rate" format={percent} />
        {hasClasses ? (
          <ClassShares of={inTime} />
        ) : (
          <Observed label="Slowest 1 % start" field="p99_ttft_ms" value={slowestStart} format={latencyText} />
        )}
      </Station>
    </section>
  );
}

interface StationProps {
  readonly title: string;
  readonly size?: 'wide' | 'widest';
  readonly children: ComponentChildren;
}

export function Station({ title, size, children }: StationProps): JSX.Element {
  return (
    <div class={`station stack ${size ?? ''}`}>
      <h2 class="fine">{title}</h2>
      <div class="station-body stack fill">{children}</div>
    </div>
  );
}

/** Zero means that nothing was measured in the window. */
function slowestStart(frame: Frame): number | undefined {
  return observed(frame, 'p99_ttft_ms') || undefined;
}

function inTime({ name, waiting, running, sloCompliance, ttftP99Ms }: ClassTelemetry): ClassShare {
  return {
    share: sloCompliance ?? 0,
    text: sloCompliance === undefined ? UNKNOWN : percent(sloCompliance),
    hint: `${words(name)}: ${count(waiting)} waiting, ${count(running)} running${startText(ttftP99Ms)}`,
  };
}

/** The end of a sentence on a class, where a start was measured. */
export function startText(ttftP99Ms: number | undefined): string {
  return ttftP99Ms ? `, slowest start ${latencyText(ttftP99Ms)}` : '';
}

/** A quantity of a chart, as a number: by default that of its field. */
interface ObservedProps
  extends Pick<SeriesSpec, 'label' | 'field' | 'definition' | 'format'>,
    Partial<Pick<SeriesSpec, 'value'>> {
  readonly unit?: string;
  readonly large?: boolean;
  /** Left out where the server does not tell. */
  readonly optional?: boolean;
  /** Default: the window shown, of the run in focus. */
  readonly of?: ReadonlySignal<Frame | undefined>;
}

export function Observed(props: ObservedProps): JSX.Element | null {
  const {
    field = '',
    value: read = (frame) => observed(frame, field),
    format,
    optional,
    of,
    ...rest
  } = props;
  const state = useConsole();
  const shown = of ?? state.shown;
  const figure = useComputed(() => {
    const value = shown.value && read(shown.value);
    return typeof value === 'number' ? format(value) : UNKNOWN;
  });
  const { value: isUnknown } = useComputed(
    () => state.latest.value !== undefined && read(state.latest.value) === undefined,
  );
  if (optional && isUnknown) return null;
  return <Figure {...rest} field={field} figure={figure} />;
}

export interface ClassShare {
  /** 0..1 */
  readonly share: number;
  readonly text: string;
  readonly hint?: string;
}

export function ClassShares({
  of,
}: {
  of: (entry: ClassTelemetry, frame: Frame) => ClassShare;
}): JSX.Element {
  const frame = useConsole().shown.value;
  return (
    <ul class="classes stack fill">
      {frame?.telemetry.classes.map((entry, index) => {
        const { share, text, hint } = of(entry, frame);
        return (
          <li key={entry.name} {...tip(hint)}>
            <span class="clipped nowrap">{words(entry.name)}</span>
            <Meter bars={{ [toneOfClass(entry.name, index)]: share }} />
            <span class="bold">{text}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** A bar that is filled to shares of 1, each in a colour of the style sheets; later ones lie over earlier ones. */
export function Meter({ bars }: { bars: Readonly<Record<string, number>> }): JSX.Element {
  return (
    <span class="meter">
      {Object.entries(bars).map(([tone, share]) => (
        <span key={tone} style={{ transform: `scaleX(${share})`, background: `var(--${tone})` }} />
      ))}
    </span>
  );
}
