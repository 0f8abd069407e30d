import { basename } from 'node:path';
import { counted, type EngineProfile } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { type Candidate, candidateKey, candidateText, vllmDefaults } from '../search/candidate.ts';
import { milliseconds, type SloTerm, sloTermName, sloTermText } from '../search/slo.ts';
import type { ControllerGain } from '../tune/choices.ts';
import {
  type FrontPoint,
  type ImpossibleTune,
  type PossibleTune,
  type TunedCandidate,
  type TuneResult,
  tuneJson,
} from '../tune/tune-result.ts';
import { figure, linesIf, percent } from './format.ts';
import { type Chart, type Column, type Page, type Section, tableLines, tableOf } from './page.ts';
import {
  autoscalerLines,
  checksText,
  commandLines,
  confidenceText,
  estimateText,
  intervalText,
  searchLines,
} from './result.ts';

/** How a result of `tune` is written. */
export const tuneResult = { json: tuneJson, text: tuneText, textSoFar: bestSoFarText, page: tunePage };

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
  return [
    ...head,
    verdict.headline,
    verdict.basis,
    ...commandLines(result.commands),
    '',
    'Settings, where they differ from vLLM’s defaults (D):',
    ...candidates.map((each, i) => `${label(each, i).padEnd(3)} ${settingsOf(each, result)}`),
    '',
    ...tableLines(tableOf('', candidates, COLUMNS, [meaning(result)])),
    '',
    verdict.confirmation,
    verdict.deployment,
    verdict.surge,
    verdict.controller,
  ].join('\n');
}

/** All settings of the defaults, of others those that differ. */
function settingsOf({ settings, isDefault }: TunedCandidate, { profile }: PossibleTune): string {
  return candidateText(settings, isDefault ? undefined : vllmDefaults(profile));
}

/** Text of a `tune` that was interrupted: the best settings that all of the search traffic was played on. */
function bestSoFarText(profile: EngineProfile, candidate: Candidate): string {
  const [vllm] = servingCommands(profile, candidate, 1);
  return [
    `${profile.name}, interrupted. Best so far, on the traffic of the search alone: ${candidateText(candidate, vllmDefaults(profile))}. Not confirmed on other traffic.`,
    ...commandLines([vllm]),
  ].join('\n');
}

const COLUMNS: readonly Column<TunedCandidate>[] = [
  ['#', label],
  ['sustained/s', ({ sustainedRps }) => figure(sustainedRps.value)],
  ['95 % interval', ({ sustainedRps }) => intervalText(sustainedRps.interval)],
  ['vs defaults', ({ overDefaults }) => (overDefaults === null ? '-' : estimateText(overDefaults))],
  ['TTFT p99, ms', ({ ttftP99Ms }) => figure(ttftP99Ms)],
  ['TPOT p99, ms', ({ tpotP99Ms }) => figure(tpotP99Ms)],
  ['USD/M tokens', ({ usdPerMillionOutputTokens: usd }) => (usd === null ? '-' : figure(usd))],
  ['quality', ({ quality }) => percent(quality)],
  ['assumes', ({ assumes }) => assumes.join(', ') || '-'],
];

const meaning = ({ referenceRps }: PossibleTune) =>
  `* on the Pareto front of load, TTFT, TPOT and quality, which --report draws. Sustained: requests/s of one engine under the SLO, on traffic the search has not seen; interval: over stretches of it, widened by the error of the profile. Latencies at ${figure(referenceRps)} requests/s.`;

function tunePage(results: readonly TuneResult[]): Page {
  const [first] = results;
  const { slo, trace, requestsSearched, requestsHeldOut } = first;
  const requests = (requestsSearched + requestsHeldOut).toLocaleString('en-US');
  return {
    title: `Settings for ${basename(trace)}`,
    lead: `${slo.map(sloTermText).join(', ')}. ${trafficText(first)}, ${requests} requests, half of them held out.`,
    sections: [
      ...linesIf<Section>(results.length > 1, {
        title: 'The profiles compared',
        table: tableOf('The profiles compared', results, COMPARED),
      }),
      ...results.flatMap(sectionsOf),
      {
        paragraphs: [
          'All settings see the same requests and the same random draws. The figures come from a simulator: confirm the winner on a real server before you rely on it.',
        ],
      },
    ],
  };
}

