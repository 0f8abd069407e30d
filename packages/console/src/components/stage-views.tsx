import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { palette, type Tone, toneOfClass } from '../charts/palette.ts';
import { kvShare } from '../llm-server/charts.ts';
import { useConsole } from '../state/console-state.ts';
import { type GpuTelemetry, observed } from '../state/frame.ts';
import { type CellGroup, gridFor, shareCells, thingsPerCell, useCanvas } from './canvas.ts';
import { tip } from './figure.tsx';
import { amount, count, words } from './format.ts';

/** Width of a window's bar and the space beside it, rem. */
const BAR_REM = 0.3;
const GAP_REM = 0.1;

/** The requests of the latest windows as they arrived, a bar a window, stacked by class; the newest at the right. */
export function ArrivalsView(): JSX.Element {
  const state = useConsole();
  const scene = useComputed(() => {
    const frame = state.shown.value;
    return { frames: state.frames.value, last: frame?.index ?? 0 };
  });
  const canvas = useCanvas(
    () => ({ ...scene.value, colors: palette.value }),
    (context, { width, height, rem }, { frames, last, colors }) => {
      const bar = Math.round(BAR_REM * rem);
      const stride = bar + Math.max(1, Math.round(GAP_REM * rem));
      const bars = Math.floor((width + stride - bar) / stride);
      const first = Math.max(1, last - bars + 1);
      const windows = frames.slice(first, last + 1);
      const most = Math.max(1, ...windows.map((frame) => arrivals(frame.telemetry.classes) ?? rate(frame)));
      windows.forEach((frame, i) => {
        const x = width - (windows.length - i) * stride + (stride - bar);
        let y = height;
        const classes = frame.telemetry.classes;
        const parts =
          arrivals(classes) === undefined
            ? [{ tone: 'arrivals' as const, size: rate(frame) }]
            : classes.map(({ name, arrived = 0 }, k) => ({ tone: toneOfClass(name, k), size: arrived }));
        for (const { tone, size } of parts) {
          const tall = (size / most) * height;
          context.fillStyle = colors[tone];
          context.fillRect(x, y - tall, bar, tall);
          y -= tall;
        }
      });
    },
  );
  return (
    <div
      class="arrivals stack fill"
      {...tip('Requests that arrived in each of the latest windows, by class')}
    >
      <canvas ref={canvas} role="img" aria-label="Requests that arrived in the latest windows" />
    </div>
  );
}

function arrivals(classes: readonly { readonly arrived?: number }[]): number | undefined {
  if (classes.length === 0 || classes[0].arrived === undefined) return undefined;
  return classes.reduce((sum, { arrived = 0 }) => sum + arrived, 0);
}

function rate(frame: Parameters<typeof observed>[0]): number {
  return observed(frame, 'request_arrival_rate') ?? 0;
}

/** The waiting requests as squares, the head of the queue at the right. */
export function QueueView(): JSX.Element {
  const state = useConsole();
  const perCell = useSignal(1);
  const groups = useComputed<CellGroup[]>(() => {
    const frame = state.shown.value;
    if (!frame) return [];
    const { classes } = frame.telemetry;
    if (classes.length === 0) return [{ tone: 'waiting', amount: observed(frame, 'queue_depth') ?? 0 }];
    return classes.map(({ name, waiting }, i) => ({ tone: toneOfClass(name, i), amount: waiting }));
  });
  const total = useComputed(() => groups.value.reduce((sum, { amount }) => sum + amount, 0));
  const legend = useComputed(() => {
    if (total.value === 0) return 'No request waits';
    return perCell.value > 1 ? `1 square = ${count(perCell.value)} requests` : '1 square = 1 request';
  });
  const canvas = useCanvas(
    () => ({ groups: groups.value, total: total.value, colors: palette.value }),
    (context, size, scene) => {
      const grid = gridFor(size);
      const unit = thingsPerCell(scene.total, grid.columns * grid.rows - scene.groups.length);
      perCell.value = unit;
      let index = 0;
      for (const { tone, amount } of scene.groups) {
        context.beginPath();
        for (let k = Math.ceil(amount / unit); k > 0; k--, index++) {
          const column = Math.floor(index / grid.rows);
          const x = size.width - (column + 1) * (grid.side + grid.gap) + grid.gap;
          const y = (index % grid.rows) * (grid.side + grid.gap);
          context.roundRect(x, y, grid.side, grid.side, grid.side / 4);
        }
        context.fillStyle = scene.colors[tone];
        context.fill();
      }
    },
  );
  return (
    <div class="queue-view stack fill">
      <canvas ref={canvas} role="img" aria-label="The waiting requests as squares" />
      <p class="fine nowrap">{legend}</p>
    </div>
  );
}

export function GpuViews(): JSX.Element | null {
  const state = useConsole();
  const { value: gpus } = useComputed(() => state.shown.value?.telemetry.gpus.length ?? 0);
  if (gpus === 0) return null;
  return (
    <div class="gpus fill">
      {Array.from({ length: gpus }, (_, index) => (
        <GpuView key={index} index={index} />
      ))}
    </div>
  );
}

