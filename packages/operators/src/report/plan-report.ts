import { basename } from 'node:path';
import { counted } from '@servegym/simulator';
import { type FleetPlan, fleetPlanJson, type PlanResult, planJson } from '../plan/plan-result.ts';
import { candidateText, vllmDefaults } from '../search/candidate.ts';
import { routerName } from '../search/search-space.ts';
import { sloTermName, sloTermText } from '../search/slo.ts';
import { figure, linesIf, percent } from './format.ts';
import { kubernetesManifest } from './kubernetes-manifest.ts';
import { type Chart, type Column, type Page, type Section, type Table, tableLines, tableOf } from './page.ts';
import {
  autoscalerLines,
  checksText,
  commandLines,
  confidenceText,
  intervalText,
  searchLines,
} from './result.ts';

/** Rows of the table in a terminal, and of the one with plans on assumptions. */
const MOST_ROWS = 20;
const MOST_RISKIER = 5;

/** How a result of `plan` is written. */
export const planResult = {
  json: planJson,
  /** One of its plans. */
  planJson: fleetPlanJson,
  text: planText,
  textSoFar: plansSoFarText,
  sections: planSections,
  page: planPage,
};

function planText(result: PlanResult): string {
  const { plans, notPlanned, mostEngines } = result;
  const [cheapest] = plans;
  const refused = refusedLines(result).map((line) => `  ${line}`);
  return [
    ...[trafficLine(result), `SLO: ${result.slo.map(sloTermText).join(', ')}`, ''],
    ...(cheapest === undefined ? [noneText(result), ...refused, ...nearestLines(result)] : plansLines(plans)),
    ...nearLines(result),
    ...riskierLines(result),
    ...(cheapest === undefined
      ? []
      : [
          ...linesIf(
            notPlanned.length > 0,
            ...['', `Not planned (${counted(mostEngines, 'engine')} at most):`, ...refused],
          ),
          ...['', ...confirmLines(cheapest)],
        ]),
    ...effortLines(result),
  ].join('\n');
}

function noneText({ riskier }: PlanResult): string {
  return riskier.length > 0
    ? 'No plan that rests on measurements meets the SLO.'
    : 'No profile meets the SLO:';
}

/** Text of a `plan` that was interrupted: the plans of the kinds that were done. */
function plansSoFarText({ plans, riskier }: Ranked, done: number, of: number): string {
  return [
    `Interrupted after ${done} of ${of} kinds of engines. Plans so far:`,
    '',
    ...(plans.length > 0 ? plansLines(plans) : []),
    ...riskierLines({ plans, riskier }),
  ].join('\n');
}

type Ranked = Pick<PlanResult, 'plans' | 'riskier'>;

/** Plans that assume what was not allowed and cost less than the first of the others. */
function cheaperOnes({ plans, riskier }: Ranked): readonly FleetPlan[] {
  const least = plans[0]?.usdPerHour ?? Number.POSITIVE_INFINITY;
  return riskier.filter(({ usdPerHour }) => usdPerHour < least);
}

/** The same as a table, and what to measure first. */
function riskierLines(ranked: Ranked): string[] {
  const cheaper = cheaperOnes(ranked);
  if (cheaper.length === 0) return [];
  return [
    '',
    ranked.plans.length > 0 ? 'Cheaper, on assumptions:' : 'On assumptions:',
    ...tableLines(planTable('', cheaper.slice(0, MOST_RISKIER), [ASSUMES])),
    ...linesIf(cheaper.length > MOST_RISKIER, `and ${cheaper.length - MOST_RISKIER} more: --json has all`),
    measureFirst(cheaper[0]),
  ];
}

function measureFirst(plan: FleetPlan): string {
  return `Before you buy the first of them: ${checksText(plan)}. \`--allow ${plan.assumes.join(',')}\` ranks such plans with the others.`;
}

/** Plans that miss the SLO by less than the error of their profile. */
function nearLines({ near }: PlanResult): readonly string[] {
  return linesIf(
    near.length > 0,
    '',
    'Too close to tell: these miss the SLO by less than the error of their profile.',
    ...tableLines(planTable('', near, [['chance', ({ chance }) => percent(chance)]])),
  );
}

