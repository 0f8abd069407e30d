import { basename } from 'node:path';
import type { EngineProfile } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { candidateText, vllmDefaults } from '../tune/candidate.ts';
import type { SearchedCandidate } from '../tune/search.ts';
import { sloTermName, sloTermText } from '../tune/slo.ts';
import type { FrontPoint, TunedCandidate, TuneResult } from '../tune/tune-result.ts';
import { commandLines, commandsJson, settingsJson } from './serving-settings.ts';
import { alignedRows, terminalScatter } from './terminal.ts';
import {
  estimateText,
  figure,
  impossibleText,
  intervalText,
  percent,
  trafficText,
  tuneVerdict,
} from './tune-figures.ts';

/** Text of `tune` without `--json`. */
export function tuneReport(result: TuneResult): string {
  const { profile, slo, traffic, considered, simulatedRequests, wallS } = result;
  const head = [
    `${profile.name}, ${traffic.source}`,
    `SLO: ${slo.map(sloTermText).join(', ')}`,
    `${considered.toLocaleString('en-US')} configurations considered, ${simulatedRequests.toLocaleString('en-US')} requests simulated, ${figure(wallS)} s`,
    '',
  ];
  if (result.impossible !== null) return [...head, ...impossibleText(slo, result.impossible)].join('\n');
  const verdict = tuneVerdict(result);
  const defaults = vllmDefaults(profile);
  return [
    ...head,
    verdict.headline,
    ...commandLines(result.commands),
    '',
    'Settings, where they differ from vLLM’s defaults (D):',
    ...result.candidates.map(
      (candidate, i) =>
        `${label(candidate, i).padEnd(3)} ${candidateText(candidate.candidate, candidate.isDefault ? undefined : defaults)}`,
    ),
    '',
    ...alignedRows([
      ['', 'sustained/s', '95 % interval', 'vs defaults', 'TTFT p99', 'TPOT p99', 'USD/M tokens', 'quality'],
      ...result.candidates.map((candidate, i) => row(candidate, i)),
    ]),
    `Sustained: requests/s of one engine under the SLO, on traffic the search has not seen. Latencies at ${figure(result.referenceRate)} requests/s, ms.`,
    '',
    'Sustained requests/s (upwards) against TTFT p99, ms (to the right, logarithmic)',
    ...frontPlot(result.front, result.candidates),
    'W the chosen settings, D the defaults, o on the Pareto front (of load, TTFT, TPOT and quality), · others that were simulated',
    '',
    verdict.confirmation,
    verdict.deployment,
    verdict.surge,
    verdict.controller,
  ].join('\n');
}

/** Text of a `tune` that was interrupted: the best settings that all of the search traffic was played on. */
export function bestSoFarText(profile: EngineProfile, { candidate }: SearchedCandidate): string {
  const [vllm] = servingCommands(profile, candidate, 1);
  return [
    `${profile.name}, interrupted. Best so far, on the traffic of the search alone: ${candidateText(candidate, vllmDefaults(profile))}. Not confirmed on other traffic.`,
    ...commandLines([vllm]),
  ].join('\n');
}

