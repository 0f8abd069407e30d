import { basename } from 'node:path';
import type { EngineProfile } from '@servegym/simulator';
import { counted } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { type Candidate, candidateText, vllmDefaults } from '../search/candidate.ts';
import { milliseconds, type SloTerm, sloTermName, sloTermText } from '../search/slo.ts';
import type { ControllerGain } from '../tune/choices.ts';
import {
  frontPointJson,
  type ImpossibleTune,
  type PossibleTune,
  type TunedCandidate,
  type TuneResult,
  tuneJson,
} from '../tune/tune-result.ts';
import { alignedRows } from './format.ts';
import { commandLines, estimateText, figure, intervalText, percent, searchLines } from './result.ts';

/** How a result of `tune` is written. */
export const tuneResult = { json: tuneJson, text: tuneText, textSoFar: bestSoFarText, page: tunePage };

/** Text of `tune` without `--json`. */
function tuneText(result: TuneResult): string {
  const { profile, slo, trace, considered, simulatedRequests, wallS } = result;
  const head = [
    `${profile.name}, ${trace}`,
    `SLO: ${slo.map(sloTermText).join(', ')}`,
    `${counted(considered, 'configuration')} considered, ${counted(simulatedRequests, 'request')} simulated, ${figure(wallS)} s`,
    ...searchLines(result),
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
    `* on the Pareto front of load, TTFT, TPOT and quality, which --report draws. Sustained: requests/s of one engine under the SLO, on traffic the search has not seen; interval: over stretches of it, widened by the error of the profile. Latencies at ${figure(result.referenceRps)} requests/s, ms.`,
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

/** A gain below this share of the requests is not worth a controller. */
const WORTHWHILE = 0.02;

/** The sentences that a result of `tune` comes down to. */
export function tuneVerdict(
  result: Omit<PossibleTune, 'verdict'>,
  controller: ControllerGain,
): PossibleTune['verdict'] {
  const [winner] = result.candidates;
  return {
    headline: headline(winner),
    confirmation: confirmation(result, winner),
    deployment: deployment(result),
    surge: surge(result),
    controller: controllerSentence(controller, winner, result.requestsPerS === null),
  };
}

function headline({ sustainedRps, overDefaults, isDefault }: TunedCandidate): string {
  const sustained = `One engine sustains ${estimateText(sustainedRps)} requests/s under the SLO`;
  if (isDefault) return `${sustained} with vLLM’s defaults: nothing that was searched is better.`;
  if (overDefaults === null) return `${sustained}. vLLM’s defaults sustain none.`;
  const { value, interval } = overDefaults;
  const times = `${figure(value)} times (${intervalText(interval)}) what vLLM’s defaults do`;
  if (interval.low > 1) return `${sustained}, ${times}.`;
  return `${sustained}, ${times}: no difference that this traffic could show.`;
}

function confirmation(
  { confirmed, predictedRps }: Pick<PossibleTune, 'confirmed' | 'predictedRps'>,
  { sustainedRpsSearched: searched, sustainedRps: heldOut }: TunedCandidate,
): string {
  const figures = `${figure(searched.value)} on the traffic it was chosen on, ${figure(heldOut.value)} on traffic it had not seen`;
  return confirmed
    ? `Confirmed: ${figures}, within the ${intervalText(predictedRps)} that the search predicts.`
    : `Not confirmed: ${figures}, outside the ${intervalText(predictedRps)} that the search predicts; tune on a longer trace.`;
}

function deployment(result: Omit<PossibleTune, 'verdict'>): string {
  const { replicas, good, usdPerHour, load } = result.deployment;
  const whole = `The whole traffic, ${trafficText(result)}`;
  if (replicas === null) {
    return `${whole}, is more than the replicas allowed can serve: ${percent(good)} of the requests meet every limit. Allow more with --replicas.`;
  }
  const engines = counted(replicas, 'engine');
  const times = load === 1 ? '' : ` (${figure(load)} times the trace)`;
  return `${whole}${times}, takes ${engines}, ${figure(usdPerHour!)} USD an hour; ${percent(good)} of the requests meet every limit.`;
}

/** Size of a traffic. */
function trafficText({
  requestsPerS,
  concurrency,
}: Pick<TuneResult, 'requestsPerS' | 'concurrency'>): string {
  return requestsPerS === null ? `${concurrency} in flight` : `${figure(requestsPerS)} requests/s`;
}

function surge({ at_1_5_times: more, deployment: planned }: Omit<PossibleTune, 'verdict'>): string {
  const same = `At 1.5 times the traffic, ${percent(more.goodOnSameReplicas)} of the requests meet every limit on the same engines`;
  if (more.replicas === null) return `${same}, and the replicas allowed are too few.`;
  if (more.replicas === planned.replicas) return `${same}: they are enough.`;
  return `${same}; ${more.replicas} are needed, ${figure(more.usdPerHour!)} USD an hour.`;
}

function controllerSentence(
  { fixed, gain, interval, blocks }: ControllerGain,
  winner: TunedCandidate,
  isClosedLoop: boolean,
): string {
  const load = isClosedLoop
    ? 'With a fifth more in flight than it sustains'
    : `At ${figure(1.2 * winner.sustainedRpsSearched.value)} requests/s, a fifth above what it sustains`;
  const measured =
    `${load}, the best fixed settings serve ${percent(fixed)} of the ` +
    `requests within every limit. Choosing the best settings for each of ${blocks} stretches of the traffic, known ` +
    `beforehand and switched at no cost, adds ${points(gain)} percentage points (${points(interval.low)} to ${points(interval.high)})`;
  if (interval.high < WORTHWHILE || interval.low <= 0) {
    return `A fixed configuration is as good as any controller of these settings, as far as this traffic can show. ${measured}.`;
  }
  return `A controller could add up to ${points(gain)} percentage points. ${measured}; a real one gets a part of that.`;
}

/** Sentences for an SLO that nothing meets. */
function impossibleText({ slo, nearest: { load, valuesMs } }: ImpossibleTune): string[] {
  const bound = (term: SloTerm) => {
    const value = valuesMs[sloTermName(term)];
    const verdict =
      value <= term.limitMs ? 'met' : `not met: needs a limit of at least ${milliseconds(Math.ceil(value))}`;
    return `- ${sloTermText(term)}: ${milliseconds(value)}, ${verdict}`;
  };
  return [
    `Nothing that was tried meets this SLO, not even at ${figure(load)} of the traffic’s rate, where requests hardly meet.`,
    'The settings that come nearest have there:',
    ...slo.map(bound),
    'Raise the limit, take a faster GPU or more tensor parallelism, or shorten the prompts.',
  ];
}

function points(share: number): string {
  // Adding zero makes a negative zero positive.
  return (Number((100 * share).toFixed(1)) + 0).toFixed(1);
}
