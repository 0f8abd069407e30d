import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { toneOfClass } from '../charts/palette.ts';
import { kvShare } from '../llm-server/charts.ts';
import type { GpuTelemetry } from '../llm-server/telemetry.ts';
import { useConsole } from './console-context.ts';
import { amount, count, words } from './format.ts';
import { MemoryMap } from './memory-map.tsx';
import { tip } from './tooltip.tsx';

/** The GPUs with their roles and what fills their memory. */
export function GpuViews(): JSX.Element | null {
  const state = useConsole();
  const { value: gpus } = useComputed(() => state.shown.value?.telemetry.gpus.length ?? 0);
  if (gpus === 0) return null;
  return (
    <div class="gpus">
      {Array.from({ length: gpus }, (_, index) => (
        <GpuView key={index} index={index} />
      ))}
    </div>
  );
}

/** Prefill reads prompts, decode writes answers; a GPU that does both has no role of its own. */
const ROLES: Readonly<Record<string, string>> = {
  mixed: '',
  prefill: 'reads',
  decode: 'writes',
};

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
  return (
    <div class={isReloading ? 'gpu reloading' : 'gpu'}>
      <p class="gpu-title" {...tip(contents)}>
        <b>GPU {index + 1}</b>
        <span class="role">{isReloading ? 'reloads' : (ROLES[role] ?? words(role))}</span>
        <span class="load">{load}</span>
      </p>
      <MemoryMap gpu={gpu} holders={holders} label={contents ?? 'KV blocks in use'} />
    </div>
  );
}

/** Running requests, and how many may run at once. */
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
