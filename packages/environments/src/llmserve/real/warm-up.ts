import { EnvironmentError } from '@servegym/openenv/definition';
import type { ServeTask } from '../serve-task.ts';
import { failureCode, promptText, type RealAnswer, type RealClient } from './real-client.ts';
import type { RealSettings } from './real-settings.ts';
import type { ServerControls, VllmReading } from './server-controls.ts';

const PROMPT_TOKENS = 16;
const OUTPUT_TOKENS = 8;
/** The lowest, so that a server without priorities refuses the field now and not in a window. */
const PRIORITY = 2;
/** Rounds of requests that compile the code of a client whose clock runs fast, then rounds that are measured. */
const COMPILING_ROUNDS = 25;
const MEASURED_ROUNDS = 10;
const REQUESTS_PER_ROUND = 4;
/** Largest error of the measured TTFT, as a share of the strictest objective. */
const LARGEST_TTFT_SHARE = 0.1;
/** Least share of the server's inter-token latency that the median measured one may be. */
const LEAST_ITL_SHARE = 0.5;

/** Precision of the client at a fast clock, ms of the task's time. */
export type ClientPrecision = Readonly<NonNullable<ReturnType<typeof clientPrecision>>>;

/**
 * Sends a first request, which opens the connection and finds the fields that the server refuses. With a time scale
 * above 1 also sends enough of them that the code is compiled, and measures the client; `null` where the scale is 1 or
 * the server reports no latencies.
 * @throws EnvironmentError `REAL_SERVER_REFUSED` or `REAL_SERVER_UNREACHABLE`
 */
export async function warmUp(
  client: RealClient,
  controls: ServerControls,
  settings: RealSettings,
  model: string,
  signal: AbortSignal,
): Promise<ClientPrecision | null> {
  let sent = 0;
  const ask = () => {
    const prompt = promptText(0, sent++, PROMPT_TOKENS);
    return client.complete({ prompt, outputTokens: OUTPUT_TOKENS, priority: PRIORITY }, model, signal);
  };
  const { failure } = await ask();
  if (failure !== null) {
    const code = failureCode(failure);
    if (code !== null) throw new EnvironmentError(code, client.describe(failure));
  }
  // Failures that come and go: the windows show them.
  if (failure !== null || settings.timeScale <= 1) return null;
  const round = () => Promise.all(Array.from({ length: REQUESTS_PER_ROUND }, ask));
  for (let i = 0; i < COMPILING_ROUNDS && !signal.aborted; i++) await round();
  const before = await controls.read(signal);
  if (before === null) return null;
  const answers: RealAnswer[] = [];
  for (let i = 0; i < MEASURED_ROUNDS && !signal.aborted; i++) answers.push(...(await round()));
  const after = await controls.read(signal);
  return clientPrecision(answers, { before, after }, settings.timeScale);
}

/** `null` when the server reports no latencies, or those of other requests too. */
export function clientPrecision(
  answers: readonly RealAnswer[],
  { before, after }: { readonly before: VllmReading | null; readonly after: VllmReading | null },
  timeScale: number,
) {
  const ttftMs = answers.map((answer) => answer.ttftMs).filter((value) => value !== null);
  if (before === null || after === null || ttftMs.length === 0) return null;
  const firstTokens = after.ttftCount - before.ttftCount;
  const laterTokens = after.itlCount - before.itlCount;
  if (firstTokens !== ttftMs.length) return null;
  const gapsMs = answers.flatMap((answer) => answer.gapsMs).sort((a, b) => a - b);
  const measuredTtftMs = (ttftMs.reduce((sum, value) => sum + value, 0) / ttftMs.length) * timeScale;
  return {
    /** Mean measured TTFT less the mean that the server reports. */
    ttftOverheadMs: measuredTtftMs - ((after.ttftSumS - before.ttftSumS) / firstTokens) * 1000,
    /** Median gap between the pieces of a stream, and the mean inter-token latency that the server reports. */
    measuredItlMs: (gapsMs[gapsMs.length >> 1] ?? 0) * timeScale,
    reportedItlMs: laterTokens === 0 ? 0 : ((after.itlSumS - before.itlSumS) / laterTokens) * 1000,
  };
}

/** @throws EnvironmentError `REAL_TIME_SCALE` when the measured latencies would be those of the client */
export function requirePrecision(
  precision: ClientPrecision,
  task: ServeTask,
  { timeScale }: RealSettings,
): void {
  const { ttftOverheadMs, measuredItlMs, reportedItlMs } = precision;
  const strictestMs = Math.min(...Object.values(task.objectives).map(({ ttftMs }) => ttftMs));
  const allowedMs = strictestMs * LARGEST_TTFT_SHARE;
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const refuse = (finding: string, advice: string) => {
    throw new EnvironmentError(
      'REAL_TIME_SCALE',
      `The client cannot keep up with LLMSERVE_REAL_TIME_SCALE=${timeScale}: ${finding}. ${advice}`,
    );
  };
  if (ttftOverheadMs > allowedMs) {
    refuse(
      `it adds ${ms(ttftOverheadMs)} of the task's time to each TTFT, more than ${ms(allowedMs)} (a tenth of the objective of ${strictestMs} ms)`,
      `Set it, and --time-scale of the endpoint, to ${lowerScale((timeScale * allowedMs) / ttftOverheadMs)} or less`,
    );
  }
  if (measuredItlMs < reportedItlMs * LEAST_ITL_SHARE) {
    refuse(
      `it measures ${ms(measuredItlMs)} between tokens where the server reports ${ms(reportedItlMs)}`,
      `Set it, and --time-scale of the endpoint, to ${lowerScale(timeScale / 2)} or less`,
    );
  }
}

function lowerScale(scale: number): number {
  return Math.max(1, Math.floor(scale));
}
