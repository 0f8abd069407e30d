import { basename } from 'node:path';
import { counted } from '@servegym/simulator';
import { type FleetPlan, fleetPlanJson, type PlanResult, planJson } from '../plan/plan-result.ts';
import { candidateText, vllmDefaults } from '../search/candidate.ts';
import { routerName } from '../search/search-space.ts';
import { sloTermName, sloTermText } from '../search/slo.ts';
import { alignedRows, linesIf } from './format.ts';
import { kubernetesManifest } from './kubernetes-manifest.ts';
import { commandLines, figure, intervalText, percent, searchLines } from './result.ts';

/** Rows of the table in a terminal. */
const MOST_ROWS = 20;

/** How a result of `plan` is written. */
export const planResult = {
  json: planJson,
  /** One of its plans. */
  planJson: fleetPlanJson,
  text: planText,
  textSoFar: plansSoFarText,
  page: planPage,
};

/** Text of `plan` without `--json`. */
function planText(result: PlanResult): string {
  const { plans, notPlanned, mostEngines } = result;
  const [cheapest] = plans;
  const riskier = riskierLines(result);
  const head = [trafficLine(result), `SLO: ${result.slo.map(sloTermText).join(', ')}`, ''];
  if (cheapest === undefined) {
    const none =
      result.riskier.length > 0
        ? 'No plan that rests on measurements meets the SLO.'
        : 'No profile meets the SLO:';
    const why = [none, ...refusedLines(result), ...nearestLines(result), ...nearLines(result)];
    return [...head, ...why, ...riskier, ...effortLines(result)].join('\n');
  }
  return [
    ...head,
    ...plansLines(plans),
    ...nearLines(result),
    ...riskier,
    ...linesIf(
      notPlanned.length > 0,
      '',
      `Not planned (${counted(mostEngines, 'engine')} at most):`,
      ...refusedLines(result),
    ),
    '',
    ...confirmLines(cheapest),
    ...effortLines(result),
  ].join('\n');
}

/** Text of a `plan` that was interrupted: the plans of the kinds that were done. */
function plansSoFarText(
  { plans, riskier }: Pick<PlanResult, 'plans' | 'riskier'>,
  done: number,
  of: number,
): string {
  return [
    `Interrupted after ${done} of ${of} kinds of engines. Plans so far:`,
    '',
    ...(plans.length > 0 ? plansLines(plans) : []),
    ...riskierLines({ plans, riskier }),
  ].join('\n');
}

/** Plans that assume what was not allowed and cost less than the first of the others, and what to measure first. */
function riskierLines({ plans, riskier }: Pick<PlanResult, 'plans' | 'riskier'>): string[] {
  const cheaper = riskier.filter(
    ({ usdPerHour }) => usdPerHour < (plans[0]?.usdPerHour ?? Number.POSITIVE_INFINITY),
  );
  if (cheaper.length === 0) return [];
  const [{ assumes }] = cheaper;
  return [
    '',
    plans.length > 0 ? 'Cheaper, on assumptions:' : 'On assumptions:',
    ...tableLines(cheaper.slice(0, MOST_RISKIER), ['assumes', ({ assumes: each }) => each.join(', ')]),
    ...linesIf(cheaper.length > MOST_RISKIER, `and ${cheaper.length - MOST_RISKIER} more: --json has all`),
    `Before you buy the first of them: ${assumes.map((each) => CHECKS[each] ?? `measure the accuracy of ${each.toUpperCase()} weights on your task`).join('; ')}. \`--allow ${assumes.join(',')}\` ranks such plans with the others.`,
  ];
}

/** Plans that miss the SLO by less than the error of their profile. */
function nearLines({ near }: PlanResult): string[] {
  if (near.length === 0) return [];
  const chances = new Map<FleetPlan, number>(near.map((plan) => [plan, plan.chance]));
  return [
    '',
    'Too close to tell: these miss the SLO by less than the error of their profile.',
    ...tableLines(near, ['chance', (plan) => percent(chances.get(plan)!)]),
  ];
}

/** Rows of the second table in a terminal. */
const MOST_RISKIER = 5;

/** What to measure before an assumption is relied on. */
const CHECKS: Readonly<Record<string, string>> = {
  drafts: 'measure how many draft tokens your engine accepts on your traffic',
  estimated: 'measure the GPU with `servegym profile make`',
};

/** Plans, cheapest first: the cheapest in words and commands, and a table. */
function plansLines(plans: readonly FleetPlan[]): string[] {
  const [cheapest] = plans as [FleetPlan];
  return [
    planSentence(cheapest),
    ...commandLines(cheapest.commands),
    '',
    ...tableLines(plans.slice(0, MOST_ROWS)),
    ...linesIf(plans.length > MOST_ROWS, `and ${plans.length - MOST_ROWS} more: --json has all`),
    '* no cheaper plan has a lower TTFT p99. Interval: over stretches of the traffic, widened by the error of the profile.',
    'Autoscaled: mean bill when engines follow the demand. At least: no schedule of any kind on these GPUs costs less.',
  ];
}

