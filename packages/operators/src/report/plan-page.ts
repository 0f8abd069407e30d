import { basename } from 'node:path';
import type { FleetPlan, PlanResult } from '../plan/plan-result.ts';
import { sloTermText } from '../tune/slo.ts';
import { kubernetesManifest } from './kubernetes-manifest.ts';
import { confirmLines, planSentence, profilesText, settingsText } from './plan-report.ts';
import { PAGE_COLOURS, reportPage } from './report-page.ts';
import { commandsHtml } from './serving-settings.ts';
import {
  escapeText,
  horizontalGrid,
  logScale,
  px,
  scaleFromZero,
  svgDocument,
  tickLabels,
} from './svg-chart.ts';
import { figure, percent } from './tune-figures.ts';

/** The answer of `plan` as one page. */
export function planPage(result: PlanResult): string {
  const { traffic, plans, slo } = result;
  const lead = `${traffic.requests.toLocaleString('en-US')} requests in ${figure(traffic.hours)} h: ${figure(traffic.rate)} a second, ${figure(traffic.inputTokensPerS)} input and ${figure(traffic.outputTokensPerS)} output tokens a second. Objectives: ${slo.map(sloTermText).join(', ')}.`;
  const [cheapest] = plans;
  const sections =
    cheapest === undefined
      ? [`<div class="card"><p>No profile meets the objectives.</p>${refusedList(result)}</div>`]
      : [
          numbers(cheapest),
          card('In words', planSentence(cheapest).split('\n').map(paragraph).join('')),
          `<div class="plots">${card('What latency costs', frontSvg(plans))}${card('What could still be saved', savingsSvg(plans))}</div>`,
          `<div class="plots">${card('How to start it', commandsHtml(cheapest.commands))}${card('On Kubernetes', `<pre>${escapeText(kubernetesManifest(cheapest))}</pre>`)}</div>`,
          `<div class="card wide"><h3>All plans, cheapest first</h3>${tables(plans)}<p class="lead" style="margin-top:10px">Interval: 95 % over stretches of the traffic, widened by the error of the profile. Autoscaled: the mean bill when engines follow the demand. At least: no schedule of any kind on these GPUs costs less. * no cheaper plan has a lower TTFT p99.</p></div>`,
          `<div class="plots">${card('How to confirm it', `<pre>${escapeText(confirmLines(cheapest).join('\n'))}</pre>`)}${card('Assumptions', assumptions(result, cheapest))}</div>`,
          ...(result.refused.length > 0 ? [card('Not planned', refusedList(result))] : []),
        ];
  return reportPage(
    `What to buy for ${/\s/.test(traffic.source) ? traffic.source : basename(traffic.source)}`,
    lead,
    sections,
    'The figures come from a simulator. Measure one GPU hour on the engine that you choose before you buy.',
  );
}

function card(title: string, body: string): string {
  return `<div class="card stack"><h3>${title}</h3>${body}</div>`;
}

function paragraph(text: string): string {
  return `<p>${escapeText(text)}</p>`;
}

function numbers(plan: FleetPlan): string {
  const { low, high } = plan.confidence.usdPerHour;
  const shown: [string, string][] = [
    [`$${figure(plan.usdPerHour)}`, `an hour (${figure(low)} to ${figure(high)}), all engines all the time`],
    [
      plan.pools.map(({ engines, profile: { gpu } }) => `${engines * gpu.count} × ${gpu.name}`).join(' + '),
      plan.pools
        .map(
          ({ engines, profile: { model }, settings, role }) =>
            `${engines} ${engines === 1 ? 'engine' : 'engines'} of ${model.name}, ${settings.weights}${role === 'all' ? '' : `, for ${role}`}`,
        )
        .join('; '),
    ],
    [
      `$${figure(plan.autoscaledUsdPerHour)}`,
      `an hour when engines follow the demand; no schedule costs less than ${figure(plan.lowerBoundUsdPerHour)}`,
    ],
    [`$${figure(plan.usdPerMillionOutputTokens)}`, 'for a million output tokens of this traffic'],
    [`${figure(plan.headroom)}×`, 'the load that they sustain'],
  ];
  return `<div class="numbers">${shown.map(([value, name]) => `<div class="card"><b>${escapeText(value)}</b><span>${escapeText(name)}</span></div>`).join('')}</div>`;
}

const SIZE = { width: 640, height: 360, left: 56, right: 20, top: 32, bottom: 46 };

