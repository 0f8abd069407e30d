import { basename } from 'node:path';
import { candidateText, vllmDefaults } from '../tune/candidate.ts';
import { sloTermText } from '../tune/slo.ts';
import type { TuneResult } from '../tune/tune-result.ts';
import { PAGE_COLOURS, reportPage } from './report-page.ts';
import { commandsHtml } from './serving-settings.ts';
import { escapeText } from './svg-chart.ts';
import {
  estimateText,
  figure,
  impossibleText,
  intervalText,
  percent,
  trafficText,
  tuneVerdict,
} from './tune-figures.ts';
import { frontSvg, intervalsSvg, loadCurveSvg } from './tune-plots.ts';

/** The report of `tune` as one page that needs nothing else. */
export function tunePage(results: readonly TuneResult[]): string {
  const [first] = results as readonly [TuneResult, ...TuneResult[]];
  const title = `Settings for ${basename(first.traffic.source)}`;
  return reportPage(
    title,
    `${first.slo.map(sloTermText).join(', ')}. ${trafficText(first.traffic)}, ${(first.traffic.searched + first.traffic.heldOut).toLocaleString('en-US')} requests, half of them held out.`,
    [...(results.length > 1 ? [comparison(results)] : []), ...results.map(section)],
    'Sustained: the largest rate of requests at which the SLO holds for one engine, with 95 % intervals from a bootstrap over stretches of the traffic. All settings see the same requests and the same random draws. The figures come from a simulator: confirm the winner on a real server before you rely on it.',
  );
}

function comparison(results: readonly TuneResult[]): string {
  const rows = results.map((result) => {
    const [winner] = result.candidates;
    const { replicas, usdPerHour } = result.deployment;
    const cells =
      winner === undefined
        ? ['none meets the SLO', '-', '-', '-', '-']
        : [
            candidateText(winner.candidate, vllmDefaults(result.profile)),
            estimateText(winner.heldOut),
            winner.usdPerMillionTokens === null ? '-' : figure(winner.usdPerMillionTokens),
            replicas === null ? 'too many' : String(replicas),
            usdPerHour === null ? '-' : figure(usdPerHour),
          ];
    return `<tr>${[result.profile.name, ...cells].map((cell) => `<td>${escapeText(cell)}</td>`).join('')}</tr>`;
  });
  return `<h2>The profiles compared</h2><div class="card wide"><table><tr>${['profile', 'settings', 'sustained requests/s', 'USD/M output tokens', 'engines', 'USD/hour'].map((name) => `<th>${name}</th>`).join('')}</tr>${rows.join('')}</table></div>`;
}

function section(result: TuneResult): string {
  const { profile, considered, simulatedRequests, wallS, impossible, slo } = result;
  const head = `<h2>${escapeText(profile.name)}</h2><p class="lead">${considered.toLocaleString('en-US')} configurations considered, ${simulatedRequests.toLocaleString('en-US')} requests simulated in ${figure(wallS)} s. Profile: ${escapeText(profile.status)}, ${escapeText(profile.source)}.</p>`;
  if (impossible !== null) {
    const lines = impossibleText(slo, impossible);
    return `${head}<div class="card" style="border-color: var(--warning)">${lines.map((line) => `<p>${escapeText(line)}</p>`).join('')}</div>`;
  }
  const [winner] = result.candidates as [TuneResult['candidates'][number]];
  const verdict = tuneVerdict(result);
  const { replicas, usdPerHour } = result.deployment;
  const numbers: [string, string][] = [
    [
      figure(winner.heldOut.value),
      `requests/s sustained by one engine (${intervalText(winner.heldOut.interval)})`,
    ],
    [
      winner.overDefaults === null ? '-' : `${figure(winner.overDefaults.value)}×`,
      winner.overDefaults === null
        ? 'vLLM’s defaults sustain nothing'
        : `over vLLM’s defaults (${intervalText(winner.overDefaults.interval)})`,
    ],
    [
      replicas === null ? 'too few' : `${replicas}`,
      replicas === null
        ? 'replicas were allowed for this traffic'
        : `${replicas === 1 ? 'engine' : 'engines'} for this traffic, ${figure(usdPerHour!)} USD/hour`,
    ],
    [
      winner.usdPerMillionTokens === null ? '-' : `$${figure(winner.usdPerMillionTokens)}`,
      'for a million output tokens at the sustained load',
    ],
  ];
  return `${head}
<div class="card"><h3>How to start it</h3><p>Settings: ${escapeText(candidateText(winner.candidate, vllmDefaults(profile)))}${winner.isDefault ? '' : '; all others as vLLM’s defaults'}.</p>${commandsHtml(result.commands)}</div>
<div class="numbers">${numbers.map(([value, name]) => `<div class="card"><b>${escapeText(value)}</b><span>${escapeText(name)}</span></div>`).join('')}</div>
<div class="plots">
<div class="card stack"><h3>Verdict</h3>${Object.values(verdict)
    .map((sentence) => `<p>${escapeText(sentence)}</p>`)
    .join('')}</div>
<div class="card"><h3>Intervals</h3>${intervalsSvg(result, PAGE_COLOURS)}</div>
</div>
<div class="plots">
<div class="card"><h3>Load that is sustained against latency</h3>${frontSvg(result, PAGE_COLOURS)}</div>
<div class="card"><h3>Requests within the limits as the load grows</h3>${loadCurveSvg(result, PAGE_COLOURS)}</div>
</div>
<div class="card wide"><h3>Ranking</h3>${table(result)}<p class="lead" style="margin-top:10px">Sustained on traffic the search has not seen. 95 % intervals in brackets. Latencies at ${figure(result.referenceRate)} requests/s, ms. * on the Pareto front: no other settings are better in load, TTFT, TPOT and quality together.</p></div>`;
}

function table({ candidates, profile }: TuneResult): string {
  const defaults = vllmDefaults(profile);
  const head = [
    '',
    'settings, where they differ from vLLM’s defaults',
    'sustained/s',
    'vs defaults',
    'TTFT p99',
    'TPOT p99',
    'USD/M tokens',
    'quality',
  ];
  const rows = candidates.map((each, i) => {
    const cells = [
      each.isDefault ? 'D' : `${i + 1}${each.onFront ? '*' : ''}`,
      each.isDefault
        ? `vLLM’s defaults: ${candidateText(each.candidate)}`
        : candidateText(each.candidate, defaults),
      estimateText(each.heldOut),
      each.overDefaults === null
        ? '-'
        : `${figure(each.overDefaults.value)} (${intervalText(each.overDefaults.interval)})`,
      figure(each.ttftP99Ms),
      figure(each.tpotP99Ms),
      each.usdPerMillionTokens === null ? '-' : figure(each.usdPerMillionTokens),
      percent(each.quality),
    ];
    const kind = each.isDefault ? 'default' : i === 0 ? 'winner' : '';
    return `<tr class="${kind}">${cells.map((cell) => `<td>${escapeText(cell)}</td>`).join('')}</tr>`;
  });
  return `<table><tr>${head.map((name) => `<th>${name}</th>`).join('')}</tr>${rows.join('')}</table>`;
}