const ofWinner = (
  name: string,
  cell: (winner: TunedCandidate, result: PossibleTune) => string,
): Column<TuneResult> => [name, (result) => (result.possible ? cell(result.candidates[0], result) : '-')];

const COMPARED: readonly Column<TuneResult>[] = [
  ['profile', ({ profile }) => profile.name],
  ofWinner('settings', ({ settings }, { profile }) => candidateText(settings, vllmDefaults(profile))),
  ofWinner('sustained/s', ({ sustainedRps }) => estimateText(sustainedRps)),
  ofWinner('USD/M tokens', ({ usdPerMillionOutputTokens: usd }) => (usd === null ? '-' : figure(usd))),
  ofWinner('engines', (_, { deployment: { replicas } }) => String(replicas ?? 'too many')),
  ofWinner('USD/h', (_, { deployment: { usdPerHour: usd } }) => (usd === null ? '-' : figure(usd))),
];

function sectionsOf(result: TuneResult): readonly Section[] {
  const { profile, considered, simulatedRequests, wallS } = result;
  const heading: Section = {
    ...{ title: profile.name, look: 'heading' },
    paragraphs: [
      `${counted(considered, 'configuration')} considered, ${counted(simulatedRequests, 'request')} simulated in ${figure(wallS)} s. Profile: ${profile.status}, ${profile.source}.`,
    ],
  };
  if (!result.possible) return [heading, { paragraphs: impossibleText(result) }];
  const { candidates, commands, verdict } = result;
  const [winner] = candidates;
  const settings = candidateText(winner.settings, vllmDefaults(profile));
  const ranked = [...COLUMNS, ['settings', (each: TunedCandidate) => settingsOf(each, result)]] as const;
  return [
    heading,
    {
      paragraphs: [`Settings: ${settings}${winner.isDefault ? '' : '; all others as vLLM’s defaults'}.`],
      commands,
    },
    { title: 'Verdict', paragraphs: Object.values(verdict) },
    { title: 'Load that is sustained against latency', chart: frontChart(result) },
    { title: 'Ranking', table: tableOf('Ranking', candidates, ranked, [meaning(result)]) },
  ];
}

const look = (isDefault: boolean): 'first' | 'second' => (isDefault ? 'second' : 'first');

/** Sustained load against TTFT: the front, and the other settings that were simulated. */
export function frontChart({ profile, front, others, candidates }: PossibleTune): Chart {
  const isDrawn = ({ ttftP99Ms, sustainedRps }: FrontPoint) => ttftP99Ms > 0 && sustainedRps > 0;
  const [best, behind] = [front.filter(isDrawn), others.filter(isDrawn)];
  const named = candidates.filter(({ isDefault, ttftP99Ms }, i) => (isDefault || i === 0) && ttftP99Ms > 0);
  const tpots = [...best, ...behind].map(({ tpotP99Ms }) => tpotP99Ms);
  const [least, most] = [Math.min(...tpots), Math.max(...tpots)];
  const dot = ({ settings, sustainedRps, ttftP99Ms, tpotP99Ms }: FrontPoint) => ({
    ...{ x: ttftP99Ms, y: sustainedRps },
    radius: 3.5 + (most > least ? (5 * (tpotP99Ms - least)) / (most - least) : 0),
    title: `${candidateText(settings, vllmDefaults(profile))}: sustains ${figure(sustainedRps)} requests/s, TTFT p99 ${figure(ttftP99Ms)} ms, TPOT p99 ${figure(tpotP99Ms)} ms`,
  });
  return {
    label: `${best.length} settings on the front of sustained load and time to first token`,
    x: { title: 'TTFT p99 at the reference load, logarithmic', unit: 'latency', logarithmic: true },
    y: { title: 'sustained requests/s', unit: 'amount' },
    lines: named.map(({ isDefault, ttftP99Ms: x, sustainedRps: { interval } }) => ({
      ...{ look: look(isDefault), points: [interval.low, interval.high].map((y) => [x, y] as const) },
    })),
    dots: [
      ...behind.map((point) => ({ ...dot(point), look: 'faint' as const, hollow: true })),
      ...best.map((point) => ({ ...dot(point), look: 'first' as const })),
      ...named.map(({ isDefault, ttftP99Ms, sustainedRps }) => {
        const text = isDefault ? 'vLLM’s defaults' : 'chosen';
        return { x: ttftP99Ms, y: sustainedRps.value, radius: 5, look: look(isDefault), title: text, text };
      }),
    ],
    legend: [
      { look: 'first', text: 'on the Pareto front; larger: a larger TPOT' },
      { look: 'faint', hollow: true, text: 'other settings' },
    ],
  };
}

