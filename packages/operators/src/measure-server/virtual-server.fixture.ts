import { type MeasuredLoad, measuredLoad } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { calibrateServer, type ServerCalibration } from './calibrate-server.ts';
import { type Probe, simulateProbe } from './probe.ts';
import type { ServerFacts } from './start-profile.ts';

/** Serves a probe on the engine of the endpoint, in virtual time. */
export function serveProbe(
  probe: Probe,
  profile: EngineProfile,
  facts: ServerFacts,
): { load: MeasuredLoad; tookMs: number } {
  let requests = probe.requests;
  if (probe.isSequential) {
    let atMs = 0;
    requests = probe.requests.map((request) => {
      const sent = { ...request, atMs };
      atMs += simulateProbe({ requests: [{ ...request, atMs: 0 }] }, profile, facts).e2eMs[0] + 1;
      return sent;
    });
  }
  const run = simulateProbe({ requests }, profile, facts);
  const rows = Array.from(run.ids, (id, i) => ({
    ...requests[id],
    arrivalMs: requests[id].atMs,
    ttftMs: run.ttftMs[i],
    e2eMs: run.e2eMs[i],
  }));
  return { load: measuredLoad(probe.name, rows, 0), tookMs: run.simulatedMs };
}

/** Calibrates a simulated server in virtual time. */
export function calibrateVirtually(
  server: EngineProfile,
  facts: ServerFacts,
  {
    served = facts,
    minutes,
    measured,
    drawnServers,
    isBudgetAssumed,
    apiServerCount,
    onProbe,
  }: {
    /** Limits of the server, where they differ from the facts that the calibration is given. */
    readonly served?: ServerFacts;
    readonly minutes: number;
    readonly drawnServers?: number;
    readonly isBudgetAssumed?: boolean;
    readonly apiServerCount?: number;
    readonly measured?: readonly MeasuredLoad[];
    readonly onProbe?: (probe: Probe) => void;
  },
): Promise<ServerCalibration> {
  let elapsedMs = 0;
  return calibrateServer({
    facts,
    minutes,
    mostTokens: 50_000_000,
    ...{ measured, drawnServers, isBudgetAssumed, apiServerCount },
    measure: async (probe) => {
      const { load, tookMs } = serveProbe(probe, server, served);
      elapsedMs += tookMs;
      onProbe?.(probe);
      return load;
    },
    elapsed: () => elapsedMs / 60_000,
    source: 'virtual server',
    command: 'virtual server',
  });
}
