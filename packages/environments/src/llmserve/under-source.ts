import type { RequestSource } from './requests/request-source.ts';
import { type Phase, REQUEST_CLASSES, type ServeTask } from './tasks/serve-task.ts';

/**
 * A task's machine, objectives, prices and tenants under requests from elsewhere. The phases become one: classes have
 * the shares that they have on average over the task's phases, and quality the value.
 */
export function taskUnderSource(task: ServeTask, source: RequestSource): ServeTask {
  const { phases } = task;
  const time = phases.map(({ weight, windows }) => (weight * (windows[0] + windows[1])) / 2);
  const total = time.reduce((sum, part) => sum + part, 0);
  const average = (of: (phase: Phase) => number) =>
    phases.reduce((sum, phase, i) => sum + of(phase) * time[i], 0) / total;
  const requests = (phase: Phase) => (phase.arrivalsPerSecond[0] + phase.arrivalsPerSecond[1]) / 2;
  const traffic: Phase['traffic'] = {};
  for (const kind of REQUEST_CLASSES) {
    const lengths = phases.find((phase) => phase.traffic[kind] !== undefined)?.traffic[kind];
    if (lengths === undefined) continue;
    const share = average((phase) => requests(phase) * (phase.traffic[kind]?.share ?? 0)) / average(requests);
    traffic[kind] = { ...lengths, share };
  }
  const all: Phase = {
    ...phases[0],
    name: source.name,
    weight: 1,
    windows: [
      Math.min(...phases.map((phase) => phase.windows[0])),
      Math.max(...phases.map((phase) => phase.windows[1])),
    ],
    burstiness: 0,
    traffic,
    tenantGiB: [
      Math.min(...phases.map((phase) => phase.tenantGiB[0])),
      Math.max(...phases.map((phase) => phase.tenantGiB[1])),
    ],
    acceptance: task.acceptance,
    qualityValue: average((phase) => phase.qualityValue),
  };
  return { ...task, phases: [all], source };
}
