import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useConsole } from '../components/console-context.ts';
import { NarrationLine, Sentence } from '../components/run-strip.tsx';
import { narrateFleet } from '../fleet/fleet-narration.ts';
import { fleetReport } from '../fleet/fleet-report.ts';
import type { Run } from '../state/run.ts';

/** One sentence on a run: of a fleet its own, else that of a server. */
export function RunSentence({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { value: narration } = useComputed(() => {
    const frame = run.frames.value[Math.min(state.shownIndex.value, run.played.value - 1)];
    const report = frame && fleetReport(frame.metadata);
    return state.joining.value !== run && report && narrateFleet(frame, report);
  });
  return narration ? <Sentence narration={narration} /> : <NarrationLine run={run} />;
}
