import { basename } from 'node:path';
import type { EngineProfile } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { type Candidate, candidateText, vllmDefaults } from '../tune/candidate.ts';
import { sloTermText } from '../tune/slo.ts';
import {
  frontPointJson,
  type PossibleTune,
  type TunedCandidate,
  type TuneResult,
  tuneJson,
} from '../tune/tune-result.ts';
import { impossibleText, trafficText } from '../tune/verdict.ts';
import { commandLines, estimateText, figure, intervalText, percent } from './result.ts';
import { alignedRows, terminalScatter } from './terminal.ts';

/** How a result of `tune` is written. */
export const tuneResult = { json: tuneJson, text: tuneText, textSoFar: bestSoFarText, page: tunePage };

/** Text of `tune` without `--json`. */
function tuneText(result: TuneResult): string {
  const { profile, slo, trace, considered, simulatedRequests, wallS } = result;
  const head = [
    `${profile.name}, ${trace}`,
    `SLO: ${slo.map(sloTermText).join(', ')}`,
    `${considered.toLocaleString('en-US')} configurations considered, ${simulatedRequests.toLocaleString('en-US')} requests simulated, ${figure(wallS)} s`,
    '',
  ];
  if (!result.possible) return [...head, ...impossibleText(result)].join('\n');
  const { verdict, candidates } = result;
  const defaults = vllmDefaults(profile);
  return [
    ...head,
    verdict.headline,
    ...commandLines(result.commands),
    '',
    'Settings, where they differ from vLLM’s defaults (D):',
    ...candidates.map((each, i) => {
      const text = candidateText(each.settings, each.isDefault ? undefined : defaults);
      return `${label(each, i).padEnd(3)} ${text}`;
    }),
    '',
    ...alignedRows([
      ['', 'sustained/s', '95 % interval', 'vs defaults', 'TTFT p99', 'TPOT p99', 'USD/M tokens', 'quality'],
      ...candidates.map(row),
    ]),
    `Sustained: requests/s of one engine under the SLO, on traffic the search has not seen. Latencies at ${figure(result.referenceRps)} requests/s, ms.`,
    '',
    'Sustained requests/s (upwards) against TTFT p99, ms (to the right, logarithmic)',
    ...frontPlot(result),
    'W the chosen settings, D the defaults, o on the Pareto front (of load, TTFT, TPOT and quality), · others that were simulated',
    '',
    verdict.confirmation,
    verdict.deployment,
    verdict.surge,
    verdict.controller,
  ].join('\n');
}

/** Text of a `tune` that was interrupted: the best settings that all of the search traffic was played on. */
function bestSoFarText(profile: EngineProfile, candidate: Candidate): string {
  const [vllm] = servingCommands(profile, candidate, 1);
  return [
    `${profile.name}, interrupted. Best so far, on the traffic of the search alone: ${candidateText(candidate, vllmDefaults(profile))}. Not confirmed on other traffic.`,
    ...commandLines([vllm]),
  ].join('\n');
}

/** What the page of a `tune` shows: its JSON, and what is drawn beside it. */
function tunePage(results: readonly TuneResult[]) {
  const [first] = results;
  const { slo, trace, requestsSearched, requestsHeldOut } = first;
  const requests = (requestsSearched + requestsHeldOut).toLocaleString('en-US');
  return {
    kind: 'tune' as const,
    title: `Settings for ${basename(trace)}`,
    lead: `${slo.map(sloTermText).join(', ')}. ${trafficText(first)}, ${requests} requests, half of them held out.`,
    result: results.map((result) => ({
      ...tuneJson(result),
      page: {
        source: `${result.profile.status}, ${result.profile.source}`,
        curves: result.possible ? result.curves : { winner: [], defaults: [] },
        others: result.possible ? result.others.map(frontPointJson) : [],
        impossible: result.possible ? [] : impossibleText(result),
      },
    })),
  };
}

function row(candidate: TunedCandidate, index: number): string[] {
  const { sustainedRps, overDefaults, usdPerMillionOutputTokens: usd } = candidate;
  return [
    label(candidate, index),
    figure(sustainedRps.value),
    intervalText(sustainedRps.interval),
    overDefaults === null ? '-' : estimateText(overDefaults),
    figure(candidate.ttftP99Ms),
    figure(candidate.tpotP99Ms),
    usd === null ? '-' : figure(usd),
    percent(candidate.quality),
  ];
}

function label({ isDefault, onFront }: TunedCandidate, index: number): string {
  return isDefault ? 'D' : `${index + 1}${onFront ? '*' : ''}`;
}

function frontPlot({ front, others, candidates }: PossibleTune): string[] {
  const points = [
    ...others.map((point) => ({ ...point, mark: '·' })),
    ...front.map((point) => ({ ...point, mark: 'o' })),
    ...candidates.flatMap((each, i) =>
      each.isDefault || i === 0
        ? [{ ...each, sustainedRps: each.sustainedRps.value, mark: each.isDefault ? 'D' : 'W' }]
        : [],
    ),
  ];
  return terminalScatter(
    points.map(({ ttftP99Ms, sustainedRps, mark }) => ({ x: ttftP99Ms, y: sustainedRps, mark })),
    { columns: 64, rows: 13, label: figure },
  );
}