/** Plans, cheapest first: the cheapest in words and commands, and a table. */
function plansLines(plans: readonly FleetPlan[]): string[] {
  const [cheapest] = plans;
  return [
    planSentence(cheapest),
    ...commandLines(cheapest.commands),
    '',
    ...tableLines(planTable('', plans.slice(0, MOST_ROWS))),
    ...linesIf(plans.length > MOST_ROWS, `and ${plans.length - MOST_ROWS} more: --json has all`),
    ...MEANING,
  ];
}

const MEANING = [
  '* no cheaper plan has a lower TTFT p99. Interval: over stretches of the traffic, widened by the error of the profile.',
  'Autoscaled: mean bill when engines follow the demand. At least: no schedule of any kind on these GPUs costs less.',
];

const COLUMNS: readonly Column<FleetPlan>[] = [
  ['#', ({ onFront }, i) => `${i + 1}${onFront ? '*' : ''}`],
  ['profile', ({ profile }) => profile.name],
  ['weights', sharingText],
  ['engines', ({ engines }) => String(engines)],
  ['GPUs', ({ gpus }) => String(gpus)],
  ['USD/h', ({ usdPerHour }) => figure(usdPerHour)],
  ['95 % interval', ({ confidence: { usdPerHour: at } }) => `${figure(at.low)}..${figure(at.high)}`],
  ['autoscaled', ({ autoscaledUsdPerHour }) => figure(autoscaledUsdPerHour)],
  ['at least', ({ lowerBoundUsdPerHour }) => figure(lowerBoundUsdPerHour)],
  ['USD/M out', ({ usdPerMillionOutputTokens }) => figure(usdPerMillionOutputTokens)],
  ['TTFT p99, ms', ({ ttftP99Ms }) => figure(ttftP99Ms)],
  ['TPOT p99, ms', ({ tpotP99Ms }) => figure(tpotP99Ms)],
  ['headroom', ({ headroom }) => `${figure(headroom)}x`],
  ['rests on', ({ restsOn }) => restsOn],
];

const SCALED: Column<FleetPlan> = [
  'HPA, USD/h',
  ({ autoscaler }) => (autoscaler ? figure(autoscaler.usdPerHour) : autoscaler === null ? 'none' : '-'),
];
const ASSUMES: Column<FleetPlan> = ['assumes', ({ assumes }) => assumes.join(', ')];

const FURTHER_COLUMNS: readonly Column<FleetPlan>[] = [
  ['good at 1.5x', ({ good_at_1_5_times: good }) => percent(good)],
  ['USD/M in', ({ usdPerMillionInputTokens }) => figure(usdPerMillionInputTokens)],
  ['kW at most', ({ kwhPerHourAtMost: kw }) => (kw === null ? '-' : figure(kw))],
  ['breaks first', ({ breaksFirst }) => breaksFirst ?? '-'],
  ['quality', ({ quality }) => percent(quality)],
  ['settings', settingsText],
];

function planTable<Plan extends FleetPlan>(
  label: string,
  plans: readonly Plan[],
  more: readonly Column<Plan>[] = [],
  notes?: readonly string[],
): Table {
  const isScaled = plans.some(({ autoscaler }) => autoscaler !== undefined);
  return tableOf(label, plans, [...COLUMNS, ...linesIf(isScaled, SCALED), ...more], notes);
}

function enginesText({ pools }: FleetPlan): string {
  return pools
    .map(({ engines, profile, settings, role }) => {
      const does = role === 'all' ? '' : ` for ${role}`;
      return `${counted(engines, 'engine')} of ${profile.name}${does}, ${settings.weights}`;
    })
    .join(' and ');
}