/** USD an hour against TTFT p99, the front drawn through. */
function frontSvg(plans: readonly FleetPlan[]): string {
  const { ink, faint, first, paper } = PAGE_COLOURS;
  const x = logScale(
    plans.map(({ ttftP99Ms }) => Math.max(1, ttftP99Ms)),
    [SIZE.left, SIZE.width - SIZE.right],
  );
  const y = scaleFromZero(Math.max(...plans.map(({ usdPerHour }) => usdPerHour)), 5, [
    SIZE.height - SIZE.bottom,
    SIZE.top,
  ]);
  const place = ({ ttftP99Ms, usdPerHour }: FleetPlan) =>
    [px(x.at(Math.max(1, ttftP99Ms))), px(y.at(usdPerHour))] as const;
  const front = plans.filter(({ onFront }) => onFront);
  const line = `<path d="M${front.map((plan) => place(plan).join(' ')).join('L')}" fill="none" stroke="${first}" stroke-opacity="0.5"/>`;
  const dots = plans.map((plan) => {
    const [cx, cy] = place(plan);
    const title = `${profilesText(plan)}, ${plan.settings.weights}: ${plan.engines} engines, ${figure(plan.usdPerHour)} USD/hour, TTFT p99 ${figure(plan.ttftP99Ms)} ms`;
    const style = plan.onFront ? `fill="${first}" stroke="${paper}"` : `fill="none" stroke="${faint}"`;
    return `<circle cx="${cx}" cy="${cy}" r="5" ${style}><title>${escapeText(title)}</title></circle>`;
  });
  const ranks = plans.flatMap((plan, i) => {
    if (!plan.onFront) return [];
    const [cx, cy] = place(plan);
    return [`<text x="${cx}" y="${px(Number(cy) - 9)}" text-anchor="middle" fill="${ink}">${i + 1}</text>`];
  });
  return svgDocument(SIZE.width, SIZE.height, paper, [
    ...horizontalGrid(y, [SIZE.left, SIZE.width - SIZE.right], PAGE_COLOURS),
    ...tickLabels(x, SIZE.height - SIZE.bottom, PAGE_COLOURS),
    `<text x="${SIZE.width / 2}" y="${SIZE.height - 8}" text-anchor="middle" fill="${faint}">TTFT p99, ms, logarithmic</text>`,
    `<text x="${SIZE.left}" y="16" fill="${faint}">USD an hour (filled: on the front, with the place in the table)</text>`,
    line,
    ...dots,
    ...ranks,
  ]);
}

/** Bars of the cheapest plans: all the time, with an autoscaler, and the bound. */
function savingsSvg(plans: readonly FleetPlan[]): string {
  const { ink, faint, grid, first, second, paper } = PAGE_COLOURS;
  const shown = plans.slice(0, 6);
  const height = 44 * shown.length + 60;
  const x = scaleFromZero(Math.max(...shown.map(({ usdPerHour }) => usdPerHour)), 5, [230, 610]);
  const bars = shown.map((plan, i) => {
    const top = 40 + 44 * i;
    const bar = (value: number, at: number, colour: string) =>
      `<rect x="${px(x.at(0))}" y="${top + at}" width="${px(Math.max(1, x.at(value) - x.at(0)))}" height="9" fill="${colour}"/>`;
    return [
      `<text x="220" y="${top + 20}" text-anchor="end" fill="${ink}">${escapeText(barName(plan))}</text>`,
      bar(plan.usdPerHour, 0, faint),
      bar(plan.autoscaledUsdPerHour, 11, first),
      bar(plan.lowerBoundUsdPerHour, 22, second),
    ].join('');
  });
  const key = (at: number, colour: string, name: string) =>
    `<rect x="${at}" y="8" width="10" height="10" fill="${colour}"/><text x="${at + 15}" y="17" fill="${faint}">${name}</text>`;
  return svgDocument(SIZE.width, height, paper, [
    ...x.ticks.map((tick) => `<path d="M${px(x.at(tick))} 30V${height - 24}" stroke="${grid}"/>`),
    ...tickLabels(x, height - 24, PAGE_COLOURS),
    key(230, faint, 'all the time'),
    key(330, first, 'autoscaled'),
    key(425, second, 'no schedule needs less'),
    ...bars,
  ]);
}

/** Engines of a plan in few words. */
function barName({ pools, settings }: FleetPlan): string {
  const names = pools.map(({ engines, profile: { name, gpu } }) => {
    const tensor = gpu.count > 1 ? ` tp${gpu.count}` : '';
    return `${engines} × ${name
      .split('-')
      .slice(0, pools.length === 1 ? 2 : 1)
      .join('-')}${tensor}`;
  });
  return `${names.join(pools[0].role === 'all' ? ' + ' : ' → ')}, ${settings.weights}`;
}

