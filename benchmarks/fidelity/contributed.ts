import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readLaunch, resolveLaunch } from '@servegym/operators';
import { measuredLoad, parseBenchResult } from '@servegym/profiles';
import { weightVariant } from '@servegym/simulator';
import { compareLoad } from '../../packages/operators/src/measure-server/probe.ts';
import type { PointAnswer } from './operating-points.ts';

const FOLDER = join(import.meta.dirname, 'contributed');
/** Fewer requests say too little of a mean. */
const LEAST_REQUESTS = 50;
/** More are cut off, so that a file stays small. */
const MOST_REQUESTS = 2000;

/** A measurement that somebody gave: where and how the server ran, and its requests in order of arrival. */
interface Contribution {
  /** GPU by name. */
  readonly gpu: string;
  /** The line that started the server, for instance `vllm serve MODEL -tp 2`. */
  readonly command: string;
  /** Who measured, or where it is published. */
  readonly source: string;
  /** Clients that each sent a request when the one before had ended. Default: requests came at their times. */
  readonly concurrency?: number;
  /** Arrival, ms; tokens in and out; TTFT and latency, ms. */
  readonly requests: readonly (readonly [number, number, number, number, number])[];
}

export type ContributionErrors = ReturnType<typeof contributionErrors>;

/**
 * Checks a result of a load generator and adds its loads to the measurements of this folder.
 *
 * @param text What `vllm bench serve --save-result --save-detailed` or GuideLLM wrote.
 * @returns the errors of each load
 * @throws {Error} saying what is wrong: the result, the line, or too few requests.
 */
export function addContribution(
  text: string,
  { gpu, command, source }: Omit<Contribution, 'requests' | 'concurrency'>,
  folder = FOLDER,
): ContributionErrors[] {
  const loads = parseBenchResult(text, source);
  const added = loads.map(({ requests, failed, concurrency, source: name }) => {
    if (failed > 0)
      throw new Error(`expected every request of ${name} to be answered, got ${failed} that failed`);
    if (requests.length < LEAST_REQUESTS)
      throw new Error(`expected ${LEAST_REQUESTS} requests or more in ${name}, got ${requests.length}`);
    const kept = requests.slice(0, MOST_REQUESTS).map((request) => {
      const { arrivalMs, inputTokens, outputTokens, ttftMs, e2eMs } = request;
      const [at, first, last] = [arrivalMs, ttftMs, e2eMs].map((ms) => Number(ms.toFixed(2)));
      return [at, inputTokens, outputTokens, first, last] as const;
    });
    return { gpu, command, source, concurrency, requests: kept };
  });
  const errors = added.map((contribution) => contributionErrors(contribution));
  mkdirSync(folder, { recursive: true });
  const taken = readdirOf(folder).length;
  for (const [i, { requests, ...labels }] of added.entries()) {
    const rows = requests.map((row) => `    [${row.join(', ')}]`).join(',\n');
    const head = JSON.stringify(labels, null, 2).replace(/\n}$/, '');
    const name = `${String(taken + i + 1).padStart(3, '0')}-${errors[i].profile}.json`;
    writeFileSync(join(folder, name), `${head},\n  "requests": [\n${rows}\n  ]\n}\n`);
  }
  return errors;
}

function readdirOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Errors of all measurements that were added, with another estimator's answers by their files. */
export function contributedErrors(folder = FOLDER, answers?: ReadonlyMap<string, PointAnswer>) {
  return readdirOf(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => ({
      ...contributionErrors(JSON.parse(readFileSync(join(folder, name), 'utf8'))),
      theirs: answers?.get(name),
    }));
}

/**
 * Errors of the shipped profile of a server on the same load, percent, positive when it says more. Clients wait for the
 * simulated answers: at the measured times their requests would pile up behind a server that is a little slower.
 */
function contributionErrors({ gpu, command, source, concurrency, requests }: Contribution) {
  const { profile, settings, kvBlocks, maxModelLen } = resolveLaunch(readLaunch(command, 'the command'), {
    gpu,
  });
  const longest = Math.max(...requests.map(([, input, output]) => input + output));
  if (maxModelLen !== undefined && longest > maxModelLen)
    throw new Error(`expected requests within --max-model-len ${maxModelLen}, got ${longest} tokens`);
  const rows = requests.map(([arrivalMs, inputTokens, outputTokens, ttftMs, e2eMs]) => ({
    ...{ arrivalMs, inputTokens, outputTokens, ttftMs, e2eMs },
  }));
  const load = measuredLoad(source, rows, 0, concurrency);
  const { errors, measuredMs } = compareLoad(load, profile, { ...settings, kvBlocks });
  const mean = (of: 1 | 2) => Math.round(requests.reduce((sum, row) => sum + row[of], 0) / requests.length);
  const seconds = requests[requests.length - 1][0] / 1000;
  const rate = concurrency
    ? `${concurrency} in flight`
    : `${(requests.length / seconds).toFixed(1)} requests/s`;
  return {
    ...{ profile: profile.name, gpu, command, source, requests: requests.length, measuredMs, errors },
    /** Clients or rate, and mean tokens in and out. */
    load: `${rate}, ${mean(1)} + ${mean(2)}`,
    status: weightVariant(profile, settings.weights).status,
  };
}