function planSentence(plan: FleetPlan, which = 'Cheapest'): string {
  const { gpus, usdPerHour, autoscaler, confidence, breaksFirst, headroom } = plan;
  const { kwhPerHourAtMost: kwh, kwhPerMillionOutputTokensAtMost: perMillion } = plan;
  const { low, high } = confidence.usdPerHour;
  const always = `${figure(usdPerHour)} USD an hour (${figure(low)} to ${figure(high)})`;
  const price = autoscaler
    ? `${figure(autoscaler.usdPerHour)} USD an hour with the autoscaler below, ${always} with all engines all the time`
    : always;
  const { sustainedRps: sustained } = confidence;
  const times = headroom / plan.sustainedRps;
  return [
    `${which}: ${enginesText(plan)} (${counted(gpus, 'GPU')}), ${price}.`,
    `Settings: ${settingsText(plan)}.`,
    ...linesIf(
      plan.router === 'prefix_aware',
      'Routing: to the engine that has the prefix, unless it is busy.',
    ),
    `They sustain ${figure(headroom)} (${intervalText({ low: times * sustained.low, high: times * sustained.high })}) times this load${breaksFirst === null ? '' : `; ${breaksFirst} breaks first`}. At 1.5 times, ${percent(plan.good_at_1_5_times)} of the requests meet every limit.`,
    ...autoscalerLines(plan.autoscaler, plan.engines),
    kwh === null || perMillion === null
      ? 'Energy: not known, as the data sheet of the GPU is not known here.'
      : `Energy: at most ${figure(kwh)} kWh an hour, ${figure(perMillion)} kWh for a million output tokens (GPU boards at their power limit, without hosts and cooling).`,
    confidenceText(plan),
  ].join('\n');
}

function settingsText({ profile, settings }: FleetPlan): string {
  return candidateText(settings, vllmDefaults(profile));
}

/** Weights of a plan, and how its engines share the work. */
function sharingText({ pools, settings, router, weightsAlike }: FleetPlan): string {
  const weights = [settings.weights, ...weightsAlike].join(' or ');
  return [
    weights,
    ...linesIf(pools[0].role !== 'all', `split ${pools.map(({ engines }) => engines).join(':')}`),
    ...linesIf(router !== 'least_loaded', router === 'prefix_aware' ? 'by prefix' : routerName(router)),
  ].join(', ');
}

function trafficLine(result: PlanResult): string {
  const { trace, requests, requestsSimulated: sampled } = result;
  const used = sampled < requests ? `, ${sampled.toLocaleString('en-US')} of them simulated` : '';
  return `${trace}: ${counted(requests, 'request')} in ${figure(result.hours)} h${used}; ${figure(result.requestsPerS)} requests/s, ${figure(result.inputTokensPerS)} input and ${figure(result.outputTokensPerS)} output tokens/s`;
}

/** Profiles that are in no plan, by the reason, each with its precisions. */
function refusedLines({ notPlanned }: PlanResult): string[] {
  return [...Map.groupBy(notPlanned, ({ reason }) => reason)].map(([reason, kinds]) => {
    const byProfile = Map.groupBy(kinds, ({ profile }) => profile.name);
    const names = [...byProfile].map(
      ([name, own]) => `${name} ${own.map(({ precision }) => precision).join('/')}`,
    );
    return `${reason}: ${names.join(', ')}`;
  });
}

function nearestLines({ nearest, slo }: PlanResult): string[] {
  if (nearest === null) return [];
  const { profile, settings, engines, load, valuesMs } = nearest;
  const values = slo.map((term) => `${figure(valuesMs[sloTermName(term)])} ms for ${sloTermText(term)}`);
  return [
    `Nearest: ${engines} x ${profile.name}, ${candidateText(settings, vllmDefaults(profile))}: ${values.join(', ')}, at ${figure(load)} times the load.`,
  ];
}

function confirmLines({ profile }: FleetPlan): string[] {
  return [
    'To confirm with the first GPU hour, start the line above and run:',
    '  servegym profile make http://127.0.0.1:8000/v1 --output mine.json',
    `  servegym profile confirm http://127.0.0.1:8000/v1 --profile mine.json   # in place of ${profile.name}`,
  ];
}

function effortLines({ simulations, simulatedRequests, wallS, ...search }: PlanResult): string[] {
  return [
    '',
    ...searchLines(search),
    `${counted(simulations, 'simulation')}, ${counted(simulatedRequests, 'request')}, ${figure(wallS)} s`,
  ];
}

