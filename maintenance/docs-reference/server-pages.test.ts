import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listProfiles } from '@servegym/profiles';
import { serverList, serverPage } from './server-pages.ts';
import { apiEntry, simulatedServer } from './simulated-server.ts';

const ofModel = listProfiles().filter(({ model }) => model.name === 'Llama-3-8B');
const on = (gpu: string) => simulatedServer(ofModel.filter((profile) => profile.gpu.name === gpu))!;

describe('the pages of servers', () => {
  const servers = ['A100-80GB', 'H100-80GB', 'H200-141GB'].map(on);
  const [, h100] = servers;

  it('have the command, the curves, the breaking point, the cost, neighbours and their source in Markdown', () => {
    const page = serverPage(h100!, servers);
    assert.match(page, /^# Llama-3-8B on H100-80GB\n/);
    assert.match(page, /vllm serve meta-llama\/Meta-Llama-3-8B-Instruct \\\n {2}--max-num-seqs 1024/);
    assert.equal(page.match(/<svg class="curve"/g)?.length, 4);
    const entry = apiEntry(h100!);
    assert.ok(
      page.startsWith(`**${Number(entry.breaking_rps!.toPrecision(3))} requests/s**`, page.indexOf('**')),
    );
    assert.match(page, /a million tokens cost \*\*\$0\.0\d+\*\*, at \$3\.99 an hour/);
    assert.match(page, /\| FP8 weights \| H100-80GB \| FP8 \|/);
    assert.match(page, /\| one GPU up \| \[H200-141GB\]\(\/servers\/llama-3-8b\/h200-141gb\/\)/);
    assert.match(page, /\| one GPU down \| \[A100-80GB\]\(\/servers\/llama-3-8b\/a100-80gb\/\)/);
    assert.match(page, /Profile `h100-80gb-llama-3-8b`: measured\. LLM-Inference-Bench/);
    assert.ok(!page.includes('undefined') && !page.includes('NaN'));
  });

  it('are listed, also for programs', () => {
    assert.match(
      serverList(servers),
      /\| \[Llama-3-8B on H100-80GB\]\(\/servers\/llama-3-8b\/h100-80gb\/\) \| 1 \| FP16 \|/,
    );
    const { page, slo, rests_on, usd_per_hour, gpus } = apiEntry(h100!);
    assert.deepEqual(
      { page, slo, rests_on, usd_per_hour, gpus },
      {
        ...{ page: 'llama-3-8b/h100-80gb/', slo: { ttft_p99_ms: 1000, tpot_p99_ms: 50 } },
        ...{ rests_on: 'measured', usd_per_hour: 3.99, gpus: 1 },
      },
    );
  });
});
