import type { JSX } from 'preact';
import { palette } from '../charts/palette.ts';
import type { GpuTelemetry } from '../llmserve/telemetry.ts';
import { type CellGroup, gridFor, shareCells } from './cell-grid.ts';
import { useCanvas } from './use-canvas.ts';

/** The memory of a GPU as cells: what each part of it holds. */
export function MemoryMap({
  gpu,
  label,
}: {
  gpu: () => GpuTelemetry | undefined;
  label: string;
}): JSX.Element {
  const canvas = useCanvas(
    () => ({ gpu: gpu(), colors: palette.value }),
    (context, size, scene) => {
      const grid = gridFor(size);
      const cells = grid.columns * grid.rows;
      const groups = scene.gpu ? memoryGroups(scene.gpu) : [];
      const capacity = scene.gpu?.memory?.limit ?? scene.gpu?.kvBlocksTotal ?? 1;
      const shares = shareCells(groups, capacity, cells);
      const left = (size.width - (grid.columns * (grid.side + grid.gap) - grid.gap)) / 2;
      const paintCell = (index: number, group: CellGroup | undefined) => {
        const x = left + Math.floor(index / grid.rows) * (grid.side + grid.gap);
        const y = (index % grid.rows) * (grid.side + grid.gap);
        context.beginPath();
        context.roundRect(x + 0.5, y + 0.5, grid.side - 1, grid.side - 1, grid.side / 5);
        if (group && !group.hollow) {
          context.fillStyle = scene.colors[group.tone];
          context.fill();
        } else {
          context.strokeStyle = group ? scene.colors[group.tone] : scene.colors.line;
          context.stroke();
        }
      };
      let index = 0;
      groups.forEach((group, i) => {
        for (let k = 0; k < shares[i]; k++) paintCell(index++, group);
      });
      while (index < cells) paintCell(index++, undefined);
    },
  );
  return <canvas ref={canvas} class="memory-map" role="img" aria-label={label} />;
}

function memoryGroups({ memory, kvBlocksUsed, kvBlocksTotal }: GpuTelemetry): CellGroup[] {
  if (!memory) {
    return [
      { tone: 'kv', amount: kvBlocksUsed },
      { tone: 'pool', amount: kvBlocksTotal - kvBlocksUsed, hollow: true },
    ];
  }
  const used = kvBlocksTotal > 0 ? (memory.kvPool * kvBlocksUsed) / kvBlocksTotal : 0;
  return [
    { tone: 'weights', amount: memory.weights },
    { tone: 'overhead', amount: memory.overhead },
    { tone: 'draft', amount: memory.draft },
    { tone: 'kv', amount: used },
    { tone: 'pool', amount: memory.kvPool - used, hollow: true },
    { tone: 'tenant', amount: memory.tenant },
  ];
}
