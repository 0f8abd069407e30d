import { estimateText, figure, intervalText, percent } from '../report/result.ts';
import type { ControllerGain } from './controller-gain.ts';
import { milliseconds, type SloTerm, sloTermName, sloTermText } from './slo.ts';
import type { ImpossibleTune, PossibleTune, TunedCandidate, TuneResult } from './tune-result.ts';

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
  const engines = replicas === 1 ? 'one engine' : `${replicas} engines`;
  const times = load === 1 ? '' : ` (${figure(load)} times the trace)`;
  return `${whole}${times}, takes ${engines}, ${figure(usdPerHour!)} USD an hour; ${percent(good)} of the requests meet every limit.`;
}

/** Size of a traffic. */
export function trafficText({
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
export function impossibleText({ slo, nearest: { load, valuesMs } }: ImpossibleTune): string[] {
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