/** Prefill reads prompts, decode writes answers; a GPU that does both has no role of its own. */
export const ROLES: Readonly<Record<string, string>> = { mixed: '', prefill: 'reads', decode: 'writes' };

/** A GPU: its role, and its memory as cells of what each part of it holds. */
function GpuView({ index }: { index: number }): JSX.Element {
  const state = useConsole();
  const gpu = useComputed(() => state.shown.value?.telemetry.gpus[index]);
  const { value: isReloading } = useComputed(() => gpu.value?.reloading === true);
  const { value: role } = useComputed(() => gpu.value?.role ?? '');
  const load = useComputed(() => loadText(gpu.value, state.shown.value?.action?.batch_cap));
  const { value: contents } = useComputed(() => contentsText(gpu.value));
  const holders = useComputed(() => {
    const frame = state.shown.value;
    const classes = frame?.telemetry.classes ?? [];
    return classes.map(({ name }, i) => ({ tone: toneOfClass(name, i), share: kvShare(frame!, i) }));
  });
  const canvas = useCanvas(
    () => ({ gpu: gpu.value, holders: holders.value, colors: palette.value }),
    (context, size, scene) => {
      const grid = gridFor(size);
      const cells = grid.columns * grid.rows;
      const groups = scene.gpu ? memoryGroups(scene.gpu, scene.holders) : [];
      const capacity = scene.gpu?.memory?.limit ?? scene.gpu?.kvBlocksTotal ?? 1;
      const shares = shareCells(groups, capacity, cells);
      const left = (size.width - (grid.columns * (grid.side + grid.gap) - grid.gap)) / 2;
      let cell = 0;
      const traceCells = (count: number) => {
        context.beginPath();
        for (const end = cell + count; cell < end; cell++) {
          const x = left + Math.floor(cell / grid.rows) * (grid.side + grid.gap);
          const y = (cell % grid.rows) * (grid.side + grid.gap);
          context.roundRect(x + 0.5, y + 0.5, grid.side - 1, grid.side - 1, grid.side / 5);
        }
      };
      groups.forEach((group, i) => {
        traceCells(shares[i]);
        context.fillStyle = context.strokeStyle = scene.colors[group.tone];
        if (group.hollow) context.stroke();
        else context.fill();
      });
      traceCells(cells - cell);
      context.strokeStyle = scene.colors.line;
      context.stroke();
    },
  );
  return (
    <div class={`gpu stack fill ${isReloading ? 'reloading' : ''}`}>
      <p class="gpu-title fine row nowrap" {...tip(contents)}>
        <span class="bold">GPU {index + 1}</span>
        <span class="clipped">{isReloading ? 'reloads' : (ROLES[role] ?? words(role))}</span>
        <span class="bold">{load}</span>
      </p>
      <canvas ref={canvas} role="img" aria-label={contents ?? 'KV blocks in use'} />
    </div>
  );
}

function loadText(gpu: GpuTelemetry | undefined, cap: unknown): string {
  if (!gpu) return '';
  return typeof cap === 'number' ? `${count(gpu.running)}/${count(cap)}` : count(gpu.running);
}

function contentsText(gpu: GpuTelemetry | undefined): string | undefined {
  if (!gpu?.memory) return undefined;
  const { weights, overhead, draft, kvPool, tenant, limit } = gpu.memory;
  const parts = Object.entries({ weights, overhead, draft, 'KV pool': kvPool, neighbours: tenant });
  const text = parts.map(([name, size]) => `${name} ${amount(size)}`).join(', ');
  return `GiB of ${amount(limit)}: ${text}. Blue, yellow and pink cells are KV blocks in use, by request class over both GPUs`;
}

function memoryGroups(
  { memory, kvBlocksUsed, kvBlocksTotal }: GpuTelemetry,
  /** Request classes with their shares of the used KV blocks. */
  holders: readonly { readonly tone: Tone; readonly share: number }[],
): CellGroup[] {
  const held = (amount: number): CellGroup[] =>
    holders.length === 0
      ? [{ tone: 'kv', amount }]
      : holders.map(({ tone, share }) => ({ tone, amount: amount * share }));
  if (!memory)
    return [...held(kvBlocksUsed), { tone: 'pool', amount: kvBlocksTotal - kvBlocksUsed, hollow: true }];
  const used = kvBlocksTotal > 0 ? (memory.kvPool * kvBlocksUsed) / kvBlocksTotal : 0;
  return [
    { tone: 'weights', amount: memory.weights },
    { tone: 'overhead', amount: memory.overhead },
    { tone: 'draft', amount: memory.draft },
    ...held(used),
    { tone: 'pool', amount: memory.kvPool - used, hollow: true },
    { tone: 'tenant', amount: memory.tenant },
  ];
}