/** The object that `tune --json` prints. Times in ms unless the name says otherwise. */
export function tuneJson(result: TuneResult) {
  const { profile, objective, slo, traffic, candidates, commands, controller } = result;
  const common = {
    profile: profile.name,
    objective,
    slo: Object.fromEntries(slo.map((term) => [`${sloTermName(term)}_ms`, term.limitMs])),
    trace: traffic.source,
    requests_searched: traffic.searched,
    requests_held_out: traffic.heldOut,
    requests_per_s: traffic.rate,
    ...(traffic.concurrency !== undefined && { concurrency: traffic.concurrency }),
    considered: result.considered,
    simulations: result.simulations,
    simulated_requests: result.simulatedRequests,
    wall_s: result.wallS,
    possible: result.impossible === null,
  };
  if (result.impossible !== null) {
    const { candidate, load, values } = result.impossible;
    return {
      ...common,
      nearest: {
        settings: settingsJson(candidate),
        load,
        values_ms: Object.fromEntries(slo.map((term, t) => [sloTermName(term), values[t]])),
      },
    };
  }
  const verdict = tuneVerdict(result);
  return {
    ...common,
    candidates: candidates.map((each) => ({
      settings: settingsJson(each.candidate),
      is_default: each.isDefault,
      on_front: each.onFront,
      sustained_rps: each.heldOut,
      sustained_rps_searched: each.searched,
      over_defaults: each.overDefaults,
      ttft_p99_ms: each.ttftP99Ms,
      tpot_p99_ms: each.tpotP99Ms,
      usd_per_million_output_tokens: each.usdPerMillionTokens,
      quality: each.quality,
    })),
    confirmed: result.isConfirmed,
    predicted_rps: result.prediction,
    reference_rps: result.referenceRate,
    front: result.front.filter(({ onFront }) => onFront).map(frontJson),
    deployment: deploymentJson(result.deployment),
    at_1_5_times: { ...deploymentJson(result.surge), good_on_same_replicas: result.surgeWithoutMore },
    controller: {
      load: controller.load,
      fixed: controller.fixed,
      clairvoyant: controller.clairvoyant,
      gain: controller.gain,
      interval: controller.interval,
    },
    commands: commandsJson(commands),
    verdict,
  };
}

function frontJson({ candidate, sustained, ttftP99Ms, tpotP99Ms, usdPerMillionTokens, quality }: FrontPoint) {
  return {
    settings: settingsJson(candidate),
    sustained_rps: sustained,
    ttft_p99_ms: ttftP99Ms,
    tpot_p99_ms: tpotP99Ms,
    usd_per_million_output_tokens: usdPerMillionTokens,
    quality,
  };
}

/** What the page of a `tune` shows: its JSON, and what is drawn beside it. */
export function tunePageData(results: readonly TuneResult[]) {
  const [{ slo, traffic }] = results as [TuneResult];
  return {
    kind: 'tune' as const,
    title: `Settings for ${basename(traffic.source)}`,
    lead: `${slo.map(sloTermText).join(', ')}. ${trafficText(traffic)}, ${(traffic.searched + traffic.heldOut).toLocaleString('en-US')} requests, half of them held out.`,
    result: results.map((result) => ({
      ...tuneJson(result),
      page: {
        source: `${result.profile.status}, ${result.profile.source}`,
        curves: result.curves,
        others: result.front.filter(({ onFront }) => !onFront).map(frontJson),
        impossible: result.impossible === null ? [] : impossibleText(slo, result.impossible),
      },
    })),
  };
}

function deploymentJson({ load, replicas, good, usdPerHour }: TuneResult['deployment']) {
  return { load, replicas, good, usd_per_hour: usdPerHour };
}

function row(candidate: TunedCandidate, index: number): string[] {
  const { heldOut, overDefaults, ttftP99Ms, tpotP99Ms, usdPerMillionTokens, quality } = candidate;
  return [
    label(candidate, index),
    figure(heldOut.value),
    intervalText(heldOut.interval),
    overDefaults === null ? '-' : `${estimateText(overDefaults)}`,
    figure(ttftP99Ms),
    figure(tpotP99Ms),
    usdPerMillionTokens === null ? '-' : figure(usdPerMillionTokens),
    percent(quality),
  ];
}

function label({ isDefault, onFront }: TunedCandidate, index: number): string {
  return isDefault ? 'D' : `${index + 1}${onFront ? '*' : ''}`;
}

function frontPlot(front: readonly FrontPoint[], candidates: readonly TunedCandidate[]): string[] {
  const finalists = candidates.flatMap(({ ttftP99Ms, heldOut, isDefault }, i) =>
    isDefault || i === 0 ? [{ x: ttftP99Ms, y: heldOut.value, mark: isDefault ? 'D' : 'W' }] : [],
  );
  const points = front.map(({ ttftP99Ms, sustained, onFront }) => ({
    x: ttftP99Ms,
    y: sustained,
    mark: onFront ? 'o' : '·',
  }));
  return terminalScatter(
    [...points.sort((a, b) => (a.mark === 'o' ? 1 : 0) - (b.mark === 'o' ? 1 : 0)), ...finalists],
    {
      columns: 64,
      rows: 13,
      label: figure,
    },
  );
}