/** @param more name and text of one more column */
function tableLines(
  plans: readonly FleetPlan[],
  [name, more]: readonly [name?: string, more?: (plan: FleetPlan) => string] = [],
): string[] {
  return alignedRows([
    [
      ...['', 'profile', 'weights', 'engines', 'GPUs', 'USD/h', '95 % interval', 'autoscaled', 'at least'],
      ...['USD/M out', 'TTFT p99', 'TPOT p99', 'headroom', 'rests on', ...(name ? [name] : [])],
    ],
    ...plans.map((plan, i) => [...row(plan, i), ...(more ? [more(plan)] : [])]),
  ]);
}

/** The cheapest plan in words. */
function planSentence(plan: FleetPlan): string {
  const { pools, gpus, usdPerHour, confidence, breaksFirst, headroom } = plan;
  const { low, high } = confidence.usdPerHour;
  const { sustainedRps: sustained } = confidence;
  const times = headroom / plan.sustainedRps;
  const engines = pools.map(({ engines: count, profile, settings, role }) => {
    const does = role === 'all' ? '' : ` for ${role}`;
    return `${counted(count, 'engine')} of ${profile.name}${does}, ${settings.weights}`;
  });
  return [
    `Cheapest: ${engines.join(' and ')} (${counted(gpus, 'GPU')}), ${figure(usdPerHour)} USD an hour (${figure(low)} to ${figure(high)}).`,
    `Settings: ${settingsText(plan)}.`,
    ...linesIf(
      plan.router === 'prefix_aware',
      'Routing: to the engine that has the prefix, unless it is busy.',
    ),
    `They sustain ${figure(headroom)} (${intervalText({ low: times * sustained.low, high: times * sustained.high })}) times this load${breaksFirst === null ? '' : `; ${breaksFirst} breaks first`}. At 1.5 times, ${percent(plan.good_at_1_5_times)} of the requests meet every limit.`,
    energyText(plan),
    CONFIDENCE[plan.restsOn],
  ].join('\n');
}

function energyText({
  kwhPerHourAtMost: kwh,
  kwhPerMillionOutputTokensAtMost: perMillion,
}: FleetPlan): string {
  return kwh === null || perMillion === null
    ? 'Energy: not known, as the data sheet of the GPU is not known here.'
    : `Energy: at most ${figure(kwh)} kWh an hour, ${figure(perMillion)} kWh for a million output tokens (GPU boards at their power limit, without hosts and cooling).`;
}

/** Settings of each pool that differ from vLLM's defaults. */
function settingsText({ pools }: FleetPlan): string {
  const texts = pools.map(({ profile, settings }) => candidateText(settings, vllmDefaults(profile)));
  return pools.every(({ profile }) => profile === pools[0].profile)
    ? texts[0]
    : texts.map((text, at) => `on ${pools[at].profile.gpu.name} ${text}`).join('; ');
}

/** Names of the profiles of a plan, with the engines of each where there are two kinds. */
function profilesText({ pools }: FleetPlan): string {
  return pools.every(({ profile }) => profile === pools[0].profile)
    ? pools[0].profile.name
    : pools.map(({ engines, profile }) => `${engines} x ${profile.name}`).join(' + ');
}

/** Weights of a plan, and how its engines share the work. */
function sharingText({ pools, router, weightsAlike }: FleetPlan): string {
  const names = [...new Set(pools.map(({ settings }) => settings.weights))].join(' and ');
  const weights = [names, ...weightsAlike].join(' or ');
  const roles = pools[0].role === 'all' ? [] : [`split ${pools.map(({ engines }) => engines).join(':')}`];
  return [
    weights,
    ...roles,
    ...linesIf(router !== 'least_loaded', router === 'prefix_aware' ? 'by prefix' : routerName(router)),
  ].join(', ');
}

const CONFIDENCE = {
  measured: 'Confidence: high. The profile was measured on an engine.',
  tables: 'Confidence: medium. The profile was made from kernel tables, not measured on an engine.',
  estimated: 'Confidence: low. The profile was made from data sheets: measure before you buy.',
  assumed: 'Confidence: low. Drafts are taken to be accepted as on other traffic: measure before you buy.',
} as const;

function trafficLine(result: PlanResult): string {
  const { trace, requests, requestsSimulated: sampled } = result;
  const used = sampled < requests ? `, ${sampled.toLocaleString('en-US')} of them simulated` : '';
  return `${trace}: ${counted(requests, 'request')} in ${figure(result.hours)} h${used}; ${figure(result.requestsPerS)} requests/s, ${figure(result.inputTokensPerS)} input and ${figure(result.outputTokensPerS)} output tokens/s`;
}

