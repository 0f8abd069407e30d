import { findGpu, priceOf } from '@servegym/profiles';
import {
  curveCharts,
  RESTS_ON,
  rateText,
  usdText,
  VALUES,
  valueRows,
} from '../../packages/element/src/curve-charts.ts';
import { percent, timeText } from '../../packages/element/src/line-chart.ts';
import { block, prose, table } from './markdown.ts';
import { atBreaking, LOAD, type Server, startLine, type Variant } from './simulated-server.ts';

const LOAD_TEXT = `prompts of ${LOAD.input.toLocaleString('en-US')} tokens and answers of ${LOAD.output}`;
const SLO_TEXT = `TTFT p99 at most ${timeText(LOAD.sloTtft)}, TPOT p99 at most ${timeText(LOAD.sloTpot)}`;

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const gpusText = ({ profile: { gpu } }: Variant) =>
  gpu.count === 1 ? gpu.name : `${gpu.count} x ${gpu.name}`;

/** The page of a server. @param all of the site, for its neighbours */
export function serverPage(server: Server, all: readonly Server[]): string {
  const { profile, weights, curve, counts } = server;
  const { model, gpu } = profile;
  const { line, notExpressed } = startLine(server);
  const bounds = { ttft: LOAD.sloTtft, tpot: LOAD.sloTpot };
  const others = counts.filter((count) => count !== gpu.count);
  const parts = [
    `# ${model.name} on ${gpu.name}`,
    summary(server),
    '## Start it',
    block('sh', line.replaceAll(' --', ' \\\n  --')),
    ...notExpressed.map((note) => `Not in the line: ${prose(note)}.`),
    '## Latency, memory and cost against load',
    `Poisson arrivals of requests with ${LOAD_TEXT}. Dotted: the SLO; upright: the breaking point; dots: ${LOAD.rate} requests/s.`,
    `<div class="server-curves" v-pre>\n${curveCharts(curve, bounds).join('\n').replaceAll(/\n+/g, '\n')}\n</div>`,
    ...table(VALUES, valueRows(curve)),
    '## Neighbours',
    ...neighbourTable(server, all),
    ...(others.length === 0
      ? []
      : [`Profiles of ${others.join(', ')} GPUs an engine are there too: choose them below.`]),
    '## Where the numbers come from',
    ...evidence(server),
    '## Another load',
    `<servegym-sim model="${model.name}" gpu="${gpu.name}" count="${gpu.count}" weights="${weights}"></servegym-sim>`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function summary(server: Server): string {
  const { weights, curve } = server;
  const { breaking, usdPerHour } = curve;
  const { ttft, tpot, usdPerMillionTokens } = atBreaking(curve);
  const what = `${gpusText(server)} with ${weights} weights and vLLM's defaults`;
  if (breaking === null)
    return `${what} meet${server.profile.gpu.count === 1 ? 's' : ''} the SLO at no rate: ${SLO_TEXT}, for ${LOAD_TEXT}. At the least load TTFT p99 is ${timeText(ttft.p99)} and TPOT p99 ${timeText(tpot.p99)}.`;
  const then =
    breaking.first === null ? 'No bound breaks above it' : `Above it ${breaking.first} breaks first`;
  return [
    `**${rateText(breaking.rate)} requests/s** is the breaking point of ${what}: ${SLO_TEXT}, for ${LOAD_TEXT}.`,
    `${then}. There, a million tokens cost **${usdText(usdPerMillionTokens)}**, at ${usdText(usdPerHour)} an hour.`,
  ].join('\n');
}

/** This server, FP8 weights, and the next GPUs by memory bandwidth, the first limit of decoding. */
function neighbourTable(server: Server, all: readonly Server[]): string[] {
  const bandwidth = ({ profile }: Server) => findGpu(profile.gpu.name).memoryGBps;
  const ofModel = all
    .filter(({ profile }) => profile.model.name === server.profile.model.name)
    .sort((a, b) => bandwidth(a) - bandwidth(b));
  const at = ofModel.indexOf(server);
  const [down, up] = [ofModel[at - 1], ofModel[at + 1]];
  const link = (other: Server) => `[${gpusText(other)}](/servers/${other.path}/)`;
  const row = (name: string, where: string, { weights, curve }: Variant) => {
    const { tpot, usdPerMillionTokens } = atBreaking(curve);
    const rate = curve.breaking === null ? 'none' : `${rateText(curve.breaking.rate)}\u00a0requests/s`;
    const figures = [rate, timeText(tpot.p50), usdText(usdPerMillionTokens), RESTS_ON[curve.status]];
    return [name, where, weights, ...figures];
  };
  return table(
    ['server', 'GPUs', 'weights', 'breaking point', 'TPOT p50 there', 'USD/M tokens', 'rests on'],
    [
      row('this', gpusText(server), server),
      ...(server.fp8 ? [row('FP8 weights', gpusText(server), server.fp8)] : []),
      ...(up ? [row('one GPU up', link(up), up)] : []),
      ...(down ? [row('one GPU down', link(down), down)] : []),
    ],
  );
}

function evidence({ profile, curve }: Server): string[] {
  const { status, source, error } = curve;
  const listed = priceOf(profile.gpu.name);
  const price = listed
    ? `${usdText(listed.usdPerHour)} for a GPU and hour: ${listed.source}.`
    : 'No list price is known.';
  return [
    `- Profile \`${profile.name}\`: ${RESTS_ON[status]}. ${prose(source)}.\n- Error: TPOT within ${percent(error.share)}, TTFT within ${percent(error.ttftShare)}. ${prose(capital(error.source))}.\n- Price: ${prose(price)}\n- Schedules: vLLM's, by [the simulator](/schedules). [Fidelity](/fidelity) compares it with real servers.`,
  ];
}

/** All servers as a table. */
export function serverList(servers: readonly Server[]): string {
  const rows = servers.map(({ path, profile, weights, curve }) => [
    `[${profile.model.name} on ${profile.gpu.name}](/servers/${path}/)`,
    String(profile.gpu.count),
    weights,
    curve.breaking === null ? 'none' : rateText(curve.breaking.rate),
    curve.breaking === null ? '–' : usdText(atBreaking(curve).usdPerMillionTokens),
    RESTS_ON[curve.status],
  ]);
  return `Breaking point: the most requests/s with ${LOAD_TEXT} at which ${SLO_TEXT}.\n\n${table(['server', 'GPUs', 'weights', 'breaking point', 'USD/M tokens', 'rests on'], rows).join('')}\n`;
}