function label({ isDefault, onFront }: TunedCandidate, index: number): string {
  return isDefault ? 'D' : `${index + 1}${onFront ? '*' : ''}`;
}

/** A gain below this share of the requests is not worth a controller. */
const WORTHWHILE = 0.02;

export function tuneVerdict(
  result: Omit<PossibleTune, 'verdict'>,
  controller: ControllerGain,
): PossibleTune['verdict'] {
  const [winner] = result.candidates;
  return {
    headline: headline(winner),
    basis: basisText(result),
    confirmation: confirmation(result),
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

/** What the winner rests on, what to measure first, and the best settings that assume nothing. */
function basisText({ profile, candidates }: Pick<PossibleTune, 'profile' | 'candidates'>): string {
  const [winner] = candidates;
  if (winner.assumes.length === 0) return confidenceText(winner);
  const at = candidates.findIndex(({ assumes }) => assumes.length === 0);
  const first = `${confidenceText(winner)} To be sure, ${checksText(winner)}.`;
  if (at < 0) return `${first} All settings below assume something.`;
  const known = candidates[at];
  const [{ line }] = servingCommands(profile, known.settings, 1);
  return `${first}\nThe best settings that assume nothing are ${label(known, at)} below, with ${estimateText(known.sustainedRps)} requests/s: ${line}`;
}

function confirmation({
  confirmed,
  predictedRps,
  candidates: [winner],
}: Omit<PossibleTune, 'verdict'>): string {
  const { sustainedRpsSearched: searched, sustainedRps: heldOut } = winner;
  const figures = `${figure(searched.value)} on the traffic it was chosen on, ${figure(heldOut.value)} on traffic it had not seen`;
  const predicted = `the ${intervalText(predictedRps)} that the search predicts`;
  return confirmed
    ? `Confirmed: ${figures}, within ${predicted}.`
    : `Not confirmed: ${figures}, outside ${predicted}; tune on a longer trace.`;
}

function deployment(result: Omit<PossibleTune, 'verdict'>): string {
  const { replicas, good, usdPerHour, load } = result.deployment;
  const whole = `The whole traffic, ${trafficText(result)}`;
  if (replicas === null) {
    return `${whole}, is more than the replicas allowed can serve: ${percent(good)} of the requests meet every limit. Allow more with --replicas.`;
  }
  const engines = counted(replicas, 'engine');
  const times = load === 1 ? '' : ` (${figure(load)} times the trace)`;
  const { autoscaled, candidates, profile } = result;
  // Of the autoscaler with the lowest bill, told where they are not the winner's.
  const settings = autoscaled?.settings ?? candidates[0].settings;
  const isOther = candidateKey(settings) !== candidateKey(candidates[0].settings);
  return [
    `${whole}${times}, takes ${engines}, ${figure(usdPerHour!)} USD an hour; ${percent(good)} of the requests meet every limit.`,
    ...autoscalerLines(autoscaled, replicas),
    ...linesIf(isOther, `Its settings: ${candidateText(settings, vllmDefaults(profile))}.`),
  ].join(' ');
}

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
