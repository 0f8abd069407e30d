import type { Trace } from '@servegym/simulator';

/** Length of a window of demand, s: a choice. */
const WINDOW_S = 60;
/** An engine that is not needed stays for so long: the stabilisation window of Kubernetes' HorizontalPodAutoscaler, s. */
const STAY_S = 300;
/** An engine is billed for so long before it serves: in the middle of the 30 to 120 s that vLLM takes to start, s. */
const COLD_START_S = 60;

/**
 * Mean number of engines that are billed over a trace when they are started and stopped with the demand, which is
 * known a cold start ahead. The demand of a window is its share of the work of all requests (prompt tokens, and output
 * tokens at `outputWeight`), as requests/s of mean work; an engine serves `sustained` of them.
 *
 * @param fewest Engines that are kept all the time. Default 1.
 * @param base Requests/s that other engines serve all the time. Default none.
 */
export function autoscaledEngines(
  { arrivalMs, inputTokens, outputTokens }: Trace,
  sustained: number,
  {
    most,
    outputWeight,
    fewest = 1,
    base = 0,
  }: {
    readonly most: number;
    readonly outputWeight: number;
    readonly fewest?: number;
    readonly base?: number;
  },
): number {
  const requests = arrivalMs.length;
  const windows = Math.floor(arrivalMs[requests - 1] / (1000 * WINDOW_S)) + 1;
  const work = new Float64Array(windows);
  let total = 0;
  for (let i = 0; i < requests; i++) {
    const own = inputTokens[i] + outputWeight * outputTokens[i];
    work[Math.floor(arrivalMs[i] / (1000 * WINDOW_S))] += own;
    total += own;
  }
  // A trace that is shorter is one window.
  const windowS = Math.min(WINDOW_S, Math.max(1e-3, arrivalMs[requests - 1] / 1000));
  const needed = work.map((own) => {
    const demand = (own / total) * (requests / windowS);
    return Math.min(most, Math.max(fewest, Math.ceil((demand - base) / sustained)));
  });
  const [before, after] = [COLD_START_S / WINDOW_S, STAY_S / WINDOW_S];
  let billed = 0;
  for (let at = 0; at < windows; at++) {
    billed += Math.max(...needed.subarray(Math.max(0, at - after), Math.min(windows, at + before + 1)));
  }
  return billed / windows;
}
