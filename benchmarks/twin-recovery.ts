// Calibrates simulated servers that the calibration does not know: how near coefficients come back, and how far
// predictions are off within and beyond what was measured. In virtual time, or with --http at `servegym endpoint` in a
// process of its own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type BenchParameter, findProfile, parameterOf } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { calibrateServer } from '../packages/operators/src/twin/calibrate-server.ts';
import { compareLoad } from '../packages/operators/src/twin/compare-load.ts';
import { confirmingLoads } from '../packages/operators/src/twin/open-load.ts';
import { batchProbe, type Probe } from '../packages/operators/src/twin/probe.ts';
import { ServerClient } from '../packages/operators/src/twin/server-client.ts';
import { withKvBlocks } from '../packages/operators/src/twin/start-profile.ts';
import { calibrateVirtually, serveProbe } from '../packages/operators/src/twin/virtual-server.fixture.ts';
import { startEndpointProcess } from '../packages/servegym/test/endpoint-process.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    http: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '2' },
    coefficients: { type: 'boolean', default: false },
  },
});
const names =
  positionals.length > 0
    ? positionals
    : [
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

const signed = (share: number) => `${share < 0 ? '' : '+'}${(100 * share).toFixed(1)} %`;
const found: { readonly name: BenchParameter; readonly error: number; readonly spread: number }[] = [];
console.log(
  '| server | scheduling | idle iteration | determined | worst of them | held out: E2E, TTFT | unseen loads within: E2E, TTFT | longer prompts | larger batches |',
);
console.log('|---|---|---:|---:|---:|---:|---:|---:|---:|');
for (const name of names) {
  const server = withKvBlocks(findProfile(name), FACTS);
  const minutes = Number(values.minutes);
  const { profile, calibration, heldOut } = values.http
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
      name: parameter,
      error: parameterOf(fitted, parameter) / parameterOf(truth, parameter) - 1,
      spread,
    }));
  found.push(...rows);
  const told = rows.filter(({ spread }) => spread < DETERMINED);
  const idle = ({ law }: typeof truth) => law.baseUs + law.weightReadUs;
  const errorsOn = (probe: Probe, facts: typeof FACTS) =>
    compareLoad(serveProbe(probe, server, facts).load, profile, facts).errors;
  const both = (errors: readonly ReturnType<typeof errorsOn>[]) =>
    (['e2e', 'ttft'] as const)
      .map((what) => `${mean(errors.map((each) => Math.abs(each[what].mean))).toFixed(1)} %`)
      .join(', ');
  const scheduling = ({ engine }: EngineProfile) => (engine.asyncScheduling ? 'async' : 'sync');
  const isRight = scheduling(server) === scheduling(profile);
  console.log(
    `| ${[
      name,
      `${scheduling(profile)}${isRight ? '' : ' (wrong)'}`,
      signed(idle(fitted) / idle(truth) - 1),
      `${told.length} of ${rows.length}`,
      told.length === 0
        ? ''
        : signed(told.reduce((a, b) => (Math.abs(a.error) > Math.abs(b.error) ? a : b)).error),
      heldOut === null ? '' : both([heldOut.errors]),
      both(confirmingLoads(server, FACTS, 20).map((probe) => errorsOn(probe, FACTS))),
      both(
        confirmingLoads(server, { ...BEYOND, maxNumSeqs: 64 }, 60).map((probe) =>
          errorsOn(probe, { ...BEYOND, maxNumSeqs: 64 }),
        ),
      ),
      both([errorsOn(batchProbe(FACTS, 'batch', 256), { ...BEYOND, maxModelLen: 4096 })]),
    ].join(' | ')} |`,
  );
  if (values.coefficients) {
    for (const { name: parameter, error, spread } of rows) {
      console.error(`${name} ${parameter} ${signed(error)}, spread ${(100 * spread).toFixed(1)} %`);
    }
  }
}
const within = (spreads: number) =>
  found.filter(({ error, spread }) => Math.abs(Math.log1p(error)) <= spreads * spread).length;
console.log(
  `\n${within(1)} of ${found.length} coefficients are within their spread, ${within(2)} within two; of the ${found.filter(({ spread }) => spread < DETERMINED).length} determined ones (spread below ${100 * DETERMINED} %), ${found.filter(({ spread, error }) => spread < DETERMINED && Math.abs(error) < 0.1).length} are within 10 %.`,
);

async function calibrateOverHttp(server: EngineProfile, minutes: number) {
  const folder = mkdtempSync(join(tmpdir(), 'twin-recovery-'));
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
