import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useConsole } from '../components/console-context.ts';
import { StrainedIcon } from '../components/controls.tsx';
import { amount } from '../components/format.ts';
import { addStyles } from '../components/lazy.tsx';
import { Observed } from '../components/stage.tsx';
import { observed } from '../state/frame.ts';
import styles from '../styles/memory-use.css?inline';

addStyles(styles);

const MEMORY_FIELD = 'gpu_memory_used_gb';

/** Memory in use beside the limit of the task, and the cost of having gone over it, where the server tells only totals. */
export function MemoryUse(): JSX.Element {
  const state = useConsole();
  const task = state.chosenTask.value;
  const limit = task?.memory_limit_gb;
  const effect = task?.memory_limit_effect;
  const { value: excess } = useComputed(() => {
    const shown = state.shown.value;
    if (!shown || typeof limit !== 'number') return undefined;
    const uses = state.frames.value
      .slice(1, shown.index + 1)
      .map((frame) => (observed(frame, MEMORY_FIELD) ?? 0) - limit);
    const highest = Math.max(0, ...uses);
    if (highest === 0) return undefined;
    const isOver = uses[uses.length - 1] > 0;
    return `${amount(highest)}\u202fGB over the limit ${isOver ? 'of the task' : 'earlier in this episode'}.`;
  });
  return (
    <>
      <Observed
        optional
        label="GPU memory"
        field={MEMORY_FIELD}
        format={amount}
        unit={typeof limit === 'number' ? `of ${amount(limit)} GB` : 'GB'}
      />
      {excess && (
        <p class="over-limit">
          <StrainedIcon />
          <span>
            <b>{excess}</b> {typeof effect === 'string' && effect}
          </span>
        </p>
      )}
    </>
  );
}