function planPage(result: PlanResult): Page {
  const { trace, plans } = result;
  const lead = leadOf(plans);
  const ofLead = (...sections: readonly ((plan: FleetPlan) => Section)[]) =>
    lead === undefined ? [] : sections.map((section) => section(lead));
  return {
    title: `What to buy for ${/\s/.test(trace) ? trace : basename(trace)}`,
    lead: `Objectives: ${result.slo.map(sloTermText).join(', ')}.`,
    sections: [
      ...ofLead(
        (plan) => ({ numbers: numbersOf(plan) }),
        () => ({ title: 'What could still be saved', chart: savingsChart(plans) }),
      ),
      ...planSections(result, result),
      ...ofLead(
        (plan) => ({ title: 'Assumptions', items: assumptions(result, plan), look: 'half' }),
        (plan) => ({ title: 'On Kubernetes', code: kubernetesManifest(plan), look: 'half' }),
        (plan) => ({ title: 'How to confirm it', code: confirmLines(plan).join('\n'), look: 'half' }),
      ),
    ],
  };
}

/** The cheapest plan that rests on measurements of its profile, or the cheapest of all. */
function leadOf(plans: readonly FleetPlan[]): FleetPlan | undefined {
  return plans.find(({ restsOn }) => restsOn === 'measured') ?? plans[0];
}

/** Plans with a chart, the one to begin with first. @param result once the search is done: it has the commands too */
function planSections({ plans, riskier }: Ranked, result?: PlanResult): readonly Section[] {
  const lead = leadOf(plans);
  const table = planTable('Table of plans', plans, FURTHER_COLUMNS, MEANING);
  const at = lead === undefined ? 0 : plans.indexOf(lead);
  const rows = [...table.rows.slice(at, at + 1), ...table.rows.toSpliced(at, 1)];
  const risks = planTable('Plans on assumptions', riskier, [ASSUMES, ...FURTHER_COLUMNS]);
  const refused = result === undefined ? [] : refusedLines(result);
  const notPlanned = `Not planned: ${result?.notPlanned.length}`;
  return [
    ...(result ? [{ paragraphs: answerLines(result) }] : []),
    ...linesIf(plans.length > 0, { chart: frontChart(plans), table: { ...table, rows } }),
    ...linesIf(result !== undefined && plans.length > 0, { commands: lead?.commands }),
    ...linesIf<Section>(riskier.length > 0, {
      ...{ title: `On assumptions, to be measured before you buy: ${riskier.length}`, table: risks },
      look: 'folded',
    }),
    ...linesIf<Section>(refused.length > 0, { title: notPlanned, items: refused, look: 'folded' }),
  ];
}

/** The plan to begin with in words, and what could cost less. */
function answerLines(result: PlanResult): string[] {
  const { plans } = result;
  const lead = leadOf(plans);
  const [cheapest] = plans;
  const [cheaper] = cheaperOnes(result);
  const could = (plan: FleetPlan | undefined, on: string) =>
    plan === undefined
      ? []
      : [`On ${on} it could be ${enginesText(plan)} for ${figure(plan.usdPerHour)} USD an hour.`];
  return [
    ...(lead === undefined
      ? [noneText(result), ...nearestLines(result)]
      : planSentence(lead, lead === cheapest ? 'Cheapest' : 'Cheapest that was measured').split('\n')),
    ...(cheapest === lead
      ? []
      : could(cheapest, cheapest.restsOn === 'tables' ? 'kernel tables' : 'data sheets')),
    ...could(cheaper, `assumptions (${cheaper?.assumes.join(', ')})`),
    `${trafficLine(result)}.`,
    'The figures come from a simulator. Measure one GPU hour on the engine that you choose before you buy.',
  ];
}

function numbersOf(plan: FleetPlan): Section['numbers'] {
  const always = `an hour (${intervalText(plan.confidence.usdPerHour)}), all engines all the time`;
  const least = `no schedule costs less than ${figure(plan.lowerBoundUsdPerHour)}`;
  return [
    [`$${figure(plan.usdPerHour)}`, always],
    [counted(plan.gpus, 'GPU'), enginesText(plan)],
    [`$${figure(plan.autoscaledUsdPerHour)}`, `an hour when engines follow the demand; ${least}`],
    [`$${figure(plan.usdPerMillionOutputTokens)}`, 'for a million output tokens of this traffic'],
    [`${figure(plan.headroom)}×`, 'the load that they sustain'],
  ];
}

