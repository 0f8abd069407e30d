import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchParameter, findProfile, parameterOf } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { calibrateServer } from '../../packages/operators/src/measure-server/calibrate-server.ts';
import {
  batchProbe,
  compareLoad,
  confirmingLoads,
  type Probe,
} from '../../packages/operators/src/measure-server/probe.ts';
import { ServerClient } from '../../packages/operators/src/measure-server/server-client.ts';
import { withKvBlocks } from '../../packages/operators/src/measure-server/start-profile.ts';
import {
  calibrateVirtually,
  serveProbe,
} from '../../packages/operators/src/measure-server/virtual-server.fixture.ts';
import { startEndpointProcess } from '../../packages/servegym/test/endpoint-process.ts';
import { benchmark } from '../harness.ts';

const SERVERS = [
  'a100-40gb-llama-3-8b',
  'a100-80gb-mistral-7b',
  'h100-80gb-llama-3-8b',
  'h100-80gb-mixtral-8x7b-tp2',
  'h200-141gb-llama-3-70b-tp4',
  'l40s-48gb-qwen2.5-7b',
  'rtx4090-24gb-llama-3-8b',
];
/** Relative spread of a coefficient that is called determined. */
const DETERMINED = 0.075;
const FACTS = {
  model: 'unknown',
  engine: { name: 'vLLM', version: '0.32' },
  ...{ maxModelLen: 4096, maxNumSeqs: 64, maxNumBatchedTokens: 2048, kvBlocks: 16_000, blockTokens: 16 },
};
/** The same server, with longer prompts and larger batches allowed. */
const BEYOND = { ...FACTS, maxModelLen: 16_384, maxNumSeqs: 256 };

export default benchmark({
  what: 'Calibrates simulated servers that the calibration does not know (names of profiles, or a choice of them): how near coefficients come back, and how far predictions are off (E2E, TTFT) within and beyond what was measured, percent. In virtual time, or with `--http` at `servegym endpoint` in a process of its own. `--coefficients` adds a row for each coefficient.',
  options: { http: false, minutes: 2, coefficients: false },
  arguments: '[PROFILES]',
  async *run({ http, minutes, coefficients }, chosen) {
    const found: { readonly parameter: BenchParameter; readonly error: number; readonly spread: number }[] =
      [];
    for (const name of chosen.length > 0 ? chosen : SERVERS) {
      const server = withKvBlocks(findProfile(name), FACTS);
      const { profile, calibration, heldOut } = http
        ? await calibrateOverHttp(server, minutes)
        : await calibrateVirtually(server, FACTS, { minutes });
      const at = ({ weights, requestOverheadMs }: EngineProfile) => ({
        law: weights.FP16!.law,
        requestOverheadMs,
      });
      const [truth, fitted] = [at(server), at(profile)];
      const rows = (Object.entries(calibration.spread) as [BenchParameter, number][])
        .filter(([parameter]) => parameterOf(truth, parameter) !== undefined)
        .map(([parameter, spread]) => ({
          ...{ parameter, spread },
          error: parameterOf(fitted, parameter) / parameterOf(truth, parameter) - 1,
        }));
      found.push(...rows);
      const told = rows.filter(({ spread }) => spread < DETERMINED);
      const idle = ({ law }: typeof truth) => law.baseUs + law.weightReadUs;
      const errorsOn = (probe: Probe, facts: typeof FACTS) =>
        compareLoad(serveProbe(probe, server, facts).load, profile, facts).errors;
      const both = (errors: readonly ReturnType<typeof errorsOn>[]) =>
        (['e2e', 'ttft'] as const)
          .map((what) => mean(errors.map((each) => Math.abs(each[what].mean))).toFixed(1))
          .join(', ');
      const scheduling = ({ engine }: EngineProfile) => (engine.asyncScheduling ? 'async' : 'sync');
      const isRight = scheduling(server) === scheduling(profile);
      const longer = { ...BEYOND, maxNumSeqs: 64 };
      yield {
        server: name,
        scheduling: `${scheduling(profile)}${isRight ? '' : ' (wrong)'}`,
        'idle iteration, %': 100 * (idle(fitted) / idle(truth) - 1),
        determined: `${told.length} of ${rows.length}`,
        'worst of them, %': 100 * Math.max(...told.map(({ error }) => Math.abs(error))),
        'held out': heldOut === null ? '' : both([heldOut.errors]),
        'unseen loads within': both(
          confirmingLoads(server, FACTS, 20).map((probe) => errorsOn(probe, FACTS)),
        ),
        'longer prompts': both(confirmingLoads(server, longer, 60).map((probe) => errorsOn(probe, longer))),
        'larger batches': both([errorsOn(batchProbe(FACTS, 'batch', 256), { ...BEYOND, maxModelLen: 4096 })]),
      };
      if (coefficients)
        for (const { parameter, error, spread } of rows)
          yield { server: name, parameter, 'error, %': 100 * error, 'spread, %': 100 * spread };
    }
    const within = (spreads: number) =>
      found.filter(({ error, spread }) => Math.abs(Math.log1p(error)) <= spreads * spread).length;
    const determined = found.filter(({ spread }) => spread < DETERMINED);
    yield {
      coefficients: found.length,
      'within their spread': within(1),
      'within two': within(2),
      [`determined, spread below ${100 * DETERMINED} %`]: determined.length,
      'of these within 10 %': determined.filter(({ error }) => Math.abs(error) < 0.1).length,
    };
  },
});

async function calibrateOverHttp(server: EngineProfile, minutes: number) {
  const folder = mkdtempSync(join(tmpdir(), 'server-recovery-'));
  const file = join(folder, 'server.json');
  writeFileSync(file, JSON.stringify(server));
  const endpoint = await startEndpointProcess(
    ...['--profile', file, '--deployment'],
    `--max-num-seqs ${FACTS.maxNumSeqs} --max-num-batched-tokens ${FACTS.maxNumBatchedTokens} --max-model-len ${FACTS.maxModelLen}`,
  );
  const client = new ServerClient({ url: `${endpoint.url}/v1`, timeoutS: 120 });
  try {
    await client.connect();
    const startMs = performance.now();
    return await calibrateServer({
      ...{ facts: FACTS, minutes, mostTokens: 5_000_000, source: 'endpoint', command: 'endpoint' },
      measure: (probe) => client.measure(probe, new AbortController().signal),
      elapsed: () => (performance.now() - startMs) / 60_000,
    });
  } finally {
    client.close();
    await endpoint.stop();
    rmSync(folder, { recursive: true });
  }
}