function row(plan: FleetPlan, index: number): string[] {
  const { low, high } = plan.confidence.usdPerHour;
  return [
    `${index + 1}${plan.onFront ? '*' : ''}`,
    profilesText(plan),
    sharingText(plan),
    String(plan.engines),
    String(plan.gpus),
    figure(plan.usdPerHour),
    `${figure(low)}..${figure(high)}`,
    figure(plan.autoscaledUsdPerHour),
    figure(plan.lowerBoundUsdPerHour),
    figure(plan.usdPerMillionOutputTokens),
    figure(plan.ttftP99Ms),
    figure(plan.tpotP99Ms),
    `${figure(plan.headroom)}x`,
    plan.restsOn,
  ];
}

function refusedLines({ notPlanned }: PlanResult): string[] {
  const byReason = new Map<string, string[]>();
  for (const { profile, precision, reason } of notPlanned) {
    const names = byReason.get(reason) ?? [];
    names.push(`${profile.name} ${precision}`);
    byReason.set(reason, names);
  }
  return [...byReason].map(([reason, names]) => `  ${reason}: ${names.join(', ')}`);
}

/** What comes nearest to an SLO that nothing meets. */
function nearestLines({ nearest, slo }: PlanResult): string[] {
  if (nearest === null) return [];
  const { profile, settings, engines, load, valuesMs } = nearest;
  const values = slo.map((term) => `${figure(valuesMs[sloTermName(term)])} ms for ${sloTermText(term)}`);
  return [
    `Nearest: ${engines} x ${profile.name}, ${candidateText(settings, vllmDefaults(profile))}: ${values.join(', ')}, at ${figure(load)} times the load.`,
  ];
}

/** Steps that confirm a plan on a real GPU. */
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

/** What the page of a `plan` shows: its JSON, and the rest in words. */
function planPage(result: PlanResult) {
  const { trace, plans, slo } = result;
  const [cheapest] = plans;
  return {
    kind: 'plan' as const,
    title: `What to buy for ${/\s/.test(trace) ? trace : basename(trace)}`,
    lead: `${counted(result.requests, 'request')} in ${figure(result.hours)} h: ${figure(result.requestsPerS)} a second, ${figure(result.inputTokensPerS)} input and ${figure(result.outputTokensPerS)} output tokens a second. Objectives: ${slo.map(sloTermText).join(', ')}.`,
    result: planJson(result),
    notes:
      cheapest === undefined
        ? []
        : [
            { title: 'The cheapest in words', items: planSentence(cheapest).split('\n') },
            { title: 'Assumptions', items: assumptions(result, cheapest) },
            { title: 'On Kubernetes', code: kubernetesManifest(cheapest) },
            { title: 'How to confirm it', code: confirmLines(cheapest).join('\n') },
          ],
  };
}

/** Assumptions behind the figures, each with its source. */
function assumptions(result: PlanResult, plan: FleetPlan): string[] {
  const { mostEngines, mixedFleetsTried } = result;
  const { pools, router, confidence } = plan;
  const kinds = [...new Map(pools.map((pool) => [pool.profile, pool])).values()];
  return [
    ...kinds.map(
      ({ profile, settings }) =>
        `Times of an engine: ${profile.source} (${profile.weights[settings.weights]!.status}).`,
    ),
    `Error allowed for: ${percent(confidence.profileError)}, ${confidence.profileErrorSource}.`,
    `Traffic: ${result.requestsSimulated.toLocaleString('en-US')} of ${counted(result.requests, 'request')}, in stretches evenly over the trace; settings are chosen on half of them and judged on the other.`,
    ...kinds.map(
      ({ profile: { gpu } }) =>
        `Price: ${figure(gpu.usdPerHour)} USD for each ${gpu.name} and hour, from the dated table of public list prices or from --prices.`,
    ),
    router === 'prefix_aware'
      ? 'Requests go to the engine with the best sum of two scores: few in flight, and the share of the prompt that it was sent before.'
      : 'Requests go to the engine with the fewest in flight, for its weight. Prefixes are found where the trace names them.',
    ...(pools[0].role === 'all'
      ? []
      : [
          'Prefill and decode are apart: KV goes over the link of each engine that prefills, one request after another.',
        ]),
    `Fleets of two kinds of GPU that were simulated: ${mixedFleetsTried}, of the GPUs that serve a request for the least.`,
    `Autoscaling: windows of 60 s, demand known a cold start of 60 s ahead, engines stay 300 s (Kubernetes' default). At most ${counted(mostEngines, 'engine')}.`,
    'Lower bound: work of the tokens alone, each computed once at the best batch; latency objectives, cold starts and idle time are left out.',
    `Quality: ${percent(plan.quality)} of FP16's accuracy at ${plan.settings.weights}, as the profile says.`,
    'Energy: the power limit of every GPU board on its data sheet, all the time. Boards take less under most loads; hosts and cooling come on top.',
    'Schedules are those of vLLM 0.32 (docs/schedules.md).',
  ];
}