/** Rows of the table that are open. */
const OPEN_ROWS = 12;

/** The plans; those behind the first are there to be opened. */
function tables(plans: readonly FleetPlan[]): string {
  const rest = plans.slice(OPEN_ROWS);
  const more =
    rest.length === 0
      ? ''
      : `<details><summary>${rest.length} more</summary>${table(rest, OPEN_ROWS)}</details>`;
  return table(plans.slice(0, OPEN_ROWS), 0) + more;
}

/** @param from place of the first of the plans, from 0 */
function table(plans: readonly FleetPlan[], from: number): string {
  const head = [
    ...['', 'profile and settings', 'engines', 'GPUs', 'USD/h', 'interval', 'autoscaled', 'at least'],
    ...[
      'USD/M in',
      'USD/M out',
      'TTFT p99',
      'TPOT p99',
      'kW at most',
      'headroom',
      'breaks first',
      'at 1.5×',
      'quality',
      'confidence',
    ],
  ];
  const rows = plans.map((plan, i) => {
    const { low, high } = plan.confidence.usdPerHour;
    const cells = [
      `${from + i + 1}${plan.onFront ? '*' : ''}`,
      `${profilesText(plan)}, ${settingsText(plan)}${plan.router === 'prefix_aware' ? ', routed by prefix' : ''}`,
      String(plan.engines),
      String(plan.gpus),
      figure(plan.usdPerHour),
      `${figure(low)} to ${figure(high)}`,
      figure(plan.autoscaledUsdPerHour),
      figure(plan.lowerBoundUsdPerHour),
      figure(plan.usdPerMillionInputTokens),
      figure(plan.usdPerMillionOutputTokens),
      figure(plan.ttftP99Ms),
      figure(plan.tpotP99Ms),
      plan.mostKw === null ? '-' : figure(plan.mostKw),
      `${figure(plan.headroom)}×`,
      plan.breaksFirst ?? '-',
      percent(plan.goodAtSurge),
      percent(plan.quality),
      plan.confidence.level,
    ];
    return `<tr${from + i === 0 ? ' class="winner"' : ''}>${cells.map((cell) => `<td>${escapeText(cell)}</td>`).join('')}</tr>`;
  });
  return `<table><tr>${head.map((name) => `<th>${name}</th>`).join('')}</tr>${rows.join('')}</table>`;
}

/** Assumptions behind the figures, each with its source. */
function assumptions({ traffic, mostEngines, mixedTried }: PlanResult, plan: FleetPlan): string {
  const { pools, router, confidence } = plan;
  const kinds = [...new Map(pools.map((pool) => [pool.profile, pool])).values()];
  const listed = [
    ...kinds.map(
      ({ profile, settings }) =>
        `Times of an engine: ${profile.source} (${profile.weights[settings.weights]!.status}).`,
    ),
    `Error allowed for: ${percent(confidence.profileError)}, ${confidence.profileErrorSource}.`,
    `Traffic: ${traffic.sampled.toLocaleString('en-US')} of ${traffic.requests.toLocaleString('en-US')} requests, in stretches evenly over the trace; settings are chosen on half of them and judged on the other.`,
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
    `Fleets of two kinds of GPU that were simulated: ${mixedTried}, of the GPUs that serve a request for the least.`,
    `Autoscaling: windows of 60 s, demand known a cold start of 60 s ahead, engines stay 300 s (Kubernetes' default). At most ${mostEngines} engines.`,
    'Lower bound: work of the tokens alone, each computed once at the best batch; latency objectives, cold starts and idle time are left out.',
    `Quality: ${percent(plan.quality)} of FP16's accuracy at ${plan.settings.weights}, as the profile says.`,
    'Energy: the power limit of every GPU board on its data sheet, all the time. Boards take less under most loads; hosts and cooling come on top.',
    'Schedules are those of vLLM 0.32 (docs/schedules.md).',
  ];
  return `<ul>${listed.map((text) => `<li>${escapeText(text)}</li>`).join('')}</ul>`;
}

function refusedList({ refused }: PlanResult): string {
  return `<ul>${refused.map(({ profile, precision, reason }) => `<li>${escapeText(`${profile.name}, ${precision}: ${reason}`)}</li>`).join('')}</ul>`;
}
