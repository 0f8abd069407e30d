import type { ReadonlySignal } from '@preact/signals';
import type { JSX } from 'preact';
import { palette, type Tone } from '../charts/palette.ts';
import type { GpuTelemetry } from '../llm-server/telemetry.ts';
import { type CellGroup, gridFor, shareCells } from './cell-grid.ts';
import { useCanvas } from './use-canvas.ts';

interface MemoryMapProps {
  readonly gpu: ReadonlySignal<GpuTelemetry | undefined>;
  /** Whose requests hold the used KV blocks: shares of 1. */
  readonly holders: ReadonlySignal<readonly KvHolder[]>;
  readonly label: string;
}

/** A request class and the share of the used KV blocks that it holds. */
export interface KvHolder {
  readonly tone: Tone;
  readonly share: number;
}

/** The memory of a GPU as cells: what each part of it holds. */
export function MemoryMap({ gpu, holders, label }: MemoryMapProps): JSX.Element {
  const canvas = useCanvas(
    () => ({ gpu: gpu.value, holders: holders.value, colors: palette.value }),
    (context, size, scene) => {
      const grid = gridFor(size);
      const cells = grid.columns * grid.rows;
      const groups = scene.gpu ? memoryGroups(scene.gpu, scene.holders) : [];
      const capacity = scene.gpu?.memory?.limit ?? scene.gpu?.kvBlocksTotal ?? 1;
      const shares = shareCells(groups, capacity, cells);
      const left = (size.width - (grid.columns * (grid.side + grid.gap) - grid.gap)) / 2;
      let index = 0;
      const traceCells = (count: number) => {
        context.beginPath();
        for (const end = index + count; index < end; index++) {
          const x = left + Math.floor(index / grid.rows) * (grid.side + grid.gap);
          const y = (index % grid.rows) * (grid.side + grid.gap);
          context.roundRect(x + 0.5, y + 0.5, grid.side - 1, grid.side - 1, grid.side / 5);
        }
      };
      groups.forEach((group, i) => {
        traceCells(shares[i]);
        context.fillStyle = context.strokeStyle = scene.colors[group.tone];
        if (group.hollow) context.stroke();
        else context.fill();
      });
      traceCells(cells - index);
      context.strokeStyle = scene.colors.line;
      context.stroke();
    },
  );
  return <canvas ref={canvas} class="memory-map" role="img" aria-label={label} />;
}

function memoryGroups(
  { memory, kvBlocksUsed, kvBlocksTotal }: GpuTelemetry,
  holders: readonly KvHolder[],
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
