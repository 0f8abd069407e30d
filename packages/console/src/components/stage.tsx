import type { JSX } from 'preact';
import { toneOfClass } from '../charts/palette.ts';
import type { ClassTelemetry, GpuTelemetry } from '../llmserve/telemetry.ts';
import { type Frame, observed } from '../state/frame.ts';
import { useConsole } from './console-context.ts';
import { Figure } from './figure.tsx';
import { amount, count, dollars, finePercent, latency, latencyText, percent, words } from './format.ts';
import { MemoryMap } from './memory-map.tsx';
import { QueueView } from './queue-view.tsx';
import { tip } from './tooltip.tsx';

const UNKNOWN = '–';

/** The way of a request through the server: it arrives, waits, runs, is answered, in time or not. */
export function Stage(): JSX.Element {
  const frame = useConsole().shown.value;
  return (
    <section class="stage" aria-label="The server now">
      <Station title="Arrive">
        <Observed
          frame={frame}
          large
          label="Requests"
          field="request_arrival_rate"
          format={amount}
          unit="/s"
        />
        <Observed frame={frame} label="Mean prompt" field="mean_prompt_length" format={count} unit="tokens" />
      </Station>
      <Station title="Wait" wide>
        <Observed frame={frame} large label="In the queue" field="queue_depth" format={count} />
        <QueueView />
      </Station>
      <Station title="Run" widest>
        <RunFigures frame={frame} />
        <Gpus />
      </Station>
      <Station title="Answer">
        <Observed frame={frame} large label="Tokens" field="throughput_tps" format={count} unit="/s" />
        <div class="side-figures level">
          <Observed frame={frame} label="For 1,000" field="estimated_cost_per_1k" format={dollars} />
          <Quality quality={frame?.telemetry.quality} />
        </div>
      </Station>
      <Station title="In time" wide>
        <Promises frame={frame} />
      </Station>
    </section>
  );
}

function Station(props: {
  title: string;
  wide?: boolean;
  widest?: boolean;
  children: JSX.Element | JSX.Element[];
}): JSX.Element {
  return (
    <div class={`station${props.wide ? ' wide' : ''}${props.widest ? ' widest' : ''}`}>
      <h2>{props.title}</h2>
      <div class="station-body">{props.children}</div>
    </div>
  );
}

interface NumberProps {
  readonly frame: Frame | undefined;
  readonly label: string;
  readonly field: string;
  readonly format: (value: number) => string;
  readonly unit?: string;
  readonly large?: boolean;
}

function Observed({ frame, field, format, ...rest }: NumberProps): JSX.Element {
  const value = frame && observed(frame, field);
  return <Figure {...rest} field={field} figure={value === undefined ? UNKNOWN : format(value)} />;
}

function Quality({ quality }: { quality: number | undefined }): JSX.Element | null {
  if (quality === undefined) return null;
  return (
    <Figure
      label="Quality"
      definition="Benchmark accuracy that the weights keep at this precision, relative to FP16"
      figure={finePercent(quality)}
    />
  );
}

function RunFigures({ frame }: { frame: Frame | undefined }): JSX.Element {
  const running = frame && observed(frame, 'active_requests');
  const cap = frame?.action?.batch_cap;
  return (
    <>
      <Figure
        large
        label="Running"
        field="active_requests"
        figure={running === undefined ? UNKNOWN : count(running)}
        unit={typeof cap === 'number' ? `of ${count(cap)}` : undefined}
      />
      <div class="side-figures">
        <Observed frame={frame} label="KV in use" field="kv_cache_occupancy" format={percent} />
        <Observed frame={frame} label="Preempted" field="eviction_events" format={count} />
      </div>
    </>
  );
}

const ROLES: Readonly<Record<string, string>> = {
  mixed: 'reads and writes',
  prefill: 'reads prompts',
  decode: 'writes answers',
};

function Gpus(): JSX.Element | null {
  const state = useConsole();
  const gpus = state.shown.value?.telemetry.gpus ?? [];
  if (gpus.length === 0) return null;
  return (
    <div class="gpus">
      {gpus.map((gpu, i) => (
        <div class={gpu.reloading ? 'gpu reloading' : 'gpu'} key={i}>
          <p class="gpu-title" {...tip(memoryText(gpu))}>
            <b>GPU {i + 1}</b> {gpu.reloading ? 'reloads' : (ROLES[gpu.role] ?? words(gpu.role))}
          </p>
          <MemoryMap
            gpu={() => state.shown.value?.telemetry.gpus[i]}
            label={memoryText(gpu) ?? 'KV blocks in use'}
          />
        </div>
      ))}
    </div>
  );
}

function memoryText({ memory }: GpuTelemetry): string | undefined {
  if (!memory) return undefined;
  const part = (name: string, gb: number) => `${name} ${amount(gb)} GiB`;
  return [
    part('Weights', memory.weights),
    part('overhead', memory.overhead),
    part('draft', memory.draft),
    part('KV pool', memory.kvPool),
    part('neighbours', memory.tenant),
    part('of', memory.limit),
  ].join(', ');
}

function Promises({ frame }: { frame: Frame | undefined }): JSX.Element {
  const compliance = frame && observed(frame, 'slo_compliance_rate');
  const ttft = frame && observed(frame, 'p99_ttft_ms');
  const [figure, unit] = ttft ? latency(ttft) : [UNKNOWN, ''];
  const classes = frame?.telemetry.classes ?? [];
  return (
    <>
      <Figure
        large
        label="Inside their SLO"
        field="slo_compliance_rate"
        figure={compliance === undefined ? UNKNOWN : percent(compliance)}
      />
      {classes.length > 0 ? (
        <ul class="classes">
          {classes.map((entry, i) => (
            <ClassRow key={entry.name} entry={entry} index={i} />
          ))}
        </ul>
      ) : (
        <Figure label="Slowest start" field="p99_ttft_ms" figure={figure} unit={unit} />
      )}
    </>
  );
}

function ClassRow({ entry, index }: { entry: ClassTelemetry; index: number }): JSX.Element {
  const { sloCompliance, ttftP99Ms } = entry;
  const definition = [
    `${words(entry.name)}: ${count(entry.waiting)} waiting, ${count(entry.running)} running`,
    ttftP99Ms ? `slowest start ${latencyText(ttftP99Ms)}` : undefined,
  ]
    .filter(Boolean)
    .join(', ');
  return (
    <li {...tip(definition)}>
      <span class="swatch" style={{ background: `var(--tone-${toneOfClass(entry.name, index)})` }} />
      <span class="class-name">{words(entry.name)}</span>
      <span class="meter">
        <span
          style={{
            width: `${(sloCompliance ?? 0) * 100}%`,
            background: `var(--tone-${toneOfClass(entry.name, index)})`,
          }}
        />
      </span>
      <span class="class-value">{sloCompliance === undefined ? UNKNOWN : percent(sloCompliance)}</span>
    </li>
  );
}
