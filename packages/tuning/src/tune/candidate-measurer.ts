import type { JobEngine, Json } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import type { LoadPoint } from './load-point.ts';
import type { MeasuredCandidate, MeasureInput, MeasureResult } from './measure-candidates.ts';
import type { SloTerm } from './slo.ts';
import { encodeTraffic, type Traffic } from './traffic.ts';

/** Jobs for each that can run at once: enough that the last ones end together. */
const JOBS_EACH = 6;
const MOST_PER_JOB = 32;

/** Has candidates measured by a job engine. */
export class CandidateMeasurer {
  readonly #jobs: JobEngine;
  readonly #profile: EngineProfile;
  readonly #slo: readonly SloTerm[];
  readonly #onShare: (share: number) => void;
  readonly #names = new Map<Traffic, string>();
  /** Requests that have been simulated. */
  simulatedRequests = 0;
  /** Simulations that were run. */
  simulations = 0;

  constructor(
    jobs: JobEngine,
    profile: EngineProfile,
    slo: readonly SloTerm[],
    onShare: (share: number) => void = () => undefined,
  ) {
    this.#jobs = jobs;
    this.#profile = profile;
    this.#slo = slo;
    this.#onShare = onShare;
  }

  /** The points of each candidate, in the order of the candidates. */
  async measure(
    traffic: Traffic,
    candidates: readonly MeasuredCandidate[],
    { seed, replicas }: { readonly seed: number; readonly replicas?: number },
  ): Promise<LoadPoint[][]> {
    const name = await this.#nameOf(traffic);
    const size = Math.min(
      MOST_PER_JOB,
      Math.max(1, Math.ceil(candidates.length / (JOBS_EACH * this.#jobs.width))),
    );
    const chunks = Array.from({ length: Math.ceil(candidates.length / size) }, (_, i) =>
      candidates.slice(i * size, (i + 1) * size),
    );
    const results = await this.#jobs.run(
      chunks.map((chunk) => {
        const input: MeasureInput = {
          ...{ profile: this.#profile, slo: this.#slo, traffic: name, seed, candidates: chunk },
          ...(replicas !== undefined && { replicas }),
        };
        return { kind: 'tune-measure', input: input as unknown as Json, shared: [name] };
      }),
      { onProgress: ({ share }) => this.#onShare(share) },
    );
    const points = results.flatMap((result) => result as unknown as MeasureResult).map((each) => [...each]);
    for (const each of points) {
      this.simulations += each.length;
      this.simulatedRequests += each.length * traffic.trace.arrivalMs.length;
    }
    return points;
  }

  async #nameOf(traffic: Traffic): Promise<string> {
    let name = this.#names.get(traffic);
    if (name === undefined) {
      name = await this.#jobs.share(encodeTraffic(traffic));
      this.#names.set(traffic, name);
    }
    return name;
  }
}