/** USD an hour against TTFT, with the front drawn through. */
function frontChart(plans: readonly FleetPlan[]): Chart {
  const front = plans.filter(({ onFront }) => onFront);
  const times = plans.map(({ ttftP99Ms }) => Math.max(1, ttftP99Ms));
  return {
    label: `${plans.length} plans by price and time to first token, ${front.length} of them on the front`,
    x: {
      ...{ title: 'time to first token, slowest 1 %', unit: 'latency', logarithmic: true },
      domain: [Math.min(100, ...times) / 1.3, Math.max(1000, ...times) * 1.3],
    },
    y: { title: '', unit: 'dollars' },
    lines: [{ look: 'first', points: front.map((plan) => [plan.ttftP99Ms, plan.usdPerHour]) }],
    dots: plans.map((plan) => ({
      ...{ x: plan.ttftP99Ms, y: plan.usdPerHour },
      ...(plan.onFront ? { look: 'first', radius: 6 } : { look: 'faint', radius: 4.5, hollow: true }),
      title: `${enginesText(plan)}: ${figure(plan.usdPerHour)} USD an hour, TTFT p99 ${figure(plan.ttftP99Ms)} ms`,
    })),
  };
}

/** Plans whose savings are drawn. */
const MOST_BARS = 6;

/** Bars of the cheapest plans: all the time, with an autoscaler, and the bound. */
function savingsChart(plans: readonly FleetPlan[]): Chart {
  const shown = plans.slice(0, MOST_BARS);
  const bars = [
    ['faint', 'all the time', ({ usdPerHour }: FleetPlan) => usdPerHour],
    ['first', 'autoscaled', ({ autoscaledUsdPerHour }: FleetPlan) => autoscaledUsdPerHour],
    ['second', 'at least', ({ lowerBoundUsdPerHour }: FleetPlan) => lowerBoundUsdPerHour],
  ] as const;
  return {
    label:
      'USD an hour of the cheapest plans: all the time, with an autoscaler, and the least there could be',
    x: { title: 'USD an hour', unit: 'dollars' },
    y: { title: '', names: shown.map(enginesText) },
    lines: shown.flatMap((plan, i) =>
      bars.map(([look, , usd], k) => {
        const at = i + 0.2 * (k - 1);
        return { look, thick: true, points: [[0, at] as const, [usd(plan), at] as const] };
      }),
    ),
    legend: bars.map(([look, text]) => ({ look, text })),
    height: 94 + 44 * shown.length,
  };
}

function assumptions(result: PlanResult, plan: FleetPlan): string[] {
  const { mostEngines } = result;
  const { pools, profile, settings, router, confidence } = plan;
  return [
    `Times of an engine: ${profile.source} (${profile.weights[settings.weights]!.status}).`,
    `Error allowed for: ${percent(confidence.profileError)}, ${confidence.profileErrorSource}.`,
    `Traffic: ${result.requestsSimulated.toLocaleString('en-US')} of ${counted(result.requests, 'request')}, in stretches evenly over the trace; settings are chosen on half of them and judged on the other.`,
    `Price: ${figure(profile.gpu.usdPerHour)} USD for each ${profile.gpu.name} and hour, from the dated table of public list prices or from --prices.`,
    router === 'prefix_aware'
      ? 'Requests go to the engine with the best sum of two scores: few in flight, and the share of the prompt that it was sent before.'
      : 'Requests go to the engine with the fewest in flight. Prefixes are found where the trace names them.',
    ...linesIf(
      pools[0].role !== 'all',
      'Prefill and decode are apart: KV goes over the link of each engine that prefills, one request after another.',
    ),
    `Autoscaling: windows of 60 s, demand known a cold start of 60 s ahead, engines stay 300 s (Kubernetes' default). At most ${counted(mostEngines, 'engine')}.`,
    'Lower bound: work of the tokens alone, each computed once at the best batch; latency objectives, cold starts and idle time are left out.',
    `Quality: ${percent(plan.quality)} of FP16's accuracy at ${plan.settings.weights}, as the profile says.`,
    'Energy: the power limit of every GPU board on its data sheet, all the time. Boards take less under most loads; hosts and cooling come on top.',
    'Schedules are those of vLLM 0.32 (docs/schedules.md).',
  ];
}
